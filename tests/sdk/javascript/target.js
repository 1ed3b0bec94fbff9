// The endpoint under test, clients for it, and how a refusal is read. The environment names the endpoint:
// LARIMAR_TABLE_ENDPOINT (`http://127.0.0.1:41234/devstoreaccount1`), LARIMAR_ACCOUNT and LARIMAR_KEY. The other
// services have files like this one in their folders.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient } from "@azure/data-tables";
import { suite } from "./scenarios.js";

export const endpoint = required("LARIMAR_TABLE_ENDPOINT").replace(/\/$/, "");
export const account = required("LARIMAR_ACCOUNT");
export const key = required("LARIMAR_KEY");
export const keyCredential = new AzureNamedKeyCredential(account, key);

export const longAgo = new Date("2020-01-01T00:00:00Z");
export const farAhead = new Date("2120-01-01T00:00:00Z");

// A retry would hide a wrong answer.
export const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

export const { scenario, finish } = suite("javascript", {
  table: versionOf("data-tables"), queue: versionOf("storage-queue"), blob: versionOf("storage-blob"),
});

function versionOf(name) {
  const manifest = new URL(`node_modules/@azure/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(manifest, "utf8")).version;
}

export function required(name) {
  assert.ok(process.env[name], `set ${name}`);
  return process.env[name];
}

export function serviceClient(credential = keyCredential, url = endpoint) {
  return new TableServiceClient(url, credential, options);
}

export function tableClient(name, credential = keyCredential) {
  return new TableClient(endpoint, name, credential, options);
}

export function sasTableClient(name, token) {
  return tableClient(name, new AzureSASCredential(token));
}

export function freshName(prefix = "sdk") {
  return prefix + randomUUID().replaceAll("-", "");
}

/** A new table, removed when the test ends. */
export async function freshTable(t, prefix) {
  const table = tableClient(freshName(prefix));
  await table.createTable();
  t.after(() => table.deleteTable());
  return table;
}

/** The call is refused with this status and code; gives the error. */
export async function refused(status, code, call) {
  const error = await call.then(
    () => assert.fail(`expected ${status} ${code}, but it was allowed`),
    (error) => error,
  );
  assert.equal(`${error.statusCode} ${codeOf(error)}`, `${status} ${code}`, error.message);
  return error;
}

/** The service's code: in a JSON body, or in the header of an XML answer. */
function codeOf(error) {
  return error.code ?? error.details?.odataError?.code ?? error.details?.errorCode ?? error.details?.code;
}

/** Status and code of a call's answer, for calls whose result the SDK hides (a delete that swallows its 404). */
export async function answerOf(call) {
  let answer;
  await call({ onResponse: (response) => (answer = response) });
  const code = answer.bodyAsText?.startsWith("{") ? JSON.parse(answer.bodyAsText)["odata.error"]?.code : undefined;
  return { status: answer.status, code };
}

export async function collect(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

export function query(table, filter, more = {}) {
  return collect(table.listEntities({ queryOptions: { filter, ...more } }));
}

export async function rowKeys(entities) {
  return (await entities).map((entity) => entity.rowKey);
}

export async function keysOf(entities) {
  return (await entities).map((entity) => `${entity.partitionKey}/${entity.rowKey}`);
}

/** The entity's own properties: what the service adds is left out. */
export function propertiesOf(entity) {
  const { etag, timestamp, partitionKey, rowKey, "odata.metadata": metadata, ...own } = entity;
  return own;
}
