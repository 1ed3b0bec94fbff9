package larimar.sdk;

import com.azure.core.exception.HttpResponseException;
import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.models.BlobDownloadContentResponse;
import com.azure.storage.blob.models.BlobHttpHeaders;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.options.BlockBlobSimpleUploadOptions;
import com.azure.storage.blob.sas.BlobContainerSasPermission;
import com.azure.storage.blob.sas.BlobSasPermission;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.blob.specialized.BlobClientBase;
import com.azure.storage.blob.specialized.BlockBlobClient;
import com.azure.storage.common.StorageSharedKeyCredential;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.function.Executable;

/** What the scenarios of blobs share: clients, fresh containers, content in and out. */
abstract class BlobFixture extends Checks {
    static final String BLOBS = environment("LARIMAR_BLOB_ENDPOINT").replaceAll("/$", "");
    static final String WRONG_ETAG = "\"0x1\"";

    private final List<String> containers = new ArrayList<>();

    /** Drops the containers that a scenario named, whether or not it created them. */
    @AfterEach
    void dropContainers() {
        containers.forEach(name -> service().getBlobContainerClient(name).deleteIfExists());
    }

    static BlobServiceClientBuilder builder() {
        return new BlobServiceClientBuilder().endpoint(BLOBS).retryOptions(noRetries());
    }

    /** A new client of the account, signing with its key. */
    static BlobServiceClient service() {
        return builder().credential(new StorageSharedKeyCredential(ACCOUNT, KEY)).buildClient();
    }

    static BlobServiceClient withToken(String token) {
        return builder().sasToken(token).buildClient();
    }

    static BlobServiceSasSignatureValues blobValues(String permissions) {
        return new BlobServiceSasSignatureValues(AccessTest.FAR_AHEAD, BlobSasPermission.parse(permissions));
    }

    static BlobServiceSasSignatureValues containerValues(String permissions) {
        return new BlobServiceSasSignatureValues(AccessTest.FAR_AHEAD, BlobContainerSasPermission.parse(permissions));
    }

    /** A blob's address with the right to read it. */
    static String readable(BlobClientBase blob) {
        return blob.getBlobUrl() + "?" + blob.generateSas(blobValues("r"));
    }

    /** Fresh for every call; dropped at the end of the scenario. */
    String containerName() {
        return dropLater("java" + freshText());
    }

    String dropLater(String name) {
        containers.add(name);
        return name;
    }

    BlobContainerClient newContainer() {
        return service().createBlobContainer(containerName());
    }

    /** A block blob of a text in a container of its own. */
    BlockBlobClient newBlob(String text) {
        return put(newContainer(), "blob", text);
    }

    static BlockBlobClient block(BlobContainerClient container, String name) {
        return container.getBlobClient(name).getBlockBlobClient();
    }

    static BlockBlobClient put(BlobContainerClient container, String name, String text) {
        BlockBlobClient blob = block(container, name);
        upload(blob, upload(text));
        return blob;
    }

    static BlockBlobSimpleUploadOptions upload(String text) {
        return new BlockBlobSimpleUploadOptions(BinaryData.fromString(text));
    }

    static void upload(BlockBlobClient blob, BlockBlobSimpleUploadOptions options) {
        blob.uploadWithResponse(options, null, Context.NONE);
    }

    static String text(BlobClientBase blob) {
        return blob.downloadContent().toString();
    }

    static byte[] bytes(BlobClientBase blob) {
        return blob.downloadContent().toBytes();
    }

    static BlobDownloadContentResponse download(BlobClientBase blob, BlobRange range, BlobRequestConditions conditions, boolean checksum) {
        return blob.downloadContentWithResponse(null, conditions, range, checksum, null, Context.NONE);
    }

    static List<String> names(Iterable<BlobItem> items) {
        List<String> names = new ArrayList<>();
        items.forEach(item -> names.add(item.getName()));
        return names;
    }

    static List<BlobItem> items(BlobContainerClient container, ListBlobsOptions options) {
        return container.listBlobs(options, null).stream().toList();
    }

    static BlobRequestConditions conditions() {
        return new BlobRequestConditions();
    }

    static BlobHttpHeaders someHeaders() {
        return new BlobHttpHeaders().setContentType("text/html; charset=utf-8").setContentEncoding("identity").setContentLanguage("de, en")
            .setContentDisposition("attachment; filename=\"a b.html\"").setCacheControl("no-cache, max-age=3");
    }

    static String headers(BlobHttpHeaders headers) {
        return headers.getContentType() + "|" + headers.getContentEncoding() + "|" + headers.getContentLanguage() + "|"
            + headers.getContentDisposition() + "|" + headers.getCacheControl();
    }

    static String headers(BlobProperties properties) {
        return properties.getContentType() + "|" + properties.getContentEncoding() + "|" + properties.getContentLanguage() + "|"
            + properties.getContentDisposition() + "|" + properties.getCacheControl();
    }

    /** Bytes that look random and are the same in every run. */
    static byte[] pattern(int length) {
        byte[] bytes = new byte[length];
        new Random(1).nextBytes(bytes);
        return bytes;
    }

    static byte[] md5(byte[] content) {
        try {
            return MessageDigest.getInstance("MD5").digest(content);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    static String blockId(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes());
    }

    void sameBytes(byte[] want, byte[] got, String what) {
        if (!Arrays.equals(want, got)) {
            note(what + ": " + (got == null ? "none" : got.length + " bytes") + ", want " + want.length + " others");
        }
    }

    /** The call is refused with one of these statuses; the code is not part of the promise. */
    void refusedWith(List<Integer> statuses, Executable call, String what) {
        try {
            call.execute();
            note(what + ": was not refused, want " + statuses);
        } catch (HttpResponseException error) {
            same(true, statuses.contains(error.getResponse().getStatusCode()), what + ": " + error.getResponse().getStatusCode());
        } catch (Throwable thrown) {
            note(what + ": got " + thrown + ", want " + statuses);
        }
    }
}
