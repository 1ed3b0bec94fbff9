"""Clients for the blobs of the server under test, and content to store in them."""

import base64
import hashlib
import random

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient

from target import ACCOUNT, KEY, OPTIONS, variable

ENDPOINT = variable("LARIMAR_BLOB_ENDPOINT").rstrip("/")


def service_client(credential=None, endpoint=None, **options):
    credential = credential or AzureNamedKeyCredential(ACCOUNT, KEY)
    return BlobServiceClient(endpoint or ENDPOINT, credential=credential, **OPTIONS, **options)


def anonymous_container_client(name):
    return ContainerClient(ENDPOINT, name, **OPTIONS)


def anonymous_blob_client(container, name):
    return BlobClient(ENDPOINT, container, name, **OPTIONS)


def sas_service_client(token):
    return service_client(AzureSasCredential(token))


def sas_container_client(name, token):
    return ContainerClient(ENDPOINT, name, credential=AzureSasCredential(token), **OPTIONS)


def sas_blob_client(container, name, token):
    return BlobClient(ENDPOINT, container, name, credential=AzureSasCredential(token), **OPTIONS)


def content(size, seed=0):
    """The same bytes for the same size and seed, in no pattern that a mix-up of ranges could keep."""
    return random.Random(f"{size}/{seed}").randbytes(size)


def md5(data):
    return hashlib.md5(data).digest()


def base64_of(data):
    return base64.b64encode(data).decode()


def names(items):
    return [item.name for item in items]
