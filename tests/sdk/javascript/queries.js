// Projection, pages and the log tail.

import assert from "node:assert/strict";
import { collect, freshTable, keysOf, propertiesOf, query, scenario, tableClient } from "./target.js";

async function people(t) {
  const table = await freshTable(t);
  await table.createEntity({ partitionKey: "p", rowKey: "1", Name: "Ada", Age: 36 });
  await table.createEntity({ partitionKey: "p", rowKey: "2", Name: "Bob" });
  return table;
}

scenario("select", "a query returns only what is selected", async (t) => {
  const table = await people(t);
  const found = await collect(table.listEntities({ queryOptions: { select: ["Name", "Age"] } }));
  assert.ok(found.every((entity) => entity.etag));
  assert.deepEqual(found.map(({ etag, ...rest }) => rest), [{ Name: "Ada", Age: 36 }, { Name: "Bob", Age: null }]);

  const [ada, ...others] = await query(table, "Age gt 30", { select: ["partitionKey", "Name"] });
  assert.deepEqual([ada.partitionKey, ada.rowKey, ada.timestamp], ["p", undefined, undefined]);
  assert.deepEqual([propertiesOf(ada), others], [{ Name: "Ada" }, []]);
});

scenario("select", "a point get returns only what is selected", async (t) => {
  const table = await people(t);
  const whole = await table.getEntity("p", "1");
  const select = ["rowKey", "Age", "Missing", "timestamp"];
  const { "odata.metadata": metadata, ...some } = await table.getEntity("p", "1", { queryOptions: { select } });
  assert.deepEqual(some, { etag: whole.etag, rowKey: "1", Age: 36, Missing: null, timestamp: whole.timestamp });
});

/** 2,500 entities in five partitions, written out of order; gives the table and their keys in order. */
async function manyEntities(t) {
  const table = await freshTable(t);
  const row = (n) => String(n).padStart(3, "0");
  for (const partitionKey of "dbeac") {
    for (let start = 400; start >= 0; start -= 100) {
      const numbers = Array.from({ length: 100 }, (_, n) => start + n);
      await table.submitTransaction(numbers.map((n) => ["create", { partitionKey, rowKey: row(n), N: n }]));
    }
  }
  const expected = [..."abcde"].flatMap((partition) => Array.from({ length: 500 }, (_, n) => `${partition}/${row(n)}`));
  return { table, expected };
}

scenario("paging", "2,500 entities come in pages and in order", async (t) => {
  const { table, expected } = await manyEntities(t);
  assert.deepEqual(await keysOf(collect(table.listEntities())), expected);

  const pages = await collect(table.listEntities().byPage());
  assert.ok(pages.length >= 3 && pages.every((page) => page.length <= 1000));
  assert.deepEqual(await keysOf(pages.flat()), expected);

  const few = table.listEntities({ queryOptions: { filter: "N lt 100" } }).byPage({ maxPageSize: 70 });
  const fewPages = await collect(few);
  assert.ok(fewPages.every((page) => page.length <= 70));
  assert.deepEqual(await keysOf(fewPages.flat()), expected.filter((key) => key.slice(2) < "100"));
});

scenario("paging", "a saved token resumes in a new client", async (t) => {
  const { table, expected } = await manyEntities(t);
  const taken = [];
  let token;
  while (taken.length < 700) {
    const pages = table.listEntities().byPage({ maxPageSize: 350, continuationToken: token });
    const page = (await pages.next()).value;
    taken.push(...(await keysOf(page)));
    token = page.continuationToken;
    assert.equal(typeof token, "string");
  }
  assert.deepEqual(taken, expected.slice(0, taken.length));

  const rest = () =>
    tableClient(table.tableName).listEntities().byPage({ maxPageSize: 1000, continuationToken: token });
  assert.deepEqual(await keysOf((await collect(rest())).flat()), expected.slice(taken.length));
  const again = (await rest().next()).value;
  assert.deepEqual(await keysOf(again), expected.slice(taken.length, taken.length + 1000), "a token may be used twice");
});

scenario("log-tail", "the latest entries come first", async (t) => {
  const table = await freshTable(t);
  const ticks = (n) => 637000000000000000n + BigInt(n) * 10_000_000n;
  const rowKey = (n) => String(3155378975999999999n - ticks(n)).padStart(19, "0");
  const numbers = Array.from({ length: 60 }, (_, n) => n);
  await table.submitTransaction(numbers.map((n) => ["create", { partitionKey: "log", rowKey: rowKey(n), N: n }]));
  await table.createEntity({ partitionKey: "other", rowKey: rowKey(99), N: 99 });

  const latest = async (maxPageSize) => {
    const pages = table.listEntities({ queryOptions: { filter: "PartitionKey eq 'log'" } }).byPage({ maxPageSize });
    return (await pages.next()).value.map((entity) => entity.N);
  };
  assert.deepEqual(await latest(10), numbers.toReversed().slice(0, 10));
  await table.createEntity({ partitionKey: "log", rowKey: rowKey(60), N: 60 });
  assert.deepEqual(await latest(1), [60]);
});
