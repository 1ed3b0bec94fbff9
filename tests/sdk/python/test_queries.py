"""Projection, pages and the log tail."""

import json

import pytest

import target
from target import keys, row_keys


@pytest.fixture
def people(table):
    table.create_entity({"PartitionKey": "p", "RowKey": "1", "Name": "Ada", "Age": 36})
    table.create_entity({"PartitionKey": "p", "RowKey": "2", "Name": "Bob"})
    return table


@pytest.mark.scenario("select")
@pytest.mark.parametrize("select", [["Name", "Age"], "Name,Age", "Name, Age"])
def test_query_returns_only_what_is_selected(people, select):
    found = list(people.list_entities(select=select))
    assert [dict(entity) for entity in found] == [{"Name": "Ada", "Age": 36}, {"Name": "Bob", "Age": None}]
    assert all(entity.metadata["etag"] for entity in found)
    assert all(entity.metadata["timestamp"] is None for entity in found)


@pytest.mark.scenario("select")
def test_filter_may_use_what_is_not_selected(people):
    found = people.query_entities("Age gt 30 and RowKey eq '1'", select=["PartitionKey", "Name"])
    assert [dict(entity) for entity in found] == [{"PartitionKey": "p", "Name": "Ada"}]


@pytest.mark.scenario("select")
def test_point_get_returns_only_what_is_selected(people):
    whole = people.get_entity("p", "1")
    some = people.get_entity("p", "1", select=["RowKey", "Age", "Missing", "Timestamp"])
    assert dict(some) == {"RowKey": "1", "Age": 36, "Missing": None}
    assert some.metadata == whole.metadata


@pytest.fixture
def many(table):
    """2,500 entities in five partitions, written out of order; gives the table and their keys in order."""
    for partition in "dbeac":
        for start in range(400, -1, -100):
            table.submit_transaction([
                ("create", {"PartitionKey": partition, "RowKey": f"{n:03}", "N": n}) for n in range(start, start + 100)
            ])
    return table, [(partition, f"{n:03}") for partition in "abcde" for n in range(500)]


@pytest.mark.scenario("paging")
def test_2500_entities_come_in_pages_and_in_order(many):
    table, expected = many
    assert keys(table.list_entities()) == expected

    pages = [keys(page) for page in table.list_entities().by_page()]
    assert len(pages) >= 3 and all(len(page) <= 1000 for page in pages)
    assert [key for page in pages for key in page] == expected

    pages = [keys(page) for page in table.query_entities("N lt 100", results_per_page=70).by_page()]
    assert all(len(page) <= 70 for page in pages)
    assert [key for page in pages for key in page] == [key for key in expected if key[1] < "100"]


@pytest.mark.scenario("paging")
def test_a_saved_token_resumes_in_a_new_client(many):
    table, expected = many
    token, taken = None, []
    while token is None or len(taken) < 700:
        pages = table.list_entities(results_per_page=350).by_page(continuation_token=token)
        taken += keys(next(pages))
        token = pages.continuation_token
    assert taken == expected[:len(taken)]

    saved = json.dumps(token)
    with target.table_client(table.table_name) as other:
        rest = other.list_entities(results_per_page=1000).by_page(continuation_token=json.loads(saved))
        assert [key for page in rest for key in keys(page)] == expected[len(taken):]
        again = other.list_entities(results_per_page=1000).by_page(continuation_token=json.loads(saved))
        assert keys(next(again)) == expected[len(taken):len(taken) + 1000], "a token may be used twice"


@pytest.mark.scenario("log-tail")
def test_the_latest_entries_come_first(table):
    ticks_max = 3155378975999999999

    def row_key(n):
        return f"{ticks_max - (637000000000000000 + n * 10_000_000):019}"

    table.submit_transaction([("create", {"PartitionKey": "log", "RowKey": row_key(n), "N": n}) for n in range(60)])
    table.create_entity({"PartitionKey": "other", "RowKey": row_key(99), "N": 99})

    latest = next(table.query_entities("PartitionKey eq 'log'", results_per_page=10).by_page())
    assert [entity["N"] for entity in latest] == list(range(59, 49, -1))
    table.create_entity({"PartitionKey": "log", "RowKey": row_key(60), "N": 60})
    latest = next(table.query_entities("PartitionKey eq 'log'", results_per_page=1).by_page())
    assert row_keys(latest) == [row_key(60)]
