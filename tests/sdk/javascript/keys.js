// Keys that URLs, filters and batches must carry unharmed, and keys that no entity may have.

import assert from "node:assert/strict";
import { odata } from "@azure/data-tables";
import { collect, freshTable, propertiesOf, query, refused, scenario } from "./target.js";

const special = [
  "", "it's", "'", "''''", '"quoted"', "100%", "%27", "a%20b", "%2F", " both ends ", "two  spaces", "a+b", "a&b=c",
  "(a,b)", "a),RowKey='b", "$filter", "semi;colon:at@", "<tag>", "[x]{y}|^`~!*", "naïve", "日本語", "😀", "e\u0301",
  ".", "..", "a\u00a0b", "\ufeff", "-", "_",
];

scenario("special-keys", "special keys work in every operation", async (t) => {
  const table = await freshTable(t);
  for (const key of special) {
    for (const [partitionKey, rowKey] of [[key, "plain"], ["plain", key], [key, key]]) {
      await writeEveryWay(table, { partitionKey, rowKey });
    }
    await table.submitTransaction([
      ["delete", { partitionKey: key, rowKey: "plain" }],
      ["delete", { partitionKey: key, rowKey: key }],
    ]);
    await table.deleteEntity("plain", key);
    assert.deepEqual(await collect(table.listEntities()), [], JSON.stringify(key));
  }
});

async function writeEveryWay(table, keys) {
  const { partitionKey, rowKey } = keys;
  const { etag } = await table.createEntity({ ...keys, value: 1 });
  const got = await table.getEntity(partitionKey, rowKey);
  assert.deepEqual([got.partitionKey, got.rowKey, got.etag], [partitionKey, rowKey, etag]);
  await table.updateEntity({ ...keys, value: 2 }, "Replace", { etag });
  await table.updateEntity({ ...keys, merged: true }, "Merge");
  await table.submitTransaction([["upsert", { ...keys, upserted: true }]]);
  const found = await query(table, odata`PartitionKey eq ${partitionKey} and RowKey eq ${rowKey}`);
  assert.deepEqual(found.map(propertiesOf), [{ value: 2, merged: true, upserted: true }], JSON.stringify(keys));
}

scenario("special-keys", "a transaction answers by row key", async (t) => {
  const table = await freshTable(t);
  for (const rowKey of ["plain", "semi;colon", "a+b", "(a,b)"]) {
    const answer = await table.submitTransaction([["create", { partitionKey: "p", rowKey }]]);
    assert.equal(answer.subResponses[0].etag, (await table.getEntity("p", rowKey)).etag);
  }
  const answer = await table.submitTransaction([["create", { partitionKey: "p", rowKey: "plain2" }]]);
  assert.equal(answer.getResponseForEntity("plain2").status, 204);
});

scenario("special-keys", "special keys resume pages", async (t) => {
  const table = await freshTable(t);
  for (const key of special) await table.createEntity({ partitionKey: key, rowKey: key });
  const pages = await collect(table.listEntities().byPage({ maxPageSize: 1 }));
  assert.ok(pages.every((page) => page.length <= 1));
  const found = pages.flat().map((entity) => [entity.partitionKey, entity.rowKey]);
  assert.deepEqual(found, special.toSorted().map((key) => [key, key]));
});

scenario("forbidden-keys", "forbidden characters are refused in both keys", async (t) => {
  const table = await freshTable(t);
  for (const character of ["/", "\\", "#", "?", "\t", "\n", "\r", "\x01", "\x1f", "\x7f", "\x80", "\x9f"]) {
    for (const key of [`a${character}b`, character]) {
      await refused(400, "OutOfRangeInput", table.createEntity({ partitionKey: key, rowKey: "r" }));
      await refused(400, "OutOfRangeInput", table.createEntity({ partitionKey: "p", rowKey: key }));
    }
  }
  assert.deepEqual(await collect(table.listEntities()), []);
});
