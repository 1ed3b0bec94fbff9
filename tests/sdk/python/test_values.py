"""Property values: every type, its extremes and its limits."""

import math
import re
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from azure.data.tables import EdmType, EntityProperty

from target import refused

ETAG = re.compile(r"""^W/"datetime'(\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z)'"$""")


def written_and_read(table, **properties):
    """Stores the properties as one entity and gives it back, having seen a query agree with the point get."""
    table.create_entity({"PartitionKey": "p", "RowKey": "r", **properties})
    got = table.get_entity("p", "r")
    [listed] = table.list_entities()
    assert repr(listed) == repr(got)
    assert listed.metadata == got.metadata
    return got


def assert_same(got, expected):
    assert set(got) == set(expected) | {"PartitionKey", "RowKey"}
    for name, value in expected.items():
        assert (type(got[name]), got[name]) == (type(value), value), name


@pytest.mark.scenario("entity-types")
def test_every_type_comes_back_as_it_was_written(table):
    expected = {
        "Text": "some text",
        "Small": 42,
        "Big": EntityProperty(42, EdmType.INT64),
        "Ratio": 2.5,
        "Whole": 3.0,
        "Yes": True,
        "No": False,
        "Id": uuid.UUID("A455C695-DF98-5678-AAAA-81D3367E5A34"),
        "Bytes": bytes(range(256)),
        "Nothing": b"",
    }
    when = datetime(2021, 6, 8, 2, 5, 9, 123456, tzinfo=timezone.utc)
    got = written_and_read(table, When=when, **expected)
    assert got.pop("When") == when
    assert_same(got, expected)


@pytest.mark.scenario("entity-types")
def test_types_may_be_named_and_sent_as_text(table):
    got = written_and_read(
        table,
        Small=EntityProperty(7, EdmType.INT32),
        Yes=EntityProperty(True, EdmType.BOOLEAN),
        No=EntityProperty("false", EdmType.BOOLEAN),
        Whole=EntityProperty("5", EdmType.DOUBLE),
        Text=EntityProperty(12, EdmType.STRING),
    )
    assert_same(got, {"Small": 7, "Yes": True, "No": False, "Whole": 5.0, "Text": "12"})


@pytest.mark.scenario("entity-types")
def test_one_name_may_have_another_type_on_another_entity(table):
    for row, value in (("1", "text"), ("2", 7), ("3", 1.5), ("4", True)):
        table.create_entity({"PartitionKey": "p", "RowKey": row, "Value": value})
    assert [entity["Value"] for entity in table.list_entities()] == ["text", 7, 1.5, True]


@pytest.mark.scenario("entity-types")
def test_timestamp_is_the_services_and_makes_the_etag(table):
    before = datetime.now(timezone.utc) - timedelta(minutes=5)
    claimed = datetime(2001, 1, 1, tzinfo=timezone.utc)
    inserted = table.create_entity({"PartitionKey": "p", "RowKey": "r", "Timestamp": claimed})
    got = table.get_entity("p", "r")
    assert before < got.metadata["timestamp"] < datetime.now(timezone.utc) + timedelta(minutes=5)
    assert got.metadata["etag"] == inserted["etag"]
    written = ETAG.match(inserted["etag"])
    assert written, inserted["etag"]
    assert written[1].replace("%3A", ":") == got.metadata["timestamp"].tables_service_value


@pytest.mark.scenario("int64-extremes")
def test_integers_keep_their_width_and_value(table):
    big = [-(2**63), 2**63 - 1, 0, -1, 2**53 + 1, 2**31, 2**31 - 1]
    expected = {f"Big{n}": EntityProperty(value, EdmType.INT64) for n, value in enumerate(big)}
    expected |= {"Smallest": -(2**31), "Largest": 2**31 - 1, "Zero": 0}
    assert_same(written_and_read(table, **expected), expected)


@pytest.mark.scenario("double-specials")
def test_doubles_stay_doubles(table):
    values = [0.0, 1.0, -1.0, 0.1, 1 / 3, 1e15, 1e16, 123456789012345680.0, 1e21, 1.23456789012346e24, 5e-324,
              2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf]
    expected = {f"D{n}": value for n, value in enumerate(values)}
    got = written_and_read(table, NotANumber=math.nan, **expected)
    nan = got.pop("NotANumber")
    assert type(nan) is float and math.isnan(nan)
    assert_same(got, expected)


@pytest.mark.scenario("datetime-extremes")
@pytest.mark.parametrize("sent, stored", [
    ("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
    ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
    ("2008-07-10T12:30:45.1234567Z", "2008-07-10T12:30:45.1234567Z"),
    ("2008-07-10T12:30:45.1200000Z", "2008-07-10T12:30:45.12Z"),
    ("2008-07-10T12:30:45.0000001Z", "2008-07-10T12:30:45.0000001Z"),
    ("2008-07-10T12:30:45.0000000Z", "2008-07-10T12:30:45Z"),
    ("2008-07-10T00:00:00", "2008-07-10T00:00:00Z"),
    ("2008-07-10T01:30:00+02:00", "2008-07-09T23:30:00Z"),
    ("2000-02-29T23:59:59.999Z", "2000-02-29T23:59:59.999Z"),
])
def test_datetime_text_is_kept_to_the_tick(table, sent, stored):
    got = written_and_read(table, When=EntityProperty(sent, EdmType.DATETIME))
    assert got["When"].tables_service_value == stored


@pytest.mark.scenario("datetime-extremes")
def test_datetime_objects_are_kept_to_the_microsecond(table):
    first = datetime(1601, 1, 1, tzinfo=timezone.utc)
    last = datetime.max.replace(tzinfo=timezone.utc)
    elsewhere = datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=-7)))
    got = written_and_read(table, First=first, Last=last, Elsewhere=elsewhere)
    assert (got["First"], got["Last"], got["Elsewhere"]) == (first, last, elsewhere)


@pytest.mark.scenario("datetime-extremes")
@pytest.mark.parametrize("text", ["1600-12-31T23:59:59.9999999Z", "0001-01-01T00:00:00Z"])
def test_datetime_before_1601_is_refused(table, text):
    with refused(400, "OutOfRangeInput"):
        table.create_entity({"PartitionKey": "p", "RowKey": "r", "When": EntityProperty(text, EdmType.DATETIME)})
    assert list(table.list_entities()) == []


@pytest.mark.scenario("strings")
def test_strings_come_back_unchanged(table):
    values = [
        "", " ", "  both ends  ", "tab\tand\r\nline\n", "it's \"quoted\"", "back\\slash /slash", "a''b",
        "".join(map(chr, range(1, 32))), "".join(map(chr, range(0x7F, 0xA0))), "null", "true", "2020-01-01T00:00:00Z",
        "naïve Ünïcödé", "e\u0301 é", "日本語", "שלום", "\u2028\u2029\ufeff", "😀", "👩\u200d👩\u200d👧", "a\U0010ffffz",
        "<tag>&amp;</tag>", "{\"json\": [1]}", "%41%2B+",
    ]
    expected = {f"S{n}": value for n, value in enumerate(values)} | {"Größe": "name"}
    assert_same(written_and_read(table, **expected), expected)


@pytest.mark.scenario("large-values")
@pytest.mark.parametrize("value", ["x" * 32768, "é" * 32768, "😀" * 16384, b"\xff" * 65536])
def test_values_of_64_kib_are_accepted_and_no_more(table, value):
    got = written_and_read(table, Value=value)
    assert got["Value"] == value
    one_more = value + value[:1]
    with refused(400, "PropertyValueTooLarge"):
        table.create_entity({"PartitionKey": "p", "RowKey": "more", "Value": one_more})
    with refused(400, "PropertyValueTooLarge"):
        table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "Value": one_more})
    assert [entity["Value"] for entity in table.list_entities()] == [value]


@pytest.mark.scenario("large-values")
def test_252_properties_are_accepted_and_no_more(table):
    expected = {f"P{n:03}": n for n in range(252)}
    assert_same(written_and_read(table, **expected), expected)
    with refused(400, "TooManyProperties"):
        table.create_entity({"PartitionKey": "p", "RowKey": "more", **expected, "P252": 252})
    with refused(400, "TooManyProperties"):
        table.update_entity({"PartitionKey": "p", "RowKey": "r", "P252": 252})
    assert_same(table.get_entity("p", "r"), expected)
