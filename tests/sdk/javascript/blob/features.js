// Blobs found by tags, conditions on tags, sealed append blobs, incremental copies, the archive.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import {
  bytesOf, collect, freshBlob, freshContainer, pattern, put, refused, refusedWith, scenario, serviceClient, textOf, upload,
} from "./target.js";

/** Asks until the answer is as wanted. */
async function eventually(ask, isWanted) {
  for (let n = 0; n < 600; n++) {
    const answer = await ask();
    if (isWanted(answer)) return answer;
    await sleep(100);
  }
  throw new Error("it did not come to pass");
}

scenario("blob-find-by-tags", "blobs are found in the account and in a container", async (t) => {
  const [one, two] = [await freshContainer(t), await freshContainer(t)];
  const project = `p${one.containerName.slice(-12)}`;
  await put(one, "a", "x", { tags: { project, rank: "1" } });
  await put(one, "b", "x", { tags: { project, rank: "2" } });
  await put(one, "c", "x", { tags: { project: "other", rank: "2" } });
  await put(two, "d", "x", { tags: { project, rank: "3" } });
  const found = async (client, expression) =>
    (await collect(client.findBlobsByTags(expression))).map(({ name }) => name).sort();

  const service = serviceClient();
  assert.deepEqual(await found(service, `"project"='${project}'`), ["a", "b", "d"]);
  assert.deepEqual(await found(service, `"project"='${project}' AND "rank">='2'`), ["b", "d"]);
  assert.deepEqual(await found(service, `@container='${two.containerName}' AND "project"='${project}'`), ["d"]);
  assert.deepEqual(await found(one, `"project"='${project}'`), ["a", "b"]);
  const names = [];
  for await (const page of one.findBlobsByTags(`"project"='${project}'`).byPage({ maxPageSize: 1 })) {
    names.push(...page.blobs.map(({ name }) => name));
  }
  assert.deepEqual(names, ["a", "b"]);
  await one.getBlobClient("a").setTags({ project: "other" });
  await one.deleteBlob("b");
  assert.deepEqual(await found(one, `"project"='${project}'`), []);
  await refusedWith(400, found(service, "project="));
});

scenario("blob-tag-conditions", "reads and writes may depend on tags", async (t) => {
  const blob = await freshBlob(t, "text", { tags: { state: "draft" } });
  const [draft, final] = ["draft", "final"].map((state) => ({ conditions: { tagConditions: `"state"='${state}'` } }));
  assert.equal((await bytesOf(blob.download(0, undefined, draft))).toString(), "text");
  await refused(412, "ConditionNotMet", blob.download(0, undefined, final));
  await refused(412, "ConditionNotMet", upload(blob, "other", final));
  await refused(412, "ConditionNotMet", blob.setMetadata({ a: "b" }, final));
  await blob.setTags({ state: "final" }, draft);
  await refused(412, "ConditionNotMet", blob.delete(draft));
  await blob.delete(final);
  assert.equal(await blob.exists(), false);
});

scenario("append-seal", "a sealed append blob is read and not appended to", async (t) => {
  const blob = (await freshContainer(t)).getAppendBlobClient("log");
  await blob.create();
  await blob.appendBlock("one", 3);
  assert.ok(!(await blob.getProperties()).isSealed);
  assert.equal((await blob.seal()).isSealed, true);
  await refused(409, "BlobIsSealed", blob.appendBlock("two", 3));
  assert.equal((await blob.getProperties()).isSealed, true);
  assert.equal(await textOf(blob), "one");
  await blob.seal();
});

scenario("incremental-copy", "snapshots of a page blob are copied", async (t) => {
  const container = await freshContainer(t);
  const [source, backup] = ["pages", "backup"].map((name) => container.getPageBlobClient(name));
  await source.create(4 * 512);
  const copied = async (bytes, offset) => {
    await source.uploadPages(bytes, offset, bytes.length);
    const { snapshot } = await source.createSnapshot();
    await backup.startCopyIncremental(source.withSnapshot(snapshot).url);
    const done = await eventually(() => backup.getProperties(), ({ copyStatus }) => copyStatus === "success");
    assert.equal(done.isIncrementalCopy, true);
    return bytesOf(backup.withSnapshot(done.destinationSnapshot).download());
  };
  const [first, second] = [pattern(512, 1), pattern(512, 2)];
  const none = Buffer.alloc(512);
  assert.deepEqual(await copied(first, 0), Buffer.concat([first, none, none, none]));
  assert.deepEqual(await copied(second, 1024), Buffer.concat([first, none, second, none]));
  await refusedWith(409, backup.startCopyIncremental(source.url));
});

scenario("archive-rehydrate", "a blob of the archive is read after it is rehydrated", async (t) => {
  const blob = await freshBlob(t, "text");
  await blob.setAccessTier("Archive");
  assert.equal((await blob.getProperties()).accessTier, "Archive");
  await refused(409, "BlobArchived", blob.download());
  await blob.setAccessTier("Hot", { rehydratePriority: "High" });
  const { accessTier, archiveStatus } = await blob.getProperties();
  assert.ok(accessTier === "Hot" || archiveStatus === "rehydrate-pending-to-hot", archiveStatus);
  await eventually(() => blob.getProperties(), ({ accessTier }) => accessTier === "Hot");
  assert.equal(await textOf(blob), "text");
});
