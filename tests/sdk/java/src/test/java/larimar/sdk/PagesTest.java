package larimar.sdk;

import com.azure.core.util.Context;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.AppendBlobItem;
import com.azure.storage.blob.models.AppendBlobRequestConditions;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobType;
import com.azure.storage.blob.models.PageBlobRequestConditions;
import com.azure.storage.blob.models.PageRange;
import com.azure.storage.blob.models.SequenceNumberActionType;
import com.azure.storage.blob.options.AppendBlobCreateOptions;
import com.azure.storage.blob.options.PageBlobCreateOptions;
import com.azure.storage.blob.specialized.AppendBlobClient;
import com.azure.storage.blob.specialized.PageBlobClient;
import java.io.ByteArrayInputStream;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Append blobs and page blobs. */
class PagesTest extends BlobFixture {
    private static final int PAGE = 512;

    private static AppendBlobItem append(AppendBlobClient log, String text, AppendBlobRequestConditions conditions) {
        return log.appendBlockWithResponse(new ByteArrayInputStream(text.getBytes()), text.length(), null, conditions, null, Context.NONE).getValue();
    }

    private static AppendBlobRequestConditions at(long position, long size) {
        return new AppendBlobRequestConditions().setAppendPosition(position).setMaxSize(size);
    }

    @Scenario("append-blob")
    void appendBlob() {
        BlobContainerClient container = newContainer();
        AppendBlobClient log = container.getBlobClient("log").getAppendBlobClient();
        refused(404, "BlobNotFound", () -> append(log, "early", null), "append before the create");
        log.createWithResponse(new AppendBlobCreateOptions().setMetadata(Map.of("color", "red")), null, Context.NONE);
        same("", text(log), "content of a new blob");
        AppendBlobItem first = append(log, "one,", null);
        same(List.of("0", 1), List.of(first.getBlobAppendOffset(), first.getBlobCommittedBlockCount()), "first append");
        AppendBlobItem again = append(log, "two,", null);
        same(List.of("4", 2), List.of(again.getBlobAppendOffset(), again.getBlobCommittedBlockCount()), "second append");
        same("one,two,", text(log), "content");
        BlobProperties properties = log.getProperties();
        same(List.of(BlobType.APPEND_BLOB, 8L, 2, again.getETag(), Map.of("color", "red")),
            List.of(properties.getBlobType(), properties.getBlobSize(), properties.getCommittedBlockCount(), properties.getETag(), properties.getMetadata()), "properties");

        refused(412, "AppendPositionConditionNotMet", () -> append(log, "x", at(4, 100)), "another position");
        refused(412, "MaxBlobSizeConditionNotMet", () -> append(log, "x", at(8, 8)), "a smaller size");
        append(log, "3", at(8, 9));
        refused(412, "ConditionNotMet", () -> append(log, "x", new AppendBlobRequestConditions().setIfMatch(first.getETag())), "a stale ETag");
        same("one,two,3", text(log), "content after the conditions");
        refused(409, "InvalidBlobType", () -> block(container, "log").stageBlock(blockId("1"), new ByteArrayInputStream(new byte[1]), 1), "a block of an append blob");
        put(container, "block", "text");
        refused(409, "InvalidBlobType", () -> append(container.getBlobClient("block").getAppendBlobClient(), "x", null), "append to a block blob");
        refused(409, "BlobAlreadyExists", log::create, "a create that must not replace");
        log.create(true);
        same("", text(log), "content after creating it again");
    }

    private PageBlobClient newPages(PageBlobCreateOptions options) {
        PageBlobClient blob = newContainer().getBlobClient("pages").getPageBlobClient();
        blob.createWithResponse(options, null, Context.NONE);
        return blob;
    }

    private static PageRange range(long offset, long count) {
        return new PageRange().setStart(offset).setEnd(offset + count - 1);
    }

    private static void write(PageBlobClient blob, byte[] content, int offset, PageBlobRequestConditions conditions) {
        blob.uploadPagesWithResponse(range(offset, content.length), new ByteArrayInputStream(content), null, conditions, null, Context.NONE);
    }

    /** A blob's written ranges, the last byte of each included. */
    private static String ranges(PageBlobClient blob, BlobRange within) {
        StringBuilder text = new StringBuilder();
        blob.listPageRanges(within).forEach(item -> text.append(item.getRange()).append(' '));
        return text.toString();
    }

    @Scenario("page-blob")
    void pageBlob() {
        PageBlobClient blob = newPages(new PageBlobCreateOptions(8 * PAGE).setMetadata(Map.of("color", "red")));
        byte[] want = new byte[8 * PAGE];
        sameBytes(want, bytes(blob), "content of a new blob");
        same("", ranges(blob, new BlobRange(0)), "ranges of a new blob");
        byte[] content = pattern(8 * PAGE);
        for (int[] span : new int[][] {{PAGE, 3 * PAGE}, {6 * PAGE, 7 * PAGE}, {2 * PAGE, 3 * PAGE}}) {
            System.arraycopy(content, span[0], want, span[0], span[1] - span[0]);
            write(blob, Arrays.copyOfRange(content, span[0], span[1]), span[0], null);
        }
        sameBytes(want, bytes(blob), "content");
        same("bytes=512-1535 bytes=3072-3583 ", ranges(blob, new BlobRange(0)), "ranges");
        same("bytes=512-1023 ", ranges(blob, new BlobRange(0, 2L * PAGE)), "ranges of a part");
        blob.clearPages(range(PAGE, PAGE));
        Arrays.fill(want, PAGE, 2 * PAGE, (byte) 0);
        sameBytes(want, bytes(blob), "content after clearing");
        same("bytes=1024-1535 bytes=3072-3583 ", ranges(blob, new BlobRange(0)), "ranges after clearing");
        same(List.of(BlobType.PAGE_BLOB, 8L * PAGE, Map.of("color", "red")),
            List.of(blob.getProperties().getBlobType(), blob.getProperties().getBlobSize(), blob.getProperties().getMetadata()), "properties");
        refused(416, "InvalidPageRange", () -> write(blob, new byte[2 * PAGE], 7 * PAGE, null), "write past the end");

        // The SDK itself refuses what is misaligned.
        for (int[] span : new int[][] {{1, PAGE}, {0, PAGE - 1}, {100, 412}}) {
            try {
                write(blob, new byte[span[1]], span[0], null);
                note("a write of " + span[1] + " bytes at " + span[0] + " was accepted");
            } catch (IllegalArgumentException refusal) {
                sameBytes(want, bytes(blob), "content after a refused write");
            }
        }
    }

    @Scenario("page-blob-resize")
    void resize() {
        PageBlobClient blob = newPages(new PageBlobCreateOptions(8 * PAGE).setSequenceNumber(5L));
        byte[] content = pattern(8 * PAGE);
        write(blob, content, 0, null);
        blob.resize(2 * PAGE);
        same("bytes=0-1023 ", ranges(blob, new BlobRange(0)), "ranges after shrinking");
        blob.resize(4 * PAGE);
        sameBytes(Arrays.copyOf(Arrays.copyOf(content, 2 * PAGE), 4 * PAGE), bytes(blob), "content after growing");

        same(5L, blob.getProperties().getBlobSequenceNumber(), "sequence number of the create");
        blob.updateSequenceNumber(SequenceNumberActionType.MAX, 3L);
        same(5L, blob.getProperties().getBlobSequenceNumber(), "the greater of two");
        blob.updateSequenceNumber(SequenceNumberActionType.UPDATE, 7L);
        same(7L, blob.getProperties().getBlobSequenceNumber(), "an update");
        same(8L, blob.updateSequenceNumber(SequenceNumberActionType.INCREMENT, null).getBlobSequenceNumber(), "an increment");
        byte[] page = new byte[PAGE];
        for (PageBlobRequestConditions given : List.of(sequence().setIfSequenceNumberEqualTo(7L), sequence().setIfSequenceNumberLessThan(8L),
            sequence().setIfSequenceNumberLessThanOrEqualTo(7L))) {
            refused(412, "SequenceNumberConditionNotMet", () -> write(blob, page, 0, given), "a condition that does not hold");
        }
        for (PageBlobRequestConditions given : List.of(sequence().setIfSequenceNumberEqualTo(8L), sequence().setIfSequenceNumberLessThan(9L),
            sequence().setIfSequenceNumberLessThanOrEqualTo(8L))) {
            attempt(() -> write(blob, page, 0, given), "a condition that holds");
        }
    }

    private static PageBlobRequestConditions sequence() {
        return new PageBlobRequestConditions();
    }
}
