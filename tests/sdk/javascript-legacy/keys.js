// Keys that URLs, filters and batches must carry unharmed, and keys that no entity may have.

import assert from "node:assert/strict";
import azure from "azure-storage";
import { edm, entity, etagOf, freshTable, keysOf, propertiesOf, refused, scenario, withEtag } from "./target.js";

const special = [
  "", "it's", "'", "''''", '"quoted"', "100%", "%27", "a%20b", "%2F", " both ends ", "two  spaces", "a+b", "a&b=c",
  "(a,b)", "a),RowKey='b", "$filter", "semi;colon:at@", "<tag>", "[x]{y}|^`~!*", "naïve", "日本語", "😀", "e\u0301",
  ".", "..", "a\u00a0b", "\ufeff", "-", "_",
];
const yes = edm.Boolean(true);

scenario("special-keys", "special keys work in every operation", async (t) => {
  const table = await freshTable(t);
  for (const key of special) {
    for (const [partition, row] of [[key, "plain"], ["plain", key], [key, key]]) {
      await writeEveryWay(table, partition, row);
    }
    await table.batch([["deleteEntity", entity("plain", {}, key)], ["deleteEntity", entity(key, {}, key)]]);
    await table.remove(entity(key, {}, "plain"));
    assert.deepEqual(await table.all(), [], JSON.stringify(key));
  }
});

async function writeEveryWay(table, partition, row) {
  const etag = etagOf(await table.insert(entity(row, { Value: edm.Int32(1) }, partition)));
  const got = await table.get(partition, row);
  assert.deepEqual([got.PartitionKey._, got.RowKey._, etagOf(got)], [partition, row, etag]);
  await table.replace(withEtag(entity(row, { Value: edm.Int32(2) }, partition), etag));
  await table.merge(entity(row, { Merged: yes }, partition));
  await table.batch([["insertOrMergeEntity", entity(row, { Upserted: yes }, partition)]]);
  const query = new azure.TableQuery().where("PartitionKey == ? and RowKey == ?", partition, row);
  assert.deepEqual((await table.all(query)).map(propertiesOf), [
    { Value: ["Edm.Int32", 2], Merged: ["Edm.Boolean", true], Upserted: ["Edm.Boolean", true] },
  ], JSON.stringify([partition, row]));
}

scenario("special-keys", "special keys resume pages", async (t) => {
  const table = await freshTable(t);
  for (const key of special) await table.insert(entity(key, {}, key));
  const pages = await table.pages(new azure.TableQuery().top(1));
  assert.ok(pages.every((page) => page.length <= 1));
  assert.deepEqual(keysOf(pages.flat()), special.toSorted().map((key) => `${key}/${key}`));
});

scenario("forbidden-keys", "forbidden characters are refused in both keys", async (t) => {
  const table = await freshTable(t);
  for (const character of ["/", "\\", "#", "?", "\t", "\n", "\r", "\x01", "\x1f", "\x7f", "\x80", "\x9f"]) {
    for (const key of [`a${character}b`, character]) {
      await refused(400, "OutOfRangeInput", table.insert(entity("r", {}, key)));
      await refused(400, "OutOfRangeInput", table.insert(entity(key)));
    }
  }
  assert.deepEqual(await table.all(), []);
});
