"""Entity group transactions: every kind of operation, failures by index, and what is refused whole."""

import pytest
from azure.core import MatchConditions
from azure.data.tables import TableTransactionError, UpdateMode

from target import error_code, fresh_name, refused, row_keys, table_client

REPLACE = {"mode": UpdateMode.REPLACE}
MERGE = {"mode": UpdateMode.MERGE}


def entity(row, partition="p", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


def if_etag(etag):
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def rows(prefix, count):
    return [f"{prefix}{n:02}" for n in range(count)]


@pytest.mark.scenario("transaction")
def test_100_operations_of_every_kind(table):
    present = [row for prefix in ("merge", "replace", "upmerge", "upreplace", "delete") for row in rows(prefix, 12)]
    etags = table.submit_transaction([("create", entity(row, Old=1, Both=1)) for row in present])
    etag_of = {row: answer["etag"] for row, answer in zip(present, etags, strict=True)}

    new = {"Both": 2, "New": 2}
    operations = [("create", entity(row, **new)) for row in rows("create", 20)]
    for row in rows("merge", 12):
        operations.append(("update", entity(row, **new), MERGE | if_etag(etag_of[row])))
    operations += [("update", entity(row, **new), REPLACE) for row in rows("replace", 12)]
    operations += [("upsert", entity(row, **new), MERGE) for row in rows("upmerge", 22)]
    operations += [("upsert", entity(row, **new), REPLACE) for row in rows("upreplace", 22)]
    for row in rows("delete", 12):
        operations.append(("delete", entity(row), if_etag(etag_of[row])))
    assert len(operations) == 100

    answers = table.submit_transaction(operations)
    assert [("etag" in answer) for answer in answers] == [operation[0] != "delete" for operation in operations]

    merged = {"Old": 1, **new}
    expected = {row: new for row in rows("create", 20) + rows("replace", 12) + rows("upreplace", 22)}
    expected |= {row: merged for row in rows("merge", 12) + rows("upmerge", 12)}
    expected |= {row: new for row in rows("upmerge", 22)[12:]}
    stored = {found["RowKey"]: found for found in table.list_entities()}
    assert set(stored) == set(expected)
    for operation, answer in zip(operations, answers, strict=True):
        row = operation[1]["RowKey"]
        if operation[0] != "delete":
            assert dict(stored[row]) == entity(row, **expected[row])
            assert stored[row].metadata["etag"] == answer["etag"] != etag_of.get(row)


@pytest.mark.scenario("transaction")
def test_one_operation_is_a_transaction_too(table):
    [answer] = table.submit_transaction([("create", entity("r", Value=1))])
    assert table.get_entity("p", "r").metadata["etag"] == answer["etag"]


def failed_transaction(table, operations):
    with pytest.raises(TableTransactionError) as caught:
        table.submit_transaction(operations)
    return caught.value.status_code, error_code(caught.value), caught.value.index


@pytest.mark.scenario("transaction-failure")
@pytest.mark.parametrize("index", [0, 2, 5])
@pytest.mark.parametrize("kind, status, code", [
    ("insert present", 409, "EntityAlreadyExists"),
    ("merge absent", 404, "ResourceNotFound"),
    ("replace absent", 404, "ResourceNotFound"),
    ("delete absent", 404, "ResourceNotFound"),
    ("merge stale", 412, "UpdateConditionNotSatisfied"),
    ("replace stale", 412, "UpdateConditionNotSatisfied"),
    ("delete stale", 412, "UpdateConditionNotSatisfied"),
    ("insert too large", 400, "PropertyValueTooLarge"),
])
def test_a_failure_is_named_and_nothing_is_applied(table, index, kind, status, code):
    stale = table.create_entity(entity("present", Value=1))["etag"]
    current = table.upsert_entity(entity("present", Value=2))["etag"]
    table.create_entity(entity("doomed", Value=3))
    failing = {
        "insert present": ("create", entity("present")),
        "merge absent": ("update", entity("absent"), MERGE),
        "replace absent": ("update", entity("absent"), REPLACE),
        "delete absent": ("delete", entity("absent")),
        "merge stale": ("update", entity("present", Value=9), MERGE | if_etag(stale)),
        "replace stale": ("update", entity("present", Value=9), REPLACE | if_etag(stale)),
        "delete stale": ("delete", entity("present"), if_etag(stale)),
        "insert too large": ("create", entity("large", Value="x" * 32769)),
    }[kind]
    operations = [
        ("create", entity("new1")), ("delete", entity("doomed")), ("upsert", entity("new2")),
        ("upsert", entity("new3"), REPLACE), ("create", entity("new4")),
    ]
    operations.insert(index, failing)

    assert failed_transaction(table, operations) == (status, code, index)
    assert row_keys(table.list_entities()) == ["doomed", "present"]
    assert table.get_entity("p", "present").metadata["etag"] == current


@pytest.mark.scenario("transaction-failure")
def test_a_missing_table_fails_the_transaction():
    nowhere = table_client(fresh_name())
    assert failed_transaction(nowhere, [("create", entity("r"))]) == (404, "TableNotFound", 0)


@pytest.mark.scenario("transaction-rules")
def test_an_entity_may_appear_once(table):
    operations = [("create", entity("a")), ("create", entity("b")), ("upsert", entity("a"))]
    assert failed_transaction(table, operations) == (400, "InvalidDuplicateRow", 2)
    assert list(table.list_entities()) == []


@pytest.mark.scenario("transaction-rules")
def test_two_partitions_are_refused_by_the_sdk(table):
    with pytest.raises(ValueError, match="Partition Keys"):
        table.submit_transaction([("create", entity("a")), ("create", entity("b", partition="q"))])
    assert list(table.list_entities()) == []


class SlyKey(str):
    """A key that tells the SDK's check it equals the others, so that the request goes out."""

    def __ne__(self, other):
        return False

    __hash__ = str.__hash__


@pytest.mark.scenario("transaction-rules")
def test_two_partitions_are_refused_by_the_service(table):
    table.create_entity(entity("present", partition="q"))
    operations = [("create", entity("a")), ("create", entity("b")), ("delete", entity("present", SlyKey("q")))]
    assert failed_transaction(table, operations) == (400, "CommandsInBatchActOnDifferentPartitions", 2)
    assert row_keys(table.list_entities()) == ["present"]


@pytest.mark.scenario("transaction-rules")
def test_more_than_100_operations_are_refused(table):
    operations = [("create", entity(f"{n:03}")) for n in range(101)]
    assert failed_transaction(table, operations) == (400, "InvalidInput", 99)
    assert list(table.list_entities()) == []
    table.submit_transaction(operations[:100])
    assert len(list(table.list_entities())) == 100
