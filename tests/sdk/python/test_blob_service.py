"""Settings of the Blob service as a whole, its statistics, and what it does not have."""

from datetime import datetime, timezone
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobAnalyticsLogging, CorsRule, ImmutabilityPolicy, Metrics, RetentionPolicy

import blobs
from target import FAR_AHEAD, plain, refused


@pytest.fixture
def settings(blob_service):
    """The account's client; its settings are put back afterwards, for they belong to all."""
    before = blob_service.get_service_properties()
    yield blob_service
    blob_service.set_service_properties(
        analytics_logging=before["analytics_logging"], hour_metrics=before["hour_metrics"],
        minute_metrics=before["minute_metrics"], cors=before["cors"] or [])


def logging(days):
    return BlobAnalyticsLogging(
        read=True, write=True, delete=False, retention_policy=RetentionPolicy(enabled=True, days=days))


def metrics(days):
    return Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=days))


def rule(origin="http://www.xyz.com"):
    return CorsRule(
        [origin, "http://www.abc.com"], ["GET", "PUT"], allowed_headers=["x-ms-meta-abc", "x-ms-meta-data*"],
        exposed_headers=["x-ms-meta-source*"], max_age_in_seconds=500)


def read(client):
    properties = client.get_service_properties()
    return {name: plain(properties[name]) for name in ("analytics_logging", "hour_metrics", "minute_metrics", "cors")}


@pytest.mark.scenario("blob-service-properties")
def test_settings_are_read_back_and_omitted_parts_keep_theirs(settings):
    off = Metrics(enabled=False)
    settings.set_service_properties(
        analytics_logging=logging(5), hour_metrics=metrics(6), minute_metrics=off, cors=[rule(), rule("*")])
    expected = {
        "analytics_logging": plain(logging(5)), "hour_metrics": plain(metrics(6)), "minute_metrics": plain(off),
        "cors": plain([rule(), rule("*")]),
    }
    assert read(settings) == expected

    settings.set_service_properties(minute_metrics=metrics(7))
    expected["minute_metrics"] = plain(metrics(7))
    assert read(settings) == expected

    settings.set_service_properties(analytics_logging=BlobAnalyticsLogging())
    expected["analytics_logging"] = plain(BlobAnalyticsLogging())
    assert read(settings) == expected

    settings.set_service_properties(cors=[rule("http://one.example")])
    expected["cors"] = plain([rule("http://one.example")])
    assert read(settings) == expected

    settings.set_service_properties(cors=[])
    assert not read(settings)["cors"]
    settings.set_service_properties(hour_metrics=off)
    assert read(settings)["hour_metrics"] == plain(off)


@pytest.mark.scenario("blob-service-properties")
def test_wrong_settings_are_refused_and_change_nothing(settings):
    settings.set_service_properties(hour_metrics=metrics(6), cors=[rule()])
    before = read(settings)
    with refused(400, "InvalidXmlDocument"):
        settings.set_service_properties(cors=[rule() for _ in range(6)])
    with refused(400, "InvalidXmlDocument"):
        settings.set_service_properties(hour_metrics=metrics(366))
    with refused(400, "InvalidXmlDocument"):
        settings.set_service_properties(analytics_logging=logging(0))
    assert read(settings) == before


@pytest.mark.scenario("blob-service-stats")
def test_statistics_come_from_the_secondary_endpoint(container):
    """For statistics the SDK changes the host of its URL and keeps the path, so the path names the secondary here."""
    host = urlsplit(blobs.ENDPOINT).netloc
    container.upload_blob("blob", b"content")
    with blobs.service_client(endpoint=f"{blobs.ENDPOINT}-secondary", secondary_hostname=host) as client:
        replication = client.get_service_stats()["geo_replication"]
        assert client.get_blob_client(container.container_name, "blob").download_blob().readall() == b"content"
    assert replication["status"] == "live"
    assert isinstance(replication["last_sync_time"], datetime)

    with blobs.service_client(secondary_hostname=host) as primary:
        with refused(400, "InvalidQueryParameterValue"):
            primary.get_service_stats()


@pytest.mark.scenario("blob-service-stats")
def test_the_account_tells_its_kind(blob_service, container):
    blob = container.upload_blob("blob", b"")
    for client in (blob_service, container, blob):
        information = client.get_account_information()
        assert information["sku_name"].startswith("Standard_")
        assert information["account_kind"] == "StorageV2"


@pytest.mark.scenario("blob-out-of-scope")
def test_what_is_out_of_scope_is_refused(blob_service, container):
    blob = container.upload_blob("blob", b"content")
    container.get_blob_client("deleted").upload_blob(b"gone")
    container.get_blob_client("deleted").delete_blob()
    calls = {
        "undelete": lambda: container.get_blob_client("deleted").undelete_blob(),
        "immutability": lambda: blob.set_immutability_policy(
            ImmutabilityPolicy(expiry_time=FAR_AHEAD, policy_mode="Unlocked")),
        "legal hold": lambda: blob.set_legal_hold(True),
        "user delegation key": lambda: blob_service.get_user_delegation_key(
            datetime.now(timezone.utc), datetime.now(timezone.utc)),
        "version": lambda: container.get_blob_client(
            "blob", version_id="2020-01-01T00:00:00.0000000Z").download_blob(),
        "query": lambda: blob.query_blob("SELECT * from BlobStorage").readall(),
        "undelete container": lambda: blob_service.undelete_container("gone", "01D60F8BB59A4652"),
    }
    for name, call in calls.items():
        with pytest.raises(HttpResponseError) as caught:
            call()
        assert 400 <= caught.value.status_code < 500 or caught.value.status_code == 501, name
    assert blob.download_blob().readall() == b"content"
