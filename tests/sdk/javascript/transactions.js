// Entity group transactions: every kind of operation, failures by index, and what is refused whole.

import assert from "node:assert/strict";
import { TableTransaction } from "@azure/data-tables";
import { collect, freshName, freshTable, propertiesOf, refused, rowKeys, scenario, tableClient } from "./target.js";

const entity = (rowKey, properties = {}) => ({ partitionKey: "p", rowKey, ...properties });
const rows = (prefix, count) => Array.from({ length: count }, (_, n) => prefix + String(n).padStart(2, "0"));

scenario("transaction", "100 operations of every kind", async (t) => {
  const table = await freshTable(t);
  const present = ["merge", "replace", "upmerge", "upreplace", "delete"].flatMap((prefix) => rows(prefix, 12));
  const before = await table.submitTransaction(present.map((row) => ["create", entity(row, { Old: 1, Both: 1 })]));
  assert.equal(before.status, 202);
  const etagOf = Object.fromEntries(present.map((row, n) => [row, before.subResponses[n].etag]));

  const changed = { Both: 2, New: 2 };
  const transaction = new TableTransaction();
  for (const row of rows("create", 20)) transaction.createEntity(entity(row, changed));
  for (const row of rows("merge", 12)) transaction.updateEntity(entity(row, changed), "Merge", { etag: etagOf[row] });
  for (const row of rows("replace", 12)) transaction.updateEntity(entity(row, changed), "Replace");
  for (const row of rows("upmerge", 22)) transaction.upsertEntity(entity(row, changed), "Merge");
  for (const row of rows("upreplace", 22)) transaction.upsertEntity(entity(row, changed), "Replace");
  for (const row of rows("delete", 12)) transaction.deleteEntity("p", row);
  assert.equal(transaction.actions.length, 100);

  const answer = await table.submitTransaction(transaction.actions);
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.subResponses.map((part) => part.status), Array(100).fill(204));

  const stored = Object.fromEntries((await collect(table.listEntities())).map((found) => [found.rowKey, found]));
  const merged = [...rows("merge", 12), ...rows("upmerge", 12)];
  const kept = transaction.actions.filter(([kind]) => kind !== "delete").map(([, { rowKey }]) => rowKey);
  assert.deepEqual(Object.keys(stored), kept.toSorted());
  for (const [n, [kind, { rowKey }]] of transaction.actions.entries()) {
    if (kind === "delete") {
      assert.equal(answer.subResponses[n].etag, undefined);
      continue;
    }
    assert.deepEqual(propertiesOf(stored[rowKey]), merged.includes(rowKey) ? { Old: 1, ...changed } : changed);
    assert.equal(answer.subResponses[n].etag, stored[rowKey].etag);
    assert.notEqual(stored[rowKey].etag, etagOf[rowKey]);
  }
});

scenario("transaction", "one operation is a transaction too", async (t) => {
  const table = await freshTable(t);
  const { subResponses, getResponseForEntity } = await table.submitTransaction([["create", entity("r")]]);
  assert.equal(subResponses.length, 1);
  assert.equal(getResponseForEntity("r").etag, (await table.getEntity("p", "r")).etag);
});

/** The transaction is refused with this status and code, and its message begins with the index. */
async function failed(status, code, index, table, operations) {
  const error = await refused(status, code, table.submitTransaction(operations));
  assert.ok(error.message.startsWith(`${index}:`), error.message);
}

const failures = {
  "insert of a present entity": [409, "EntityAlreadyExists", () => ["create", entity("present")]],
  "merge of an absent entity": [404, "ResourceNotFound", () => ["update", entity("absent"), "Merge"]],
  "replace of an absent entity": [404, "ResourceNotFound", () => ["update", entity("absent"), "Replace"]],
  "delete of an absent entity": [404, "ResourceNotFound", () => ["delete", entity("absent")]],
  "merge with a stale etag": [412, "UpdateConditionNotSatisfied",
    (etag) => ["update", entity("present", { Value: 9 }), "Merge", { etag }]],
  "replace with a stale etag": [412, "UpdateConditionNotSatisfied",
    (etag) => ["update", entity("present", { Value: 9 }), "Replace", { etag }]],
  "insert of too large a value": [400, "PropertyValueTooLarge",
    () => ["create", entity("large", { Value: "x".repeat(32769) })]],
};

for (const [title, [status, code, failing]] of Object.entries(failures)) {
  scenario("transaction-failure", `${title} is named and nothing is applied`, async (t) => {
    const table = await freshTable(t);
    const { etag: stale } = await table.createEntity(entity("present", { Value: 1 }));
    const { etag: current } = await table.upsertEntity(entity("present", { Value: 2 }));
    await table.createEntity(entity("doomed"));
    for (const index of [0, 2, 5]) {
      const operations = [
        ["create", entity("new1")], ["delete", entity("doomed")], ["upsert", entity("new2"), "Merge"],
        ["upsert", entity("new3"), "Replace"], ["create", entity("new4")],
      ];
      operations.splice(index, 0, failing(stale));
      await failed(status, code, index, table, operations);
      assert.deepEqual(await rowKeys(collect(table.listEntities())), ["doomed", "present"]);
      assert.equal((await table.getEntity("p", "present")).etag, current);
    }
  });
}

scenario("transaction-failure", "a missing table fails the transaction", async () => {
  const nowhere = tableClient(freshName());
  await failed(404, "TableNotFound", 0, nowhere, [["create", entity("r")]]);
});

scenario("transaction-rules", "an entity may appear once", async (t) => {
  const table = await freshTable(t);
  const operations = [["create", entity("a")], ["create", entity("b")], ["upsert", entity("a")]];
  await failed(400, "InvalidDuplicateRow", 2, table, operations);
  assert.deepEqual(await collect(table.listEntities()), []);
});

scenario("transaction-rules", "two partitions are refused by the SDK", async (t) => {
  const table = await freshTable(t);
  const other = { partitionKey: "q", rowKey: "b" };
  await assert.rejects(table.submitTransaction([["create", entity("a")], ["create", other]]), /same partitionKey/);
  assert.deepEqual(await collect(table.listEntities()), []);
});

scenario("transaction-rules", "two partitions are refused by the service", async (t) => {
  const table = await freshTable(t);
  await failed(400, "CommandsInBatchActOnDifferentPartitions", 2, table, [
    ["create", entity("a")], ["create", entity("b")], ["create", slyEntity("q", "c")],
  ]);
  assert.deepEqual(await collect(table.listEntities()), []);
});

/** An entity whose partition the SDK's check takes for `p`, so that the request goes out. */
function slyEntity(partitionKey, rowKey) {
  let checked = false;
  return {
    get partitionKey() {
      const answer = checked ? partitionKey : "p";
      checked = true;
      return answer;
    },
    rowKey,
  };
}

scenario("transaction-rules", "more than 100 operations are refused", async (t) => {
  const table = await freshTable(t);
  const operations = Array.from({ length: 101 }, (_, n) => ["create", entity(String(n))]);
  await failed(400, "InvalidInput", 99, table, operations);
  assert.deepEqual(await collect(table.listEntities()), []);
  await table.submitTransaction(operations.slice(0, 100));
  assert.equal((await collect(table.listEntities())).length, 100);
});
