package larimar.sdk;

import com.azure.core.http.rest.PagedResponse;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobItemProperties;
import com.azure.storage.blob.models.BlobListDetails;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobType;
import com.azure.storage.blob.models.CopyStatusType;
import com.azure.storage.blob.models.LeaseStateType;
import com.azure.storage.blob.models.LeaseStatusType;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.io.ByteArrayInputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** Lists of blobs: flat, by hierarchy, in pages, with what may be included. */
class ListsTest extends BlobFixture {
    private BlobContainerClient filled(List<String> names) {
        BlobContainerClient container = newContainer();
        names.forEach(name -> put(container, name, name));
        return container;
    }

    private static ListBlobsOptions prefix(String prefix) {
        return new ListBlobsOptions().setPrefix(prefix);
    }

    @Scenario("list-blobs")
    void flat() {
        BlobContainerClient container = filled(List.of("\u00e9", "b", "a/2", "a/10", "a/1", "a b", "a", "B/x", "A"));
        same(List.of("A", "B/x", "a", "a b", "a/1", "a/10", "a/2", "b", "\u00e9"), names(container.listBlobs()), "all in order");
        same(List.of("a", "a b", "a/1", "a/10", "a/2"), names(container.listBlobs(prefix("a"), null)), "by a prefix");
        same(List.of("a/1", "a/10"), names(container.listBlobs(prefix("a/1"), null)), "by a longer prefix");
        same(List.of(), names(container.listBlobs(prefix("c"), null)), "by a prefix of nothing");

        BlobContainerClient typed = newContainer();
        BlockBlobClient block = block(typed, "block");
        upload(block, upload("text").setHeaders(someHeaders()).setMetadata(Map.of("color", "red")));
        typed.getBlobClient("append").getAppendBlobClient().create();
        typed.getBlobClient("page").getPageBlobClient().create(1024);
        List<BlobItem> items = typed.listBlobs().stream().toList();
        same(List.of("append", "block", "page"), names(items), "blobs of every type");
        same(List.of(BlobType.APPEND_BLOB, BlobType.BLOCK_BLOB, BlobType.PAGE_BLOB), items.stream().map(item -> item.getProperties().getBlobType()).toList(), "types");
        same(List.of(1024L, 0L), List.of(items.get(2).getProperties().getContentLength(), items.get(2).getProperties().getBlobSequenceNumber()), "a page blob");
        BlobItemProperties listed = items.get(1).getProperties();
        BlobProperties own = block.getProperties();
        same(own.getETag().replace("\"", ""), listed.getETag().replace("\"", ""), "ETag");
        same(List.of(own.getLastModified(), own.getCreationTime()), List.of(listed.getLastModified(), listed.getCreationTime()), "times");
        same(headers(someHeaders()), listed.getContentType() + "|" + listed.getContentEncoding() + "|" + listed.getContentLanguage() + "|"
            + listed.getContentDisposition() + "|" + listed.getCacheControl(), "headers");
        sameBytes(md5("text".getBytes()), listed.getContentMd5(), "MD5");
        same(List.of(4L, LeaseStateType.AVAILABLE, LeaseStatusType.UNLOCKED, AccessTier.HOT, true), List.of(listed.getContentLength(), listed.getLeaseState(),
            listed.getLeaseStatus(), listed.getAccessTier(), listed.isServerEncrypted()), "length, lease, tier, encryption");
        same(true, items.get(1).getMetadata() == null || items.get(1).getMetadata().isEmpty(), "metadata that nobody asked for is absent");
    }

    /** One level; prefixes are in brackets and come where the SDK gives them, after the blobs. */
    private static List<String> level(BlobContainerClient container, String delimiter, String prefix) {
        return texts(container.listBlobsByHierarchy(delimiter, prefix(prefix), null).stream().toList());
    }

    private static List<String> texts(List<BlobItem> items) {
        return items.stream().map(item -> Boolean.TRUE.equals(item.isPrefix()) ? "[" + item.getName() + "]" : item.getName()).toList();
    }

    @Scenario("list-hierarchy")
    void hierarchy() {
        BlobContainerClient container = filled(List.of("a", "a/1", "a/2", "a/b/3", "b/4", "c", "d//5", "e-1"));
        same(List.of("a", "c", "e-1", "[a/]", "[b/]", "[d/]"), level(container, "/", null), "the first level");
        same(List.of("a/1", "a/2", "[a/b/]"), level(container, "/", "a/"), "the level of a/");
        same(List.of("a/b/3"), level(container, "/", "a/b/"), "the level of a/b/");
        same(List.of("[d//]"), level(container, "/", "d/"), "the level of d/");
        same(List.of("a", "[a/]"), level(container, "/", "a"), "what begins with a");
        same(List.of("[e-]"), level(container, "-", "e"), "another delimiter");
        same(List.of(), level(container, "/", "none/"), "the level of nothing");
    }

    @Scenario("list-pages")
    void pages() {
        List<String> names = IntStream.range(0, 25).mapToObj(n -> "blob-%02d".formatted(n)).toList();
        BlobContainerClient container = filled(names);
        ListBlobsOptions tens = prefix("blob").setMaxResultsPerPage(10);
        List<PagedResponse<BlobItem>> pages = container.listBlobs(tens, null).streamByPage().toList();
        same(List.of(10, 10, 5), pages.stream().map(page -> page.getValue().size()).toList(), "sizes of pages");
        same(names, names(container.listBlobs(tens, null)), "all pages");
        BlobContainerClient fresh = service().getBlobContainerClient(container.getBlobContainerName());
        same(names.subList(10, 25), names(fresh.listBlobs(tens, pages.get(0).getContinuationToken(), null)), "pages from a marker, by a new client");

        BlobContainerClient tree = filled(List.of("a", "b/1", "b/2", "b/3", "c", "d/1", "d/2", "e"));
        ListBlobsOptions twos = new ListBlobsOptions().setMaxResultsPerPage(2);
        List<String> seen = new ArrayList<>();
        String marker = null;
        for (int page = 0; page == 0 || marker != null && page < PAGES_MAX; page++) {
            var listed = service().getBlobContainerClient(tree.getBlobContainerName()).listBlobsByHierarchy("/", twos, null);
            PagedResponse<BlobItem> answer = (marker == null ? listed.iterableByPage() : listed.iterableByPage(marker)).iterator().next();
            same(true, answer.getValue().size() <= 2, "a page of two at most");
            seen.addAll(texts(answer.getValue()));
            marker = answer.getContinuationToken();
        }
        same(List.of("[b/]", "[d/]", "a", "c", "e"), seen.stream().sorted().toList(), "pages by hierarchy");
    }

    @Scenario("list-includes")
    void includes() {
        BlobContainerClient container = newContainer();
        BlockBlobClient blob = block(container, "blob");
        upload(blob, upload("text").setMetadata(Map.of("color", "red")));
        String snapshot = blob.createSnapshot().getSnapshotId();
        upload(blob, upload("new").setMetadata(Map.of("color", "blue")).setTags(Map.of("kind", "test", "a b", "1")));
        block(container, "staged").stageBlock(blockId("1"), new ByteArrayInputStream(new byte[1]), 1);
        block(container, "copied").beginCopy(blob.getBlobUrl(), Duration.ofMillis(100)).waitForCompletion(Duration.ofMinutes(1));

        same(List.of("blob", "copied"), names(container.listBlobs()), "without anything");
        List<String> seen = list(container, new BlobListDetails().setRetrieveMetadata(true).setRetrieveSnapshots(true)).stream()
            .map(item -> item.getName() + " " + item.getSnapshot() + " " + item.getMetadata().get("color")).toList();
        same(List.of("blob " + snapshot + " red", "blob null blue", "copied null blue"), seen, "with metadata and snapshots");
        same(List.of("blob", "copied", "staged"), names(list(container, new BlobListDetails().setRetrieveUncommittedBlobs(true))), "with uncommitted blobs");
        BlobItemProperties copied = list(container, new BlobListDetails().setRetrieveCopy(true)).get(1).getProperties();
        same(List.of(CopyStatusType.SUCCESS, blob.getBlobUrl()), List.of(copied.getCopyStatus(), copied.getCopySource()), "with copies");
        BlobItem tagged = list(container, new BlobListDetails().setRetrieveTags(true)).get(0);
        same(Map.of("kind", "test", "a b", "1"), tagged.getTags(), "with tags");
        same(2, tagged.getProperties().getTagCount(), "how many tags");
    }

    private static List<BlobItem> list(BlobContainerClient container, BlobListDetails details) {
        return items(container, new ListBlobsOptions().setDetails(details));
    }
}
