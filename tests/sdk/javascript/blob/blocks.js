// Blocks: staged, committed, listed; taken from other blobs; large transfers in parallel.

import assert from "node:assert/strict";
import { BlobSASPermissions } from "@azure/storage-blob";
import {
  blockId, bytesOf, farAhead, freshBlob, freshContainer, md5, pattern, put, refused, refusedWith, scenario, textOf,
} from "./target.js";

const stage = (blob, id, text = id) => blob.stageBlock(blockId(id), text, text.length);
const commit = (blob, ids, more) => blob.commitBlockList(ids.map(blockId), more);

scenario("staged-blocks", "blocks are committed in any order and mixed", async (t) => {
  const container = await freshContainer(t);
  const blob = container.getBlockBlobClient("blob");
  for (const id of ["A", "B", "C"]) await stage(blob, id);
  await refused(404, "BlobNotFound", blob.download());
  const { etag } = await commit(blob, ["C", "A", "B", "A"], { metadata: { color: "red" } });
  assert.equal(await textOf(blob), "CABA");
  const properties = await blob.getProperties();
  assert.equal(properties.etag, etag);
  assert.deepEqual(properties.metadata, { color: "red" });
  assert.equal(properties.contentMD5, undefined);

  await stage(blob, "D");
  await commit(blob, ["B", "D"]);
  assert.equal(await textOf(blob), "BD");
  assert.deepEqual((await blob.getProperties()).metadata, {});
  await refused(400, "InvalidBlockList", commit(blob, ["A"]));
  await commit(blob, []);
  assert.equal(await textOf(blob), "");
});

scenario("staged-blocks", "the latest of a block's contents counts", async (t) => {
  const blob = (await freshContainer(t)).getBlockBlobClient("blob");
  await stage(blob, "A", "one");
  await stage(blob, "A", "two");
  await commit(blob, ["A"]);
  assert.equal(await textOf(blob), "two");
  await stage(blob, "A", "three");
  assert.equal(await textOf(blob), "two");
  await commit(blob, ["A"]);
  assert.equal(await textOf(blob), "three");
});

scenario("staged-blocks", "unknown and unequal ids are refused", async (t) => {
  const blob = (await freshContainer(t)).getBlockBlobClient("blob");
  await stage(blob, "one");
  await refused(400, "InvalidBlockList", commit(blob, ["one", "two"]));
  await refused(400, "InvalidBlobOrBlock", stage(blob, "longer"));
  await refusedWith(400, blob.stageBlock("not base64!", "x", 1));
  await refusedWith(400, blob.stageBlock(blockId("x".repeat(65)), "x", 1));
  await commit(blob, ["one"]);
  assert.equal(await textOf(blob), "one");
});

scenario("staged-blocks", "an upload drops what was staged", async (t) => {
  const blob = await freshBlob(t, "first");
  await stage(blob, "A");
  await blob.upload("second", 6);
  await refused(400, "InvalidBlockList", commit(blob, ["A"]));
  assert.equal(await textOf(blob), "second");
});

scenario("block-list", "committed and uncommitted blocks are told apart", async (t) => {
  const blob = (await freshContainer(t)).getBlockBlobClient("blob");
  const list = async (type) => {
    const { committedBlocks, uncommittedBlocks } = await blob.getBlockList(type);
    const texts = (blocks = []) => blocks.map(({ name, size }) => `${Buffer.from(name, "base64")} ${size}`);
    return [texts(committedBlocks), texts(uncommittedBlocks)];
  };
  await refused(404, "BlobNotFound", blob.getBlockList("all"));
  await stage(blob, "A", "1");
  await stage(blob, "B", "22");
  assert.deepEqual(await list("all"), [[], ["A 1", "B 2"]]);
  await commit(blob, ["B", "A"]);
  assert.deepEqual(await list("all"), [["B 2", "A 1"], []]);

  const { etag } = await blob.getProperties();
  await stage(blob, "C", "333");
  assert.deepEqual(await list("committed"), [["B 2", "A 1"], []]);
  assert.deepEqual(await list("uncommitted"), [[], ["C 3"]]);
  assert.deepEqual(await list("all"), [["B 2", "A 1"], ["C 3"]]);
  assert.equal((await blob.getProperties()).etag, etag);
  assert.equal(await textOf(blob), "221");
  const answer = await blob.getBlockList("all");
  assert.deepEqual([answer.etag, answer.blobContentLength], [etag, 3]);
});

scenario("block-list", "a blob that was put whole has no blocks", async (t) => {
  const blob = await freshBlob(t);
  const { committedBlocks = [], uncommittedBlocks = [] } = await blob.getBlockList("all");
  assert.deepEqual([committedBlocks, uncommittedBlocks], [[], []]);
});

const transferBytes = 256 * 1024 * 1024;

scenario("parallel-transfer", "up in parallel blocks, down in parallel ranges", async (t) => {
  const blob = (await freshContainer(t)).getBlockBlobClient("large");
  const content = pattern(transferBytes);
  const blockSize = 4 * 1024 * 1024;
  await blob.uploadData(content, { blockSize, maxSingleShotSize: blockSize, concurrency: 8 });
  const { committedBlocks } = await blob.getBlockList("committed");
  assert.equal(committedBlocks.length, transferBytes / blockSize);
  assert.equal((await blob.getProperties()).contentLength, transferBytes);

  const back = await blob.downloadToBuffer(0, undefined, { blockSize, concurrency: 8 });
  assert.deepEqual(md5(back), md5(content));
  const range = await blob.download(12_345_678, 4_000_000, { rangeGetContentMD5: true });
  const part = await bytesOf(range);
  assert.deepEqual(md5(part), md5(content.subarray(12_345_678, 16_345_678)));
  assert.deepEqual(Buffer.from(range.contentMD5), md5(part));
});

/** The blob's address with the right to read it. */
const readable = (blob) =>
  blob.generateSasUrl({ permissions: BlobSASPermissions.parse("r"), expiresOn: farAhead });

scenario("block-from-url", "whole and partial sources", async (t) => {
  const container = await freshContainer(t);
  const source = await readable(await put(container, "source", "0123456789"));
  const blob = container.getBlockBlobClient("target");
  await blob.stageBlockFromURL(blockId("1"), source);
  await blob.stageBlockFromURL(blockId("2"), source, 3, 4);
  await stage(blob, "3", "!");
  await commit(blob, ["2", "3", "1"]);
  assert.equal(await textOf(blob), "3456!0123456789");
});

scenario("block-from-url", "sources that cannot be read are refused", async (t) => {
  const container = await freshContainer(t);
  const source = await put(container, "source", "0123456789");
  const blob = container.getBlockBlobClient("target");
  const missing = await readable(container.getBlockBlobClient("missing"));
  await refused(404, "CannotVerifyCopySource", blob.stageBlockFromURL(blockId("1"), missing));
  const wrong = { sourceContentMD5: md5("something else") };
  await refused(400, "Md5Mismatch",
    blob.stageBlockFromURL(blockId("1"), await readable(source), undefined, undefined, wrong));
  const right = { sourceContentMD5: md5("0123456789") };
  await blob.stageBlockFromURL(blockId("1"), await readable(source), undefined, undefined, right);
  await commit(blob, ["1"]);
  assert.equal(await textOf(blob), "0123456789");
});
