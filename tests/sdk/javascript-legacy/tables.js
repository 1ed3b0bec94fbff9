// Connecting, and the life of tables: create, list, delete.

import assert from "node:assert/strict";
import azure from "azure-storage";
import {
  Table, account, call, edm, endpoint, entity, freshName, freshTable, key, refused, scenario, service,
} from "./target.js";

scenario("development-connection-string", "a connection string names the endpoint", async (t) => {
  const { name } = await freshTable(t);
  const connection =
    `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${key};TableEndpoint=${endpoint};`;
  const table = new Table(name, azure.createTableService(connection));
  assert.equal(table.client.host.primaryHost, endpoint);
  await table.insert(entity("r", { Greeting: edm.String("hello") }));
  assert.equal((await table.get("p", "r")).Greeting._, "hello");
});

scenario("development-connection-string", "UseDevelopmentStorage means the well-known account", () => {
  const client = azure.createTableService("UseDevelopmentStorage=true");
  assert.equal(client.storageAccount, "devstoreaccount1");
  assert.equal(client.host.primaryHost, "http://127.0.0.1:10002/devstoreaccount1");
});

scenario("table-lifecycle", "a table is created, listed and deleted once", async (t) => {
  const name = freshName("Life");
  t.after(() => call(service, "deleteTableIfExists", name));
  const isListed = async () =>
    (await call(service, "listTablesSegmentedWithPrefix", name, null)).entries.includes(name);

  assert.equal((await call(service, "createTable", name)).statusCode, 204);
  await refused(409, "TableAlreadyExists", call(service, "createTable", name));
  await refused(409, "TableAlreadyExists", call(service, "createTable", name.toUpperCase()));
  assert.equal((await call(service, "createTableIfNotExists", name)).created, false);
  assert.equal((await call(service, "doesTableExist", name)).exists, true);
  assert.ok(await isListed());

  await new Table(name.toLowerCase()).insert(entity("r"));
  assert.equal((await new Table(name.toUpperCase()).get("p", "r")).RowKey._, "r");

  assert.equal((await call(service, "deleteTable", name)).statusCode, 204);
  await refused(404, "ResourceNotFound", call(service, "deleteTable", name));
  assert.equal((await call(service, "doesTableExist", name)).exists, false);
  assert.ok(!(await isListed()));
  await refused(404, "TableNotFound", new Table(name).get("p", "r"));
});

scenario("table-list", "tables are listed by prefix and in pages", async (t) => {
  const prefix = freshName("list").slice(0, 20);
  const names = [];
  for (let n = 0; n < 5; n++) names.push((await freshTable(t, prefix)).name);
  names.sort();
  const list = (prefix, token = null, options = {}) =>
    call(service, "listTablesSegmentedWithPrefix", prefix, token, options);

  assert.deepEqual((await list(prefix)).entries, names);
  assert.deepEqual((await list(names[2])).entries, [names[2]]);
  assert.deepEqual((await list(freshName("absent"))).entries, []);

  const pages = [];
  let token = null;
  do {
    const page = await list(prefix, token, { maxResults: 2 });
    pages.push(page.entries);
    token = page.continuationToken && JSON.parse(JSON.stringify(page.continuationToken));
  } while (token);
  assert.deepEqual(pages[0], names.slice(0, 2));
  assert.ok(pages.every((page) => page.length <= 2));
  assert.deepEqual(pages.flat(), names);
  const whole = (await call(service, "listTablesSegmented", null)).entries;
  assert.ok(whole.length <= 1000);
});
