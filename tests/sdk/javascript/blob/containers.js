// Connecting, and the life of containers: create, list, metadata, delete.

import assert from "node:assert/strict";
import { BlobServiceClient } from "@azure/storage-blob";
import {
  account, collect, endpoint, freshContainer, freshName, key, namesOf, options, put, refused, scenario, serviceClient,
  textOf,
} from "./target.js";

scenario("blob-connection-string", "a connection string names the endpoint", async (t) => {
  const { containerName } = await freshContainer(t);
  const connection = `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${key};BlobEndpoint=${endpoint};`;
  const service = BlobServiceClient.fromConnectionString(connection, options);
  assert.equal(service.url.replace(/\/$/, ""), endpoint);
  const blob = await put(service.getContainerClient(containerName), "greeting", "hello");
  assert.equal(await textOf(blob), "hello");
});

scenario("blob-connection-string", "UseDevelopmentStorage means the well-known port", () => {
  const service = BlobServiceClient.fromConnectionString("UseDevelopmentStorage=true");
  assert.equal(service.url.replace(/\/$/, ""), "http://127.0.0.1:10000/devstoreaccount1");
});

scenario("container-lifecycle", "a container is created and deleted once", async (t) => {
  const container = serviceClient().getContainerClient(freshName());
  t.after(() => container.deleteIfExists());
  assert.equal(await container.exists(), false);
  const created = await container.create({ metadata: { color: "red" } });
  assert.match(created.etag, /^"0x[0-9A-F]+"$/);
  await refused(409, "ContainerAlreadyExists", container.create());
  assert.equal((await container.createIfNotExists()).succeeded, false);

  const properties = await container.getProperties();
  assert.equal(properties.etag, created.etag);
  assert.deepEqual(properties.lastModified, created.lastModified);
  assert.deepEqual(properties.metadata, { color: "red" });
  assert.deepEqual([properties.leaseStatus, properties.leaseState], ["unlocked", "available"]);
  assert.equal(properties.blobPublicAccess, undefined);
  assert.deepEqual([properties.hasLegalHold, properties.hasImmutabilityPolicy], [false, false]);

  await container.delete();
  await refused(404, "ContainerNotFound", container.delete());
  assert.equal((await container.deleteIfExists()).succeeded, false);
  await refused(404, "ContainerNotFound", container.getProperties());
  await refused(404, "ContainerNotFound", collect(container.listBlobsFlat()));
  await refused(404, "ContainerNotFound", put(container, "blob"));
  await refused(404, "ContainerNotFound", container.getBlobClient("blob").download());
});

scenario("container-lifecycle", "a deleted container's blobs are gone", async (t) => {
  const container = await freshContainer(t);
  const blob = await put(container, "blob");
  await container.delete();
  await container.create();
  assert.deepEqual(await collect(container.listBlobsFlat()), []);
  await refused(404, "BlobNotFound", blob.download());
});

scenario("container-lifecycle", "bad names are refused", async (t) => {
  const service = serviceClient();
  for (const name of ["UPPER", "under_score", "two--dashes", "-dash", "dash-", "dot.ted"]) {
    await refused(400, "InvalidResourceName", service.createContainer(name));
  }
  for (const name of ["ab", "a".repeat(64)]) {
    await refused(400, "OutOfRangeInput", service.createContainer(name));
  }
  const longest = freshName().padEnd(63, "0");
  t.after(() => service.deleteContainer(longest));
  await service.createContainer(longest);
});

/** Five containers with a common prefix, each with its number as metadata. */
async function fiveContainers(t) {
  const prefix = freshName("list").slice(0, 20);
  const names = [];
  for (let n = 0; n < 5; n++) {
    const container = serviceClient().getContainerClient(`${prefix}-${n}`);
    await container.create({ metadata: { number: `${n}` } });
    t.after(() => container.deleteIfExists());
    names.push(container.containerName);
  }
  return { names, prefix };
}

scenario("container-list", "containers are listed by prefix, with metadata if asked for", async (t) => {
  const service = serviceClient();
  const { names, prefix } = await fiveContainers(t);
  const listed = await collect(service.listContainers({ prefix }));
  assert.deepEqual(namesOf(listed), names);
  assert.ok(listed.every((container) => container.metadata === undefined));
  const { properties } = listed[0];
  const own = await service.getContainerClient(names[0]).getProperties();
  assert.deepEqual(properties.lastModified, own.lastModified);
  assert.equal(properties.etag.replaceAll('"', ""), own.etag.replaceAll('"', ""));
  assert.deepEqual([properties.leaseStatus, properties.leaseState], ["unlocked", "available"]);

  assert.deepEqual(namesOf(await collect(service.listContainers({ prefix: names[3] }))), [names[3]]);
  assert.deepEqual(await collect(service.listContainers({ prefix: `${prefix}-x` })), []);
  const detailed = await collect(service.listContainers({ prefix, includeMetadata: true }));
  assert.deepEqual(detailed.map(({ metadata }) => metadata.number), ["0", "1", "2", "3", "4"]);
});

scenario("container-list", "pages of containers resume from a token", async (t) => {
  const { names, prefix } = await fiveContainers(t);
  const pages = (continuationToken) =>
    serviceClient().listContainers({ prefix }).byPage({ maxPageSize: 2, continuationToken });
  const namesIn = (page) => namesOf(page.containerItems);
  const first = (await pages().next()).value;
  assert.deepEqual(namesIn(first), names.slice(0, 2));
  const rest = await collect(pages(first.continuationToken));
  assert.ok(rest.every((page) => page.containerItems.length <= 2));
  assert.deepEqual(rest.flatMap(namesIn), names.slice(2));
});

scenario("container-metadata", "metadata is set, replaced and cleared", async (t) => {
  const container = await freshContainer(t, { metadata: { color: "red", size: "xl" } });
  const metadata = async () => (await container.getProperties()).metadata;
  assert.deepEqual(await metadata(), { color: "red", size: "xl" });
  const before = await container.getProperties();
  const changed = await container.setMetadata({ shape: "round, or so", color: "blue" });
  assert.notEqual(changed.etag, before.etag);
  assert.deepEqual(await metadata(), { shape: "round, or so", color: "blue" });
  await container.setMetadata();
  assert.deepEqual(await metadata(), {});
  await refused(400, "InvalidMetadata", container.setMetadata({ "not-a-name": "x" }));
  await refused(400, "MetadataTooLarge", container.setMetadata({ large: "x".repeat(8 * 1024 + 1) }));
  const stale = { conditions: { ifModifiedSince: new Date(Date.now() + 60_000) } };
  await refused(412, "ConditionNotMet", container.setMetadata({ color: "green" }, stale));
  assert.deepEqual(await metadata(), {});
});
