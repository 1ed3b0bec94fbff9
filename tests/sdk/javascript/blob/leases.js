// Leases of containers and blobs.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { freshBlob, freshContainer, put, refused, scenario, textOf, upload } from "./target.js";

const infinite = -1;
const [one, two] = [randomUUID(), randomUUID()];

async function leaseOf(client) {
  const { leaseStatus, leaseState, leaseDuration } = await client.getProperties();
  return [leaseStatus, leaseState, leaseDuration].join(" ").trim();
}

/** What a lease's life is, whatever was leased. */
async function lifeOf(client) {
  const lease = client.getBlobLeaseClient(one);
  const other = client.getBlobLeaseClient(two);
  await refused(400, "InvalidHeaderValue", lease.acquireLease(14));
  await refused(400, "InvalidHeaderValue", lease.acquireLease(61));
  const { etag } = await client.getProperties();
  assert.equal((await lease.acquireLease(infinite)).leaseId, one);
  assert.equal(await leaseOf(client), "locked leased infinite");
  assert.equal((await lease.acquireLease(60)).leaseId, one);
  assert.equal(await leaseOf(client), "locked leased fixed");
  await refused(409, "LeaseAlreadyPresent", other.acquireLease(infinite));
  await refused(409, "LeaseIdMismatchWithLeaseOperation", other.renewLease());
  await refused(409, "LeaseIdMismatchWithLeaseOperation", other.releaseLease());
  await lease.renewLease();

  assert.equal((await lease.changeLease(two)).leaseId, two);
  await refused(409, "LeaseIdMismatchWithLeaseOperation", client.getBlobLeaseClient(one).renewLease());
  await other.releaseLease();
  assert.equal(await leaseOf(client), "unlocked available");

  const third = client.getBlobLeaseClient(one);
  await third.acquireLease(infinite);
  assert.ok((await third.breakLease(60)).leaseTime > 0);
  assert.equal(await leaseOf(client), "locked breaking");
  await refused(409, "LeaseIsBreakingAndCannotBeAcquired", third.acquireLease(infinite));
  assert.equal((await third.breakLease(0)).leaseTime, 0);
  assert.equal(await leaseOf(client), "unlocked broken");
  await refused(409, "LeaseIsBrokenAndCannotBeRenewed", third.renewLease());
  await client.getBlobLeaseClient(two).acquireLease(infinite);
  assert.equal(await leaseOf(client), "locked leased infinite");
  assert.equal((await client.getProperties()).etag, etag);
}

scenario("container-lease", "acquire, renew, change, release and break", async (t) => {
  const container = await freshContainer(t);
  await lifeOf(container);
  await refused(412, "LeaseIdMissing", container.delete());
  await refused(412, "LeaseIdMismatchWithContainerOperation", container.delete({ conditions: { leaseId: one } }));
  await put(container, "blob");
  await container.delete({ conditions: { leaseId: two } });
});

scenario("blob-lease", "acquire, renew, change, release and break", async (t) => {
  const blob = await freshBlob(t);
  await lifeOf(blob);
  await blob.getBlobLeaseClient(two).releaseLease();
});

scenario("blob-lease", "writes need its id", async (t) => {
  const blob = await freshBlob(t, "first");
  await blob.getBlobLeaseClient(one).acquireLease(infinite);
  const writes = [
    (conditions) => upload(blob, "second", { conditions }),
    (conditions) => blob.setMetadata({ color: "red" }, { conditions }),
    (conditions) => blob.setHTTPHeaders({}, { conditions }),
    (conditions) => blob.stageBlock("YQ==", "x", 1, { conditions }),
    (conditions) => blob.delete({ conditions }),
  ];
  for (const write of writes) {
    await refused(412, "LeaseIdMissing", write({}));
    await refused(412, "LeaseIdMismatchWithBlobOperation", write({ leaseId: two }));
  }
  assert.equal(await textOf(blob), "first");
  assert.equal(await textOf(blob, 0, undefined, { conditions: { leaseId: one } }), "first");
  await refused(412, "LeaseIdMismatchWithBlobOperation", blob.download(0, undefined, { conditions: { leaseId: two } }));
  for (const write of writes) await write({ leaseId: one });
  assert.equal(await blob.exists(), false);
});

scenario("blob-lease", "an id without a lease is refused", async (t) => {
  const blob = await freshBlob(t);
  await refused(412, "LeaseNotPresentWithBlobOperation", upload(blob, "x", { conditions: { leaseId: one } }));
  const lease = blob.getBlobLeaseClient(one);
  await refused(409, "LeaseNotPresentWithLeaseOperation", lease.breakLease(0));
  await refused(404, "BlobNotFound", blob.withSnapshot("2011-03-09T01:42:34.9360000Z").getProperties());
});
