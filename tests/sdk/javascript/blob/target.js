// The blob endpoint under test (LARIMAR_BLOB_ENDPOINT), clients for it, and blobs in and out.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { account, freshName, key, required } from "../target.js";

export { account, collect, farAhead, freshName, key, longAgo, refused, scenario } from "../target.js";

export const endpoint = required("LARIMAR_BLOB_ENDPOINT").replace(/\/$/, "");
export const keyCredential = new StorageSharedKeyCredential(account, key);

// A retry would hide a wrong answer.
export const options = { retryOptions: { maxTries: 1 } };

export function serviceClient(credential = keyCredential, url = endpoint) {
  return new BlobServiceClient(url, credential, options);
}

/** A client of the account that holds nothing but a SAS; with none it is anonymous. */
export function sasService(token = "") {
  return new BlobServiceClient(`${endpoint}?${token}`, undefined, options);
}

/** A new container, removed when the test ends. */
export async function freshContainer(t, createOptions = {}) {
  const container = serviceClient().getContainerClient(freshName());
  await container.create(createOptions);
  t.after(() => container.deleteIfExists());
  return container;
}

/** A new block blob of a text. */
export async function put(container, name, text = name, uploadOptions = {}) {
  const blob = container.getBlockBlobClient(name);
  await upload(blob, text, uploadOptions);
  return blob;
}

export function upload(blob, content, uploadOptions = {}) {
  const bytes = Buffer.from(content);
  return blob.upload(bytes, bytes.length, uploadOptions);
}

/** A new blob in a container of its own. */
export async function freshBlob(t, text = "text", uploadOptions = {}) {
  return put(await freshContainer(t), "blob", text, uploadOptions);
}

/** A download's bytes, read to their end. */
export async function bytesOf(download) {
  const chunks = [];
  for await (const chunk of (await download).readableStreamBody) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export async function textOf(blob, ...range) {
  return (await bytesOf(blob.download(...range))).toString();
}

/** The call is refused with this status; the code is not part of the promise. */
export async function refusedWith(status, call) {
  const answer = await call.then(() => "allowed", (error) => error.statusCode ?? error);
  assert.equal(answer, status);
}

/** Bytes that look random and are the same in every run. */
export function pattern(length, seed = 1) {
  const bytes = new Uint32Array(Math.ceil(length / 4));
  let state = seed;
  for (let n = 0; n < bytes.length; n++) bytes[n] = state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Buffer.from(bytes.buffer, 0, length);
}

export const md5 = (bytes) => createHash("md5").update(bytes).digest();
export const namesOf = (items) => items.map((item) => item.name);
export const blockId = (text) => Buffer.from(text).toString("base64");
