// Connecting, and the life of tables: create, list, delete.

import assert from "node:assert/strict";
import { TableClient, TableServiceClient, odata } from "@azure/data-tables";
import {
  account, answerOf, collect, endpoint, freshName, freshTable, key, options, refused, scenario, serviceClient,
  tableClient,
} from "./target.js";

scenario("development-connection-string", "a connection string names the endpoint", async (t) => {
  const { tableName } = await freshTable(t);
  const connection =
    `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${key};TableEndpoint=${endpoint};`;
  const table = TableClient.fromConnectionString(connection, tableName, options);
  assert.equal(table.url, endpoint);
  await table.createEntity({ partitionKey: "p", rowKey: "r", greeting: "hello" });
  assert.equal((await table.getEntity("p", "r")).greeting, "hello");
});

scenario("development-connection-string", "UseDevelopmentStorage means the well-known port", () => {
  const service = TableServiceClient.fromConnectionString("UseDevelopmentStorage=true");
  assert.equal(service.url, "http://127.0.0.1:10002/devstoreaccount1");
});

scenario("table-lifecycle", "a table is created, listed and deleted once", async (t) => {
  const service = serviceClient();
  const name = freshName("Life");
  t.after(() => service.deleteTable(name));
  const create = (name) => answerOf((options) => service.createTable(name, options));
  const remove = () => answerOf((options) => service.deleteTable(name, options));
  const isListed = async () => (await collect(service.listTables())).some((table) => table.name === name);

  assert.ok([201, 204].includes((await create(name)).status));
  assert.deepEqual(await create(name), { status: 409, code: "TableAlreadyExists" });
  assert.deepEqual(await create(name.toUpperCase()), { status: 409, code: "TableAlreadyExists" });
  assert.ok(await isListed());

  await tableClient(name.toLowerCase()).createEntity({ partitionKey: "p", rowKey: "r" });
  assert.equal((await tableClient(name.toUpperCase()).getEntity("p", "r")).rowKey, "r");

  assert.equal((await remove()).status, 204);
  assert.deepEqual(await remove(), { status: 404, code: "ResourceNotFound" });
  assert.ok(!(await isListed()));
  await refused(404, "TableNotFound", tableClient(name).getEntity("p", "r"));
});

async function fiveTables(t) {
  const prefix = freshName("list").slice(0, 20);
  const names = [];
  for (let n = 0; n < 5; n++) names.push((await freshTable(t, prefix)).tableName);
  return { names: names.sort(), filter: odata`TableName ge ${prefix} and TableName lt ${prefix + "z"}` };
}

const namesOf = (tables) => tables.map((table) => table.name);

scenario("table-list", "tables are listed by filter and in pages", async (t) => {
  const service = serviceClient();
  const { names, filter } = await fiveTables(t);
  const find = async (filter) => namesOf(await collect(service.listTables({ queryOptions: { filter } })));

  assert.deepEqual(await find(filter), names);
  assert.deepEqual(await find(odata`TableName eq ${names[2]}`), [names[2]]);
  assert.deepEqual(await find(odata`TableName gt ${names[1]} and TableName le ${names[3]}`), names.slice(2, 4));
  assert.deepEqual(await find("TableName eq 'absent'"), []);

  const pages = await collect(service.listTables().byPage({ maxPageSize: 2 }));
  assert.ok(pages.every((page) => page.length <= 2));
  assert.deepEqual(pages.flatMap(namesOf).filter((name) => names.includes(name)), names);
});

scenario("table-list", "pages of tables resume from a token", async (t) => {
  const { names, filter } = await fiveTables(t);
  const pages = (continuationToken) =>
    serviceClient().listTables({ queryOptions: { filter } }).byPage({ maxPageSize: 2, continuationToken });

  const first = (await pages().next()).value;
  assert.deepEqual(namesOf(first), names.slice(0, 2));
  const rest = await collect(pages(first.continuationToken));
  assert.ok(rest.every((page) => page.length <= 2));
  assert.deepEqual(rest.flatMap(namesOf), names.slice(2));
});
