package larimar.sdk;

import com.azure.core.http.RequestConditions;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobBeginCopySourceRequestConditions;
import com.azure.storage.blob.models.BlobCopyInfo;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobType;
import com.azure.storage.blob.models.CopyStatusType;
import com.azure.storage.blob.models.DeleteSnapshotsOptionType;
import com.azure.storage.blob.options.BlobBeginCopyOptions;
import com.azure.storage.blob.specialized.AppendBlobClient;
import com.azure.storage.blob.specialized.BlobClientBase;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.io.ByteArrayInputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Snapshots of blobs, and copies within the server. */
class CopiesTest extends BlobFixture {
    @Scenario("snapshots")
    void snapshots() {
        BlockBlobClient blob = newBlob("");
        upload(blob, upload("before").setMetadata(Map.of("color", "red")));
        String etag = blob.getProperties().getETag();
        BlobClientBase past = blob.createSnapshot();
        same(true, past.getSnapshotId().matches("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{7}Z"), "a snapshot of " + past.getSnapshotId());
        upload(blob, upload("after"));
        same("before", text(past), "content of the snapshot");
        same("after", text(blob), "content of the blob");
        same(List.of(etag, Map.of("color", "red")), List.of(past.getProperties().getETag(), past.getProperties().getMetadata()), "properties of the snapshot");
        BlobClientBase other = blob.createSnapshotWithResponse(Map.of("color", "blue"), null, null, Context.NONE).getValue();
        same(Map.of("color", "blue"), other.getProperties().getMetadata(), "metadata of its own");
        same(Map.of(), blob.getProperties().getMetadata(), "metadata of the blob");
        refused(404, "BlobNotFound", () -> text(blob.getSnapshotClient("2011-03-09T01:42:34.9360000Z")), "a missing snapshot");

        refused(409, "SnapshotsPresent", blob::delete, "delete a blob with snapshots");
        past.delete();
        refused(404, "BlobNotFound", () -> text(past), "the deleted snapshot");
        same("after", text(other), "the other snapshot");
        blob.deleteWithResponse(DeleteSnapshotsOptionType.ONLY, null, null, Context.NONE);
        refused(404, "BlobNotFound", () -> text(other), "the other snapshot, deleted");
        same("after", text(blob), "the blob without snapshots");
        BlobClientBase last = blob.createSnapshot();
        blob.deleteWithResponse(DeleteSnapshotsOptionType.INCLUDE, null, null, Context.NONE);
        refused(404, "BlobNotFound", () -> text(blob), "the deleted blob");
        refused(404, "BlobNotFound", () -> text(last), "its deleted snapshot");
    }

    private static BlobBeginCopyOptions from(String source) {
        return new BlobBeginCopyOptions(source).setPollInterval(Duration.ofMillis(100));
    }

    private static BlobCopyInfo copy(BlobClientBase target, BlobBeginCopyOptions options) {
        return target.beginCopy(options).waitForCompletion(Duration.ofMinutes(1)).getValue();
    }

    @Scenario("blob-copy")
    void copies() {
        BlobContainerClient container = newContainer();
        BlockBlobClient source = block(container, "source");
        upload(source, upload("text").setHeaders(someHeaders()).setMetadata(Map.of("color", "red")));
        BlockBlobClient target = block(container, "target");
        BlobCopyInfo copy = copy(target, from(source.getBlobUrl()));
        same(CopyStatusType.SUCCESS, copy.getCopyStatus(), "how the copy ended");
        same("text", text(target), "copied content");
        BlobProperties properties = target.getProperties();
        same(headers(someHeaders()), headers(properties), "copied headers");
        same(Map.of("color", "red"), properties.getMetadata(), "copied metadata");
        same(List.of(copy.getCopyId(), source.getBlobUrl(), "4/4", CopyStatusType.SUCCESS),
            List.of(properties.getCopyId(), properties.getCopySource(), properties.getCopyProgress(), properties.getCopyStatus()), "what is told of the copy");
        copy(target, from(source.getBlobUrl()).setMetadata(Map.of("color", "blue")));
        same(Map.of("color", "blue"), target.getProperties().getMetadata(), "other metadata");

        BlobClientBase past = source.createSnapshot();
        upload(source, upload("after"));
        copy(target, from(past.getBlobUrl()));
        same("text", text(target), "copy of a snapshot");
        copy(source, from(past.getBlobUrl()));
        same("text", text(source), "a snapshot copied over its blob");
        AppendBlobClient log = container.getBlobClient("log").getAppendBlobClient();
        log.create();
        log.appendBlock(new ByteArrayInputStream("line".getBytes()), 4);
        BlockBlobClient other = block(container, "log copy");
        copy(other, from(log.getBlobUrl()));
        same(List.of(BlobType.APPEND_BLOB, "line"), List.of(other.getProperties().getBlobType(), text(other)), "copy of an append blob");

        refused(412, "SourceConditionNotMet", () -> copy(target, from(source.getBlobUrl())
            .setSourceRequestConditions(new BlobBeginCopySourceRequestConditions().setIfMatch(WRONG_ETAG))), "a condition on the source");
        refusedWith(List.of(412), () -> copy(target, from(source.getBlobUrl()).setDestinationRequestConditions(conditions().setIfMatch(WRONG_ETAG))),
            "a condition on the target");
        refused(409, "BlobAlreadyExists", () -> copy(target, from(source.getBlobUrl()).setDestinationRequestConditions(conditions().setIfNoneMatch("*"))),
            "a copy that must not replace");
        refusedWith(List.of(404), () -> copy(target, from(block(container, "missing").getBlobUrl())), "a missing source");
        same("text", text(target), "the target after the refusals");

        BlockBlobClient direct = block(container, "direct");
        direct.copyFromUrl(readable(source));
        same("text", text(direct), "a copy at once");
        direct.uploadFromUrl(readable(source), true);
        same("text", text(direct), "an upload from a URL");
        refused(412, "SourceConditionNotMet", () -> direct.copyFromUrlWithResponse(readable(source), null, null, new RequestConditions().setIfMatch(WRONG_ETAG), null, null,
            Context.NONE), "a condition on the source of a copy at once");
    }
}
