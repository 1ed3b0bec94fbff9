"""Settings of the service as a whole, and its statistics."""

from datetime import datetime
from urllib.parse import urlsplit

import pytest
from azure.data.tables import TableAnalyticsLogging, TableCorsRule, TableMetrics, TableRetentionPolicy

import target
from target import plain, refused


@pytest.fixture
def settings(service):
    """The account's client; its settings are put back afterwards, for they belong to all."""
    before = service.get_service_properties()
    yield service
    service.set_service_properties(
        analytics_logging=before["analytics_logging"], hour_metrics=before["hour_metrics"],
        minute_metrics=before["minute_metrics"], cors=before["cors"] or [])


def logging(days):
    return TableAnalyticsLogging(
        read=True, write=True, delete=False, retention_policy=TableRetentionPolicy(enabled=True, days=days))


def metrics(days):
    return TableMetrics(
        enabled=True, include_apis=True, retention_policy=TableRetentionPolicy(enabled=True, days=days))


def rule(origin="http://www.xyz.com"):
    return TableCorsRule(
        [origin, "http://www.abc.com"], ["GET", "PUT", "MERGE"], allowed_headers=["x-ms-meta-abc", "x-ms-meta-data*"],
        exposed_headers=["x-ms-meta-source*"], max_age_in_seconds=500)


@pytest.mark.scenario("service-properties")
def test_settings_are_read_back_and_omitted_parts_keep_theirs(settings):
    off = TableMetrics(enabled=False)
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

    settings.set_service_properties(analytics_logging=TableAnalyticsLogging())
    expected["analytics_logging"] = plain(TableAnalyticsLogging())
    assert read(settings) == expected

    settings.set_service_properties(cors=[rule("http://one.example")])
    expected["cors"] = plain([rule("http://one.example")])
    assert read(settings) == expected

    settings.set_service_properties(cors=[])
    assert not read(settings)["cors"]
    settings.set_service_properties(hour_metrics=off)
    assert read(settings)["hour_metrics"] == plain(off)


def read(client):
    return {name: plain(value) for name, value in client.get_service_properties().items()}


@pytest.mark.scenario("service-properties")
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


@pytest.mark.scenario("service-stats")
def test_statistics_come_from_the_secondary_endpoint():
    """For statistics the SDK changes the host of its URL and keeps the path, so the path names the secondary here."""
    host = urlsplit(target.ENDPOINT).netloc
    with target.service_client(endpoint=f"{target.ENDPOINT}-secondary", secondary_hostname=host) as secondary:
        replication = secondary.get_service_stats()["geo_replication"]
    assert replication["status"] == "live"
    assert isinstance(replication["last_sync_time"], datetime)

    with target.service_client(secondary_hostname=host) as primary:
        with refused(400, "InvalidQueryParameterValue"):
            primary.get_service_stats()
