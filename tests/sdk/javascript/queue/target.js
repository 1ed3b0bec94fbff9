// The queue endpoint under test (LARIMAR_QUEUE_ENDPOINT), clients for it, and messages in and out.

import { setTimeout as sleep } from "node:timers/promises";
import assert from "node:assert/strict";
import { QueueServiceClient, StorageSharedKeyCredential } from "@azure/storage-queue";
import { account, freshName, key, required } from "../target.js";

export { account, collect, farAhead, freshName, key, longAgo, refused, scenario } from "../target.js";

export const endpoint = required("LARIMAR_QUEUE_ENDPOINT").replace(/\/$/, "");
export const keyCredential = new StorageSharedKeyCredential(account, key);

// A retry would hide a wrong answer.
export const options = { retryOptions: { maxTries: 1 } };

export function serviceClient(credential = keyCredential, url = endpoint) {
  return new QueueServiceClient(url, credential, options);
}

/** A client of the account that holds nothing but a SAS. */
export function sasService(token) {
  return new QueueServiceClient(`${endpoint}?${token}`, undefined, options);
}

/** A new queue, removed when the test ends. */
export async function freshQueue(t, createOptions = {}) {
  const queue = serviceClient().getQueueClient(freshName());
  await queue.create(createOptions);
  t.after(() => queue.deleteIfExists());
  return queue;
}

export async function get(queue, getOptions = {}) {
  return (await queue.receiveMessages(getOptions)).receivedMessageItems;
}

export async function peek(queue, peekOptions = {}) {
  return (await queue.peekMessages(peekOptions)).peekedMessageItems;
}

export const textsOf = (messages) => messages.map((message) => message.messageText);

/** Asks until the answer has something in it: what becomes true with time has no exact moment for a client. */
export async function eventually(ask) {
  for (let attempt = 0; attempt < 100; attempt++) {
    const answer = await ask();
    if (answer) return answer;
    await sleep(100);
  }
  assert.fail("it did not come true within ten seconds");
}

/** The approximate count is never below the number of messages, and comes to it. */
export async function countIs(queue, number) {
  const count = async () => (await queue.getProperties()).approximateMessagesCount;
  assert.ok((await count()) >= number);
  await eventually(async () => (await count()) === number);
}
