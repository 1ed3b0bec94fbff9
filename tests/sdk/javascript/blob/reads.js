// Reads and writes under conditions, ranges of content, and checksums.

import assert from "node:assert/strict";
import {
  blockId, bytesOf, freshBlob, freshContainer, md5, pattern, refused, scenario, textOf, upload,
} from "./target.js";

const second = 1000;

scenario("blob-conditions", "reads answer 304 or 412", async (t) => {
  const blob = await freshBlob(t);
  const { etag, lastModified } = await blob.getProperties();
  const before = new Date(lastModified - second);
  const read = (conditions) => textOf(blob, 0, undefined, { conditions });
  const look = (conditions) => blob.getProperties({ conditions });

  for (const conditions of [
    { ifMatch: etag }, { ifMatch: "*" }, { ifNoneMatch: '"0x1"' }, { ifModifiedSince: before },
    { ifUnmodifiedSince: lastModified }, { ifMatch: etag, ifModifiedSince: before },
  ]) {
    assert.equal(await read(conditions), "text");
    await look(conditions);
  }
  for (const conditions of [{ ifNoneMatch: etag }, { ifModifiedSince: lastModified }]) {
    await refused(304, "ConditionNotMet", read(conditions));
    await refused(304, "ConditionNotMet", look(conditions));
  }
  for (const conditions of [{ ifMatch: '"0x1"' }, { ifUnmodifiedSince: before }]) {
    await refused(412, "ConditionNotMet", read(conditions));
    await refused(412, "ConditionNotMet", look(conditions));
  }
});

scenario("blob-conditions", "writes answer 412 and change nothing", async (t) => {
  const blob = await freshBlob(t);
  const stale = (await blob.getProperties()).etag;
  await blob.setMetadata({ color: "red" });
  const { etag, lastModified } = await blob.getProperties();
  for (const conditions of [
    { ifMatch: stale }, { ifNoneMatch: etag }, { ifModifiedSince: lastModified },
    { ifUnmodifiedSince: new Date(lastModified - second) },
  ]) {
    await refused(412, "ConditionNotMet", upload(blob, "other", { conditions }));
    await refused(412, "ConditionNotMet", blob.setMetadata({}, { conditions }));
    await refused(412, "ConditionNotMet", blob.setHTTPHeaders({}, { conditions }));
    await refused(412, "ConditionNotMet", blob.createSnapshot({ conditions }));
    await refused(412, "ConditionNotMet", blob.delete({ conditions }));
  }
  assert.equal((await blob.getProperties()).etag, etag);
  const { etag: next } = await blob.setMetadata({ color: "blue" }, { conditions: { ifMatch: etag } });
  await upload(blob, "other", { conditions: { ifMatch: next, ifUnmodifiedSince: new Date(Date.now() + 60 * second) } });
  assert.equal(await textOf(blob), "other");
  await blob.delete({ conditions: { ifMatch: "*" } });
  await refused(412, "ConditionNotMet", upload(blob, "again", { conditions: { ifMatch: next } }));
});

scenario("blob-ranges", "inside, across the end and past it", async (t) => {
  const blob = await freshBlob(t, "0123456789");
  for (const [offset, count, text, range] of [
    [2, 3, "234", "bytes 2-4/10"], [0, 10, "0123456789", "bytes 0-9/10"], [7, 100, "789", "bytes 7-9/10"],
    [9, undefined, "9", "bytes 9-9/10"], [4, 1, "4", "bytes 4-4/10"],
  ]) {
    const download = await blob.download(offset, count);
    assert.equal((await bytesOf(download)).toString(), text);
    assert.equal(download.contentRange, range);
    assert.equal(download.contentLength, text.length);
    assert.equal(download._response.status, 206);
  }
  await refused(416, "InvalidRange", blob.download(10));
  await refused(416, "InvalidRange", blob.download(11, 5));
  assert.equal(await textOf(blob), "0123456789");
});

scenario("blob-ranges", "of an empty blob there are none", async (t) => {
  const blob = await freshBlob(t, "");
  await refused(416, "InvalidRange", blob.download(0, 1));
  await refused(416, "InvalidRange", blob.download(1));
  assert.equal(await textOf(blob), "");
});

scenario("blob-ranges", "of a blob of several blocks", async (t) => {
  const blob = (await freshContainer(t)).getBlockBlobClient("blocks");
  const content = pattern(3 * 1000);
  for (const n of [0, 1, 2]) await blob.stageBlock(blockId(`${n}`), content.subarray(n * 1000, (n + 1) * 1000), 1000);
  await blob.commitBlockList(["0", "1", "2"].map(blockId));
  for (const [offset, count] of [[0, 1], [999, 2], [500, 2000], [1000, 1000], [2999, 1], [1, 2999]]) {
    const bytes = await bytesOf(blob.download(offset, count));
    assert.ok(bytes.equals(content.subarray(offset, offset + count)), `${count} bytes from ${offset}`);
  }
});

scenario("blob-checksums", "the MD5 of a blob and of a range", async (t) => {
  const content = pattern(8 * 1024);
  const blob = (await freshContainer(t)).getBlockBlobClient("sum");
  const uploaded = await blob.upload(content, content.length);
  assert.deepEqual(Buffer.from(uploaded.contentMD5), md5(content));
  assert.deepEqual(Buffer.from((await blob.getProperties()).contentMD5), md5(content));

  const range = await blob.download(1000, 4096, { rangeGetContentMD5: true });
  const part = await bytesOf(range);
  assert.deepEqual(Buffer.from(range.contentMD5), md5(part));
  assert.deepEqual(Buffer.from(range.blobContentMD5), md5(content));
  const plain = await blob.download(1000, 4096);
  await bytesOf(plain);
  assert.equal(plain.contentMD5, undefined);

  await blob.setHTTPHeaders({ blobContentMD5: md5("something else") });
  assert.deepEqual(Buffer.from((await blob.getProperties()).contentMD5), md5("something else"));
});

scenario("blob-checksums", "a wrong transactional MD5 is refused", async (t) => {
  const container = await freshContainer(t);
  const block = container.getBlockBlobClient("block");
  const wrong = { transactionalContentMD5: md5("another text") };
  const right = { transactionalContentMD5: md5("text") };
  await refused(400, "Md5Mismatch", block.stageBlock(blockId("1"), "text", 4, wrong));
  await block.stageBlock(blockId("1"), "text", 4, right);
  await block.commitBlockList([blockId("1")]);
  assert.equal(await textOf(block), "text");

  const append = container.getAppendBlobClient("append");
  await append.create();
  await refused(400, "Md5Mismatch", append.appendBlock("text", 4, wrong));
  await append.appendBlock("text", 4, right);
  assert.equal(await textOf(append), "text");
});
