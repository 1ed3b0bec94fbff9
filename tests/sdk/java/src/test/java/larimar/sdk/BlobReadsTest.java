package larimar.sdk;

import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.blob.models.BlobDownloadContentResponse;
import com.azure.storage.blob.models.BlobDownloadHeaders;
import com.azure.storage.blob.models.BlobHttpHeaders;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.BlockBlobItem;
import com.azure.storage.blob.specialized.AppendBlobClient;
import com.azure.storage.blob.specialized.BlobClientBase;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.io.ByteArrayInputStream;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Reads and writes under conditions, ranges of content, and checksums. */
class BlobReadsTest extends BlobFixture {
    @Scenario("blob-conditions")
    void conditionsOfRequests() {
        BlockBlobClient blob = newBlob("text");
        BlobProperties properties = blob.getProperties();
        String etag = properties.getETag();
        OffsetDateTime changed = properties.getLastModified();
        OffsetDateTime before = changed.minusSeconds(1);
        for (BlobRequestConditions given : List.of(conditions().setIfMatch(etag), conditions().setIfMatch("*"), conditions().setIfNoneMatch(WRONG_ETAG),
            conditions().setIfModifiedSince(before), conditions().setIfUnmodifiedSince(changed))) {
            attempt(() -> download(blob, null, given, false), "a read under a condition that holds");
            attempt(() -> blob.getPropertiesWithResponse(given, null, Context.NONE), "properties under a condition that holds");
        }
        for (BlobRequestConditions given : List.of(conditions().setIfNoneMatch(etag), conditions().setIfModifiedSince(changed))) {
            refused(304, "ConditionNotMet", () -> download(blob, null, given, false), "a read of what did not change");
            refused(304, "ConditionNotMet", () -> blob.getPropertiesWithResponse(given, null, Context.NONE), "properties of what did not change");
        }
        for (BlobRequestConditions given : List.of(conditions().setIfMatch(WRONG_ETAG), conditions().setIfUnmodifiedSince(before))) {
            refused(412, "ConditionNotMet", () -> download(blob, null, given, false), "a read of what changed");
            refused(412, "ConditionNotMet", () -> blob.getPropertiesWithResponse(given, null, Context.NONE), "properties of what changed");
        }
        for (BlobRequestConditions given : List.of(conditions().setIfMatch(WRONG_ETAG), conditions().setIfNoneMatch(etag),
            conditions().setIfModifiedSince(changed), conditions().setIfUnmodifiedSince(before))) {
            refused(412, "ConditionNotMet", () -> upload(blob, upload("other").setRequestConditions(given)), "upload");
            refused(412, "ConditionNotMet", () -> blob.setMetadataWithResponse(Map.of(), given, null, Context.NONE), "metadata");
            refused(412, "ConditionNotMet", () -> blob.setHttpHeadersWithResponse(new BlobHttpHeaders(), given, null, Context.NONE), "headers");
            refused(412, "ConditionNotMet", () -> blob.createSnapshotWithResponse(null, given, null, Context.NONE), "snapshot");
            refused(412, "ConditionNotMet", () -> blob.deleteWithResponse(null, given, null, Context.NONE), "delete");
        }
        same(etag, blob.getProperties().getETag(), "ETag after the refusals");
        upload(blob, upload("other").setRequestConditions(conditions().setIfMatch(etag)));
        same("other", text(blob), "content after an upload with the right ETag");
        blob.deleteWithResponse(null, conditions().setIfMatch("*"), null, Context.NONE);
        refused(412, "ConditionNotMet", () -> upload(blob, upload("again").setRequestConditions(conditions().setIfMatch(etag))), "upload onto nothing");
    }

    @Scenario("blob-ranges")
    void ranges() {
        BlockBlobClient blob = newBlob("0123456789");
        range(blob, new BlobRange(2, 3L), "234", "bytes 2-4/10");
        range(blob, new BlobRange(0, 10L), "0123456789", "bytes 0-9/10");
        range(blob, new BlobRange(7, 100L), "789", "bytes 7-9/10");
        range(blob, new BlobRange(9), "9", "bytes 9-9/10");
        range(blob, new BlobRange(4, 1L), "4", "bytes 4-4/10");
        refused(416, "InvalidRange", () -> download(blob, new BlobRange(10), null, false), "a range from 10");
        refused(416, "InvalidRange", () -> download(blob, new BlobRange(11, 5L), null, false), "a range from 11");
        BlockBlobClient empty = newBlob("");
        refused(416, "InvalidRange", () -> download(empty, new BlobRange(0, 1L), null, false), "a range of nothing");
        refused(416, "InvalidRange", () -> download(empty, new BlobRange(1), null, false), "a range past nothing");
        same("", text(empty), "an empty blob");

        byte[] content = pattern(3000);
        BlockBlobClient blocks = block(newContainer(), "blocks");
        for (int n = 0; n < 3; n++) {
            blocks.stageBlock(blockId("" + n), BinaryData.fromBytes(Arrays.copyOfRange(content, n * 1000, (n + 1) * 1000)));
        }
        blocks.commitBlockList(List.of(blockId("0"), blockId("1"), blockId("2")));
        for (int[] span : new int[][] {{0, 1}, {999, 2}, {500, 2000}, {1000, 1000}, {2999, 1}, {1, 2999}}) {
            sameBytes(Arrays.copyOfRange(content, span[0], span[0] + span[1]),
                download(blocks, new BlobRange(span[0], (long) span[1]), null, false).getValue().toBytes(), "range from " + span[0]);
        }
    }

    private void range(BlobClientBase blob, BlobRange range, String text, String answered) {
        BlobDownloadContentResponse answer = download(blob, range, null, false);
        same(List.of(206, text, answered, (long) text.length()), List.of(answer.getStatusCode(), answer.getValue().toString(),
            answer.getDeserializedHeaders().getContentRange(), answer.getDeserializedHeaders().getContentLength()), "range " + range);
    }

    @Scenario("blob-checksums")
    void checksums() {
        byte[] content = pattern(8 << 10);
        BlockBlobClient blob = block(newContainer(), "sum");
        BlockBlobItem uploaded = blob.upload(BinaryData.fromBytes(content));
        sameBytes(md5(content), uploaded.getContentMd5(), "MD5 of the upload");
        sameBytes(md5(content), blob.getProperties().getContentMd5(), "MD5 of the properties");
        BlobDownloadHeaders range = download(blob, new BlobRange(1000, 4096L), null, true).getDeserializedHeaders();
        sameBytes(md5(Arrays.copyOfRange(content, 1000, 5096)), range.getContentMd5(), "MD5 of the range");
        sameBytes(md5(content), range.getBlobContentMD5(), "MD5 of the blob, with a range");
        same(null, download(blob, new BlobRange(1000, 4096L), null, false).getDeserializedHeaders().getContentMd5(), "MD5 that nobody asked for");
        blob.setHttpHeaders(new BlobHttpHeaders().setContentMd5(md5("else".getBytes())));
        sameBytes(md5("else".getBytes()), blob.getProperties().getContentMd5(), "MD5 that was set");

        byte[] wrong = md5("another".getBytes());
        byte[] right = md5("text".getBytes());
        refused(400, "Md5Mismatch", () -> stage(blob, wrong), "stage with a wrong MD5");
        stage(blob, right);
        AppendBlobClient log = newContainer().getBlobClient("log").getAppendBlobClient();
        log.create();
        refused(400, "Md5Mismatch", () -> append(log, wrong), "append with a wrong MD5");
        append(log, right);
        same("text", text(log), "content of the append blob");
        refused(400, "Md5Mismatch", () -> upload(blob, upload("text").setContentMd5(wrong)), "upload with a wrong MD5");
        sameBytes(content, bytes(blob), "content after the refusal");
    }

    private static void stage(BlockBlobClient blob, byte[] md5) {
        blob.stageBlockWithResponse(blockId("1"), new ByteArrayInputStream("text".getBytes()), 4, md5, null, null, Context.NONE);
    }

    private static void append(AppendBlobClient blob, byte[] md5) {
        blob.appendBlockWithResponse(new ByteArrayInputStream("text".getBytes()), 4, md5, null, null, Context.NONE);
    }
}
