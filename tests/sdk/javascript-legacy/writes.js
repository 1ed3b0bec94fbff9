// Single writes: insert, replace, merge, the upserts, delete, and what an ETag guards.

import assert from "node:assert/strict";
import {
  Table, edm, entity, etagOf, freshName, freshTable, propertiesOf, refused, scenario, withEtag,
} from "./target.js";

const int = edm.Int32;
const one = ["Edm.Int32", 1];
const two = ["Edm.Int32", 2];
const read = async (table) => propertiesOf(await table.get("p", "r"));

scenario("insert-conflict", "a second insert is refused and changes nothing", async (t) => {
  const table = await freshTable(t);
  const etag = etagOf(await table.insert(entity("r", { Value: int(1) })));
  await refused(409, "EntityAlreadyExists", table.insert(entity("r", { Value: int(2), More: int(2) })));
  assert.deepEqual(await read(table), { Value: one });
  assert.equal(etagOf(await table.get("p", "r")), etag);
});

scenario("insert-conflict", "a missing entity is told from a missing table", async (t) => {
  const table = await freshTable(t);
  await refused(404, "ResourceNotFound", table.get("p", "absent"));
  await refused(404, "ResourceNotFound", table.replace(entity("absent")));
  await refused(404, "ResourceNotFound", table.merge(entity("absent")));
  await refused(404, "ResourceNotFound", table.remove(entity("absent")));

  const nowhere = new Table(freshName());
  await refused(404, "TableNotFound", nowhere.get("p", "absent"));
  await refused(404, "TableNotFound", nowhere.insert(entity("r")));
  await refused(404, "TableNotFound", nowhere.insertOrMerge(entity("r")));
  await refused(404, "TableNotFound", nowhere.remove(entity("r")));
  await refused(404, "TableNotFound", nowhere.all());
});

for (const method of ["replace", "merge"]) {
  scenario("etag-conflict", `${method} needs the current etag`, async (t) => {
    const table = await freshTable(t);
    const write = async (row, value, etag) =>
      etagOf(await table[method](withEtag(entity(row, { Value: int(value) }), etag)));
    const first = etagOf(await table.insert(entity("r", { Value: int(1) })));
    const second = await write("r", 2, first);
    assert.notEqual(second, first);

    await refused(412, "UpdateConditionNotSatisfied", write("r", 3, first));
    assert.deepEqual(await read(table), { Value: two });
    assert.equal(etagOf(await table.get("p", "r")), second);

    const third = await write("r", 2, "*");
    assert.ok(![first, second].includes(third), "a write that changes nothing still has a new etag");
    await refused(404, "ResourceNotFound", write("absent", 1, third));
  });
}

scenario("etag-conflict", "delete needs the current etag", async (t) => {
  const table = await freshTable(t);
  const stale = etagOf(await table.insert(entity("r", { Value: int(1) })));
  const current = etagOf(await table.insertOrMerge(entity("r", { Value: int(2) })));
  await refused(412, "UpdateConditionNotSatisfied", table.remove(withEtag(entity("r"), stale)));
  assert.deepEqual(await read(table), { Value: two });
  await table.remove(withEtag(entity("r"), current));
  assert.deepEqual(await table.all(), []);
  await refused(404, "ResourceNotFound", table.remove(withEtag(entity("r"), current)));

  await table.insert(entity("r"));
  await table.remove(entity("r"));
  await refused(404, "ResourceNotFound", table.remove(entity("r")));
});

scenario("etag-conflict", "an entity that was read can be written back", async (t) => {
  const table = await freshTable(t);
  await table.insert(entity("r", { Value: int(1) }));
  const got = await table.get("p", "r");
  await table.replace({ ...got, Value: int(2) });
  await refused(412, "UpdateConditionNotSatisfied", table.replace(got));
  assert.deepEqual(await read(table), { Value: two });
});

scenario("merge-and-replace", "merge keeps what it does not name", async (t) => {
  const table = await freshTable(t);
  await table.insert(entity("r", { Kept: int(1), Changed: int(1), Retyped: int(1), Nulled: int(1) }));
  await table.merge(entity("r", { Changed: int(2), Retyped: edm.String("text"), Nulled: null, Added: int(2) }));
  assert.deepEqual(await read(table), {
    Kept: one, Changed: two, Retyped: ["Edm.String", "text"], Nulled: one, Added: two,
  });
});

scenario("merge-and-replace", "replace drops what it does not name", async (t) => {
  const table = await freshTable(t);
  await table.insert(entity("r", { Dropped: int(1), Changed: int(1), Nulled: int(1) }));
  await table.replace(entity("r", { Changed: int(2), Nulled: null, Added: int(2) }));
  assert.deepEqual(await read(table), { Changed: two, Added: two });
  await table.replace(entity("r"));
  assert.deepEqual(await read(table), {});
});

for (const [method, result] of [
  ["insertOrReplace", { Changed: two, New: two }],
  ["insertOrMerge", { Old: one, Changed: two, New: two }],
]) {
  scenario("upserts", method, async (t) => {
    const table = await freshTable(t);
    const first = etagOf(await table[method](entity("r", { Old: int(1), Changed: int(1) })));
    assert.deepEqual(await read(table), { Old: one, Changed: one });
    const second = etagOf(await table[method](entity("r", { Changed: int(2), New: int(2) })));
    assert.deepEqual(await read(table), result);
    assert.notEqual(first, second);
    assert.equal(etagOf(await table.get("p", "r")), second);
  });
}
