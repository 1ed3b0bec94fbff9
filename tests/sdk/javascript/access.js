// Who may do what: keys, shared access signatures, access policies. Account signatures are in account-access.js.

import assert from "node:assert/strict";
import { AzureNamedKeyCredential, TableClient, generateTableSas } from "@azure/data-tables";
import {
  account, collect, endpoint, farAhead, freshName, freshTable, keyCredential, keysOf, longAgo, options, query, refused,
  rowKeys, sasTableClient, scenario, serviceClient, tableClient,
} from "./target.js";

const all = "raud";
const words = { r: "query", a: "add", u: "update", d: "delete" };
const entity = (rowKey, properties = {}, partitionKey = "p") => ({ partitionKey, rowKey, ...properties });

function token(tableName, permissions, more = {}) {
  const granted = Object.fromEntries([...permissions].map((letter) => [words[letter], true]));
  return generateTableSas(tableName, keyCredential, { permissions: granted, expiresOn: farAhead, ...more });
}

/** A client for the table that holds nothing but a table SAS. */
function bySas(table, permissions, more) {
  return sasTableClient(table.tableName, token(table.tableName, permissions, more));
}

scenario("bad-signature", "a wrong key is refused", async (t) => {
  const table = await freshTable(t);
  const wrong = new AzureNamedKeyCredential(account, Buffer.from("not the key").toString("base64"));
  const stranger = tableClient(table.tableName, wrong);
  await refused(403, "AuthenticationFailed", collect(serviceClient(wrong).listTables()));
  await refused(403, "AuthenticationFailed", stranger.createEntity(entity("r")));
  await refused(403, "AuthenticationFailed", stranger.getEntity("p", "r"));
  await refused(403, "AuthenticationFailed", stranger.submitTransaction([["create", entity("r")]]));
  await refused(403, "AuthenticationFailed", stranger.getAccessPolicy());
  assert.deepEqual(await collect(table.listEntities()), []);
});

scenario("table-sas", "each permission allows its operations only", async (t) => {
  const table = await freshTable(t);
  await table.createEntity(entity("r"));
  const operations = {
    r: [(client) => client.getEntity("p", "r"), (client) => query(client, "RowKey eq 'r' and PartitionKey eq 'p'")],
    a: [(client) => client.createEntity(entity(freshName())),
      (client) => client.submitTransaction([["create", entity(freshName())]])],
    u: [(client) => client.updateEntity(entity("r"), "Merge"), (client) => client.updateEntity(entity("r"), "Replace")],
    d: [async (client) => {
      await table.upsertEntity(entity("doomed"));
      await client.deleteEntity("p", "doomed");
    }],
    au: [(client) => client.upsertEntity(entity("r"), "Merge"),
      (client) => client.upsertEntity(entity("r"), "Replace")],
  };
  for (const permissions of ["r", "a", "u", "d", "au", all]) {
    const client = bySas(table, permissions);
    for (const [needed, calls] of Object.entries(operations)) {
      for (const call of calls) {
        if ([...needed].every((letter) => permissions.includes(letter))) await call(client);
        else await refused(403, "AuthorizationPermissionMismatch", call(client));
      }
    }
  }
});

scenario("table-sas", "a transaction by SAS is checked operation by operation", async (t) => {
  const table = await freshTable(t);
  const client = bySas(table, "a");
  await client.submitTransaction([["create", entity("1")], ["create", entity("2")]]);
  const mixed = [["create", entity("3")], ["delete", entity("1")]];
  await refused(403, "AuthorizationPermissionMismatch", client.submitTransaction(mixed));
  assert.deepEqual(await rowKeys(collect(table.listEntities())), ["1", "2"]);
});

scenario("table-sas", "a SAS in the client's URL works too", async (t) => {
  const { tableName } = await freshTable(t);
  const client = new TableClient(`${endpoint}?${token(tableName, "raud")}`, tableName, options);
  await client.createEntity(entity("1"));
  await client.submitTransaction([["create", entity("2")], ["delete", entity("1")]]);
  assert.deepEqual(await rowKeys(collect(client.listEntities())), ["2"]);
});

scenario("table-sas", "time, address and protocol are checked", async (t) => {
  const table = await freshTable(t);
  const rows = (more) => collect(bySas(table, "r", more).listEntities());
  assert.deepEqual(await rows({ startsOn: longAgo }), []);
  assert.deepEqual(await rows({ ipRange: { start: "127.0.0.1" } }), []);
  assert.deepEqual(await rows({ ipRange: { start: "127.0.0.0", end: "127.0.0.255" } }), []);
  assert.deepEqual(await rows({ protocol: "https,http" }), []);
  await refused(403, "AuthenticationFailed", rows({ expiresOn: longAgo }));
  await refused(403, "AuthenticationFailed", rows({ startsOn: new Date("2110-01-01T00:00:00Z") }));
  await refused(403, "AuthorizationSourceIPMismatch", rows({ ipRange: { start: "10.1.2.3" } }));
  await refused(403, "AuthorizationProtocolMismatch", rows({ protocol: "https" }));
});

scenario("table-sas", "a table SAS is for entities of its table", async (t) => {
  const [table, other] = [await freshTable(t), await freshTable(t)];
  const shouted = sasTableClient(table.tableName, token(table.tableName.toUpperCase(), "r"));
  assert.deepEqual(await collect(shouted.listEntities()), []);
  const strayed = sasTableClient(table.tableName, token(other.tableName, all));
  await refused(403, "AuthorizationFailure", collect(strayed.listEntities()));
  const client = bySas(table, all);
  await refused(403, "AuthorizationFailure", client.deleteTable());
  await refused(403, "AuthorizationFailure", client.createTable());
  await refused(403, "AuthorizationFailure", client.getAccessPolicy());
  assert.ok((await collect(serviceClient().listTables())).some(({ name }) => name === table.tableName));
});

scenario("table-sas", "a changed SAS is refused", async (t) => {
  const { tableName } = await freshTable(t);
  const changed = token(tableName, "r").replace("sp=r&", "sp=raud&");
  assert.notEqual(changed, token(tableName, "r"));
  await refused(403, "AuthenticationFailed", collect(sasTableClient(tableName, changed).listEntities()));
});

/** Partitions a, b, c with rows 1, 2, 3 each. */
async function grid(t) {
  const table = await freshTable(t);
  for (const partition of "abc") {
    await table.submitTransaction([..."123"].map((row) => ["create", entity(row, {}, partition)]));
  }
  return table;
}

scenario("sas-key-range", "queries find only rows inside the range", async (t) => {
  const table = await grid(t);
  const everything = await keysOf(collect(table.listEntities()));
  for (const [bounds, text] of [
    [{ startPartitionKey: "b" }, "b/1 b/2 b/3 c/1 c/2 c/3"],
    [{ endPartitionKey: "b" }, "a/1 a/2 a/3 b/1 b/2 b/3"],
    [{ startPartitionKey: "b", endPartitionKey: "b" }, "b/1 b/2 b/3"],
    [{ startPartitionKey: "a", startRowKey: "3", endPartitionKey: "c", endRowKey: "1" }, "a/3 b/1 b/2 b/3 c/1"],
    [{ startPartitionKey: "b", startRowKey: "2", endPartitionKey: "b", endRowKey: "2" }, "b/2"],
    [{ startPartitionKey: "bb", endPartitionKey: "bz" }, ""],
  ]) {
    const inside = text.split(" ").filter(Boolean);
    const client = bySas(table, "r", bounds);
    assert.deepEqual(await keysOf(collect(client.listEntities())), inside);
    assert.deepEqual(await keysOf(query(client, "RowKey ne '2'")), inside.filter((key) => !key.endsWith("2")));
    for (const key of everything) {
      const point = client.getEntity(...key.split("/"));
      if (inside.includes(key)) assert.equal((await point).rowKey, key.split("/")[1]);
      else await refused(404, "ResourceNotFound", point);
    }
  }
});

scenario("sas-key-range", "writes outside the range are refused", async (t) => {
  const table = await grid(t);
  const bounds = { startPartitionKey: "b", startRowKey: "2", endPartitionKey: "b", endRowKey: "5" };
  const client = bySas(table, all, bounds);
  await client.createEntity(entity("4", {}, "b"));
  await client.upsertEntity(entity("5", {}, "b"));
  await client.updateEntity(entity("2", { Value: 1 }, "b"));
  await client.deleteEntity("b", "3");
  const before = await collect(table.listEntities());

  for (const [partition, row] of [["a", "9"], ["b", "1"], ["b", "6"], ["c", "2"]]) {
    const outside = entity(row, {}, partition);
    await refused(403, "AuthorizationFailure", client.createEntity(outside));
    await refused(403, "AuthorizationFailure", client.upsertEntity(outside));
    await refused(403, "AuthorizationFailure", client.updateEntity(outside, "Replace"));
    await refused(403, "AuthorizationFailure", client.deleteEntity(partition, row));
  }
  const mixed = [["upsert", entity("4", { Value: 1 }, "b")], ["upsert", entity("6", {}, "b")]];
  await refused(403, "AuthorizationFailure", client.submitTransaction(mixed));
  assert.deepEqual(await collect(table.listEntities()), before);
});

const start = new Date("2021-06-08T02:05:09Z");

scenario("acl", "policies are set, read back and cleared", async (t) => {
  const table = await freshTable(t);
  const policies = async () => [...(await table.getAccessPolicy())];
  assert.deepEqual(await policies(), []);
  const set = [
    { id: "whole", accessPolicy: { start, expiry: farAhead, permission: "raud" } },
    { id: "only permission", accessPolicy: { permission: "r" } },
    { id: "only expiry", accessPolicy: { expiry: farAhead } },
    { id: "empty", accessPolicy: {} },
    { id: "x".repeat(64), accessPolicy: { start, expiry: farAhead, permission: "a" } },
  ];
  await table.setAccessPolicy(set);
  assert.deepEqual((await policies()).map(withoutUndefined), set);

  await table.setAccessPolicy([{ id: "other", accessPolicy: { permission: "d" } }]);
  assert.deepEqual((await policies()).map(({ id }) => id), ["other"]);
  await table.setAccessPolicy([]);
  assert.deepEqual(await policies(), []);
});

function withoutUndefined({ id, accessPolicy }) {
  return { id, accessPolicy: Object.fromEntries(Object.entries(accessPolicy).filter(([, value]) => value)) };
}

scenario("acl", "wrong policies are refused and change nothing", async (t) => {
  const table = await freshTable(t);
  const policy = (id, permission = "r") => ({ id, accessPolicy: { start, expiry: farAhead, permission } });
  await table.setAccessPolicy([policy("kept")]);
  const six = Array.from({ length: 6 }, (_, n) => policy(`id${n}`));
  await refused(400, "InvalidXmlDocument", table.setAccessPolicy(six));
  await refused(400, "InvalidXmlDocument", table.setAccessPolicy([policy("x".repeat(65))]));
  await refused(400, "InvalidXmlDocument", table.setAccessPolicy([policy("id", "z")]));
  assert.deepEqual([...(await table.getAccessPolicy())].map(({ id }) => id), ["kept"]);
});

/** A client whose SAS names the stored policy and nothing else, unless told. */
function byPolicy(table, more = {}) {
  const token = generateTableSas(table.tableName, keyCredential, { identifier: "policy", ...more });
  return sasTableClient(table.tableName, token);
}

scenario("stored-policy", "a SAS follows its policy until it is removed", async (t) => {
  const table = await freshTable(t);
  await table.createEntity(entity("r"));
  const client = byPolicy(table);
  const read = async () => (await client.getEntity("p", "r")).rowKey;
  const set = (permission, expiry = farAhead) =>
    table.setAccessPolicy([{ id: "policy", accessPolicy: { start: longAgo, expiry, permission } }]);
  await refused(403, "AuthenticationFailed", read());

  await set("r");
  assert.equal(await read(), "r");
  await refused(403, "AuthorizationPermissionMismatch", client.createEntity(entity("s")));
  await set("a");
  await client.createEntity(entity("s"));
  await refused(403, "AuthorizationPermissionMismatch", read());
  await set("r", longAgo);
  await refused(403, "AuthenticationFailed", read());
  await set("r");
  assert.equal(await read(), "r");
  await table.setAccessPolicy([]);
  await refused(403, "AuthenticationFailed", read());
});

scenario("stored-policy", "policy and SAS complete each other", async (t) => {
  const table = await freshTable(t);
  await table.setAccessPolicy([{ id: "policy", accessPolicy: { permission: "r" } }]);
  assert.deepEqual(await collect(byPolicy(table, { expiresOn: farAhead }).listEntities()), []);
  await refused(403, "AuthenticationFailed", collect(byPolicy(table).listEntities()));
  const both = byPolicy(table, { expiresOn: farAhead, permissions: { query: true } });
  await refused(403, "AuthenticationFailed", collect(both.listEntities()));
});
