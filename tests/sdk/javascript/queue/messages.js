// Messages: put, get, peek, update, delete, clear; what is visible when.

import assert from "node:assert/strict";
import { countIs, eventually, freshQueue, get, peek, refused, scenario, textsOf } from "./target.js";

const hour = 3600;
const week = 7 * 24 * hour;
const guid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const secondsBetween = (from, to) => (to - from) / 1000;
const remove = (queue, message) => queue.deleteMessage(message.messageId, message.popReceipt);

async function put(queue, ...texts) {
  for (const text of texts) await queue.sendMessage(text);
}

// The SDK takes the ends of lines out of what it sends, so there are none here.
scenario("message-roundtrip", "text comes back as it was put", async (t) => {
  const queue = await freshQueue(t);
  for (const text of [
    "plain", "  spaces  around ", "\ttabs\t", "<a href=\"x\">&amp;</a>", "]]>", "'quotes' \"both\"",
    "naïve 日本語 \u{1F600}", "aGVsbG8=", "%41+%20", " ",
  ]) {
    await queue.sendMessage(text);
    const [message] = await get(queue);
    assert.equal(message.messageText, text);
    await remove(queue, message);
  }
  assert.deepEqual(await get(queue), []);
});

scenario("message-roundtrip", "put and get tell id, times and receipt", async (t) => {
  const queue = await freshQueue(t);
  const put = await queue.sendMessage("text");
  assert.match(put.messageId, guid);
  assert.ok(put.popReceipt);
  assert.equal(secondsBetween(put.insertedOn, put.expiresOn), week);
  assert.deepEqual(put.nextVisibleOn, put.insertedOn);

  const [message] = await get(queue);
  assert.equal(message.messageId, put.messageId);
  assert.notEqual(message.popReceipt, put.popReceipt);
  assert.equal(message.dequeueCount, 1);
  assert.deepEqual(message.insertedOn, put.insertedOn);
  assert.deepEqual(message.expiresOn, put.expiresOn);
  assert.ok(message.nextVisibleOn > message.insertedOn);

  await remove(queue, message);
  await refused(404, "MessageNotFound", remove(queue, message));
});

scenario("message-roundtrip", "the receipt of a put deletes", async (t) => {
  const queue = await freshQueue(t);
  await remove(queue, await queue.sendMessage("regretted"));
  assert.deepEqual(await peek(queue), []);
});

scenario("message-size", "64 KiB are accepted, one more is refused", async (t) => {
  const queue = await freshQueue(t);
  for (const text of ["x".repeat(64 * 1024), "é".repeat(32 * 1024), "<".repeat(64 * 1024)]) {
    await queue.sendMessage(text);
    const [message] = await get(queue);
    assert.ok(message.messageText === text);
    await remove(queue, message);
  }
  for (const text of ["x".repeat(64 * 1024 + 1), "é".repeat(32 * 1024 + 1)]) {
    await refused(413, "RequestBodyTooLarge", queue.sendMessage(text));
  }
  assert.deepEqual(await peek(queue), []);
});

scenario("message-visibility", "a delayed message is not there yet", async (t) => {
  const queue = await freshQueue(t);
  const put = await queue.sendMessage("later", { visibilityTimeout: hour });
  assert.equal(secondsBetween(put.insertedOn, put.nextVisibleOn), hour);
  assert.deepEqual(await get(queue), []);
  assert.deepEqual(await peek(queue), []);
  await queue.sendMessage("soon", { visibilityTimeout: 1 });
  assert.deepEqual(textsOf(await eventually(async () => nonEmpty(await get(queue)))), ["soon"]);
  assert.deepEqual(await get(queue), []);
});

const nonEmpty = (list) => (list.length > 0 ? list : undefined);

scenario("message-visibility", "a message is hidden until its timeout ends, and counts its dequeues", async (t) => {
  const queue = await freshQueue(t);
  await queue.sendMessage("again");
  const [first] = await get(queue, { visibilityTimeout: 1 });
  assert.equal(first.dequeueCount, 1);
  const [second] = await eventually(async () => nonEmpty(await get(queue, { visibilityTimeout: hour })));
  assert.equal(second.messageId, first.messageId);
  assert.equal(second.dequeueCount, 2);
  assert.notEqual(second.popReceipt, first.popReceipt);
  assert.deepEqual(await get(queue), []);
  await refused(400, "PopReceiptMismatch", remove(queue, first));
  await remove(queue, second);
});

scenario("message-visibility", "timeouts are from zero or one second to seven days", async (t) => {
  const queue = await freshQueue(t);
  await put(queue, "text");
  for (const visibilityTimeout of [0, week + 1]) {
    await refused(400, "OutOfRangeQueryParameterValue", get(queue, { visibilityTimeout }));
  }
  for (const visibilityTimeout of [-1, week + 1]) {
    await refused(400, "OutOfRangeQueryParameterValue", queue.sendMessage("x", { visibilityTimeout }));
  }
  assert.equal((await get(queue, { visibilityTimeout: week })).length, 1);
});

scenario("message-update", "text and visibility change, and the receipt with them", async (t) => {
  const queue = await freshQueue(t);
  const put = await queue.sendMessage("one");
  const [got] = await get(queue, { visibilityTimeout: hour });
  const updated = await queue.updateMessage(got.messageId, got.popReceipt, "two <&>", 0);
  assert.notEqual(updated.popReceipt, got.popReceipt);
  assert.ok(updated.nextVisibleOn instanceof Date);
  await refused(400, "PopReceiptMismatch", queue.updateMessage(got.messageId, got.popReceipt, "three", 0));

  const [again] = await get(queue);
  assert.deepEqual([again.messageText, again.dequeueCount], ["two <&>", 2]);
  assert.deepEqual(again.expiresOn, put.expiresOn);
});

scenario("message-update", "visibility alone leaves the text", async (t) => {
  const queue = await freshQueue(t);
  const put = await queue.sendMessage("kept");
  const hidden = await queue.updateMessage(put.messageId, put.popReceipt, undefined, hour);
  assert.deepEqual(await get(queue), []);
  await queue.updateMessage(put.messageId, hidden.popReceipt, undefined, 0);
  const [message] = await get(queue);
  assert.deepEqual([message.messageText, message.dequeueCount], ["kept", 1]);
});

scenario("message-receipts", "stale, missing and malformed are told apart", async (t) => {
  const queue = await freshQueue(t);
  const put = await queue.sendMessage("text");
  const current = await queue.updateMessage(put.messageId, put.popReceipt, "text", 0);
  const update = (receipt, id = put.messageId) => queue.updateMessage(id, receipt, "x", 0);

  await refused(400, "PopReceiptMismatch", remove(queue, put));
  await refused(400, "PopReceiptMismatch", update(put.popReceipt));
  await refused(400, "InvalidQueryParameterValue", queue.deleteMessage(put.messageId, "no receipt"));
  await refused(400, "InvalidQueryParameterValue", update("no receipt"));
  const unknown = "00000000-0000-0000-0000-000000000000";
  await refused(404, "MessageNotFound", queue.deleteMessage(unknown, current.popReceipt));
  await refused(404, "MessageNotFound", update(current.popReceipt, unknown));

  await queue.deleteMessage(put.messageId, current.popReceipt);
  await refused(404, "MessageNotFound", queue.deleteMessage(put.messageId, current.popReceipt));
  await refused(404, "MessageNotFound", update(current.popReceipt));
});

scenario("message-ttl", "seconds, never, and seven days by default", async (t) => {
  const queue = await freshQueue(t);
  const life = ({ insertedOn, expiresOn }) => secondsBetween(insertedOn, expiresOn);
  assert.equal(life(await queue.sendMessage("default")), week);
  assert.equal(life(await queue.sendMessage("short", { messageTimeToLive: 60 })), 60);
  assert.equal(life(await queue.sendMessage("long", { messageTimeToLive: 10 * week })), 10 * week);
  const never = await queue.sendMessage("never", { messageTimeToLive: -1 });
  assert.equal(never.expiresOn.toISOString(), "9999-12-31T23:59:59.000Z");
  const later = await queue.sendMessage("never, later", { messageTimeToLive: -1, visibilityTimeout: week });
  assert.equal(secondsBetween(later.insertedOn, later.nextVisibleOn), week);
  await refused(400, "InvalidQueryParameterValue", queue.sendMessage("x", { messageTimeToLive: 0 }));
  await refused(400, "OutOfRangeQueryParameterValue", queue.sendMessage("x", { messageTimeToLive: -2 }));
});

scenario("message-ttl", "an expired message is gone", async (t) => {
  const queue = await freshQueue(t);
  await queue.sendMessage("brief", { messageTimeToLive: 2 });
  const [message] = await get(queue, { visibilityTimeout: 1 });
  await countIs(queue, 0);
  assert.deepEqual(await peek(queue), []);
  assert.deepEqual(await get(queue), []);
  await refused(404, "MessageNotFound", remove(queue, message));
});

scenario("message-peek", "peeking changes nothing", async (t) => {
  const queue = await freshQueue(t);
  const sent = await queue.sendMessage("seen");
  for (let n = 0; n < 2; n++) {
    const [seen] = await peek(queue);
    assert.deepEqual([seen.messageText, seen.dequeueCount, seen.messageId], ["seen", 0, sent.messageId]);
    assert.deepEqual([seen.insertedOn, seen.expiresOn], [sent.insertedOn, sent.expiresOn]);
    assert.equal(seen.popReceipt, undefined);
  }
  const [message] = await get(queue, { visibilityTimeout: hour });
  assert.equal(message.dequeueCount, 1);
  assert.deepEqual(await peek(queue), []);
});

scenario("message-clear", "visible and hidden messages are removed", async (t) => {
  const queue = await freshQueue(t);
  await put(queue, "1", "2", "3");
  const [hidden] = await get(queue, { visibilityTimeout: hour });
  await queue.sendMessage("delayed", { visibilityTimeout: hour });
  await queue.clearMessages();
  assert.deepEqual(await peek(queue), []);
  await countIs(queue, 0);
  await refused(404, "MessageNotFound", remove(queue, hidden));
  await put(queue, "new");
  assert.deepEqual(textsOf(await get(queue)), ["new"]);
});

scenario("message-get-many", "up to 32 at once", async (t) => {
  const queue = await freshQueue(t);
  const texts = Array.from({ length: 40 }, (_, n) => `message ${n}`);
  await put(queue, ...texts);
  assert.equal((await peek(queue)).length, 1);
  assert.equal((await peek(queue, { numberOfMessages: 32 })).length, 32);
  const first = await get(queue, { numberOfMessages: 32, visibilityTimeout: hour });
  assert.equal(first.length, 32);
  const rest = await get(queue, { numberOfMessages: 32, visibilityTimeout: hour });
  assert.deepEqual(textsOf([...first, ...rest]).sort(), [...texts].sort());
  for (const numberOfMessages of [0, 33]) {
    await refused(400, "OutOfRangeQueryParameterValue", get(queue, { numberOfMessages }));
    await refused(400, "OutOfRangeQueryParameterValue", peek(queue, { numberOfMessages }));
  }
});

scenario("message-consumers", "every message is got exactly once", async (t) => {
  const queue = await freshQueue(t);
  const texts = Array.from({ length: 200 }, (_, n) => `message ${n}`);
  await Promise.all(texts.map((text) => queue.sendMessage(text)));
  const got = [];
  async function consume() {
    for (;;) {
      const messages = await get(queue, { numberOfMessages: 5, visibilityTimeout: hour });
      if (messages.length === 0) return;
      for (const message of messages) {
        got.push(message.messageText);
        await remove(queue, message);
      }
    }
  }
  await Promise.all(Array.from({ length: 16 }, consume));
  assert.deepEqual(got.sort(), texts.sort());
  await countIs(queue, 0);
});
