package larimar.sdk;

import com.azure.core.util.Context;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobContainerProperties;
import com.azure.storage.blob.models.BlobHttpHeaders;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.options.BlobBreakLeaseOptions;
import com.azure.storage.blob.specialized.BlobLeaseClient;
import com.azure.storage.blob.specialized.BlobLeaseClientBuilder;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.io.ByteArrayInputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/** Leases of containers and blobs. */
class LeasesTest extends BlobFixture {
    private static final String ONE = "11111111-1111-4111-8111-111111111111";
    private static final String TWO = "22222222-2222-4222-8222-222222222222";
    private static final int INFINITE = -1;

    /** What a lease's life is, whatever was leased; in the end it is leased under the second id. */
    private void life(Function<String, BlobLeaseClient> as, Supplier<String> state) {
        BlobLeaseClient one = as.apply(ONE);
        BlobLeaseClient two = as.apply(TWO);
        refused(400, "InvalidHeaderValue", () -> one.acquireLease(14), "a lease of 14 seconds");
        refused(400, "InvalidHeaderValue", () -> one.acquireLease(61), "a lease of 61 seconds");
        same(ONE, one.acquireLease(INFINITE), "the id");
        same("locked leased infinite", state.get(), "an infinite lease");
        one.acquireLease(60);
        same("locked leased fixed", state.get(), "a lease of a minute");
        refused(409, "LeaseAlreadyPresent", () -> two.acquireLease(INFINITE), "acquire by another");
        refused(409, "LeaseIdMismatchWithLeaseOperation", two::renewLease, "renew by another");
        refused(409, "LeaseIdMismatchWithLeaseOperation", two::releaseLease, "release by another");
        one.renewLease();
        same(TWO, one.changeLease(TWO), "the changed id");
        refused(409, "LeaseIdMismatchWithLeaseOperation", () -> as.apply(ONE).renewLease(), "renew by the old id");
        two.releaseLease();
        same("unlocked available null", state.get(), "released");

        BlobLeaseClient three = as.apply(ONE);
        three.acquireLease(INFINITE);
        int left = breakIn(three, 60);
        same(true, left > 0 && left <= 60, "breaking in " + left);
        same("locked breaking null", state.get(), "breaking");
        refused(409, "LeaseIsBreakingAndCannotBeAcquired", () -> three.acquireLease(INFINITE), "acquire while it breaks");
        same(0, breakIn(three, 0), "seconds until it is broken");
        same("unlocked broken null", state.get(), "broken");
        refused(409, "LeaseIsBrokenAndCannotBeRenewed", three::renewLease, "renew a broken lease");
        as.apply(TWO).acquireLease(INFINITE);
        same("locked leased infinite", state.get(), "leased again");
    }

    private static int breakIn(BlobLeaseClient lease, int seconds) {
        return lease.breakLeaseWithResponse(new BlobBreakLeaseOptions().setBreakPeriod(Duration.ofSeconds(seconds)), null, Context.NONE).getValue();
    }

    @Scenario("container-lease")
    void containerLease() {
        BlobContainerClient container = newContainer();
        life(id -> new BlobLeaseClientBuilder().containerClient(container).leaseId(id).buildClient(), () -> {
            BlobContainerProperties properties = container.getProperties();
            return properties.getLeaseStatus() + " " + properties.getLeaseState() + " " + properties.getLeaseDuration();
        });
        refused(412, "LeaseIdMissing", container::delete, "delete without the id");
        refused(412, "LeaseIdMismatchWithContainerOperation", () -> container.deleteWithResponse(conditions().setLeaseId(ONE), null, Context.NONE), "another id");
        put(container, "blob", "text");
        container.deleteWithResponse(conditions().setLeaseId(TWO), null, Context.NONE);
    }

    private static BlobLeaseClient lease(BlockBlobClient blob, String id) {
        return new BlobLeaseClientBuilder().blobClient(blob).leaseId(id).buildClient();
    }

    @Scenario("blob-lease")
    void blobLease() {
        BlockBlobClient blob = newBlob("first");
        String etag = blob.getProperties().getETag();
        life(id -> lease(blob, id), () -> {
            BlobProperties properties = blob.getProperties();
            return properties.getLeaseStatus() + " " + properties.getLeaseState() + " " + properties.getLeaseDuration();
        });
        same(etag, blob.getProperties().getETag(), "ETag after the lease's life");

        List<Consumer<BlobRequestConditions>> writes = List.of(
            given -> upload(blob, upload("second").setRequestConditions(given)),
            given -> blob.setMetadataWithResponse(Map.of(), given, null, Context.NONE),
            given -> blob.setHttpHeadersWithResponse(new BlobHttpHeaders(), given, null, Context.NONE),
            given -> blob.stageBlockWithResponse(blockId("1"), new ByteArrayInputStream(new byte[1]), 1, null, given.getLeaseId(), null, Context.NONE),
            given -> blob.deleteWithResponse(null, given, null, Context.NONE));
        for (Consumer<BlobRequestConditions> write : writes) {
            refused(412, "LeaseIdMissing", () -> write.accept(conditions()), "a write without the id");
            refused(412, "LeaseIdMismatchWithBlobOperation", () -> write.accept(conditions().setLeaseId(ONE)), "a write with another id");
        }
        same("first", text(blob), "content, read without the id");
        download(blob, null, conditions().setLeaseId(TWO), false);
        refused(412, "LeaseIdMismatchWithBlobOperation", () -> download(blob, null, conditions().setLeaseId(ONE), false), "a read with another id");
        writes.forEach(write -> write.accept(conditions().setLeaseId(TWO)));
        same(false, blob.exists(), "exists after the delete with the id");

        BlockBlobClient free = newBlob("text");
        refused(412, "LeaseNotPresentWithBlobOperation", () -> upload(free, upload("x").setRequestConditions(conditions().setLeaseId(ONE))), "an id without a lease");
        refused(409, "LeaseNotPresentWithLeaseOperation", () -> breakIn(lease(free, ONE), 0), "break without a lease");
    }
}
