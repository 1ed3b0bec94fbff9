"""The server under test, clients for its tables, and how a refusal is read; `queues` and `blobs` have the others' clients.

The environment names the endpoints: LARIMAR_TABLE_ENDPOINT (`http://127.0.0.1:41234/devstoreaccount1`) and so on, with
LARIMAR_ACCOUNT and LARIMAR_KEY.
"""

import contextlib
import json
import os
import time
import uuid
from datetime import datetime, timezone

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError  # noqa: F401
from azure.data.tables import TableClient, TableServiceClient

VARIABLES = [
    "LARIMAR_TABLE_ENDPOINT", "LARIMAR_QUEUE_ENDPOINT", "LARIMAR_BLOB_ENDPOINT", "LARIMAR_ACCOUNT", "LARIMAR_KEY",
]


def variable(name):
    return os.environ.get(name, "")


ENDPOINT = variable("LARIMAR_TABLE_ENDPOINT").rstrip("/")
ACCOUNT = variable("LARIMAR_ACCOUNT")
KEY = variable("LARIMAR_KEY")

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


def eventually(look, patience=60):
    """What `look` finds as soon as it finds anything; waiting for it longer than that is a failure."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"nothing was found in {patience} s")


def plain(value):
    """The SDK's models as dictionaries, so that they can be compared."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "__dict__"):
        return {name: plain(item) for name, item in vars(value).items() if not name.startswith("_")}
    return value


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
