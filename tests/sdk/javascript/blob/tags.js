// Tags of blobs, and many deletes in one request.

import assert from "node:assert/strict";
import { freshBlob, freshContainer, put, refusedWith, scenario, serviceClient, upload } from "./target.js";

const tagsOf = async (blob) => (await blob.getTags()).tags;

scenario("blob-tags", "tags are set with the blob, replaced, read and cleared", async (t) => {
  const blob = await freshBlob(t, "text", { tags: { kind: "test", "a b": "x+y-z./:=_" } });
  assert.deepEqual(await tagsOf(blob), { kind: "test", "a b": "x+y-z./:=_" });
  const { etag, lastModified, tagCount } = await blob.getProperties();
  assert.equal(tagCount, 2);
  const ten = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`key${n}`, `${n}`]));
  await blob.setTags(ten);
  assert.deepEqual(await tagsOf(blob), ten);
  await blob.setTags({ empty: "" });
  assert.deepEqual(await tagsOf(blob), { empty: "" });
  await blob.setTags({});
  assert.deepEqual(await tagsOf(blob), {});
  const after = await blob.getProperties();
  assert.deepEqual([after.etag, after.lastModified, after.tagCount], [etag, lastModified, undefined]);

  await blob.setTags({ kind: "test" });
  await upload(blob, "other");
  assert.deepEqual(await tagsOf(blob), {});
});

scenario("blob-tags", "too many and bad tags are refused", async (t) => {
  const blob = await freshBlob(t, "text", { tags: { kind: "test" } });
  const eleven = Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`key${n}`, "x"]));
  for (const tags of [eleven, { "": "x" }, { ["k".repeat(129)]: "x" }, { k: "v".repeat(257) }, { "a#b": "x" }]) {
    await refusedWith(400, blob.setTags(tags));
  }
  await refusedWith(400, upload(blob, "text", { tags: eleven }));
  assert.deepEqual(await tagsOf(blob), { kind: "test" });
});

scenario("batch-delete", "many are deleted, a missing one is told", async (t) => {
  const container = await freshContainer(t);
  const names = Array.from({ length: 20 }, (_, n) => `dir/blob ${n}`);
  const blobs = await Promise.all(names.map((name) => put(container, name)));
  const missing = container.getBlobClient("missing");
  const batch = serviceClient().getBlobBatchClient();
  const { subResponses, subResponsesSucceededCount, subResponsesFailedCount } =
    await batch.deleteBlobs([...blobs.slice(0, 10), missing, ...blobs.slice(10)]);
  assert.deepEqual([subResponsesSucceededCount, subResponsesFailedCount], [20, 1]);
  assert.deepEqual(subResponses.map(({ status }) => status),
    [...Array(10).fill(202), 404, ...Array(10).fill(202)]);
  assert.equal(subResponses[10].errorCode, "BlobNotFound");
  for (const blob of blobs) assert.equal(await blob.exists(), false);
});

scenario("batch-delete", "a container's own batch, with snapshots", async (t) => {
  const container = await freshContainer(t);
  const [one, two] = [await put(container, "one"), await put(container, "two")];
  await one.createSnapshot();
  const batch = container.getBlobBatchClient();
  const without = await batch.deleteBlobs([one]);
  assert.equal(without.subResponses[0].errorCode, "SnapshotsPresent");
  const together = await batch.deleteBlobs([one, two], { deleteSnapshots: "include" });
  assert.equal(together.subResponsesSucceededCount, 2);
  assert.deepEqual([await one.exists(), await two.exists()], [false, false]);
});
