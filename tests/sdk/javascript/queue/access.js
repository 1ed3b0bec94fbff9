// Who may do what with queues: keys, shared access signatures, access policies.

import assert from "node:assert/strict";
import {
  AccountSASPermissions, QueueSASPermissions, StorageSharedKeyCredential, generateAccountSASQueryParameters,
  generateQueueSASQueryParameters,
} from "@azure/storage-queue";
import {
  account, collect, farAhead, freshName, freshQueue, get, keyCredential, longAgo, peek, refused, sasService, scenario,
  serviceClient, textsOf,
} from "./target.js";

scenario("queue-bad-signature", "a wrong key is refused", async (t) => {
  const { name } = await freshQueue(t);
  const wrong = new StorageSharedKeyCredential(account, Buffer.from("not the key").toString("base64"));
  const queue = serviceClient(wrong).getQueueClient(name);
  await refused(403, "AuthenticationFailed", collect(serviceClient(wrong).listQueues()));
  await refused(403, "AuthenticationFailed", queue.create());
  await refused(403, "AuthenticationFailed", queue.getProperties());
  await refused(403, "AuthenticationFailed", queue.sendMessage("x"));
  await refused(403, "AuthenticationFailed", get(queue));
  await refused(403, "AuthenticationFailed", queue.delete());
});

function token(queueName, permissions, more = {}) {
  const values = { queueName, permissions: QueueSASPermissions.parse(permissions), expiresOn: farAhead, ...more };
  return generateQueueSASQueryParameters(values, keyCredential).toString();
}

/** A client for the queue that holds nothing but a queue SAS. */
function bySas({ name }, permissions, more) {
  return sasService(token(name, permissions, more)).getQueueClient(name);
}

/** What a client may do with messages, and the letter each needs. */
async function messageCalls(queue) {
  const fresh = () => queue.sendMessage("text");
  return [
    ["r", (client) => client.peekMessages()],
    ["r", (client) => client.getProperties()],
    ["a", (client) => client.sendMessage("added")],
    ["u", async (client) => {
      const { messageId, popReceipt } = await fresh();
      await client.updateMessage(messageId, popReceipt, "new", 0);
    }],
    ["p", (client) => client.receiveMessages()],
    ["p", async (client) => {
      const { messageId, popReceipt } = await fresh();
      await client.deleteMessage(messageId, popReceipt);
    }],
  ];
}

scenario("queue-sas", "it allows what it names and refuses the rest", async (t) => {
  const queue = await freshQueue(t);
  const calls = await messageCalls(queue);
  for (const permissions of ["r", "a", "u", "p", "raup"]) {
    const client = bySas(queue, permissions);
    for (const [needed, call] of calls) {
      if (permissions.includes(needed)) await call(client);
      else await refused(403, "AuthorizationPermissionMismatch", call(client));
    }
  }
});

scenario("queue-sas", "time, address and protocol are checked", async (t) => {
  const queue = await freshQueue(t);
  const look = (more) => peek(bySas(queue, "r", more));
  assert.deepEqual(await look({ startsOn: longAgo }), []);
  assert.deepEqual(await look({ ipRange: { start: "127.0.0.1" } }), []);
  assert.deepEqual(await look({ protocol: "https,http" }), []);
  await refused(403, "AuthenticationFailed", look({ expiresOn: longAgo }));
  await refused(403, "AuthenticationFailed", look({ startsOn: new Date("2110-01-01T00:00:00Z") }));
  await refused(403, "AuthorizationSourceIPMismatch", look({ ipRange: { start: "10.1.2.3" } }));
  await refused(403, "AuthorizationProtocolMismatch", look({ protocol: "https" }));
});

scenario("queue-sas", "it is for messages of its queue", async (t) => {
  const [queue, other] = [await freshQueue(t), await freshQueue(t)];
  const all = token(queue.name, "raup");
  await refused(403, "AuthenticationFailed", peek(sasService(all).getQueueClient(other.name)));
  await refused(403, "AuthenticationFailed", peek(sasService(all.replace("sp=raup", "sp=r")).getQueueClient(queue.name)));
  const client = bySas(queue, "raup");
  for (const call of [() => client.delete(), () => client.getAccessPolicy(), () => client.setAccessPolicy([])]) {
    await refused(403, "AuthorizationFailure", call());
  }
  assert.equal(await queue.exists(), true);
});

const start = new Date("2021-06-08T02:05:09Z");

scenario("queue-acl", "policies are set, read back and cleared", async (t) => {
  const queue = await freshQueue(t);
  const policies = async () => (await queue.getAccessPolicy()).signedIdentifiers;
  assert.deepEqual(await policies(), []);
  const set = [
    { id: "whole", accessPolicy: { startsOn: start, expiresOn: farAhead, permissions: "raup" } },
    { id: "only permission", accessPolicy: { permissions: "r" } },
    { id: "x".repeat(64), accessPolicy: { startsOn: start, expiresOn: farAhead, permissions: "a" } },
  ];
  await queue.setAccessPolicy(set);
  assert.deepEqual(await policies(), set);
  await queue.setAccessPolicy([{ id: "other", accessPolicy: { permissions: "p" } }]);
  assert.deepEqual((await policies()).map(({ id }) => id), ["other"]);
  await queue.setAccessPolicy([]);
  assert.deepEqual(await policies(), []);
});

scenario("queue-acl", "wrong policies are refused and change nothing", async (t) => {
  const queue = await freshQueue(t);
  const policy = (id, permissions = "r") => ({ id, accessPolicy: { startsOn: start, expiresOn: farAhead, permissions } });
  await queue.setAccessPolicy([policy("kept")]);
  const six = Array.from({ length: 6 }, (_, n) => policy(`id${n}`));
  await refused(400, "InvalidXmlDocument", queue.setAccessPolicy(six));
  await refused(400, "InvalidXmlDocument", queue.setAccessPolicy([policy("x".repeat(65))]));
  await refused(400, "InvalidXmlDocument", queue.setAccessPolicy([policy("id", "z")]));
  assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers.map(({ id }) => id), ["kept"]);
});

scenario("queue-stored-policy", "a SAS follows its policy until it is removed", async (t) => {
  const queue = await freshQueue(t);
  await queue.sendMessage("text");
  const byPolicy = generateQueueSASQueryParameters({ queueName: queue.name, identifier: "policy" }, keyCredential);
  const client = sasService(byPolicy.toString()).getQueueClient(queue.name);
  const set = (permissions, expiresOn = farAhead) =>
    queue.setAccessPolicy([{ id: "policy", accessPolicy: { startsOn: longAgo, expiresOn, permissions } }]);
  await refused(403, "AuthenticationFailed", peek(client));

  await set("r");
  assert.deepEqual(textsOf(await peek(client)), ["text"]);
  await refused(403, "AuthorizationPermissionMismatch", client.sendMessage("x"));
  await set("a");
  await client.sendMessage("more");
  await refused(403, "AuthorizationPermissionMismatch", peek(client));
  await set("r", longAgo);
  await refused(403, "AuthenticationFailed", peek(client));
  await set("r");
  assert.equal((await peek(client, { numberOfMessages: 2 })).length, 2);
  await queue.setAccessPolicy([]);
  await refused(403, "AuthenticationFailed", peek(client));
});

/** A client of the account that holds nothing but an account SAS. */
function byAccountSas(resourceTypes, permissions, more = {}) {
  const values = {
    services: "q", resourceTypes, permissions: AccountSASPermissions.parse(permissions), expiresOn: farAhead, ...more,
  };
  return sasService(generateAccountSASQueryParameters(values, keyCredential).toString());
}

scenario("queue-account-sas", "it is limited by resource type and permission", async (t) => {
  const queue = await freshQueue(t);
  const of = (service) => service.getQueueClient(queue.name);
  const calls = [
    ["s", "r", (service) => service.getProperties()],
    ["s", "l", (service) => collect(service.listQueues({ prefix: queue.name }))],
    ["c", "r", (service) => of(service).getProperties()],
    ["c", "w", (service) => of(service).setMetadata({ color: "red" })],
    ["o", "d", (service) => of(service).clearMessages()],
    ...(await messageCalls(queue)).filter((_, index) => index !== 1)
      .map(([letter, call]) => ["o", letter, (service) => call(of(service))]),
  ];
  for (const [type, letter, call] of calls) {
    await call(byAccountSas("sco", "rwdlacup"));
    await call(byAccountSas(type, letter));
    const [otherType, otherLetter] = [type === "s" ? "co" : "s", letter === "r" ? "wdlacup" : "r"];
    await refused(403, "AuthorizationResourceTypeMismatch", call(byAccountSas(otherType, "rwdlacup")));
    await refused(403, "AuthorizationPermissionMismatch", call(byAccountSas("sco", otherLetter)));
  }
});

scenario("queue-account-sas", "it creates and deletes queues", async (t) => {
  const name = freshName();
  t.after(() => serviceClient().getQueueClient(name).deleteIfExists());
  await byAccountSas("c", "c").createQueue(name);
  await refused(403, "AuthorizationPermissionMismatch", byAccountSas("c", "c").deleteQueue(name));
  await byAccountSas("c", "d").deleteQueue(name);
  await refused(403, "AuthorizationPermissionMismatch", byAccountSas("c", "rdl").createQueue(name));
});

scenario("queue-account-sas", "it names its service, its time and its protocol", async () => {
  const list = (more) => collect(byAccountSas("s", "l", more).listQueues());
  assert.ok(Array.isArray(await list({ services: "bqt" })));
  await refused(403, "AuthorizationServiceMismatch", list({ services: "bt" }));
  await refused(403, "AuthenticationFailed", list({ expiresOn: longAgo }));
  await refused(403, "AuthorizationProtocolMismatch", list({ protocol: "https" }));
});
