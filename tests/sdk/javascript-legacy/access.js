// Who may do what: keys, shared access signatures, access policies. Account signatures are in account-access.js.

import assert from "node:assert/strict";
import azure from "azure-storage";
import {
  Table, account, call, edm, endpoint, entity, farAhead, freshName, freshTable, keysOf, longAgo, refused, rowsOf,
  scenario, service,
} from "./target.js";

const all = "raud";

/** The table by a client that holds nothing but a table SAS; `signedName` is the table that the SAS names. */
function bySas(table, permissions, more = {}, signedName = table.name) {
  const AccessPolicy = { Permissions: permissions, Expiry: farAhead, ...more };
  return byToken(table, service.generateSharedAccessSignature(signedName, { AccessPolicy }));
}

function byToken(table, token) {
  return new Table(table.name, azure.createTableServiceWithSas(endpoint, token));
}

scenario("bad-signature", "a wrong key is refused", async (t) => {
  const table = await freshTable(t);
  const wrong = Buffer.from("not the key!").toString("base64");
  const stranger = new Table(table.name, azure.createTableService(account, wrong, endpoint));
  await refused(403, "AuthenticationFailed", call(stranger.client, "listTablesSegmented", null));
  await refused(403, "AuthenticationFailed", stranger.insert(entity("r")));
  await refused(403, "AuthenticationFailed", stranger.get("p", "r"));
  await refused(403, "AuthenticationFailed", stranger.batch([["insertEntity", entity("r")]]));
  await refused(403, "AuthenticationFailed", stranger.acl());
  assert.deepEqual(await table.all(), []);
});

scenario("table-sas", "each permission allows its operations only", async (t) => {
  const table = await freshTable(t);
  await table.insert(entity("r"));
  const operations = {
    r: [(client) => client.get("p", "r"), (client) => client.all("RowKey eq 'r'")],
    a: [(client) => client.insert(entity(freshName())),
      (client) => client.batch([["insertEntity", entity(freshName())]])],
    u: [(client) => client.merge(entity("r")), (client) => client.replace(entity("r"))],
    d: [async (client) => {
      await table.insertOrMerge(entity("doomed"));
      await client.remove(entity("doomed"));
    }],
    au: [(client) => client.insertOrMerge(entity("r")), (client) => client.insertOrReplace(entity("r"))],
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
  await client.batch([["insertEntity", entity("1")], ["insertEntity", entity("2")]]);
  const mixed = client.batch([["insertEntity", entity("3")], ["deleteEntity", entity("1")]]);
  await refused(403, "AuthorizationPermissionMismatch", mixed);
  assert.deepEqual(rowsOf(await table.all()), ["1", "2"]);
});

scenario("table-sas", "time, address and protocol are checked", async (t) => {
  const table = await freshTable(t);
  const rows = (more) => bySas(table, "r", more).all();
  assert.deepEqual(await rows({ Start: longAgo }), []);
  assert.deepEqual(await rows({ IPAddressOrRange: "127.0.0.1" }), []);
  assert.deepEqual(await rows({ IPAddressOrRange: "127.0.0.0-127.0.0.255" }), []);
  assert.deepEqual(await rows({ Protocols: "https,http" }), []);
  await refused(403, "AuthenticationFailed", rows({ Expiry: longAgo }));
  await refused(403, "AuthenticationFailed", rows({ Start: new Date("2110-01-01T00:00:00Z") }));
  await refused(403, "AuthorizationSourceIPMismatch", rows({ IPAddressOrRange: "10.1.2.3" }));
  await refused(403, "AuthorizationProtocolMismatch", rows({ Protocols: "https" }));
});

scenario("table-sas", "a table SAS is for entities of its table", async (t) => {
  const [table, other] = [await freshTable(t, "Sas"), await freshTable(t)];
  assert.deepEqual(await bySas(table, "r").all(), []);
  await refused(403, "AuthorizationFailure", bySas(table, all, {}, other.name).all());
  const { client } = bySas(table, all);
  await refused(403, "AuthorizationFailure", call(client, "deleteTable", table.name));
  await refused(403, "AuthorizationFailure", call(client, "createTable", table.name));
  await refused(403, "AuthorizationFailure", call(client, "getTableAcl", table.name));
  assert.ok((await call(service, "doesTableExist", table.name)).exists);
});

scenario("table-sas", "a changed SAS is refused", async (t) => {
  const table = await freshTable(t);
  const AccessPolicy = { Permissions: "r", Expiry: farAhead };
  const token = service.generateSharedAccessSignature(table.name, { AccessPolicy });
  const changed = token.replace("sp=r&", "sp=raud&");
  assert.notEqual(changed, token);
  await refused(403, "AuthenticationFailed", byToken(table, changed).all());
});

/** Partitions a, b, c with rows 1, 2, 3 each. */
async function grid(t) {
  const table = await freshTable(t);
  for (const partition of "abc") {
    await table.batch([..."123"].map((row) => ["insertEntity", entity(row, {}, partition)]));
  }
  return table;
}

scenario("sas-key-range", "queries find only rows inside the range", async (t) => {
  const table = await grid(t);
  const everything = keysOf(await table.all());
  for (const [bounds, text] of [
    [{ StartPk: "b" }, "b/1 b/2 b/3 c/1 c/2 c/3"],
    [{ EndPk: "b" }, "a/1 a/2 a/3 b/1 b/2 b/3"],
    [{ StartPk: "b", EndPk: "b" }, "b/1 b/2 b/3"],
    [{ StartPk: "a", StartRk: "3", EndPk: "c", EndRk: "1" }, "a/3 b/1 b/2 b/3 c/1"],
    [{ StartPk: "b", StartRk: "2", EndPk: "b", EndRk: "2" }, "b/2"],
    [{ StartPk: "bb", EndPk: "bz" }, ""],
  ]) {
    const inside = text.split(" ").filter(Boolean);
    const client = bySas(table, "r", bounds);
    assert.deepEqual(keysOf(await client.all()), inside);
    assert.deepEqual(keysOf(await client.all("RowKey ne '2'")), inside.filter((key) => !key.endsWith("2")));
    for (const key of everything) {
      const point = client.get(...key.split("/"));
      if (inside.includes(key)) assert.equal((await point).RowKey._, key.split("/")[1]);
      else await refused(404, "ResourceNotFound", point);
    }
  }
});

scenario("sas-key-range", "writes outside the range are refused", async (t) => {
  const table = await grid(t);
  const client = bySas(table, all, { StartPk: "b", StartRk: "2", EndPk: "b", EndRk: "5" });
  await client.insert(entity("4", {}, "b"));
  await client.insertOrMerge(entity("5", {}, "b"));
  await client.merge(entity("2", { Value: edm.Int32(1) }, "b"));
  await client.remove(entity("3", {}, "b"));
  const before = await table.all();

  for (const [partition, row] of [["a", "9"], ["b", "1"], ["b", "6"], ["c", "2"]]) {
    const outside = entity(row, {}, partition);
    for (const method of ["insert", "insertOrMerge", "insertOrReplace", "replace", "merge", "remove"]) {
      await refused(403, "AuthorizationFailure", client[method](outside));
    }
  }
  await refused(403, "AuthorizationFailure", client.batch([
    ["insertOrMergeEntity", entity("4", { Value: edm.Int32(1) }, "b")],
    ["insertOrMergeEntity", entity("6", {}, "b")],
  ]));
  assert.deepEqual(await table.all(), before);
});

const start = new Date("2021-06-08T02:05:09Z");

scenario("acl", "policies are set, read back and cleared", async (t) => {
  const table = await freshTable(t);
  assert.deepEqual(await table.acl(), {});
  const policies = {
    whole: { Start: start, Expiry: farAhead, Permissions: "raud" },
    "only permission": { Permissions: "r" },
    "only expiry": { Expiry: farAhead },
    empty: {},
    ["x".repeat(64)]: { Start: start, Expiry: farAhead, Permissions: "a" },
  };
  await table.setAcl(policies);
  assert.deepEqual(await table.acl(), policies);

  await table.setAcl({ other: { Permissions: "d" } });
  assert.deepEqual(await table.acl(), { other: { Permissions: "d" } });
  await table.setAcl({});
  assert.deepEqual(await table.acl(), {});
  await table.setAcl({ other: { Permissions: "d" } });
  await table.setAcl(null);
  assert.deepEqual(await table.acl(), {}, "an empty body clears the policies too");
});

scenario("acl", "wrong policies are refused and change nothing", async (t) => {
  const table = await freshTable(t);
  const policy = { Start: start, Expiry: farAhead, Permissions: "r" };
  await table.setAcl({ kept: policy });
  const six = Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`id${n}`, policy]));
  await refused(400, "InvalidXmlDocument", table.setAcl(six));
  await refused(400, "InvalidXmlDocument", table.setAcl({ ["x".repeat(65)]: policy }));
  await refused(400, "InvalidXmlDocument", table.setAcl({ id: { ...policy, Permissions: "z" } }));
  assert.deepEqual(await table.acl(), { kept: policy });
});

/** The table by a client whose SAS names the stored policy and nothing else, unless told. */
function byPolicy(table, more) {
  const policy = more ? { Id: "policy", AccessPolicy: more } : { Id: "policy" };
  return byToken(table, service.generateSharedAccessSignature(table.name, policy));
}

scenario("stored-policy", "a SAS follows its policy until it is removed", async (t) => {
  const table = await freshTable(t);
  await table.insert(entity("r"));
  const client = byPolicy(table);
  const read = async () => (await client.get("p", "r")).RowKey._;
  const set = (Permissions, Expiry = farAhead) => table.setAcl({ policy: { Start: longAgo, Expiry, Permissions } });
  await refused(403, "AuthenticationFailed", read());

  await set("r");
  assert.equal(await read(), "r");
  await refused(403, "AuthorizationPermissionMismatch", client.insert(entity("s")));
  await set("a");
  await client.insert(entity("s"));
  await refused(403, "AuthorizationPermissionMismatch", read());
  await set("r", longAgo);
  await refused(403, "AuthenticationFailed", read());
  await set("r");
  assert.equal(await read(), "r");
  await table.setAcl({});
  await refused(403, "AuthenticationFailed", read());
});

scenario("stored-policy", "policy and SAS complete each other", async (t) => {
  const table = await freshTable(t);
  await table.setAcl({ policy: { Permissions: "r" } });
  assert.deepEqual(await byPolicy(table, { Expiry: farAhead }).all(), []);
  await refused(403, "AuthenticationFailed", byPolicy(table).all());
  await refused(403, "AuthenticationFailed", byPolicy(table, { Expiry: farAhead, Permissions: "r" }).all());
});
