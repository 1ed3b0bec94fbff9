"""The Python code of the advisor's findings runs as it stands, and does what its finding says.

The code is in `crates/advisor/snippets`, from where `larimar advise --format json` and docs/advisor.md have it. A snippet uses
names that its reader has; here they are the fixtures of this suite.
"""

import heapq
import json
import random
import time
import uuid
import zlib
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError

SNIPPETS = Path(__file__).parents[3] / "crates" / "advisor" / "snippets"
MODULES = {
    "datetime": datetime, "heapq": heapq, "json": json, "random": random, "time": time, "timedelta": timedelta,
    "timezone": timezone, "uuid": uuid, "zlib": zlib, "MatchConditions": MatchConditions,
    "ResourceModifiedError": ResourceModifiedError,
}

pytestmark = pytest.mark.documentation


def run(name, **names):
    """Runs a snippet with these names besides the modules; returns all names afterwards."""
    path = SNIPPETS / f"{name}.py.txt"
    names = MODULES | names
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


def keys(entities):
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]


def test_every_snippet_is_run():
    source = Path(__file__).read_text()
    for path in SNIPPETS.glob("*.py.txt"):
        assert f'run("{path.name.removesuffix(".py.txt")}"' in source


def test_table_scan(table, queue):
    employee = {"PartitionKey": "Sales", "RowKey": "000123", "Email": "donh@contoso.com"}
    other = {"PartitionKey": "Sales", "RowKey": "000124", "Email": "dont@contoso.com"}
    names = [run("table_scan", table=table, queue=queue, employee=one) for one in (other, employee)][1]
    assert keys(names["found"]) == [("email_Sales", "donh@contoso.com_000123")]
    assert json.loads(next(iter(queue.receive_messages())).content)["Email"] == other["Email"]


def test_partition_scan(table):
    one = {"PartitionKey": "Sales", "Id": "000123", "City": "Berlin"}
    other = {"PartitionKey": "Sales", "Id": "000124", "City": "Bern"}
    names = [run("partition_scan", table=table, employee=employee) for employee in (one, other)][1]
    assert keys(names["found"]) == [("Sales", "city_Berlin_000123")]
    assert table.get_entity("Sales", "empid_000124")["City"] == "Bern"


def test_spread_key(table):
    rows = [f"{number:04}" for number in range(20)]
    names = [run("spread_key", table=table, row_key=row) for row in rows][-1]
    assert [entity["RowKey"] for entity in names["all_rows"]] == rows
    assert names["one"]["RowKey"] == rows[-1]
    assert len({entity["PartitionKey"] for entity in table.list_entities()}) > 1


def test_large_partition(table):
    names = run("large_partition", table=table)
    assert keys(names["november"]) == [("customer17_2026-11", "000123")]


def test_one_entity_per_partition(table):
    names = run("one_entity_per_partition", table=table, items=["b", "a"])
    assert keys(names["order"]) == [("order-4711", "a"), ("order-4711", "b")]


def test_large_entity(table, container):
    photo = b"\0\xff" * 600_000
    employee = {"PartitionKey": "Sales", "RowKey": "000123"}
    run("large_entity", table=table, container=container, employee=employee, photo=photo)
    name = table.get_entity("Sales", "000123")["Photo"]
    assert container.get_blob_client(name).download_blob().readall() == photo


def test_wide_entity(table):
    answers = {f"A{number:03}": number for number in range(450)}
    names = run("wide_entity", table=table, answers=answers)
    found = list(names["found"])
    assert len(found) == 3
    read = {name: value for entity in found for name, value in entity.items()}
    assert answers.items() <= read.items()


def test_row_by_row(table):
    for row in ("000122", "000123", "000123_2012", "000123_2013", "000124"):
        table.create_entity({"PartitionKey": "Sales", "RowKey": row})
    names = run("row_by_row", table=table)
    assert [row for _, row in keys(names["rows"])] == ["000123", "000123_2012", "000123_2013"]


def test_log_data(container):
    for lines in (["one", "two"], ["three"]):
        names = run("log_data", container=container, lines=lines)
    text = b"".join(container.get_blob_client(blob.name).download_blob().readall() for blob in container.list_blobs())
    assert text == b"one\ntwo\nthree\n"
    assert list(names["found"]) == [], "none of that day"


def logins(service):
    return [table.name for table in service.list_tables() if table.name.startswith("Logins")]


def test_mass_delete(service):
    login = {"PartitionKey": "user", "RowKey": uuid.uuid4().hex}
    for name in ("Logins20200101", "LoginsOther"):
        service.create_table_if_not_exists(name)
    try:
        run("mass_delete", service=service, login=login)
        left = logins(service)
        today = [name for name in left if name not in ("LoginsOther", "Logins20200101")]
        assert "Logins20200101" not in left and today and "LoginsOther" in left
        # Around midnight the rows of two days may be there.
        assert any(list(service.get_table_client(name).query_entities("PartitionKey eq 'user'")) for name in today)
    finally:
        for name in logins(service):
            service.delete_table(name)


class Interrupted:
    """A table in which somebody else changes the entity after each of the first reads."""

    def __init__(self, table, times):
        self.table, self.times = table, times

    def get_entity(self, partition, row):
        found = self.table.get_entity(partition, row)
        if self.times:
            self.times -= 1
            self.table.upsert_entity({"PartitionKey": partition, "RowKey": row, "Other": self.times})
        return found

    def update_entity(self, *arguments, **options):
        return self.table.update_entity(*arguments, **options)


def test_conflict_retries(table):
    table.create_entity({"PartitionKey": "Department", "RowKey": "Sales", "EmployeeCount": 1})
    run("conflict_retries", table=Interrupted(table, 2))
    assert table.get_entity("Department", "Sales")["EmployeeCount"] == 2
