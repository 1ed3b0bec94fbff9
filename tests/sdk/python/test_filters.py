"""`$filter`: operators, literals, keys and what is not a filter."""

import uuid
from datetime import datetime, timedelta, timezone

import pytest
from azure.data.tables import EdmType, EntityProperty

from target import keys, refused, row_keys

WHEN = datetime(2021, 6, 8, 2, 5, 9, 123456, tzinfo=timezone.utc)
ID = uuid.UUID("a455c695-df98-5678-aaaa-81d3367e5a34")


@pytest.mark.scenario("filter-operators")
def test_operators_and_their_precedence(table):
    for row, properties in {
        "1": {"Num": 1, "Name": "a", "Flag": True},
        "2": {"Num": 2, "Name": "b", "Flag": False},
        "3": {"Num": 3, "Name": "c", "Flag": True},
        "4": {"Num": 4, "Name": "d"},
        "5": {"Name": "e", "Flag": True},
    }.items():
        table.create_entity({"PartitionKey": "p", "RowKey": row, **properties})

    for query, expected in {
        "Num eq 3": "3",
        "Num ne 3": "124",
        "Num gt 2": "34",
        "Num ge 2": "234",
        "Num lt 2": "1",
        "Num le 2": "12",
        "Name gt 'b' and Name le 'd'": "34",
        "Num gt 1 and Num lt 4": "23",
        "Num eq 1 or Num eq 4": "14",
        "not (Num eq 3)": "1245",
        "not (Num gt 1 and Num lt 4)": "145",
        "Name eq 'a' or Name eq 'c' and Flag eq false": "1",
        "(Name eq 'a' or Name eq 'c') and Flag eq false": "",
        "not (Num ne 3) and Flag eq true": "35",
        "not (Flag eq true) or Num eq 1": "124",
        "((Num ge 2) and ((Num le 3)))": "23",
        "Num ge 2 and not (Name eq 'c') and Flag eq false or Name eq 'e'": "25",
        "3 eq Num": "3",
        "2 lt Num": "34",
        "Flag": "135",
        "not Flag": "24",
        "Flag lt true": "2",
        "Missing eq 1": "",
        "Missing ne 1": "",
        "not (Missing eq 1)": "12345",
        "not (Name ne '')": "",
    }.items():
        assert "".join(row_keys(table.query_entities(query))) == expected, query


@pytest.fixture
def typed(table):
    """Row `r` holds a value of each type; row `s`, after it in every order, holds others."""
    table.create_entity({
        "PartitionKey": "p", "RowKey": "r", "Text": "it's", "Small": 7, "Negative": -7, "Ratio": 2.5, "Whole": 3.0,
        "Big": EntityProperty(2**40, EdmType.INT64), "Little": EntityProperty(7, EdmType.INT64), "Yes": True,
        "When": WHEN, "Id": ID, "Bytes": b"\x01\xab",
    })
    table.create_entity({
        "PartitionKey": "p", "RowKey": "s", "Text": "it't", "Small": 8, "Negative": -6, "Ratio": 2.75, "Whole": 4.0,
        "Big": EntityProperty(2**40 + 1, EdmType.INT64), "Little": EntityProperty(8, EdmType.INT64), "Yes": False,
        "When": WHEN + timedelta(microseconds=1), "Id": uuid.UUID("ffffffff-df98-5678-aaaa-81d3367e5a34"),
        "Bytes": b"\x01\xac",
    })
    return table


@pytest.mark.scenario("filter-literals")
@pytest.mark.parametrize("name, value", [
    ("Text", "it's"), ("Small", 7), ("Negative", -7), ("Ratio", 2.5), ("Big", 2**40), ("Little", 7), ("When", WHEN),
    ("Id", ID), ("Bytes", b"\x01\xab"), ("Whole", 3.0), ("Whole", 3),
])
def test_the_sdk_formats_parameters_of_every_type(typed, name, value):
    def rows(operator):
        return row_keys(typed.query_entities(f"{name} {operator} @value", parameters={"value": value}))

    assert rows("eq") == ["r"]
    assert rows("ne") == ["s"]
    assert rows("gt") == ["s"]
    assert rows("ge") == ["r", "s"]
    assert rows("lt") == []
    assert rows("le") == ["r"]


@pytest.mark.scenario("filter-literals")
def test_boolean_parameters(typed):
    assert row_keys(typed.query_entities("Yes eq @value", parameters={"value": True})) == ["r"]
    assert row_keys(typed.query_entities("Yes ne @value", parameters={"value": True})) == ["s"]
    assert row_keys(typed.query_entities("Yes eq @value", parameters={"value": False})) == ["s"]


@pytest.mark.scenario("filter-literals")
@pytest.mark.parametrize("query, expected", [
    ("Text eq 'it''s'", ["r"]),
    ("Big eq 1099511627776L", ["r"]),
    ("Big eq 1099511627776l", ["r"]),
    ("Ratio eq 25e-1", ["r"]),
    ("Ratio lt 2.6", ["r"]),
    ("Bytes eq X'01ab'", ["r"]),
    ("Bytes eq x'01AB'", ["r"]),
    ("Bytes eq binary'01ab'", ["r"]),
    ("Id eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'", ["r"]),
    ("When eq datetime'2021-06-08T02:05:09.1234560Z'", ["r"]),
    ("When gt datetime'2021-06-08T02:05:09.1234559Z' and When lt datetime'2021-06-08T02:05:09.1234561Z'", ["r"]),
    ("When ge datetime'2021-06-08'", ["r", "s"]),
    ("Timestamp gt datetime'2020-01-01T00:00:00Z'", ["r", "s"]),
    ("Timestamp lt datetime'2020-01-01T00:00:00Z'", []),
    # A narrower literal is widened to the property, a property never to the literal; any other mismatch reads as
    # if the property were less than the literal.
    ("Big gt 7", ["r", "s"]),
    ("Whole eq 3L", ["r"]),
    ("Small eq 7L", []),
    ("Small ne 7L", ["r", "s"]),
    ("Little eq 7.0", []),
    ("Small eq '7'", []),
    ("Small ne '7'", ["r", "s"]),
    ("Small lt '0'", ["r", "s"]),
    ("Small gt '0'", []),
    ("Text eq 7", []),
])
def test_literals_as_text(typed, query, expected):
    assert row_keys(typed.query_entities(query)) == expected


@pytest.mark.scenario("filter-keys")
def test_key_filters_find_exactly_their_rows_in_key_order(table):
    rows = ["1", "10", "2", "B", "a", "é", "😀", "～"]  # the order of UTF-16 code units
    for partition in "cab":
        table.submit_transaction([("create", {"PartitionKey": partition, "RowKey": row}) for row in reversed(rows)])

    def all_of(partition, chosen=rows):
        return [(partition, row) for row in chosen]

    assert keys(table.list_entities()) == all_of("a") + all_of("b") + all_of("c")
    for query, expected in [
        ("PartitionKey eq 'b' and RowKey eq '2'", [("b", "2")]),
        ("PartitionKey eq 'b' and RowKey eq 'absent'", []),
        ("PartitionKey eq 'b'", all_of("b")),
        ("PartitionKey eq 'b' and RowKey ge '10' and RowKey lt 'a'", all_of("b", ["10", "2", "B"])),
        ("PartitionKey eq 'b' and RowKey gt '10' and RowKey le 'a'", all_of("b", ["2", "B", "a"])),
        ("PartitionKey eq 'b' and RowKey gt 'a'", all_of("b", ["é", "😀", "～"])),
        ("PartitionKey gt 'a'", all_of("b") + all_of("c")),
        ("PartitionKey ge 'a' and PartitionKey lt 'c'", all_of("a") + all_of("b")),
        ("PartitionKey ne 'b'", all_of("a") + all_of("c")),
        ("not (PartitionKey eq 'b')", all_of("a") + all_of("c")),
        ("RowKey eq '2'", [("a", "2"), ("b", "2"), ("c", "2")]),
        ("(PartitionKey eq 'c' and RowKey eq '1') or (PartitionKey eq 'a' and RowKey eq '2')",
         [("a", "2"), ("c", "1")]),
        ("PartitionKey eq 'b' and (RowKey eq 'a' or RowKey eq '1' or RowKey eq 'x')", [("b", "1"), ("b", "a")]),
        ("PartitionKey eq 'c' or PartitionKey eq 'a'", all_of("a") + all_of("c")),
        ("PartitionKey eq 'b' and (RowKey le '2' or RowKey le '10')", all_of("b", ["1", "10", "2"])),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", []),
        ("PartitionKey eq 'b' and RowKey gt '2' and RowKey lt '10'", []),
    ]:
        assert keys(table.query_entities(query)) == expected, query


@pytest.mark.scenario("filter-errors")
@pytest.mark.parametrize("query", [
    "aaa bbb ccc", "PartitionKey eq", "eq 'a'", "PartitionKey eq 'a", "(PartitionKey eq 'a'",
    "PartitionKey eq 'a')", "PartitionKey = 'a'", "PartitionKey eq 'a' and", "PartitionKey eq 'a' RowKey eq 'b'",
    "PartitionKey EQ 'a'", "Id eq guid'nonsense'", "When eq datetime'nonsense'", "Bytes eq X'0'", "Value eq null", "1",
    "PartitionKey eq \"a\"",
])
def test_malformed_filters_are_refused(table, query):
    with refused(400, "InvalidInput"):
        list(table.query_entities(query))


@pytest.mark.scenario("filter-errors")
@pytest.mark.parametrize("query", ["startswith(RowKey,'a')", "substringof('a',RowKey)"])
def test_functions_are_not_implemented(table, query):
    with refused(501, "NotImplemented"):
        list(table.query_entities(query))
