// The account SAS: by service, resource type and permission.

import assert from "node:assert/strict";
import azure from "azure-storage";
import {
  Table, account, call, endpoint, entity, farAhead, freshName, freshTable, key, longAgo, refused, scenario,
} from "./target.js";

const everything = "rwdlacup";

/** A table's client that holds nothing but an account SAS. */
function byAccountSas(types, permissions, name = "unused", more = {}) {
  const AccessPolicy = { Services: "t", ResourceTypes: types, Permissions: permissions, Expiry: farAhead, ...more };
  const token = azure.generateAccountSharedAccessSignature(account, key, { AccessPolicy });
  return new Table(name, azure.createTableServiceWithSas(endpoint, token));
}

const listed = async ({ client }) => (await call(client, "listTablesSegmented", null)).entries;

/** A table that is not there cannot be deleted; the refusal comes after the check of the signature. */
async function deleteNothing({ client }) {
  const error = await call(client, "deleteTable", freshName()).catch((error) => error);
  if (error.statusCode !== 404) throw error;
}

scenario("account-sas", "it is limited by resource type", async (t) => {
  const { name } = await freshTable(t);
  const calls = {
    s: [({ client }) => call(client, "getServiceProperties")],
    c: [({ client }) => call(client, "createTableIfNotExists", name), deleteNothing],
    o: [(table) => table.all(), (table) => table.insertOrMerge(entity("r"))],
  };
  for (const types of ["s", "c", "o", "sco"]) {
    for (const [needed, requests] of Object.entries(calls)) {
      for (const request of requests) {
        const attempt = request(byAccountSas(types, everything, name));
        if (types.includes(needed)) await attempt;
        else await refused(403, "AuthorizationResourceTypeMismatch", attempt);
      }
    }
  }
  assert.ok((await listed(byAccountSas("c", "l"))).includes(name));
  await refused(403, "AuthorizationResourceTypeMismatch", listed(byAccountSas("o", everything)));
});

scenario("account-sas", "it is limited by permission", async (t) => {
  const table = await freshTable(t);
  await table.insert(entity("r"));
  const calls = [
    ["r", "s", ({ client }) => call(client, "getServiceProperties")],
    ["l", "c", listed],
    ["d", "c", deleteNothing],
    ["r", "o", (client) => client.get("p", "r")],
    ["a", "o", (client) => client.insert(entity(freshName()))],
    ["u", "o", (client) => client.merge(entity("r"))],
    ["au", "o", (client) => client.insertOrMerge(entity("r"))],
    ["d", "o", async (client) => {
      await table.insertOrMerge(entity("doomed"));
      await client.remove(entity("doomed"));
    }],
  ];
  for (const permissions of ["r", "l", "d", "a", "u", "au"]) {
    for (const [needed, types, request] of calls) {
      const attempt = request(byAccountSas(types, permissions, table.name));
      if ([...needed].every((letter) => permissions.includes(letter))) await attempt;
      else await refused(403, "AuthorizationPermissionMismatch", attempt);
    }
  }
});

for (const permission of ["c", "w"]) {
  scenario("account-sas", `permission ${permission} creates tables`, async () => {
    const name = freshName();
    await call(byAccountSas("c", permission).client, "createTable", name);
    assert.equal((await call(byAccountSas("c", "d").client, "deleteTable", name)).statusCode, 204);
  });
}

scenario("account-sas", "it names its service, its time and its protocol", async (t) => {
  const { name } = await freshTable(t);
  const list = (more) => listed(byAccountSas("sco", "l", name, more));
  assert.ok((await list({ Services: "bqt" })).length > 0);
  await refused(403, "AuthorizationServiceMismatch", list({ Services: "bq" }));
  await refused(403, "AuthenticationFailed", list({ Expiry: longAgo }));
  await refused(403, "AuthorizationProtocolMismatch", list({ Protocols: "https" }));
  await refused(403, "AuthorizationFailure", byAccountSas("sco", everything, name).acl());
});
