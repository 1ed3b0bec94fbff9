// Snapshots of blobs, and copies within the server.

import assert from "node:assert/strict";
import { BlobSASPermissions } from "@azure/storage-blob";
import {
  collect, farAhead, freshBlob, freshContainer, put, refused, refusedWith, scenario, textOf, upload,
} from "./target.js";

scenario("snapshots", "a snapshot keeps content and metadata", async (t) => {
  const blob = await freshBlob(t, "before", { metadata: { color: "red" } });
  const { etag } = await blob.getProperties();
  const taken = await blob.createSnapshot();
  assert.match(taken.snapshot, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
  assert.equal((await blob.getProperties()).etag, etag);
  await upload(blob, "after");

  const snapshot = blob.withSnapshot(taken.snapshot);
  assert.equal(await textOf(snapshot), "before");
  assert.equal(await textOf(snapshot, 1, 3), "efo");
  const properties = await snapshot.getProperties();
  assert.deepEqual([properties.metadata, properties.etag], [{ color: "red" }, etag]);
  assert.equal(await textOf(blob), "after");
  const other = await blob.createSnapshot({ metadata: { color: "blue" } });
  assert.notEqual(other.snapshot, taken.snapshot);
  assert.deepEqual((await blob.withSnapshot(other.snapshot).getProperties()).metadata, { color: "blue" });
  assert.deepEqual((await blob.getProperties()).metadata, {});
  await refusedWith(400, snapshot.setMetadata({ color: "green" }));
  await refused(404, "BlobNotFound", blob.withSnapshot("2011-03-09T01:42:34.9360000Z").getProperties());
});

scenario("snapshots", "deleting a blob with snapshots, or its snapshots only", async (t) => {
  const blob = await freshBlob(t);
  const [first, second, third] = await threeSnapshots(blob);
  await refused(409, "SnapshotsPresent", blob.delete());
  await first.delete();
  await refused(404, "BlobNotFound", first.download());
  assert.equal(await textOf(second), "text 2");
  await blob.delete({ deleteSnapshots: "only" });
  await refused(404, "BlobNotFound", second.download());
  await refused(404, "BlobNotFound", third.download());
  assert.equal(await textOf(blob), "text 3");

  const [last] = await threeSnapshots(blob);
  await blob.delete({ deleteSnapshots: "include" });
  await refused(404, "BlobNotFound", blob.download());
  await refused(404, "BlobNotFound", last.download());
});

async function threeSnapshots(blob) {
  const snapshots = [];
  for (const n of [1, 2, 3]) {
    await upload(blob, `text ${n}`);
    snapshots.push(blob.withSnapshot((await blob.createSnapshot()).snapshot));
  }
  return snapshots;
}

/** Copies and waits until it is done. */
async function copy(blob, source, copyOptions = {}) {
  const poller = await blob.beginCopyFromURL(source, { intervalInMs: 100, ...copyOptions });
  return poller.pollUntilDone();
}

scenario("blob-copy", "content, headers and metadata are copied", async (t) => {
  const headers = { blobContentType: "text/plain", blobContentLanguage: "de" };
  const source = await freshBlob(t, "text", { blobHTTPHeaders: headers, metadata: { color: "red" } });
  const container = await freshContainer(t);
  const target = container.getBlockBlobClient("target");
  const answer = await copy(target, source.url);
  assert.ok(answer.copyId);
  assert.equal(answer.copyStatus, "success");
  assert.equal(await textOf(target), "text");
  const properties = await target.getProperties();
  assert.deepEqual([properties.contentType, properties.contentLanguage], ["text/plain", "de"]);
  assert.deepEqual(properties.metadata, { color: "red" });
  assert.deepEqual([properties.copyId, properties.copyStatus, properties.copyProgress],
    [answer.copyId, "success", "4/4"]);
  assert.equal(properties.copySource, source.url);
  assert.ok(properties.copyCompletedOn instanceof Date);

  await copy(target, source.url, { metadata: { color: "blue" } });
  assert.deepEqual((await target.getProperties()).metadata, { color: "blue" });
  await source.delete();
  assert.equal(await textOf(target), "text");
});

scenario("blob-copy", "snapshots and other types of blobs are copied", async (t) => {
  const container = await freshContainer(t);
  const blob = await put(container, "blob", "before");
  const { snapshot } = await blob.createSnapshot();
  await upload(blob, "after");
  const target = container.getBlobClient("target");
  await copy(target, blob.withSnapshot(snapshot).url);
  assert.equal(await textOf(target), "before");
  await copy(blob, blob.withSnapshot(snapshot).url);
  assert.equal(await textOf(blob), "before");

  const log = container.getAppendBlobClient("log");
  await log.create();
  await log.appendBlock("line", 4);
  await copy(container.getBlobClient("log copy"), log.url);
  assert.equal((await container.getBlobClient("log copy").getProperties()).blobType, "AppendBlob");
  assert.equal(await textOf(container.getBlobClient("log copy")), "line");
});

scenario("blob-copy", "conditions on source and target", async (t) => {
  const container = await freshContainer(t);
  const [source, target] = [await put(container, "source"), await put(container, "target")];
  const { etag } = await source.getProperties();
  const wrong = { ifMatch: '"0x1"' };
  await refused(412, "SourceConditionNotMet", copy(target, source.url, { sourceConditions: wrong }));
  await refused(412, "SourceConditionNotMet", copy(target, source.url, { sourceConditions: { ifNoneMatch: etag } }));
  await refusedWith(412, copy(target, source.url, { conditions: wrong }));
  await refused(409, "BlobAlreadyExists", copy(target, source.url, { conditions: { ifNoneMatch: "*" } }));
  assert.equal(await textOf(target), "target");
  await copy(target, source.url, { sourceConditions: { ifMatch: etag } });
  assert.equal(await textOf(target), "source");
});

scenario("blob-copy", "a missing source is refused", async (t) => {
  const container = await freshContainer(t);
  const target = container.getBlobClient("target");
  await refusedWith(404, copy(target, container.getBlobClient("missing").url));
  assert.deepEqual(await collect(container.listBlobsFlat()), []);
});

scenario("blob-copy", "a synchronous copy reads its source by SAS", async (t) => {
  const container = await freshContainer(t);
  const source = await put(container, "source", "text", { metadata: { color: "red" } });
  const readable = await source.generateSasUrl({ permissions: BlobSASPermissions.parse("r"), expiresOn: farAhead });
  const target = container.getBlockBlobClient("target");
  assert.equal((await target.syncCopyFromURL(readable)).copyStatus, "success");
  assert.equal(await textOf(target), "text");
  const other = container.getBlockBlobClient("other");
  await other.syncUploadFromURL(readable);
  assert.equal(await textOf(other), "text");
});
