// Block blobs as a whole: content, names, properties, headers, metadata, overwriting.

import assert from "node:assert/strict";
import {
  bytesOf, collect, freshBlob, freshContainer, md5, namesOf, pattern, put, refused, scenario, textOf, upload,
} from "./target.js";

scenario("block-blob-roundtrip", "content comes back as it was written", async (t) => {
  const container = await freshContainer(t);
  for (const length of [0, 1, 4 * 1024, 5 * 1024 * 1024]) {
    const blob = container.getBlockBlobClient(`length-${length}`);
    const content = pattern(length);
    await blob.upload(content, length);
    assert.equal((await blob.getProperties()).contentLength, length);
    assert.ok(content.equals(await bytesOf(blob.download())), `${length} bytes as a stream`);
    assert.ok(content.equals(await blob.downloadToBuffer()), `${length} bytes in a buffer`);
  }
});

scenario("block-blob-roundtrip", "a missing blob is told apart from a missing container", async (t) => {
  const blob = (await freshContainer(t)).getBlockBlobClient("missing");
  await refused(404, "BlobNotFound", blob.download());
  await refused(404, "BlobNotFound", blob.getProperties());
  await refused(404, "BlobNotFound", blob.delete());
  await refused(404, "BlobNotFound", blob.setMetadata({}));
  assert.equal(await blob.exists(), false);
  assert.equal((await blob.deleteIfExists()).succeeded, false);
});

scenario("block-blob-roundtrip", "a deleted blob is gone", async (t) => {
  const blob = await freshBlob(t);
  assert.equal(await blob.exists(), true);
  await blob.delete();
  await refused(404, "BlobNotFound", blob.download());
});

scenario("blob-names", "names keep every character", async (t) => {
  const container = await freshContainer(t);
  const names = [
    "a", "a/b/c", "a/b/", "Case", "case", "with space", "100%", "%41", "a+b", "a&b=c", "q?mark", "#hash",
    "quote'and\"quote", "comma,semi;colon:", "(brackets)[]{}", "naïve/日本語 \u{1F600}", "~tilde!*$@^`|", "<tag>",
    "x".repeat(1024),
  ];
  for (const name of names) await put(container, name);
  for (const name of names) {
    const blob = container.getBlobClient(name);
    assert.equal(blob.name, name);
    assert.equal(await textOf(blob), name);
  }
  const listed = namesOf(await collect(container.listBlobsFlat()));
  assert.deepEqual([...listed].sort(), [...names].sort());
  for (const name of names) await container.deleteBlob(name);
  assert.deepEqual(await collect(container.listBlobsFlat()), []);
  await refused(400, "OutOfRangeInput", put(container, "x".repeat(1025)));
});

scenario("blob-properties", "properties and downloads tell the same", async (t) => {
  const blob = await freshBlob(t, "0123456789", { blobHTTPHeaders: { blobContentType: "text/plain" } });
  const properties = await blob.getProperties();
  const download = await blob.download();
  await bytesOf(download);
  for (const answer of [properties, download]) {
    assert.equal(answer.contentLength, 10);
    assert.equal(answer.contentType, "text/plain");
    assert.equal(answer.blobType, "BlockBlob");
    assert.match(answer.etag, /^"0x[0-9A-F]+"$/);
    assert.equal(answer.acceptRanges, "bytes");
    assert.equal(answer.leaseState, "available");
    assert.equal(answer.leaseStatus, "unlocked");
    assert.equal(answer.isServerEncrypted, true);
    assert.ok(Buffer.from(answer.contentMD5).equals(md5("0123456789")));
    assert.ok(answer.lastModified instanceof Date && answer.lastModified.getMilliseconds() === 0);
  }
  assert.equal(download.etag, properties.etag);
  assert.deepEqual(download.lastModified, properties.lastModified);
  assert.deepEqual(properties.createdOn, properties.lastModified);
  assert.equal(properties.accessTier, "Hot");
  assert.equal(properties.accessTierInferred, true);
});

scenario("blob-properties", "every write gives another ETag", async (t) => {
  const blob = await freshBlob(t);
  const etags = [(await blob.getProperties()).etag, (await upload(blob, "other")).etag];
  const created = (await blob.getProperties()).createdOn;
  for (const change of [() => blob.setMetadata({ a: "b" }), () => blob.setHTTPHeaders({})]) {
    etags.push((await change()).etag);
    assert.equal((await blob.getProperties()).etag, etags.at(-1));
  }
  assert.equal(new Set(etags).size, 4);
  assert.deepEqual((await blob.getProperties()).createdOn, created);
});

const headers = {
  blobContentType: "text/html; charset=utf-8", blobContentEncoding: "identity", blobContentLanguage: "de, en",
  blobContentDisposition: "attachment; filename=\"a b.html\"", blobCacheControl: "no-cache, max-age=3",
};

async function headersOf(blob) {
  const answer = await blob.getProperties();
  return {
    blobContentType: answer.contentType, blobContentEncoding: answer.contentEncoding,
    blobContentLanguage: answer.contentLanguage, blobContentDisposition: answer.contentDisposition,
    blobCacheControl: answer.cacheControl,
  };
}

scenario("blob-http-headers", "they are set with the blob and changed later", async (t) => {
  const blob = await freshBlob(t, "text", { blobHTTPHeaders: headers, metadata: { kept: "yes" } });
  assert.deepEqual(await headersOf(blob), headers);
  const download = await blob.download();
  await bytesOf(download);
  assert.equal(download.contentLanguage, headers.blobContentLanguage);
  assert.equal(download.contentDisposition, headers.blobContentDisposition);

  const others = { ...headers, blobContentType: "text/plain", blobContentLanguage: "fr" };
  await blob.setHTTPHeaders(others);
  assert.deepEqual(await headersOf(blob), others);
  assert.deepEqual((await blob.getProperties()).metadata, { kept: "yes" });

  await blob.setHTTPHeaders({ blobCacheControl: "private" });
  const rest = await headersOf(blob);
  assert.equal(rest.blobCacheControl, "private");
  assert.deepEqual([rest.blobContentEncoding, rest.blobContentLanguage, rest.blobContentDisposition],
    [undefined, undefined, undefined]);
  assert.equal(await textOf(blob), "text");
});

scenario("blob-metadata", "metadata is set with the blob, replaced and cleared", async (t) => {
  const blob = await freshBlob(t, "text", { metadata: { color: "red", size: "xl" } });
  const metadata = async () => (await blob.getProperties()).metadata;
  assert.deepEqual(await metadata(), { color: "red", size: "xl" });
  const download = await blob.download();
  await bytesOf(download);
  assert.deepEqual(download.metadata, { color: "red", size: "xl" });
  await blob.setMetadata({ shape: "round, or so" });
  assert.deepEqual(await metadata(), { shape: "round, or so" });
  await blob.setMetadata({});
  assert.deepEqual(await metadata(), {});
  assert.equal(await textOf(blob), "text");
});

scenario("blob-metadata", "bad and large metadata are refused", async (t) => {
  const blob = await freshBlob(t, "text", { metadata: { color: "red" } });
  await refused(400, "InvalidMetadata", blob.setMetadata({ "not-a-name": "x" }));
  await refused(400, "InvalidMetadata", upload(blob, "other", { metadata: { "1st": "x" } }));
  await refused(400, "MetadataTooLarge", blob.setMetadata({ large: "x".repeat(8 * 1024 + 1) }));
  assert.deepEqual((await blob.getProperties()).metadata, { color: "red" });
});

scenario("blob-overwrite", "an upload replaces content, headers and metadata", async (t) => {
  const blob = await freshBlob(t, "long first text", { blobHTTPHeaders: headers, metadata: { color: "red" } });
  await upload(blob, "short");
  assert.equal(await textOf(blob), "short");
  const { contentLength, metadata } = await blob.getProperties();
  assert.deepEqual([contentLength, metadata], [5, {}]);
  const now = await headersOf(blob);
  assert.equal(now.blobContentType, "application/octet-stream");
  assert.equal(now.blobContentLanguage, undefined);
});

scenario("blob-overwrite", "one that must not replace is refused", async (t) => {
  const blob = await freshBlob(t, "first");
  const onlyNew = { conditions: { ifNoneMatch: "*" } };
  await refused(409, "BlobAlreadyExists", upload(blob, "second", onlyNew));
  assert.equal(await textOf(blob), "first");
  await blob.delete();
  await upload(blob, "second", onlyNew);
  assert.equal(await textOf(blob), "second");
});
