// Connecting, and the life of queues: create, list, metadata, delete.

import assert from "node:assert/strict";
import { QueueServiceClient } from "@azure/storage-queue";
import {
  account, collect, countIs, endpoint, freshName, freshQueue, get, key, options, peek, refused, scenario, serviceClient,
  textsOf,
} from "./target.js";

scenario("queue-connection-string", "a connection string names the endpoint", async (t) => {
  const { name } = await freshQueue(t);
  const connection =
    `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${key};QueueEndpoint=${endpoint};`;
  const service = QueueServiceClient.fromConnectionString(connection, options);
  assert.equal(service.url.replace(/\/$/, ""), endpoint);
  const queue = service.getQueueClient(name);
  await queue.sendMessage("hello");
  assert.deepEqual(textsOf(await peek(queue)), ["hello"]);
});

scenario("queue-connection-string", "UseDevelopmentStorage means the well-known port", () => {
  const service = QueueServiceClient.fromConnectionString("UseDevelopmentStorage=true");
  assert.equal(service.url, "http://127.0.0.1:10001/devstoreaccount1");
});

scenario("queue-lifecycle", "a queue is created and deleted once", async (t) => {
  const queue = serviceClient().getQueueClient(freshName());
  t.after(() => queue.deleteIfExists());
  const statusOf = async (call) => (await call)._response.status;

  assert.equal(await queue.exists(), false);
  assert.equal(await statusOf(queue.create()), 201);
  assert.equal(await statusOf(queue.create()), 204);
  await refused(409, "QueueAlreadyExists", queue.create({ metadata: { color: "red" } }));
  assert.equal((await queue.createIfNotExists()).succeeded, false);
  assert.equal((await queue.createIfNotExists({ metadata: { color: "red" } })).succeeded, false);
  assert.equal(await queue.exists(), true);

  assert.equal(await statusOf(queue.delete()), 204);
  await refused(404, "QueueNotFound", queue.delete());
  assert.equal((await queue.deleteIfExists()).succeeded, false);
  await refused(404, "QueueNotFound", queue.getProperties());
  await refused(404, "QueueNotFound", queue.sendMessage("lost"));
  await refused(404, "QueueNotFound", get(queue));
});

scenario("queue-lifecycle", "a queue made again is empty", async (t) => {
  const queue = await freshQueue(t, { metadata: { color: "red" } });
  await queue.sendMessage("old");
  await queue.delete();
  await queue.create();
  assert.deepEqual((await queue.getProperties()).metadata, {});
  assert.deepEqual(await peek(queue), []);
});

scenario("queue-lifecycle", "bad names are refused", async (t) => {
  const service = serviceClient();
  for (const name of ["UPPER", "under_score", "two--dashes", "-dash", "dash-", "dot.ted"]) {
    await refused(400, "InvalidResourceName", service.createQueue(name));
  }
  for (const name of ["ab", "a".repeat(64)]) {
    await refused(400, "OutOfRangeInput", service.createQueue(name));
  }
  const longest = freshName().padEnd(63, "0");
  t.after(() => service.deleteQueue(longest));
  await service.createQueue(longest);
});

/** Five queues with a common prefix, each with its number as metadata. */
async function fiveQueues(t) {
  const prefix = freshName("list").slice(0, 20);
  const names = [];
  for (let n = 0; n < 5; n++) {
    const queue = serviceClient().getQueueClient(`${prefix}-${n}`);
    await queue.create({ metadata: { number: `${n}` } });
    t.after(() => queue.deleteIfExists());
    names.push(queue.name);
  }
  return { names, prefix };
}

const namesOf = (queues) => queues.map((queue) => queue.name);

scenario("queue-list", "queues are listed by prefix, with metadata if asked for", async (t) => {
  const service = serviceClient();
  const { names, prefix } = await fiveQueues(t);
  const listed = await collect(service.listQueues({ prefix }));
  assert.deepEqual(namesOf(listed), names);
  assert.ok(listed.every((queue) => queue.metadata === undefined));
  assert.deepEqual(namesOf(await collect(service.listQueues({ prefix: names[3] }))), [names[3]]);
  assert.deepEqual(await collect(service.listQueues({ prefix: `${prefix}-x` })), []);
  const all = namesOf(await collect(service.listQueues()));
  assert.deepEqual(all.filter((name) => name.startsWith(prefix)), names);

  const detailed = await collect(service.listQueues({ prefix, includeMetadata: true }));
  assert.deepEqual(detailed.map(({ metadata }) => metadata.number), ["0", "1", "2", "3", "4"]);
});

scenario("queue-list", "pages of queues resume from a token", async (t) => {
  const { names, prefix } = await fiveQueues(t);
  const pages = (continuationToken) =>
    serviceClient().listQueues({ prefix }).byPage({ maxPageSize: 2, continuationToken });
  const namesIn = (page) => namesOf(page.queueItems);

  const first = (await pages().next()).value;
  assert.deepEqual(namesIn(first), names.slice(0, 2));
  const rest = await collect(pages(first.continuationToken));
  assert.ok(rest.every((page) => page.queueItems.length <= 2));
  assert.deepEqual(rest.flatMap(namesIn), names.slice(2));
});

scenario("queue-metadata", "metadata is set, replaced and cleared", async (t) => {
  const queue = await freshQueue(t, { metadata: { color: "red", size: "xl" } });
  const metadata = async () => (await queue.getProperties()).metadata;
  assert.deepEqual(await metadata(), { color: "red", size: "xl" });
  await queue.setMetadata({ shape: "round, or so", color: "blue" });
  assert.deepEqual(await metadata(), { shape: "round, or so", color: "blue" });
  await queue.setMetadata();
  assert.deepEqual(await metadata(), {});
  await refused(400, "InvalidMetadata", queue.setMetadata({ "not-a-name": "x" }));
  await refused(400, "MetadataTooLarge", queue.setMetadata({ large: "x".repeat(8 * 1024 + 1) }));
});

scenario("queue-metadata", "the count has hidden messages, and no deleted ones", async (t) => {
  const queue = await freshQueue(t);
  await countIs(queue, 0);
  for (const text of ["1", "2", "3"]) await queue.sendMessage(text);
  await countIs(queue, 3);
  const [message] = await get(queue, { visibilityTimeout: 3600 });
  await countIs(queue, 3);
  await queue.deleteMessage(message.messageId, message.popReceipt);
  await countIs(queue, 2);
});
