// Append blobs and page blobs.

import assert from "node:assert/strict";
import {
  bytesOf, freshContainer, pattern, put, refused, refusedWith, scenario, textOf,
} from "./target.js";

const append = (blob, text, conditions) => blob.appendBlock(text, text.length, { conditions });

scenario("append-blob", "blocks are added to the end", async (t) => {
  const blob = (await freshContainer(t)).getAppendBlobClient("log");
  await refused(404, "BlobNotFound", append(blob, "early"));
  await blob.create({ metadata: { color: "red" }, blobHTTPHeaders: { blobContentType: "text/plain" } });
  assert.equal(await textOf(blob), "");
  const first = await append(blob, "one,");
  assert.deepEqual([first.blobAppendOffset, first.blobCommittedBlockCount], ["0", 1]);
  const second = await append(blob, "two,");
  assert.deepEqual([second.blobAppendOffset, second.blobCommittedBlockCount], ["4", 2]);
  assert.notEqual(first.etag, second.etag);
  assert.equal(await textOf(blob), "one,two,");
  assert.equal(await textOf(blob, 2, 4), "e,tw");

  const properties = await blob.getProperties();
  assert.deepEqual([properties.blobType, properties.contentLength], ["AppendBlob", 8]);
  assert.deepEqual([properties.blobCommittedBlockCount, properties.etag], [2, second.etag]);
  assert.deepEqual([properties.metadata, properties.contentType], [{ color: "red" }, "text/plain"]);
  assert.equal((await blob.createIfNotExists()).succeeded, false);
  await blob.create();
  assert.equal(await textOf(blob), "");
});

scenario("append-blob", "conditions on position and size", async (t) => {
  const container = await freshContainer(t);
  const blob = container.getAppendBlobClient("log");
  await blob.create();
  await append(blob, "1234", { appendPosition: 0, maxSize: 4 });
  await refused(412, "AppendPositionConditionNotMet", append(blob, "x", { appendPosition: 0 }));
  await refused(412, "MaxBlobSizeConditionNotMet", append(blob, "x", { maxSize: 4 }));
  await refused(412, "ConditionNotMet", append(blob, "x", { ifMatch: '"0x1"' }));
  await append(blob, "5", { appendPosition: 4, maxSize: 5 });
  assert.equal(await textOf(blob), "12345");
  await refused(409, "InvalidBlobType", container.getBlockBlobClient("log").stageBlock("YQ==", "x", 1));
  await put(container, "block");
  await refused(409, "InvalidBlobType", append(container.getAppendBlobClient("block"), "x"));
});

/** A new page blob of eight pages. */
async function freshPages(t, createOptions) {
  const blob = (await freshContainer(t)).getPageBlobClient("pages");
  await blob.create(8 * 512, createOptions);
  return blob;
}

/** The SDK gives as a range's count the distance to its last byte. */
async function rangesOf(blob, ...range) {
  return (await blob.getPageRanges(...range)).pageRange.map(({ offset, count }) => `${offset}+${count + 1}`);
}

scenario("page-blob", "pages are written, cleared and read", async (t) => {
  const blob = await freshPages(t, { metadata: { color: "red" } });
  assert.ok((await bytesOf(blob.download())).equals(Buffer.alloc(4096)));
  assert.deepEqual(await rangesOf(blob), []);

  const content = pattern(4096);
  const expected = Buffer.alloc(4096);
  for (const [offset, count] of [[512, 1024], [3072, 512], [1024, 512]]) {
    content.copy(expected, offset, offset, offset + count);
    await blob.uploadPages(content.subarray(offset, offset + count), offset, count);
  }
  assert.ok((await bytesOf(blob.download())).equals(expected));
  assert.deepEqual(await rangesOf(blob), ["512+1024", "3072+512"]);
  assert.deepEqual(await rangesOf(blob, 0, 1024), ["512+512"]);

  await blob.clearPages(512, 512);
  expected.fill(0, 512, 1024);
  assert.ok((await bytesOf(blob.download())).equals(expected));
  assert.ok((await bytesOf(blob.download(1000, 2500))).equals(expected.subarray(1000, 3500)));
  assert.deepEqual(await rangesOf(blob), ["1024+512", "3072+512"]);
  const properties = await blob.getProperties();
  assert.deepEqual([properties.blobType, properties.contentLength, properties.metadata],
    ["PageBlob", 4096, { color: "red" }]);
});

scenario("page-blob", "misaligned writes and sizes are refused", async (t) => {
  const blob = await freshPages(t);
  const bytes = pattern(1024);
  for (const [offset, count] of [[1, 512], [0, 511], [100, 412]]) {
    await refusedWith(416, blob.uploadPages(bytes.subarray(0, count), offset, count).catch(asRange));
    await refusedWith(416, blob.clearPages(offset, count).catch(asRange));
  }
  await refused(416, "InvalidPageRange", blob.uploadPages(bytes, 7 * 512, 1024));
  await refused(400, "InvalidHeaderValue", blob.create(1000));
  assert.deepEqual(await rangesOf(blob), []);
});

/** The service names a misaligned range either by its header (400) or as a range (416). */
function asRange(error) {
  if (error.statusCode === 400) error.statusCode = 416;
  throw error;
}

scenario("page-blob-resize", "a page blob grows and shrinks", async (t) => {
  const blob = await freshPages(t);
  await blob.uploadPages(pattern(4096), 0, 4096);
  await blob.resize(1024);
  assert.equal((await blob.getProperties()).contentLength, 1024);
  assert.deepEqual(await rangesOf(blob), ["0+1024"]);
  await blob.resize(2048);
  const expected = Buffer.concat([pattern(4096).subarray(0, 1024), Buffer.alloc(1024)]);
  assert.ok((await bytesOf(blob.download())).equals(expected));
  await refused(400, "InvalidHeaderValue", blob.resize(1000));
});

scenario("page-blob-resize", "sequence numbers and their conditions", async (t) => {
  const blob = await freshPages(t, { blobSequenceNumber: 5 });
  const number = async () => (await blob.getProperties()).blobSequenceNumber;
  assert.equal(await number(), 5);
  await blob.updateSequenceNumber("max", 3);
  assert.equal(await number(), 5);
  await blob.updateSequenceNumber("update", 7);
  assert.equal(await number(), 7);
  const incremented = await blob.updateSequenceNumber("increment");
  assert.equal(incremented.blobSequenceNumber, 8);

  const write = (conditions) => blob.uploadPages(pattern(512), 0, 512, { conditions });
  for (const conditions of [
    { ifSequenceNumberEqualTo: 7 }, { ifSequenceNumberLessThan: 8 }, { ifSequenceNumberLessThanOrEqualTo: 7 },
  ]) {
    await refused(412, "SequenceNumberConditionNotMet", write(conditions));
  }
  for (const conditions of [
    { ifSequenceNumberEqualTo: 8 }, { ifSequenceNumberLessThan: 9 }, { ifSequenceNumberLessThanOrEqualTo: 8 },
  ]) {
    assert.equal((await write(conditions)).blobSequenceNumber, 8);
  }
});
