// Lists of blobs: flat, by hierarchy, in pages, with what may be included.

import assert from "node:assert/strict";
import {
  blockId, collect, freshContainer, md5, namesOf, put, refused, scenario, serviceClient, upload,
} from "./target.js";

const flat = async (container, listOptions) => namesOf(await collect(container.listBlobsFlat(listOptions)));

/** A container with blobs of these names. */
async function filled(t, names) {
  const container = await freshContainer(t);
  await Promise.all(names.map((name) => put(container, name)));
  return container;
}

scenario("list-blobs", "blobs are listed in order and by prefix", async (t) => {
  const names = ["A", "B/x", "a", "a b", "a/1", "a/10", "a/2", "b", "é"];
  const container = await filled(t, [...names].reverse());
  assert.deepEqual(await flat(container), names);
  assert.deepEqual(await flat(container, { prefix: "a" }), ["a", "a b", "a/1", "a/10", "a/2"]);
  assert.deepEqual(await flat(container, { prefix: "a/1" }), ["a/1", "a/10"]);
  assert.deepEqual(await flat(container, { prefix: "c" }), []);
});

scenario("list-blobs", "items tell the blobs' properties", async (t) => {
  const container = await freshContainer(t);
  const headers = { blobContentType: "text/plain", blobContentLanguage: "de", blobCacheControl: "no-cache" };
  const blob = await put(container, "block", "text", { blobHTTPHeaders: headers, metadata: { color: "red" } });
  await container.getAppendBlobClient("append").create();
  await container.getPageBlobClient("page").create(1024);
  const [append, block, page] = await collect(container.listBlobsFlat());

  const own = await blob.getProperties();
  const { properties } = block;
  assert.equal(properties.etag.replaceAll('"', ""), own.etag.replaceAll('"', ""));
  assert.deepEqual([properties.lastModified, properties.createdOn], [own.lastModified, own.createdOn]);
  assert.deepEqual([properties.contentLength, properties.contentType], [4, "text/plain"]);
  assert.deepEqual([properties.contentLanguage, properties.cacheControl], ["de", "no-cache"]);
  assert.deepEqual(Buffer.from(properties.contentMD5), md5("text"));
  assert.deepEqual([properties.leaseState, properties.leaseStatus], ["available", "unlocked"]);
  assert.deepEqual([properties.accessTier, properties.serverEncrypted], ["Hot", true]);
  assert.equal(block.metadata, undefined);
  const types = [append, block, page].map(({ properties }) => properties.blobType);
  assert.deepEqual(types, ["AppendBlob", "BlockBlob", "PageBlob"]);
  assert.deepEqual([page.properties.contentLength, page.properties.blobSequenceNumber], [1024, 0]);
});

const tree = ["a", "a/1", "a/2", "a/b/3", "b/4", "c", "d//5", "e-1"];

async function level(container, delimiter, prefix) {
  const items = await collect(container.listBlobsByHierarchy(delimiter, { prefix }));
  return items.map(({ kind, name }) => (kind === "prefix" ? `[${name}]` : name));
}

scenario("list-hierarchy", "blobs and prefixes of one level, and of the next", async (t) => {
  const container = await filled(t, tree);
  assert.deepEqual(await level(container, "/"), sorted(["a", "[a/]", "[b/]", "c", "[d/]", "e-1"]));
  assert.deepEqual(await level(container, "/", "a/"), sorted(["a/1", "a/2", "[a/b/]"]));
  assert.deepEqual(await level(container, "/", "a/b/"), ["a/b/3"]);
  assert.deepEqual(await level(container, "/", "d/"), ["[d//]"]);
  assert.deepEqual(await level(container, "/", "a"), sorted(["a", "[a/]"]));
  assert.deepEqual(await level(container, "-", "e"), ["[e-]"]);
  assert.deepEqual(await level(container, "/", "none/"), []);
});

/** The SDK gives a page's prefixes before its blobs. */
const sorted = (names) => [...names].sort((a, b) => b.startsWith("[") - a.startsWith("["));

scenario("list-pages", "flat pages resume from a saved marker", async (t) => {
  const names = Array.from({ length: 25 }, (_, n) => `blob-${`${n}`.padStart(2, "0")}`);
  const { containerName } = await filled(t, names);
  const pages = (continuationToken) => serviceClient().getContainerClient(containerName)
    .listBlobsFlat({ prefix: "blob" }).byPage({ maxPageSize: 10, continuationToken });
  const inPage = (page) => namesOf(page.segment.blobItems);
  const first = (await pages().next()).value;
  assert.deepEqual(inPage(first), names.slice(0, 10));
  assert.ok(first.continuationToken);
  const rest = await collect(pages(first.continuationToken));
  assert.deepEqual(rest.flatMap(inPage), names.slice(10));
  assert.ok(rest.every((page) => inPage(page).length <= 10));
  await refused(400, "OutOfRangeQueryParameterValue", pages0(containerName).next());
});

const pages0 = (name) => serviceClient().getContainerClient(name).listBlobsFlat().byPage({ maxPageSize: 0 });

scenario("list-pages", "pages by hierarchy have each prefix once", async (t) => {
  const names = ["a", "b/1", "b/2", "b/3", "c", "d/1", "d/2", "e"];
  const { containerName } = await filled(t, names);
  const pages = (continuationToken) => serviceClient().getContainerClient(containerName)
    .listBlobsByHierarchy("/").byPage({ maxPageSize: 2, continuationToken });
  const seen = [];
  let marker;
  for (let n = 0; n < 10; n++) {
    const { segment, continuationToken } = (await pages(marker).next()).value;
    const inPage = [...namesOf(segment.blobItems), ...namesOf(segment.blobPrefixes ?? [])];
    assert.ok(inPage.length <= 2);
    seen.push(...inPage.sort());
    marker = continuationToken;
    if (!marker) break;
  }
  assert.deepEqual(seen, ["a", "b/", "c", "d/", "e"]);
});

scenario("list-includes", "metadata, snapshots, uncommitted blobs, tags and copies", async (t) => {
  const container = await freshContainer(t);
  const blob = await put(container, "blob", "text", { metadata: { color: "red" }, tags: { kind: "test", "a b": "1" } });
  const { snapshot } = await blob.createSnapshot();
  await upload(blob, "new", { metadata: { color: "blue" } });
  await container.getBlockBlobClient("staged").stageBlock(blockId("1"), "x", 1);
  await (await container.getBlobClient("copied").beginCopyFromURL(blob.url)).pollUntilDone();
  const list = (listOptions) => collect(container.listBlobsFlat(listOptions));

  assert.deepEqual(namesOf(await list()), ["blob", "copied"]);
  const withMetadata = await list({ includeMetadata: true });
  assert.deepEqual(withMetadata.map(({ metadata }) => metadata?.color), ["blue", "blue"]);
  const withSnapshots = await list({ includeSnapshots: true, includeMetadata: true });
  assert.deepEqual(withSnapshots.map(({ name, snapshot, metadata }) => [name, snapshot, metadata.color]),
    [["blob", snapshot, "red"], ["blob", undefined, "blue"], ["copied", undefined, "blue"]]);
  assert.deepEqual(namesOf(await list({ includeUncommitedBlobs: true })), ["blob", "copied", "staged"]);
  const [copied] = await list({ includeCopy: true, prefix: "copied" });
  assert.equal(copied.properties.copyStatus, "success");
  assert.equal(copied.properties.copySource, blob.url);

  await blob.setTags({ kind: "test", "a b": "1" });
  const [tagged] = await list({ includeTags: true, prefix: "blob" });
  assert.deepEqual(tagged.tags, { kind: "test", "a b": "1" });
  assert.equal(tagged.properties.tagCount, 2);
});
