// The account SAS: by service, resource type and permission.

import assert from "node:assert/strict";
import { AzureSASCredential, generateAccountSas } from "@azure/data-tables";
import {
  answerOf, collect, farAhead, freshName, freshTable, keyCredential, longAgo, refused, scenario, serviceClient,
  tableClient,
} from "./target.js";

const everything = "query write delete list add update";
const entity = (rowKey) => ({ partitionKey: "p", rowKey });

/** Clients for the account and for one table that hold nothing but an account SAS. */
function byAccountSas(resourceTypes, permissions, tableName = "unused", more = {}) {
  const granted = Object.fromEntries(permissions.split(" ").map((word) => [word, true]));
  const policy = { resourceTypes, permissions: granted, expiresOn: farAhead, ...more };
  const credential = new AzureSASCredential(generateAccountSas(keyCredential, policy));
  return { service: serviceClient(credential), table: tableClient(tableName, credential) };
}

scenario("account-sas", "it is limited by resource type", async (t) => {
  const { tableName } = await freshTable(t);
  const calls = {
    s: [({ service }) => service.getProperties()],
    c: [({ service }) => answerOf((options) => service.createTable(tableName, options)),
      ({ service }) => answerOf((options) => service.deleteTable(freshName(), options))],
    o: [({ table }) => collect(table.listEntities()), ({ table }) => table.upsertEntity(entity("r"))],
  };
  for (const types of ["s", "c", "o", "sco"]) {
    for (const [needed, requests] of Object.entries(calls)) {
      for (const request of requests) {
        const call = request(byAccountSas(types, everything, tableName));
        if (types.includes(needed)) await call;
        else await refused(403, "AuthorizationResourceTypeMismatch", call);
      }
    }
  }
  const listed = await collect(byAccountSas("c", "list").service.listTables());
  assert.ok(listed.some(({ name }) => name === tableName));
  const byObject = byAccountSas("o", everything).service;
  await refused(403, "AuthorizationResourceTypeMismatch", collect(byObject.listTables()));
});

scenario("account-sas", "it is limited by permission", async (t) => {
  const table = await freshTable(t);
  await table.createEntity(entity("r"));
  const calls = [
    ["query", "s", ({ service }) => service.getProperties()],
    ["list", "c", ({ service }) => collect(service.listTables())],
    ["delete", "c", ({ service }) => answerOf((options) => service.deleteTable(freshName(), options))],
    ["query", "o", ({ table }) => table.getEntity("p", "r")],
    ["add", "o", ({ table }) => table.createEntity(entity(freshName()))],
    ["update", "o", ({ table }) => table.updateEntity(entity("r"))],
    ["add update", "o", ({ table }) => table.upsertEntity(entity("r"))],
    ["delete", "o", async ({ table: client }) => {
      await table.upsertEntity(entity("doomed"));
      await client.deleteEntity("p", "doomed");
    }],
  ];
  for (const permissions of ["query", "list", "delete", "add", "update", "add update"]) {
    for (const [needed, types, call] of calls) {
      const attempt = call(byAccountSas(types, permissions, table.tableName));
      if (needed.split(" ").every((word) => permissions.split(" ").includes(word))) await attempt;
      else await refused(403, "AuthorizationPermissionMismatch", attempt);
    }
  }
});

scenario("account-sas", "it creates and deletes tables", async () => {
  const name = freshName();
  await byAccountSas("c", "write").service.createTable(name);
  const removed = await answerOf((options) => byAccountSas("c", "delete").service.deleteTable(name, options));
  assert.equal(removed.status, 204);
});

scenario("account-sas", "it names its service, its time and its protocol", async (t) => {
  const { tableName } = await freshTable(t);
  const list = (more) => collect(byAccountSas("sco", "list", tableName, more).service.listTables());
  assert.ok((await list({ services: { blob: true, queue: true, table: true } })).length > 0);
  await refused(403, "AuthorizationServiceMismatch", list({ services: { blob: true, queue: true } }));
  await refused(403, "AuthenticationFailed", list({ expiresOn: longAgo }));
  await refused(403, "AuthorizationProtocolMismatch", list({ protocol: "https" }));
  await refused(403, "AuthorizationFailure", byAccountSas("sco", everything, tableName).table.getAccessPolicy());
});
