package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.core.http.rest.Response;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.batch.BlobBatch;
import com.azure.storage.blob.batch.BlobBatchClient;
import com.azure.storage.blob.batch.BlobBatchClientBuilder;
import com.azure.storage.blob.batch.BlobBatchStorageException;
import com.azure.storage.blob.models.BlobListDetails;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.DeleteSnapshotsOptionType;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Tags of blobs, and many deletes in one request. */
class TagsTest extends BlobFixture {
    private static Map<String, String> tags(int count) {
        return IntStream.range(0, count).boxed().collect(Collectors.toMap(n -> "key" + n, n -> "" + n));
    }

    @Scenario("blob-tags")
    void tags() {
        BlockBlobClient blob = newBlob("");
        upload(blob, upload("text").setTags(Map.of("kind", "test", "a b", "x+y-z./:=_")));
        same(Map.of("kind", "test", "a b", "x+y-z./:=_"), blob.getTags(), "tags of the upload");
        BlobProperties before = blob.getProperties();
        same(2L, before.getTagCount(), "how many tags");
        for (Map<String, String> tags : List.of(tags(10), Map.of("one", "1"), Map.<String, String>of())) {
            blob.setTags(tags);
            same(tags, blob.getTags(), "tags that were set");
        }
        BlobProperties after = blob.getProperties();
        same(List.of(before.getETag(), before.getLastModified()), List.of(after.getETag(), after.getLastModified()), "ETag and date after setting tags");

        blob.setTags(Map.of("kind", "test"));
        for (Map<String, String> bad : List.of(tags(11), Map.of("", "x"), Map.of("k".repeat(129), "x"), Map.of("k", "v".repeat(257)), Map.of("a#b", "x"))) {
            refusedWith(List.of(400), () -> blob.setTags(bad), "tags " + bad);
        }
        refusedWith(List.of(400), () -> upload(blob, upload("text").setTags(tags(11))), "an upload with eleven tags");
        same(Map.of("kind", "test"), blob.getTags(), "tags after the refusals");
        upload(blob, upload("other"));
        same(Map.of(), blob.getTags(), "tags after overwriting");
    }

    /** Batches are in a package of their own, azure-storage-blob-batch. */
    @Scenario("batch-delete")
    void batchDelete() {
        BlobContainerClient container = newContainer();
        List<String> names = IntStream.range(0, 20).mapToObj(n -> "dir/blob " + n).toList();
        names.forEach(name -> put(container, name, "text"));
        BlobBatchClient client = new BlobBatchClientBuilder(service()).buildClient();
        BlobBatch batch = client.getBlobBatch();
        Function<String, Response<Void>> delete = name -> batch.deleteBlob(block(container, name).getBlobUrl());
        List<Response<Void>> answers = new ArrayList<>(names.subList(0, 10).stream().map(delete).toList());
        Response<Void> missing = delete.apply("missing");
        answers.addAll(names.subList(10, 20).stream().map(delete).toList());
        BlobBatchStorageException told = assertThrows(BlobBatchStorageException.class, () -> client.submitBatch(batch));
        same("BlobNotFound", String.join(" ", batchCodes(told)), "what failed");
        refused(404, "BlobNotFound", missing::getStatusCode, "the missing blob");
        answers.forEach(answer -> same(202, answer.getStatusCode(), "status of a delete"));
        same(List.of(), names(container.listBlobs()), "blobs in the end");

        BlockBlobClient one = put(container, "one", "text");
        one.createSnapshot();
        BlockBlobClient two = put(container, "two", "text");
        BlobBatchClient own = new BlobBatchClientBuilder(container).buildClient();
        own.deleteBlobs(List.of(one.getBlobUrl(), two.getBlobUrl()), DeleteSnapshotsOptionType.INCLUDE).forEach(answer -> same(202, answer.getStatusCode(), "status"));
        same(List.of(), items(container, new ListBlobsOptions().setDetails(new BlobListDetails().setRetrieveSnapshots(true))), "blobs and snapshots in the end");
    }

    private static List<String> batchCodes(BlobBatchStorageException told) {
        List<String> codes = new ArrayList<>();
        told.getBatchExceptions().forEach(error -> codes.add(String.valueOf(error.getErrorCode())));
        return codes;
    }
}
