package larimar.sdk;

import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.BlobDownloadContentResponse;
import com.azure.storage.blob.models.BlobHttpHeaders;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobType;
import com.azure.storage.blob.models.LeaseStateType;
import com.azure.storage.blob.models.LeaseStatusType;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.time.OffsetDateTime;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Block blobs as a whole: content, names, properties, headers, metadata, overwriting. */
class BlobsTest extends BlobFixture {
    @Scenario("block-blob-roundtrip")
    void roundtrip() {
        BlobContainerClient container = newContainer();
        for (int length : List.of(0, 1, 4 << 10, 5 << 20)) {
            byte[] content = pattern(length);
            BlockBlobClient blob = block(container, "length-" + length);
            blob.upload(BinaryData.fromBytes(content));
            same((long) length, blob.getProperties().getBlobSize(), "length");
            sameBytes(content, bytes(blob), length + " bytes");
        }
        BlockBlobClient missing = block(container, "missing");
        refused(404, "BlobNotFound", () -> text(missing), "download");
        refused(404, "BlobNotFound", missing::getProperties, "properties");
        refused(404, "BlobNotFound", missing::delete, "delete");
        refused(404, "BlobNotFound", () -> missing.setMetadata(Map.of()), "set metadata");
        same(false, missing.exists(), "exists");
        same(false, missing.deleteIfExists(), "delete if it is there");
        BlockBlobClient doomed = put(container, "doomed", "text");
        doomed.delete();
        refused(404, "BlobNotFound", () -> text(doomed), "download of a deleted blob");
    }

    @Scenario("blob-names")
    void names() {
        BlobContainerClient container = newContainer();
        List<String> names = List.of("a", "a/b/c", "a/b/", "Case", "case", "with space", "100%", "%41", "a+b", "a&b=c", "q?mark", "#hash", "quote'and\"quote",
            "comma,semi;colon:", "(brackets)[]{}", "na\u00efve/\u65e5\u672c\u8a9e \ud83d\ude00", "~tilde!*$@^`|", "<tag>", "x".repeat(1024));
        names.forEach(name -> put(container, name, name));
        names.forEach(name -> same(name, text(container.getBlobClient(name)), "text"));
        same(names.stream().sorted().toList(), names(container.listBlobs()).stream().sorted().toList(), "listed names");
        names.forEach(name -> container.getBlobClient(name).delete());
        same(List.of(), names(container.listBlobs()), "names in the end");
    }

    @Scenario("blob-properties")
    void properties() {
        BlockBlobClient blob = newBlob("");
        upload(blob, upload("0123456789").setHeaders(new BlobHttpHeaders().setContentType("text/plain")));
        BlobProperties properties = blob.getProperties();
        same(List.of(10L, "text/plain", BlobType.BLOCK_BLOB, LeaseStateType.AVAILABLE, LeaseStatusType.UNLOCKED, true, AccessTier.HOT, true),
            List.of(properties.getBlobSize(), properties.getContentType(), properties.getBlobType(), properties.getLeaseState(),
                properties.getLeaseStatus(), properties.isServerEncrypted(), properties.getAccessTier(), properties.isAccessTierInferred()), "properties");
        sameBytes(md5("0123456789".getBytes()), properties.getContentMd5(), "MD5");
        BlobDownloadContentResponse answer = download(blob, null, null, false);
        same("0123456789", answer.getValue().toString(), "content");
        same(List.of(10L, "text/plain", properties.getETag(), properties.getLastModified(), BlobType.BLOCK_BLOB),
            List.of(answer.getDeserializedHeaders().getContentLength(), answer.getDeserializedHeaders().getContentType(),
                answer.getDeserializedHeaders().getETag(), answer.getDeserializedHeaders().getLastModified(), answer.getDeserializedHeaders().getBlobType()),
            "headers of the download");

        Set<String> etags = new HashSet<>(Set.of(properties.getETag()));
        upload(blob, upload("other"));
        same(true, etags.add(blob.getProperties().getETag()), "another ETag");
        OffsetDateTime created = blob.getProperties().getCreationTime();
        List<Runnable> changes = List.of(() -> blob.setMetadata(Map.of("a", "b")), () -> blob.setHttpHeaders(new BlobHttpHeaders()));
        for (Runnable change : changes) {
            change.run();
            same(true, etags.add(blob.getProperties().getETag()), "another ETag");
        }
        same(created, blob.getProperties().getCreationTime(), "time of creation in the end");
    }

    @Scenario("blob-http-headers")
    void httpHeaders() {
        BlockBlobClient blob = newBlob("");
        BlobHttpHeaders headers = someHeaders();
        upload(blob, upload("text").setHeaders(headers).setMetadata(Map.of("kept", "yes")));
        same(headers(headers), headers(blob.getProperties()), "headers of the upload");
        BlobDownloadContentResponse answer = download(blob, null, null, false);
        same(headers.getContentLanguage() + headers.getContentDisposition(),
            answer.getDeserializedHeaders().getContentLanguage() + answer.getDeserializedHeaders().getContentDisposition(), "headers of a download");
        headers.setContentType("text/plain").setContentLanguage("fr");
        blob.setHttpHeaders(headers);
        same(headers(headers), headers(blob.getProperties()), "changed headers");
        same(Map.of("kept", "yes"), blob.getProperties().getMetadata(), "metadata");
        blob.setHttpHeaders(new BlobHttpHeaders().setCacheControl("private"));
        String rest = headers(blob.getProperties());
        same(true, rest.endsWith("|null|null|null|private"), "headers after setting one: " + rest);
        same("text", text(blob), "content");
    }

    @Scenario("blob-metadata")
    void metadata() {
        BlockBlobClient blob = newBlob("");
        upload(blob, upload("text").setMetadata(Map.of("color", "red", "size", "xl")));
        same(Map.of("color", "red", "size", "xl"), blob.getProperties().getMetadata(), "metadata of the upload");
        same(Map.of("color", "red", "size", "xl"), download(blob, null, null, false).getDeserializedHeaders().getMetadata(), "metadata of a download");
        blob.setMetadata(Map.of("shape", "round, or so"));
        same(Map.of("shape", "round, or so"), blob.getProperties().getMetadata(), "replaced metadata");
        refused(400, "InvalidMetadata", () -> blob.setMetadata(Map.of("not-a-name", "x")), "a bad name");
        refused(400, "InvalidMetadata", () -> upload(blob, upload("other").setMetadata(Map.of("1st", "x"))), "an upload with a bad name");
        refused(400, "MetadataTooLarge", () -> blob.setMetadata(Map.of("large", "x".repeat((8 << 10) + 1))), "more than 8 KiB");
        same(Map.of("shape", "round, or so"), blob.getProperties().getMetadata(), "metadata after the refusals");
        blob.setMetadata(Map.of());
        same(Map.of(), blob.getProperties().getMetadata(), "cleared metadata");
        same("text", text(blob), "content");
    }

    @Scenario("blob-overwrite")
    void overwrite() {
        BlockBlobClient blob = newBlob("");
        upload(blob, upload("long first text").setHeaders(someHeaders()).setMetadata(Map.of("color", "red")));
        refused(409, "BlobAlreadyExists", () -> blob.upload(BinaryData.fromString("second")), "an upload that must not replace");
        same("long first text", text(blob), "content after the refusal");
        blob.upload(BinaryData.fromString("short"), true);
        same("short", text(blob), "content");
        same(Map.of(), blob.getProperties().getMetadata(), "metadata");
        same("application/octet-stream|null|null|null|null", headers(blob.getProperties()), "headers");
        blob.deleteWithResponse(null, null, null, Context.NONE);
        blob.upload(BinaryData.fromString("third"));
        same("third", text(blob), "content in the end");
    }
}
