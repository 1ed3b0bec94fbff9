"""Storage analytics: requests logged to blobs of `$logs`, and counted in the `$Metrics` tables."""

import html
import re
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableAnalyticsLogging, TableMetrics
from azure.storage.blob import BlobAnalyticsLogging
from azure.storage.blob import Metrics as BlobMetrics
from azure.storage.queue import Metrics as QueueMetrics
from azure.storage.queue import QueueAnalyticsLogging

import target
from blobs import names
from target import ACCOUNT, eventually, fresh_name

LOG = re.compile(r"(blob|queue|table)/\d{4}/\d\d/\d\d/\d\d00/\d{6}\.log")
FIELDS = 30


@pytest.fixture
def services(service, queue_service, blob_service):
    """The account's three clients; their settings are put back afterwards."""
    clients = {"table": service, "queue": queue_service, "blob": blob_service}
    before = {name: client.get_service_properties() for name, client in clients.items()}
    yield clients
    for name, client in clients.items():
        client.set_service_properties(**{
            part: before[name][part] for part in ("analytics_logging", "hour_metrics", "minute_metrics")})


def fields_of(line):
    """The fields of a log's line: cut at semicolons outside of quotes."""
    fields, quoted = [""], False
    for character in line:
        quoted ^= character == '"'
        if character == ";" and not quoted:
            fields.append("")
        else:
            fields[-1] += character
    return [html.unescape(field[1:-1] if field.startswith('"') else field) for field in fields]


def entries(logs, prefix):
    """Every entry of the logs with this beginning, and the log's name."""
    for blob in logs.list_blobs(name_starts_with=prefix):
        for line in logs.download_blob(blob.name, encoding="utf-8").readall().splitlines():
            yield fields_of(line), blob.name


def entry(logs, prefix, operation, mention):
    """The entry of an operation on something, as soon as it is there."""
    return eventually(lambda: next(
        (found for found in entries(logs, prefix) if found[0][2] == operation and mention in found[0][12]), None))


@pytest.mark.scenario("analytics-logs")
def test_requests_of_every_service_are_logged(services, blob_service, container, fresh_queues, fresh_tables):
    everything = {"read": True, "write": True, "delete": True}
    services["table"].set_service_properties(analytics_logging=TableAnalyticsLogging(**everything))
    services["queue"].set_service_properties(analytics_logging=QueueAnalyticsLogging(**everything))
    services["blob"].set_service_properties(analytics_logging=BlobAnalyticsLogging(**everything))
    answers = []
    blob = container.get_blob_client('a "b"; c')
    start = datetime.now(timezone.utc) - timedelta(seconds=1)
    blob.upload_blob(b"12345", raw_response_hook=lambda response: answers.append(response.http_response))
    blob.download_blob().readall()
    blob.delete_blob()
    queue, table = fresh_queues(), fresh_tables()
    queue.send_message("text")
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})

    logs = blob_service.get_container_client("$logs")
    fields, name = entry(logs, "blob/", "PutBlob", container.container_name)
    assert LOG.fullmatch(name)
    assert len(fields) == FIELDS
    version, time, _, status, code = fields[:5]
    assert (version, status, code) == ("1.0", "Success", "201")
    assert start <= datetime.fromisoformat(time) <= datetime.now(timezone.utc) + timedelta(seconds=1)
    assert fields[7:11] == ["authenticated", ACCOUNT, ACCOUNT, "blob"]
    assert fields[11].endswith(answers[0].request.url.split("?")[0].split("://")[1].split("/", 1)[1])
    assert fields[12] == f'/{ACCOUNT}/{container.container_name}/a "b"; c'
    assert fields[13] == answers[0].headers["x-ms-request-id"]
    assert fields[15].startswith("127.0.0.1")
    assert fields[16] == answers[0].request.headers["x-ms-version"]
    assert fields[21] == "5"
    assert answers[0].headers["ETag"].strip('"') in fields[24]
    assert fields[29] == answers[0].request.headers["x-ms-client-request-id"]

    for prefix, operation, mention in (
            ("blob/", "GetBlob", container.container_name), ("blob/", "DeleteBlob", container.container_name),
            ("queue/", "PutMessage", queue.queue_name), ("table/", "InsertEntity", table.table_name)):
        fields, name = entry(logs, prefix, operation, mention)
        assert (len(fields), fields[3]) == (FIELDS, "Success")
        metadata = logs.get_blob_client(name).get_blob_properties().metadata
        metadata = {key.lower(): value for key, value in metadata.items()}
        assert metadata["starttime"] <= fields[1][:19] + "Z" <= metadata["endtime"]
        assert metadata["logversion"] == "1.0" and set(metadata["logtype"].split(",")) <= {"read", "write", "delete"}
    assert "$logs" not in names(blob_service.list_containers())


@pytest.mark.scenario("analytics-metrics")
def test_requests_are_counted_by_the_hour_and_the_minute(services, container):
    on = {"enabled": True, "include_apis": True}
    services["table"].set_service_properties(hour_metrics=TableMetrics(**on), minute_metrics=TableMetrics(**on))
    services["queue"].set_service_properties(hour_metrics=QueueMetrics(**on), minute_metrics=QueueMetrics(**on))
    services["blob"].set_service_properties(hour_metrics=BlobMetrics(**on), minute_metrics=BlobMetrics(**on))
    start = datetime.now(timezone.utc)
    for number in range(3):
        container.upload_blob(f"blob{number}", b"12345")
    services["queue"].create_queue(queue := fresh_name())
    services["queue"].delete_queue(queue)
    for period, since in (("Hour", start.replace(minute=0)), ("Minute", start)):
        counted = {row["RowKey"]: row for row in eventually(
            lambda: rows(f"$Metrics{period}PrimaryTransactionsBlob", since, "user;PutBlob"), patience=180)}
        put, every = counted["user;PutBlob"], counted["user;All"]
        assert 0 < value(put, "TotalRequests") <= value(every, "TotalRequests")
        assert value(put, "Success") > 0 and value(put, "TotalIngress") > 0
        assert every["Availability"] == 100.0 and 0 < every["PercentSuccess"] <= 100
        assert put["AverageE2ELatency"] >= put["AverageServerLatency"] >= 0
        eventually(lambda: rows(f"$Metrics{period}PrimaryTransactionsQueue", since, "user;CreateQueue"))
    assert not [item.name for item in services["table"].list_tables() if item.name.startswith("$")]


def rows(table, since, row):
    """The rows of the first period since then that has this row; none if there is none yet, or no table either."""
    with target.table_client(table) as client:
        try:
            found = list(client.query_entities(f"PartitionKey ge '{since:%Y%m%dT%H%M}'"))
        except ResourceNotFoundError:
            return []
    periods = [item["PartitionKey"] for item in found if item["RowKey"] == row]
    return [item for item in found if periods and item["PartitionKey"] == periods[0]]


def value(row, column):
    """An Int64 comes with its type."""
    return getattr(row[column], "value", row[column])
