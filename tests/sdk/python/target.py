"""The endpoint under test, clients for it, and how a refusal is read.

The environment names the endpoint: LARIMAR_TABLE_ENDPOINT (`http://127.0.0.1:41234/devstoreaccount1`),
LARIMAR_ACCOUNT and LARIMAR_KEY.
"""

import contextlib
import json
import os
import uuid
from datetime import datetime, timezone

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableServiceClient

ENDPOINT = os.environ.get("LARIMAR_TABLE_ENDPOINT", "").rstrip("/")
ACCOUNT = os.environ.get("LARIMAR_ACCOUNT", "")
KEY = os.environ.get("LARIMAR_KEY", "")

LONG_AGO = datetime(2020, 1, 1, tzinfo=timezone.utc)
FAR_AHEAD = datetime(2120, 1, 1, tzinfo=timezone.utc)

# A retry would hide a wrong answer.
OPTIONS = {"retry_total": 0}


def key_credential():
    return AzureNamedKeyCredential(ACCOUNT, KEY)


def service_client(credential=None, endpoint=None, **options):
    return TableServiceClient(endpoint or ENDPOINT, credential=credential or key_credential(), **OPTIONS, **options)


def table_client(name, credential=None):
    return TableClient(ENDPOINT, name, credential=credential or key_credential(), **OPTIONS)


def sas_table_client(name, token):
    return table_client(name, AzureSasCredential(token))


def sas_service_client(token):
    return service_client(AzureSasCredential(token))


def fresh_name(prefix="sdk"):
    return prefix + uuid.uuid4().hex


def error_code(error):
    """The service's code; an error of `create_entity` leaves it in the answer's body or header."""
    code = getattr(error, "error_code", None)
    if code is None and error.response.text().startswith("{"):
        code = json.loads(error.response.text())["odata.error"]["code"]
    return getattr(code, "value", code) or error.response.headers.get("x-ms-error-code")


@contextlib.contextmanager
def refused(status, code):
    """The block is refused with this status and code; yields the caught error."""
    with pytest.raises(HttpResponseError) as caught:
        yield caught
    got = (caught.value.status_code, error_code(caught.value))
    assert got == (status, code), caught.value.message


class Answers:
    """Status and body of each answer, for calls whose result the SDK hides (a delete that swallows its 404)."""

    def __init__(self):
        self.seen = []

    def __call__(self, response):
        self.seen.append(response.http_response)

    @property
    def last_status(self):
        return self.seen[-1].status_code

    @property
    def last_code(self):
        return json.loads(self.seen[-1].text())["odata.error"]["code"]


def row_keys(entities):
    return [entity["RowKey"] for entity in entities]


def keys(entities):
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]
