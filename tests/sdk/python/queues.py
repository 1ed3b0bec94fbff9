"""Clients for the queues of the server under test."""

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.storage.queue import QueueClient, QueueServiceClient

from target import ACCOUNT, KEY, OPTIONS, eventually, variable

ENDPOINT = variable("LARIMAR_QUEUE_ENDPOINT").rstrip("/")


def service_client(credential=None, endpoint=None, **options):
    credential = credential or AzureNamedKeyCredential(ACCOUNT, KEY)
    return QueueServiceClient(endpoint or ENDPOINT, credential=credential, **OPTIONS, **options)


def sas_service_client(token):
    return service_client(AzureSasCredential(token))


def sas_queue_client(name, token):
    return QueueClient(ENDPOINT, name, credential=AzureSasCredential(token), **OPTIONS)


def texts(messages):
    return [message.content for message in messages]


def count_is(queue, number):
    """The approximate count is never below the number of messages, and comes to it."""
    assert queue.get_queue_properties().approximate_message_count >= number
    eventually(lambda: queue.get_queue_properties().approximate_message_count == number)
