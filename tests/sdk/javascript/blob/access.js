// Who may do what with blobs: keys, public access, signatures for a blob or a container, access policies. Account
// signatures are in account-access.js.

import assert from "node:assert/strict";
import {
  BlobSASPermissions, ContainerSASPermissions, StorageSharedKeyCredential, generateBlobSASQueryParameters,
} from "@azure/storage-blob";
import {
  account, bytesOf, collect, farAhead, freshBlob, freshContainer, keyCredential, longAgo, namesOf, put, refused,
  sasService, scenario, serviceClient, textOf, upload,
} from "./target.js";

scenario("blob-bad-signature", "a wrong key is refused", async (t) => {
  const { containerName } = await freshContainer(t);
  const wrong = serviceClient(
    new StorageSharedKeyCredential(account, Buffer.from("not the key").toString("base64")));
  const container = wrong.getContainerClient(containerName);
  await refused(403, "AuthenticationFailed", collect(wrong.listContainers()));
  await refused(403, "AuthenticationFailed", container.create());
  await refused(403, "AuthenticationFailed", collect(container.listBlobsFlat()));
  await refused(403, "AuthenticationFailed", put(container, "blob"));
  await refused(403, "AuthenticationFailed", container.getBlobClient("blob").getProperties());
  await refused(403, "AuthenticationFailed", container.delete());
});

/** Somebody without credentials is told nothing, or to bring some. */
async function refusedToStrangers(call) {
  const status = await call.then(() => "allowed", (error) => error.statusCode);
  assert.ok([401, 403, 404].includes(status), `${status}`);
}

scenario("public-access", "anonymous reads as far as a container allows", async (t) => {
  const owner = await freshContainer(t);
  await put(owner, "blob", "text");
  const container = sasService().getContainerClient(owner.containerName);
  const blob = container.getBlockBlobClient("blob");
  const list = async () => namesOf(await collect(container.listBlobsFlat()));
  const access = async () => (await owner.getProperties()).blobPublicAccess;

  assert.equal(await access(), undefined);
  await refusedToStrangers(textOf(blob));
  await refusedToStrangers(list());

  await owner.setAccessPolicy("blob");
  assert.equal(await access(), "blob");
  assert.equal(await textOf(blob), "text");
  await blob.getProperties();
  await refusedToStrangers(list());

  await owner.setAccessPolicy("container");
  assert.equal(await access(), "container");
  assert.deepEqual(await list(), ["blob"]);
  await container.getProperties();
  await refusedToStrangers(upload(blob, "other"));
  await refusedToStrangers(blob.delete());
  await refusedToStrangers(container.delete());
  await refusedToStrangers(collect(sasService().listContainers()));

  await owner.setAccessPolicy();
  await refusedToStrangers(textOf(blob));
});

scenario("public-access", "a container is public from the start", async (t) => {
  const owner = await freshContainer(t, { access: "container" });
  await put(owner, "blob", "text");
  const blob = sasService().getContainerClient(owner.containerName).getBlobClient("blob");
  assert.equal(await textOf(blob), "text");
});

const start = new Date("2021-06-08T02:05:09Z");

scenario("container-acl", "policies are set, read back and cleared", async (t) => {
  const container = await freshContainer(t);
  const policies = async () => (await container.getAccessPolicy()).signedIdentifiers;
  assert.deepEqual(await policies(), []);
  const set = [
    { id: "whole", accessPolicy: { startsOn: start, expiresOn: farAhead, permissions: "racwdl" } },
    { id: "only permission", accessPolicy: { permissions: "r" } },
    { id: "x".repeat(64), accessPolicy: { startsOn: start, expiresOn: farAhead, permissions: "w" } },
  ];
  await container.setAccessPolicy("blob", set);
  assert.deepEqual(await policies(), set);
  assert.equal((await container.getAccessPolicy()).blobPublicAccess, "blob");
  await container.setAccessPolicy(undefined, [{ id: "other", accessPolicy: { permissions: "d" } }]);
  assert.deepEqual((await policies()).map(({ id }) => id), ["other"]);
  assert.equal((await container.getAccessPolicy()).blobPublicAccess, undefined);
  await container.setAccessPolicy();
  assert.deepEqual(await policies(), []);
});

scenario("container-acl", "wrong policies are refused and change nothing", async (t) => {
  const container = await freshContainer(t);
  const policy = (id, permissions = "r") => ({ id, accessPolicy: { startsOn: start, expiresOn: farAhead, permissions } });
  const set = (...policies) => container.setAccessPolicy(undefined, policies);
  await set(policy("kept"));
  await refused(400, "InvalidXmlDocument", set(...Array.from({ length: 6 }, (_, n) => policy(`id${n}`))));
  await refused(400, "InvalidXmlDocument", set(policy("x".repeat(65))));
  await refused(400, "InvalidXmlDocument", set(policy("id", "z")));
  assert.deepEqual((await container.getAccessPolicy()).signedIdentifiers.map(({ id }) => id), ["kept"]);
});

/** A client for the blob that holds nothing but a blob SAS. */
function bySas({ containerName, name: blobName }, permissions, more = {}) {
  const values = {
    containerName, blobName, permissions: BlobSASPermissions.parse(permissions), expiresOn: farAhead, ...more,
  };
  const token = generateBlobSASQueryParameters(values, keyCredential).toString();
  return sasService(token).getContainerClient(containerName).getBlockBlobClient(blobName);
}

scenario("blob-sas", "it allows what it names and refuses the rest", async (t) => {
  const blob = await freshBlob(t);
  const calls = [
    ["r", (client) => textOf(client)],
    ["r", (client) => client.getProperties()],
    ["w", (client) => client.setMetadata({ color: "red" })],
    ["w", (client) => client.stageBlock("YQ==", "x", 1)],
    ["t", (client) => client.setTags({ kind: "test" })],
    ["cw", (client) => client.createSnapshot()],
    ["d", async (client) => {
      await client.delete({ deleteSnapshots: "include" });
      await upload(blob, "text");
    }],
  ];
  for (const permissions of ["r", "c", "w", "t", "d", "racwdt"]) {
    const client = bySas(blob, permissions);
    for (const [needed, call] of calls) {
      if ([...needed].some((letter) => permissions.includes(letter))) await call(client);
      else await refused(403, "AuthorizationPermissionMismatch", call(client));
    }
  }
});

scenario("blob-sas", "to create is not to overwrite", async (t) => {
  const blob = await freshBlob(t, "first");
  await refused(403, "UnauthorizedBlobOverwrite", upload(bySas(blob, "c"), "second"));
  await refused(403, "AuthorizationPermissionMismatch", upload(bySas(blob, "r"), "second"));
  assert.equal(await textOf(blob), "first");
  await upload(bySas(blob, "w"), "second");
  await blob.delete();
  await upload(bySas(blob, "c"), "third");
  assert.equal(await textOf(blob), "third");
});

scenario("blob-sas", "it overrides headers", async (t) => {
  const blob = await freshBlob(t, "text", { blobHTTPHeaders: { blobContentType: "text/plain" } });
  const download = await bySas(blob, "r", {
    cacheControl: "no-store", contentDisposition: "attachment; filename=a.bin", contentEncoding: "identity",
    contentLanguage: "fr", contentType: "application/x-other",
  }).download();
  await bytesOf(download);
  assert.deepEqual([download.contentType, download.contentLanguage], ["application/x-other", "fr"]);
  assert.deepEqual([download.contentDisposition, download.cacheControl], ["attachment; filename=a.bin", "no-store"]);
  assert.equal(download.contentEncoding, "identity");
  assert.equal((await blob.getProperties()).contentType, "text/plain");
});

scenario("blob-sas", "time, address and protocol are checked", async (t) => {
  const blob = await freshBlob(t);
  const read = (more) => textOf(bySas(blob, "r", more));
  assert.equal(await read({ startsOn: longAgo }), "text");
  assert.equal(await read({ ipRange: { start: "127.0.0.1" } }), "text");
  assert.equal(await read({ protocol: "https,http" }), "text");
  await refused(403, "AuthenticationFailed", read({ expiresOn: longAgo }));
  await refused(403, "AuthenticationFailed", read({ startsOn: new Date("2110-01-01T00:00:00Z") }));
  await refused(403, "AuthorizationSourceIPMismatch", read({ ipRange: { start: "10.1.2.3" } }));
  await refused(403, "AuthorizationProtocolMismatch", read({ protocol: "https" }));
});

scenario("blob-sas", "it is for its blob, or its snapshot", async (t) => {
  const blob = await freshBlob(t, "before");
  const { snapshot } = await blob.createSnapshot();
  await upload(blob, "after");
  const container = serviceClient().getContainerClient(blob.containerName);
  const other = await put(container, "other");
  const token = new URL(bySas(blob, "rwd").url).search.slice(1);
  const holder = sasService(token).getContainerClient(blob.containerName);
  assert.equal(await textOf(holder.getBlobClient(blob.name)), "after");
  await refused(403, "AuthenticationFailed", textOf(holder.getBlobClient(other.name)));
  await refused(403, "AuthenticationFailed", collect(holder.listBlobsFlat()));

  const past = bySas(blob, "r", { snapshotTime: snapshot }).withSnapshot(snapshot);
  assert.equal(await textOf(past), "before");
});

/** A client of the container that holds nothing but a container SAS. */
function byContainerSas({ containerName }, permissions, more = {}) {
  const granted = permissions && ContainerSASPermissions.parse(permissions);
  const values = { containerName, permissions: granted, expiresOn: farAhead, ...more };
  return sasService(generateBlobSASQueryParameters(values, keyCredential).toString()).getContainerClient(containerName);
}

scenario("container-sas", "it reaches the container's blobs and their list", async (t) => {
  const container = await freshContainer(t);
  const mismatch = (call) => refused(403, "AuthorizationPermissionMismatch", call);
  await put(byContainerSas(container, "c"), "dir/one", "text");
  await put(byContainerSas(container, "w"), "two");
  assert.equal(await textOf(byContainerSas(container, "r").getBlobClient("dir/one")), "text");
  assert.deepEqual(namesOf(await collect(byContainerSas(container, "l").listBlobsFlat())), ["dir/one", "two"]);
  const append = byContainerSas(container, "ac").getAppendBlobClient("log");
  await append.create();
  await append.appendBlock("line", 4);

  await mismatch(put(byContainerSas(container, "rl"), "three"));
  await mismatch(collect(byContainerSas(container, "rcwd").listBlobsFlat()));
  await mismatch(textOf(byContainerSas(container, "lcwd").getBlobClient("two")));
  await mismatch(byContainerSas(container, "rcwl").deleteBlob("two"));
  await byContainerSas(container, "d").deleteBlob("two");
  assert.equal(await container.getBlobClient("two").exists(), false);
});

scenario("container-sas", "it reaches nothing else", async (t) => {
  const [container, other] = [await freshContainer(t), await freshContainer(t)];
  await put(other, "blob");
  const all = byContainerSas(container, "racwdl");
  const token = new URL(all.url).search.slice(1);
  const strayed = sasService(token).getContainerClient(other.containerName);
  await refused(403, "AuthenticationFailed", textOf(strayed.getBlobClient("blob")));
  await refused(403, "AuthenticationFailed", collect(strayed.listBlobsFlat()));
  await refused(403, "AuthenticationFailed", collect(sasService(token).listContainers()));
  await refused(403, "AuthorizationFailure", all.delete());
  await refused(403, "AuthorizationFailure", all.setMetadata({ color: "red" }));
  await refused(403, "AuthorizationFailure", all.getAccessPolicy());
  await refused(403, "AuthenticationFailed", collect(byContainerSas(container, "l", { expiresOn: longAgo }).listBlobsFlat()));
  assert.equal(await container.exists(), true);
});

scenario("blob-stored-policy", "a SAS follows its policy until it is removed", async (t) => {
  const container = await freshContainer(t);
  await put(container, "blob", "text");
  const client = byContainerSas(container, undefined, { identifier: "policy", expiresOn: undefined });
  const read = () => textOf(client.getBlobClient("blob"));
  const set = (permissions, expiresOn = farAhead) =>
    container.setAccessPolicy(undefined, [{ id: "policy", accessPolicy: { startsOn: longAgo, expiresOn, permissions } }]);
  await refused(403, "AuthenticationFailed", read());
  await set("r");
  assert.equal(await read(), "text");
  await refused(403, "AuthorizationPermissionMismatch", put(client, "other"));
  await set("cw");
  await put(client, "other");
  await refused(403, "AuthorizationPermissionMismatch", read());
  await set("r", longAgo);
  await refused(403, "AuthenticationFailed", read());
  await set("rl");
  assert.deepEqual(namesOf(await collect(client.listBlobsFlat())), ["blob", "other"]);
  await container.setAccessPolicy();
  await refused(403, "AuthenticationFailed", read());
});
