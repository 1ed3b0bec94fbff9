// Entity group transactions: every kind of operation, failures by index, and what is refused whole.

import assert from "node:assert/strict";
import azure from "azure-storage";
import {
  Table, call, edm, entity, etagOf, freshName, freshTable, propertiesOf, refused, rowsOf, scenario, withEtag,
} from "./target.js";

const rows = (prefix, count) => Array.from({ length: count }, (_, n) => prefix + String(n).padStart(2, "0"));
const two = edm.Int32(2);

scenario("transaction", "100 operations of every kind", async (t) => {
  const table = await freshTable(t);
  const present = ["merge", "replace", "upmerge", "upreplace", "delete"].flatMap((prefix) => rows(prefix, 12));
  const old = { Old: edm.Int32(1), Both: edm.Int32(1) };
  const before = await table.batch(present.map((row) => ["insertEntity", entity(row, old)]));
  const oldEtag = Object.fromEntries(present.map((row, n) => [row, etagOf(before[n].entity)]));

  const changed = { Both: two, New: two };
  const operations = [
    ...rows("create", 20).map((row) => ["insertEntity", entity(row, changed)]),
    ...rows("merge", 12).map((row) => ["mergeEntity", withEtag(entity(row, changed), oldEtag[row])]),
    ...rows("replace", 12).map((row) => ["replaceEntity", entity(row, changed)]),
    ...rows("upmerge", 22).map((row) => ["insertOrMergeEntity", entity(row, changed)]),
    ...rows("upreplace", 22).map((row) => ["insertOrReplaceEntity", entity(row, changed)]),
    ...rows("delete", 12).map((row) => ["deleteEntity", withEtag(entity(row), oldEtag[row])]),
  ];
  assert.equal(operations.length, 100);
  const answers = await table.batch(operations);
  assert.deepEqual(answers.map((answer) => answer.response.statusCode), Array(100).fill(204));

  const stored = Object.fromEntries((await table.all()).map((found) => [found.RowKey._, found]));
  const merged = [...rows("merge", 12), ...rows("upmerge", 12)];
  const kept = operations.filter(([method]) => method !== "deleteEntity").map(([, sent]) => sent.RowKey._);
  assert.deepEqual(Object.keys(stored), kept.toSorted());
  const result = { Both: ["Edm.Int32", 2], New: ["Edm.Int32", 2] };
  for (const [n, row] of kept.entries()) {
    assert.deepEqual(propertiesOf(stored[row]), merged.includes(row) ? { Old: ["Edm.Int32", 1], ...result } : result);
    assert.equal(etagOf(answers[n].entity), etagOf(stored[row]));
    assert.notEqual(etagOf(stored[row]), oldEtag[row]);
  }
});

scenario("transaction", "an insert may echo its entity", async (t) => {
  const table = await freshTable(t);
  const [quiet, echo] = await table.batch([
    ["insertEntity", entity("a", { Value: two })], ["insertEntity", entity("b", { Value: two }), { echoContent: true }],
  ]);
  assert.deepEqual([quiet.response.statusCode, echo.response.statusCode], [204, 201]);
  assert.equal(echo.entity.Value._, 2);
  assert.equal(etagOf(echo.entity), etagOf(await table.get("p", "b")));
});

scenario("transaction", "one entity is read in a batch", async (t) => {
  const table = await freshTable(t);
  await table.insert(entity("r", { Value: two }));
  const [found] = await table.batch([["retrieveEntity", "p", "r"]]);
  assert.equal(found.response.statusCode, 200);
  assert.deepEqual([found.entity.RowKey._, found.entity.Value._], ["r", 2]);
  assert.equal(etagOf(found.entity), etagOf(await table.get("p", "r")));
  await refused(404, "ResourceNotFound", table.batch([["retrieveEntity", "p", "absent"]]));
});

/** The transaction is refused with this status and code, and its message begins with the index. */
async function failed(status, code, index, transaction) {
  const error = await refused(status, code, transaction);
  assert.ok(error.message.startsWith(`${index}:`), error.message);
}

const present = (etag) => withEtag(entity("present", { Value: edm.Int32(9) }), etag);
const failures = {
  "insert of a present entity": [409, "EntityAlreadyExists", () => ["insertEntity", entity("present")]],
  "merge of an absent entity": [404, "ResourceNotFound", () => ["mergeEntity", entity("absent")]],
  "replace of an absent entity": [404, "ResourceNotFound", () => ["replaceEntity", entity("absent")]],
  "delete of an absent entity": [404, "ResourceNotFound", () => ["deleteEntity", entity("absent")]],
  "merge with a stale etag": [412, "UpdateConditionNotSatisfied", (stale) => ["mergeEntity", present(stale)]],
  "replace with a stale etag": [412, "UpdateConditionNotSatisfied", (stale) => ["replaceEntity", present(stale)]],
  "delete with a stale etag": [412, "UpdateConditionNotSatisfied", (stale) => ["deleteEntity", present(stale)]],
  "insert of too large a value": [400, "PropertyValueTooLarge",
    () => ["insertEntity", entity("large", { Value: edm.String("x".repeat(32769)) })]],
};

for (const [title, [status, code, failing]] of Object.entries(failures)) {
  scenario("transaction-failure", `${title} is named and nothing is applied`, async (t) => {
    const table = await freshTable(t);
    const stale = etagOf(await table.insert(entity("present", { Value: edm.Int32(1) })));
    const current = etagOf(await table.insertOrMerge(entity("present", { Value: two })));
    await table.insert(entity("doomed"));
    for (const index of [0, 2, 5]) {
      const operations = [
        ["insertEntity", entity("new1")], ["deleteEntity", entity("doomed")], ["insertOrMergeEntity", entity("new2")],
        ["insertOrReplaceEntity", entity("new3")], ["insertEntity", entity("new4")],
      ];
      operations.splice(index, 0, failing(stale));
      await failed(status, code, index, table.batch(operations));
      assert.deepEqual(rowsOf(await table.all()), ["doomed", "present"]);
      assert.equal(etagOf(await table.get("p", "present")), current);
    }
  });
}

scenario("transaction-failure", "a missing table fails the transaction", async () => {
  const nowhere = new Table(freshName());
  await failed(404, "TableNotFound", 0, nowhere.batch([["insertEntity", entity("r")]]));
});

scenario("transaction-rules", "an entity may appear once", async (t) => {
  const table = await freshTable(t);
  const operations = [
    ["insertEntity", entity("a")], ["insertEntity", entity("b")], ["insertOrMergeEntity", entity("a")],
  ];
  await failed(400, "InvalidDuplicateRow", 2, table.batch(operations));
  assert.deepEqual(await table.all(), []);
});

/** A batch filled behind the SDK's own checks, so that the request goes out. */
function unchecked(entities) {
  const batch = new azure.TableBatch();
  for (const [n, sent] of entities.entries()) {
    const part = new azure.TableBatch();
    part.insertEntity(sent);
    batch.operations[n] = part.getOperation(0);
  }
  return batch;
}

scenario("transaction-rules", "two partitions are refused", async (t) => {
  const table = await freshTable(t);
  const entities = [entity("a"), entity("b"), entity("c", {}, "q")];
  assert.throws(() => table.batch(entities.map((sent) => ["insertEntity", sent])), /partition/i);
  const sent = call(table.client, "executeBatch", table.name, unchecked(entities));
  await failed(400, "CommandsInBatchActOnDifferentPartitions", 2, sent);
  assert.deepEqual(await table.all(), []);
});

scenario("transaction-rules", "more than 100 operations are refused", async (t) => {
  const table = await freshTable(t);
  const entities = rows("", 101).map((row) => entity(row));
  assert.throws(() => table.batch(entities.map((sent) => ["insertEntity", sent])), /100/);
  const sent = call(table.client, "executeBatch", table.name, unchecked(entities));
  await failed(400, "InvalidInput", 99, sent);
  assert.deepEqual(await table.all(), []);
});
