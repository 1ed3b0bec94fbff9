// The account SAS for blobs: by service, resource type and permission.

import assert from "node:assert/strict";
import { AccountSASPermissions, generateAccountSASQueryParameters } from "@azure/storage-blob";
import {
  collect, farAhead, freshContainer, freshName, keyCredential, longAgo, put, refused, sasService, scenario,
  serviceClient, textOf, upload,
} from "./target.js";

/** A client of the account that holds nothing but an account SAS. */
function byAccountSas(resourceTypes, permissions, more = {}) {
  const values = {
    services: "b", resourceTypes, permissions: AccountSASPermissions.parse(permissions), expiresOn: farAhead, ...more,
  };
  return sasService(generateAccountSASQueryParameters(values, keyCredential).toString());
}

scenario("blob-account-sas", "it is limited by resource type and permission", async (t) => {
  const container = await freshContainer(t);
  const blob = await put(container, "blob", "text");
  const of = (service) => service.getContainerClient(container.containerName);
  const blobOf = (service) => of(service).getBlockBlobClient("blob");
  const calls = [
    ["s", "r", (service) => service.getProperties()],
    ["s", "l", (service) => collect(service.listContainers({ prefix: container.containerName }))],
    ["c", "r", (service) => of(service).getProperties()],
    ["c", "w", (service) => of(service).setMetadata({ color: "red" })],
    ["c", "l", (service) => collect(of(service).listBlobsFlat())],
    ["o", "r", (service) => textOf(blobOf(service))],
    ["o", "w", (service) => upload(blobOf(service), "other")],
    ["o", "w", (service) => blobOf(service).setMetadata({ color: "red" })],
    ["o", "t", (service) => blobOf(service).setTags({ kind: "test" })],
    ["o", "d", async (service) => {
      await blobOf(service).delete();
      await upload(blob, "text");
    }],
  ];
  for (const [type, letter, call] of calls) {
    await call(byAccountSas("sco", "rwdlacupt"));
    await call(byAccountSas(type, letter));
    const [otherType, otherLetter] = [type === "s" ? "co" : "s", letter === "r" ? "wdlacupt" : "r"];
    await refused(403, "AuthorizationResourceTypeMismatch", call(byAccountSas(otherType, "rwdlacupt")));
    await refused(403, "AuthorizationPermissionMismatch", call(byAccountSas("sco", otherLetter)));
  }
});

scenario("blob-account-sas", "it creates and deletes containers", async (t) => {
  const name = freshName();
  t.after(() => serviceClient().getContainerClient(name).deleteIfExists());
  await byAccountSas("c", "c").createContainer(name);
  await refused(403, "AuthorizationPermissionMismatch", byAccountSas("c", "c").deleteContainer(name));
  await byAccountSas("c", "d").deleteContainer(name);
  await refused(403, "AuthorizationPermissionMismatch", byAccountSas("c", "rdl").createContainer(name));
});

scenario("blob-account-sas", "it names its service, its time and its protocol", async () => {
  const list = (more) => collect(byAccountSas("s", "l", more).listContainers());
  assert.ok(Array.isArray(await list({ services: "bqt" })));
  await refused(403, "AuthorizationServiceMismatch", list({ services: "qt" }));
  await refused(403, "AuthenticationFailed", list({ expiresOn: longAgo }));
  await refused(403, "AuthorizationProtocolMismatch", list({ protocol: "https" }));
});
