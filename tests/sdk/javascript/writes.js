// Single writes: insert, replace, merge, the upserts, delete, and what an ETag guards.

import assert from "node:assert/strict";
import { collect, freshName, freshTable, propertiesOf, refused, scenario, tableClient } from "./target.js";

const entity = (properties = {}, rowKey = "r") => ({ partitionKey: "p", rowKey, ...properties });
const read = async (table) => propertiesOf(await table.getEntity("p", "r"));

scenario("insert-conflict", "a second insert is refused and changes nothing", async (t) => {
  const table = await freshTable(t);
  const { etag } = await table.createEntity(entity({ value: 1 }));
  await refused(409, "EntityAlreadyExists", table.createEntity(entity({ value: 2, more: "x" })));
  assert.deepEqual(await read(table), { value: 1 });
  assert.equal((await table.getEntity("p", "r")).etag, etag);
});

scenario("insert-conflict", "a missing entity is told from a missing table", async (t) => {
  const table = await freshTable(t);
  const absent = entity({ value: 1 }, "absent");
  await refused(404, "ResourceNotFound", table.getEntity("p", "absent"));
  await refused(404, "ResourceNotFound", table.updateEntity(absent, "Replace"));
  await refused(404, "ResourceNotFound", table.updateEntity(absent, "Merge"));
  await refused(404, "ResourceNotFound", table.deleteEntity("p", "absent"));

  const nowhere = tableClient(freshName());
  await refused(404, "TableNotFound", nowhere.getEntity("p", "absent"));
  await refused(404, "TableNotFound", nowhere.createEntity(entity()));
  await refused(404, "TableNotFound", nowhere.upsertEntity(entity()));
  await refused(404, "TableNotFound", nowhere.deleteEntity("p", "absent"));
  await refused(404, "TableNotFound", collect(nowhere.listEntities()));
});

for (const mode of ["Replace", "Merge"]) {
  scenario("etag-conflict", `${mode} needs the current etag`, async (t) => {
    const table = await freshTable(t);
    const first = (await table.createEntity(entity({ value: 1 }))).etag;
    const second = (await table.updateEntity(entity({ value: 2 }), mode, { etag: first })).etag;
    assert.notEqual(second, first);

    await refused(412, "UpdateConditionNotSatisfied", table.updateEntity(entity({ value: 3 }), mode, { etag: first }));
    assert.deepEqual(await read(table), { value: 2 });
    assert.equal((await table.getEntity("p", "r")).etag, second);

    const third = (await table.updateEntity(entity({ value: 2 }), mode, { etag: "*" })).etag;
    assert.ok(![first, second].includes(third), "a write that changes nothing still has a new etag");
    await refused(404, "ResourceNotFound", table.updateEntity(entity({}, "absent"), mode, { etag: third }));
  });
}

scenario("etag-conflict", "delete needs the current etag", async (t) => {
  const table = await freshTable(t);
  const { etag: stale } = await table.createEntity(entity({ value: 1 }));
  const { etag: current } = await table.upsertEntity(entity({ value: 2 }));
  await refused(412, "UpdateConditionNotSatisfied", table.deleteEntity("p", "r", { etag: stale }));
  assert.deepEqual(await read(table), { value: 2 });
  await table.deleteEntity("p", "r", { etag: current });
  assert.deepEqual(await collect(table.listEntities()), []);
  await refused(404, "ResourceNotFound", table.deleteEntity("p", "r", { etag: current }));

  await table.createEntity(entity());
  await table.deleteEntity("p", "r");
  await refused(404, "ResourceNotFound", table.deleteEntity("p", "r"));
});

scenario("etag-conflict", "an etag that is not one is InvalidInput", async (t) => {
  const table = await freshTable(t);
  await table.createEntity(entity({ value: 1 }));
  await refused(400, "InvalidInput", table.updateEntity(entity({ value: 2 }), "Replace", { etag: "nonsense" }));
  assert.deepEqual(await read(table), { value: 1 });
});

scenario("etag-conflict", "an entity that was read can be written back", async (t) => {
  const table = await freshTable(t);
  await table.createEntity(entity({ value: 1 }));
  const got = await table.getEntity("p", "r");
  await table.updateEntity({ ...got, value: 2 }, "Replace", { etag: got.etag });
  await refused(412, "UpdateConditionNotSatisfied", table.updateEntity(got, "Replace", { etag: got.etag }));
  assert.deepEqual(await read(table), { value: 2 }, "what the service added is not stored as properties");
});

scenario("merge-and-replace", "merge keeps what it does not name", async (t) => {
  const table = await freshTable(t);
  await table.createEntity(entity({ kept: "k", changed: 1, retyped: 1, nulled: "n" }));
  await table.updateEntity(entity({ changed: 2, retyped: "text", nulled: null, added: true }), "Merge");
  assert.deepEqual(await read(table), { kept: "k", changed: 2, retyped: "text", nulled: "n", added: true });
});

scenario("merge-and-replace", "replace drops what it does not name", async (t) => {
  const table = await freshTable(t);
  await table.createEntity(entity({ dropped: "d", changed: 1, nulled: "n" }));
  await table.updateEntity(entity({ changed: 2, nulled: null, added: true }), "Replace");
  assert.deepEqual(await read(table), { changed: 2, added: true });
  await table.updateEntity(entity(), "Replace");
  assert.deepEqual(await read(table), {});
});

for (const [mode, result] of [["Replace", { changed: 2, new: 2 }], ["Merge", { old: 1, changed: 2, new: 2 }]]) {
  scenario("upserts", `insert or ${mode}`, async (t) => {
    const table = await freshTable(t);
    const first = (await table.upsertEntity(entity({ old: 1, changed: 1 }), mode)).etag;
    assert.deepEqual(await read(table), { old: 1, changed: 1 });
    const second = (await table.upsertEntity(entity({ changed: 2, new: 2 }), mode)).etag;
    assert.deepEqual(await read(table), result);
    assert.notEqual(first, second);
    assert.equal((await table.getEntity("p", "r")).etag, second);
  });
}
