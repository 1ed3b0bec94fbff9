"""Keys that URLs, filters and batches must carry unharmed, and keys that no entity may have."""

import asyncio

import pytest
from azure.core import MatchConditions
from azure.data.tables import UpdateMode
from azure.data.tables.aio import TableClient as AsyncTableClient

import target
from target import key_credential, keys, refused

IF_SAME = MatchConditions.IfNotModified
SPECIAL = [
    "", "it's", "'", "''''", '"quoted"', "100%", "%27", "a%20b", "%2F", " both ends ", "two  spaces", "a+b", "a&b=c",
    "(a,b)", "a),RowKey='b", "$filter", "semi;colon:at@", "<tag>", "[x]{y}|^`~!*", "naïve", "日本語", "😀", "e\u0301",
    ".", "..", "a\u00a0b", "\ufeff", "-", "_",
]


@pytest.mark.scenario("special-keys")
@pytest.mark.parametrize("key", SPECIAL)
def test_special_keys_work_in_every_operation(table, key):
    other = "plain"
    for pk, rk in ((key, other), (other, key), (key, key)):
        etag = table.create_entity({"PartitionKey": pk, "RowKey": rk, "Value": 1})["etag"]
        got = table.get_entity(pk, rk)
        assert (got["PartitionKey"], got["RowKey"], got.metadata["etag"]) == (pk, rk, etag)
        table.update_entity({"PartitionKey": pk, "RowKey": rk, "Value": 2}, UpdateMode.REPLACE,
                            etag=etag, match_condition=IF_SAME)
        table.update_entity({"PartitionKey": pk, "RowKey": rk, "Merged": True}, UpdateMode.MERGE)
        table.submit_transaction([("upsert", {"PartitionKey": pk, "RowKey": rk, "Upserted": True})])
        found = table.query_entities("PartitionKey eq @pk and RowKey eq @rk", parameters={"pk": pk, "rk": rk})
        assert [dict(entity) for entity in found] == [
            {"PartitionKey": pk, "RowKey": rk, "Value": 2, "Merged": True, "Upserted": True}]
    assert set(keys(table.list_entities())) == {(key, other), (other, key), (key, key)}

    table.submit_transaction([("delete", {"PartitionKey": key, "RowKey": other}),
                              ("delete", {"PartitionKey": key, "RowKey": key})])
    table.delete_entity(other, key)
    assert list(table.list_entities()) == []


@pytest.mark.scenario("special-keys")
def test_special_keys_resume_pages(table):
    for key in SPECIAL:
        table.create_entity({"PartitionKey": key, "RowKey": key})
    pages = [keys(page) for page in table.list_entities(results_per_page=1).by_page()]
    assert all(len(page) <= 1 for page in pages)
    in_order = sorted(SPECIAL, key=lambda key: key.encode("utf-16-be"))
    assert [key for page in pages for key in page] == [(key, key) for key in in_order]


@pytest.mark.scenario("special-keys")
def test_special_keys_through_the_async_client(table):
    """Its HTTP stack quotes URLs in another way, and the signature covers the quoted form."""

    async def write_read_delete():
        async with AsyncTableClient(
            target.ENDPOINT, table.table_name, credential=key_credential(), **target.OPTIONS
        ) as client:
            for key in SPECIAL:
                await client.upsert_entity({"PartitionKey": key, "RowKey": key, "Value": key})
                assert (await client.get_entity(key, key))["Value"] == key
                await client.delete_entity(key, key)

    asyncio.run(write_read_delete())
    assert list(table.list_entities()) == []


@pytest.mark.scenario("forbidden-keys")
@pytest.mark.parametrize("character", ["/", "\\", "#", "?", "\t", "\n", "\r", "\x01", "\x1f", "\x7f", "\x80", "\x9f"])
def test_forbidden_characters_are_refused_in_both_keys(table, character):
    for pk, rk in ((f"a{character}b", "r"), ("p", f"a{character}b"), (character, "r"), ("p", character)):
        with refused(400, "OutOfRangeInput"):
            table.create_entity({"PartitionKey": pk, "RowKey": rk})
    assert list(table.list_entities()) == []
