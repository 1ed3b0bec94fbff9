// Projection, pages and the log tail.

import assert from "node:assert/strict";
import azure from "azure-storage";
import {
  Table, account, edm, endpoint, entity, etagOf, freshTable, key, keysOf, propertiesOf, scenario,
} from "./target.js";

scenario("select", "a query returns only what is selected", async (t) => {
  const table = await freshTable(t);
  await table.insert(entity("1", { Name: edm.String("Ada"), Age: edm.Int32(36) }));
  await table.insert(entity("2", { Name: edm.String("Bob") }));
  const select = (...names) => new azure.TableQuery().select(...names);

  const found = (await table.page(select("Name", "Age"))).entries;
  assert.ok(found.every(etagOf));
  assert.ok(found.every((row) => !row.PartitionKey && !row.RowKey && !row.Timestamp));
  assert.deepEqual(found.map((row) => [row.Name._, row.Age._]), [["Ada", 36], ["Bob", null]]);

  const [ada, ...others] = await table.all(select("PartitionKey", "Name").where("Age > 30"));
  assert.deepEqual([ada.PartitionKey._, ada.RowKey, others], ["p", undefined, []]);
  assert.deepEqual(propertiesOf(ada), { Name: ["Edm.String", "Ada"] });
  const point = select("Age").where("PartitionKey == ? and RowKey == ?", "p", "1");
  assert.deepEqual((await table.all(point)).map(propertiesOf), [{ Age: ["Edm.Int32", 36] }]);
});

/** 2,500 entities in five partitions, written out of order; gives the table and their keys in order. */
async function manyEntities(t) {
  const table = await freshTable(t);
  const row = (n) => String(n).padStart(3, "0");
  for (const partition of "dbeac") {
    for (let start = 400; start >= 0; start -= 100) {
      const numbers = Array.from({ length: 100 }, (_, n) => start + n);
      await table.batch(numbers.map((n) => ["insertEntity", entity(row(n), { N: edm.Int32(n) }, partition)]));
    }
  }
  const expected = [..."abcde"].flatMap((partition) => Array.from({ length: 500 }, (_, n) => `${partition}/${row(n)}`));
  return { table, expected };
}

scenario("paging", "2,500 entities come in pages and in order", async (t) => {
  const { table, expected } = await manyEntities(t);
  const pages = await table.pages(null);
  assert.ok(pages.length >= 3 && pages.every((page) => page.length <= 1000));
  assert.deepEqual(keysOf(pages.flat()), expected);

  const few = await table.pages(new azure.TableQuery().where("N < 100").top(70));
  assert.ok(few.every((page) => page.length <= 70));
  assert.deepEqual(keysOf(few.flat()), expected.filter((key) => key.slice(2) < "100"));
});

scenario("paging", "a saved token resumes in a new client", async (t) => {
  const { table, expected } = await manyEntities(t);
  const taken = [];
  let token = null;
  while (taken.length < 700) {
    const page = await table.page(new azure.TableQuery().top(350), token);
    taken.push(...keysOf(page.entries));
    token = page.continuationToken;
    assert.ok(token);
  }
  assert.deepEqual(taken, expected.slice(0, taken.length));

  const saved = JSON.stringify(token);
  const other = new Table(table.name, azure.createTableService(account, key, endpoint));
  assert.deepEqual(keysOf((await other.pages(null, JSON.parse(saved))).flat()), expected.slice(taken.length));
  const again = await other.page(null, JSON.parse(saved));
  const next = expected.slice(taken.length, taken.length + 1000);
  assert.deepEqual(keysOf(again.entries), next, "a token may be used twice");
});

scenario("log-tail", "the latest entries come first", async (t) => {
  const table = await freshTable(t);
  const row = (n) => String(3155378975999999999n - (637000000000000000n + BigInt(n) * 10_000_000n)).padStart(19, "0");
  const entry = (n, partition = "log") => entity(row(n), { N: edm.Int32(n) }, partition);
  const numbers = Array.from({ length: 60 }, (_, n) => n);
  await table.batch(numbers.map((n) => ["insertEntity", entry(n)]));
  await table.insert(entry(99, "other"));

  const latest = async (n) => {
    const page = await table.page(new azure.TableQuery().where("PartitionKey == ?", "log").top(n));
    return page.entries.map((found) => found.N._);
  };
  assert.deepEqual(await latest(10), numbers.toReversed().slice(0, 10));
  await table.insert(entry(60));
  assert.deepEqual(await latest(1), [60]);
});
