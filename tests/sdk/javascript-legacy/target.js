// The endpoint under test, the SDK's callbacks as promises, and how a refusal is read. The environment names the
// endpoint: LARIMAR_TABLE_ENDPOINT (`http://127.0.0.1:41234/devstoreaccount1`), LARIMAR_ACCOUNT and LARIMAR_KEY.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import azure from "azure-storage";
import { suite } from "../javascript/scenarios.js";

export const endpoint = required("LARIMAR_TABLE_ENDPOINT").replace(/\/$/, "");
export const account = required("LARIMAR_ACCOUNT");
export const key = required("LARIMAR_KEY");
const hosts = { primaryHost: endpoint, secondaryHost: `${endpoint}-secondary` };
export const service = azure.createTableService(account, key, hosts);

export const longAgo = new Date("2020-01-01T00:00:00Z");
export const farAhead = new Date("2120-01-01T00:00:00Z");
export const edm = azure.TableUtilities.entityGenerator;

const manifest = new URL("node_modules/azure-storage/package.json", import.meta.url);
const { version } = JSON.parse(readFileSync(manifest, "utf8"));
export const { scenario, finish } = suite("javascript-legacy", { table: version });

function required(name) {
  assert.ok(process.env[name], `set ${name}`);
  return process.env[name];
}

/** Calls a method that reports to a callback. */
export function call(target, method, ...args) {
  return new Promise((resolve, reject) => {
    target[method](...args, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

/** One table as seen by one client, the methods as promises. */
export class Table {
  constructor(name, client = service) {
    this.name = name;
    this.client = client;
  }
  insert = (entity, options = {}) => call(this.client, "insertEntity", this.name, entity, options);
  get = (pk, rk, options = {}) =>
    call(this.client, "retrieveEntity", this.name, pk, rk, { autoResolveProperties: true, ...options });
  replace = (entity) => call(this.client, "replaceEntity", this.name, entity);
  merge = (entity) => call(this.client, "mergeEntity", this.name, entity);
  insertOrReplace = (entity) => call(this.client, "insertOrReplaceEntity", this.name, entity);
  insertOrMerge = (entity) => call(this.client, "insertOrMergeEntity", this.name, entity);
  remove = (entity) => call(this.client, "deleteEntity", this.name, entity);
  page = (query, token = null, options = {}) =>
    call(this.client, "queryEntities", this.name, query, token, { autoResolveProperties: true, ...options });
  acl = async () => (await call(this.client, "getTableAcl", this.name)).signedIdentifiers;
  setAcl = (policies) => call(this.client, "setTableAcl", this.name, policies);

  /** Every page of a query; a filter may be given as text. */
  async pages(query, token = null) {
    if (typeof query === "string") query = new azure.TableQuery().where(query);
    const pages = [];
    do {
      const page = await this.page(query, token);
      pages.push(page.entries);
      token = page.continuationToken;
    } while (token);
    return pages;
  }
  all = async (query = null) => (await this.pages(query)).flat();

  /** Sends operations given as `[method of TableBatch, entity]`. */
  batch(operations) {
    const batch = new azure.TableBatch();
    for (const [method, ...args] of operations) batch[method](...args);
    return call(this.client, "executeBatch", this.name, batch);
  }
}

export function freshName(prefix = "sdk") {
  return prefix + randomUUID().replaceAll("-", "");
}

/** A new table, removed when the test ends. */
export async function freshTable(t, prefix) {
  const name = freshName(prefix);
  await call(service, "createTable", name);
  t.after(() => call(service, "deleteTableIfExists", name));
  return new Table(name);
}

/** The call is refused with this status and code; gives the error. */
export async function refused(status, code, call) {
  const error = await call.then(
    () => assert.fail(`expected ${status} ${code}, but it was allowed`),
    (error) => error,
  );
  assert.equal(`${error.statusCode} ${error.code}`, `${status} ${code}`, error.message);
  return error;
}

/** An entity as this SDK wants it, in partition `p` unless told. */
export function entity(rowKey, properties = {}, partitionKey = "p") {
  return { PartitionKey: edm.String(partitionKey), RowKey: edm.String(rowKey), ...properties };
}

export function withEtag(entity, etag) {
  return { ...entity, ".metadata": { etag } };
}

export const etagOf = (entity) => entity[".metadata"].etag;
export const rowsOf = (entities) => entities.map((entity) => entity.RowKey._);
export const keysOf = (entities) => entities.map((entity) => `${entity.PartitionKey._}/${entity.RowKey._}`);

/** The entity's own properties as `[type, value]`; of numbers the SDK names the type only of a double like `3.0`. */
export function propertiesOf(entity) {
  const { PartitionKey, RowKey, Timestamp, ".metadata": metadata, ...own } = entity;
  const numberType = (value) => (value === (value | 0) ? "Edm.Int32" : "Edm.Double");
  return Object.fromEntries(Object.entries(own).map(([name, { $, _ }]) => [name, [$ ?? numberType(_), _]]));
}

/** The same for properties about to be written. */
export function written(properties) {
  return Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, [value.$, value._]]));
}
