package larimar.sdk;

import com.azure.core.util.Context;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.CopyStatusType;
import com.azure.storage.blob.models.PageRange;
import com.azure.storage.blob.models.RehydratePriority;
import com.azure.storage.blob.models.TaggedBlobItem;
import com.azure.storage.blob.options.BlobSetAccessTierOptions;
import com.azure.storage.blob.options.BlobSetTagsOptions;
import com.azure.storage.blob.options.FindBlobsOptions;
import com.azure.storage.blob.specialized.AppendBlobClient;
import com.azure.storage.blob.specialized.BlobClientBase;
import com.azure.storage.blob.specialized.BlockBlobClient;
import com.azure.storage.blob.specialized.PageBlobClient;
import java.io.ByteArrayInputStream;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;

/** Blobs found by tags, conditions on tags, sealed append blobs, incremental copies, the archive. */
class FeaturesTest extends BlobFixture {
    private static final int PAGE = 512;

    private static String found(Iterable<TaggedBlobItem> items) {
        return StreamSupport.stream(items.spliterator(), false).map(TaggedBlobItem::getName).sorted().collect(Collectors.joining(" "));
    }

    private static void put(BlobContainerClient container, String name, String project, String rank) {
        upload(block(container, name), upload("x").setTags(Map.of("project", project, "rank", rank)));
    }

    /** Asks until a blob's properties are as wanted. */
    private static BlobProperties eventually(BlobClientBase blob, Predicate<BlobProperties> isWanted) {
        for (int n = 0; n < 600; n++) {
            BlobProperties properties = blob.getProperties();
            if (isWanted.test(properties)) {
                return properties;
            }
            try {
                Thread.sleep(100);
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
        throw new AssertionError("the blob's properties did not become as wanted");
    }

    @Scenario("blob-find-by-tags")
    void findByTags() {
        BlobContainerClient one = newContainer();
        BlobContainerClient two = newContainer();
        String name = one.getBlobContainerName();
        String project = "p" + name.substring(Math.max(0, name.length() - 12));
        put(one, "a", project, "1");
        put(one, "b", project, "2");
        put(one, "c", "other", "2");
        put(two, "d", project, "3");
        String mine = "\"project\"='" + project + "'";
        same("a b d", found(service().findBlobsByTags(mine)), "found in the account");
        same("b d", found(service().findBlobsByTags(mine + " AND \"rank\">='2'")), "found by two tags");
        same("d", found(service().findBlobsByTags("@container='" + two.getBlobContainerName() + "' AND " + mine)), "found in a container that is named");
        same("a b", found(one.findBlobsByTags(mine)), "found in a container");
        same("a b", found(one.findBlobsByTags(new FindBlobsOptions(mine).setMaxResultsPerPage(1), null, Context.NONE)), "found in pages");
        block(one, "a").setTags(Map.of("project", "other"));
        block(one, "b").delete();
        same("", found(one.findBlobsByTags(mine)), "found after a change and a delete");
        refusedWith(List.of(400), () -> found(service().findBlobsByTags("project=")), "a bad expression");
    }

    @Scenario("blob-tag-conditions")
    void tagConditions() {
        BlockBlobClient blob = newBlob("");
        upload(blob, upload("text").setTags(Map.of("state", "draft")));
        BlobRequestConditions draft = conditions().setTagsConditions("\"state\"='draft'");
        BlobRequestConditions last = conditions().setTagsConditions("\"state\"='final'");
        same("text", download(blob, null, draft, false).getValue().toString(), "read under a condition that holds");
        refused(412, "ConditionNotMet", () -> download(blob, null, last, false), "read");
        refused(412, "ConditionNotMet", () -> upload(blob, upload("other").setRequestConditions(last)), "overwrite");
        blob.setTagsWithResponse(new BlobSetTagsOptions(Map.of("state", "final")).setRequestConditions(draft), null, Context.NONE);
        refused(412, "ConditionNotMet", () -> blob.deleteWithResponse(null, draft, null, Context.NONE), "delete");
        blob.deleteWithResponse(null, last, null, Context.NONE);
    }

    @Scenario("append-seal")
    void seal() {
        AppendBlobClient log = newContainer().getBlobClient("log").getAppendBlobClient();
        log.create();
        log.appendBlock(new ByteArrayInputStream("one".getBytes()), 3);
        log.seal();
        refused(409, "BlobIsSealed", () -> log.appendBlock(new ByteArrayInputStream("two".getBytes()), 3), "append to a sealed blob");
        same(true, log.getProperties().isSealed(), "sealed");
        same("one", text(log), "content");
        log.seal();
    }

    private byte[] copied(PageBlobClient source, PageBlobClient backup, byte fill, int page) {
        byte[] bytes = new byte[PAGE];
        java.util.Arrays.fill(bytes, fill);
        PageRange range = new PageRange().setStart((long) page * PAGE).setEnd((long) (page + 1) * PAGE - 1);
        source.uploadPages(range, new ByteArrayInputStream(bytes));
        backup.copyIncremental(source.getBlobUrl(), source.createSnapshot().getSnapshotId());
        BlobProperties done = eventually(backup, properties -> properties.getCopyStatus() == CopyStatusType.SUCCESS);
        same(true, done.isIncrementalCopy(), "an incremental copy");
        return bytes(backup.getSnapshotClient(done.getCopyDestinationSnapshot()));
    }

    @Scenario("incremental-copy")
    void incrementalCopy() {
        BlobContainerClient container = newContainer();
        PageBlobClient source = container.getBlobClient("pages").getPageBlobClient();
        PageBlobClient backup = container.getBlobClient("backup").getPageBlobClient();
        source.create(4 * PAGE);
        byte[] expected = new byte[4 * PAGE];
        java.util.Arrays.fill(expected, 0, PAGE, (byte) 1);
        same(true, java.util.Arrays.equals(expected, copied(source, backup, (byte) 1, 0)), "the first copy");
        java.util.Arrays.fill(expected, 2 * PAGE, 3 * PAGE, (byte) 2);
        same(true, java.util.Arrays.equals(expected, copied(source, backup, (byte) 2, 2)), "the second copy");
    }

    @Scenario("archive-rehydrate")
    void archive() {
        BlockBlobClient blob = newBlob("text");
        blob.setAccessTier(AccessTier.ARCHIVE);
        same(AccessTier.ARCHIVE, blob.getProperties().getAccessTier(), "tier");
        refused(409, "BlobArchived", () -> text(blob), "read a blob of the archive");
        blob.setAccessTierWithResponse(new BlobSetAccessTierOptions(AccessTier.HOT).setPriority(RehydratePriority.HIGH), null, Context.NONE);
        eventually(blob, properties -> AccessTier.HOT.equals(properties.getAccessTier()));
        same("text", text(blob), "content");
    }
}
