"""Single writes: insert, replace, merge, the upserts, delete, and what an ETag guards."""

import pytest
from azure.core import MatchConditions
from azure.data.tables import UpdateMode

from target import Answers, fresh_name, refused, table_client

IF_SAME = MatchConditions.IfNotModified


def entity(row="r", **properties):
    return {"PartitionKey": "p", "RowKey": row, **properties}


def properties_of(table, row="r"):
    found = dict(table.get_entity("p", row))
    return {name: value for name, value in found.items() if name not in ("PartitionKey", "RowKey")}


@pytest.mark.scenario("insert-conflict")
def test_second_insert_is_refused_and_changes_nothing(table):
    first = table.create_entity(entity(Value=1))
    with refused(409, "EntityAlreadyExists"):
        table.create_entity(entity(Value=2, More="x"))
    assert properties_of(table) == {"Value": 1}
    assert table.get_entity("p", "r").metadata["etag"] == first["etag"]


@pytest.mark.scenario("insert-conflict")
def test_missing_entity_is_told_from_missing_table(table):
    with refused(404, "ResourceNotFound"):
        table.get_entity("p", "absent")
    with refused(404, "ResourceNotFound"):
        table.update_entity(entity("absent", Value=1), mode=UpdateMode.REPLACE)
    with refused(404, "ResourceNotFound"):
        table.update_entity(entity("absent", Value=1), mode=UpdateMode.MERGE)

    nowhere = table_client(fresh_name())
    with refused(404, "TableNotFound"):
        nowhere.get_entity("p", "absent")
    with refused(404, "TableNotFound"):
        nowhere.create_entity(entity())
    with refused(404, "TableNotFound"):
        nowhere.upsert_entity(entity())
    with refused(404, "TableNotFound"):
        list(nowhere.list_entities())


@pytest.mark.scenario("etag-conflict")
@pytest.mark.parametrize("mode", [UpdateMode.REPLACE, UpdateMode.MERGE])
def test_update_needs_the_current_etag(table, mode):
    first = table.create_entity(entity(Value=1))["etag"]
    second = table.update_entity(entity(Value=2), mode, etag=first, match_condition=IF_SAME)["etag"]
    assert second != first

    with refused(412, "UpdateConditionNotSatisfied"):
        table.update_entity(entity(Value=3), mode, etag=first, match_condition=IF_SAME)
    assert properties_of(table) == {"Value": 2}
    assert table.get_entity("p", "r").metadata["etag"] == second

    third = table.update_entity(entity(Value=2), mode)["etag"]
    assert third not in (first, second), "a write that changes nothing still has a new etag"
    with refused(404, "ResourceNotFound"):
        table.update_entity(entity("absent"), mode, etag=third, match_condition=IF_SAME)


@pytest.mark.scenario("etag-conflict")
def test_delete_needs_the_current_etag(table):
    stale = table.create_entity(entity(Value=1))["etag"]
    current = table.upsert_entity(entity(Value=2))["etag"]
    with refused(412, "UpdateConditionNotSatisfied"):
        table.delete_entity("p", "r", etag=stale, match_condition=IF_SAME)
    assert properties_of(table) == {"Value": 2}
    table.delete_entity("p", "r", etag=current, match_condition=IF_SAME)
    assert list(table.list_entities()) == []

    table.create_entity(entity(Value=3))
    table.delete_entity("p", "r")
    answers = Answers()
    table.delete_entity("p", "r", raw_response_hook=answers)
    assert (answers.last_status, answers.last_code) == (404, "ResourceNotFound")
    table.delete_entity("p", "r", etag=current, match_condition=IF_SAME, raw_response_hook=answers)
    assert (answers.last_status, answers.last_code) == (404, "ResourceNotFound")


@pytest.mark.scenario("etag-conflict")
def test_an_entity_read_can_be_written_back_under_its_own_etag(table):
    table.create_entity(entity(Value=1))
    read = table.get_entity("p", "r")
    read["Value"] = 2
    table.update_entity(read, UpdateMode.REPLACE, match_condition=IF_SAME)
    with refused(412, "UpdateConditionNotSatisfied"):
        table.update_entity(read, UpdateMode.REPLACE, match_condition=IF_SAME)
    assert properties_of(table) == {"Value": 2}


@pytest.mark.scenario("merge-and-replace")
def test_merge_keeps_what_it_does_not_name(table):
    table.create_entity(entity(Kept="k", Changed=1, Retyped=1, Nulled="n"))
    table.update_entity(entity(Changed=2, Retyped="text", Nulled=None, Added=True), UpdateMode.MERGE)
    assert properties_of(table) == {"Kept": "k", "Changed": 2, "Retyped": "text", "Nulled": "n", "Added": True}


@pytest.mark.scenario("merge-and-replace")
def test_replace_drops_what_it_does_not_name(table):
    table.create_entity(entity(Dropped="d", Changed=1, Nulled="n"))
    table.update_entity(entity(Changed=2, Nulled=None, Added=True), UpdateMode.REPLACE)
    assert properties_of(table) == {"Changed": 2, "Added": True}
    table.update_entity(entity(), UpdateMode.REPLACE)
    assert properties_of(table) == {}


@pytest.mark.scenario("upserts")
def test_insert_or_replace(table):
    first = table.upsert_entity(entity(Old=1, Changed=1), UpdateMode.REPLACE)["etag"]
    assert properties_of(table) == {"Old": 1, "Changed": 1}
    second = table.upsert_entity(entity(Changed=2, New=2), UpdateMode.REPLACE)["etag"]
    assert properties_of(table) == {"Changed": 2, "New": 2}
    assert first != second == table.get_entity("p", "r").metadata["etag"]


@pytest.mark.scenario("upserts")
def test_insert_or_merge(table):
    first = table.upsert_entity(entity(Old=1, Changed=1), UpdateMode.MERGE)["etag"]
    assert properties_of(table) == {"Old": 1, "Changed": 1}
    second = table.upsert_entity(entity(Changed=2, New=2), UpdateMode.MERGE)["etag"]
    assert properties_of(table) == {"Old": 1, "Changed": 2, "New": 2}
    assert first != second == table.get_entity("p", "r").metadata["etag"]
