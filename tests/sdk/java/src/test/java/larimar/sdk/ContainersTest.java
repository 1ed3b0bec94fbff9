package larimar.sdk;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.models.BlobContainerItem;
import com.azure.storage.blob.models.BlobContainerListDetails;
import com.azure.storage.blob.models.BlobContainerProperties;
import com.azure.storage.blob.models.LeaseStateType;
import com.azure.storage.blob.models.LeaseStatusType;
import com.azure.storage.blob.models.ListBlobContainersOptions;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The life of containers: connecting, creating, listing, metadata, deleting. */
class ContainersTest extends BlobFixture {
    @Scenario("blob-connection-string")
    void connectionString() {
        String name = newContainer().getBlobContainerName();
        String connection = "DefaultEndpointsProtocol=http;AccountName=" + ACCOUNT + ";AccountKey=" + KEY + ";BlobEndpoint=" + BLOBS + ";";
        BlobContainerClient container = new BlobServiceClientBuilder().connectionString(connection).buildClient().getBlobContainerClient(name);
        same("hello", text(put(container, "greeting", "hello")), "text");
        same("http://127.0.0.1:10000/devstoreaccount1",
            new BlobServiceClientBuilder().connectionString("UseDevelopmentStorage=true").buildClient().getAccountUrl(), "development storage");
    }

    @Scenario("container-lifecycle")
    void lifecycle() {
        BlobServiceClient service = service();
        String name = containerName();
        BlobContainerClient container = service.getBlobContainerClient(name);
        same(false, container.exists(), "exists before the create");
        container.createWithResponse(Map.of("color", "red"), null, null, Context.NONE);
        refused(409, "ContainerAlreadyExists", container::create, "create again");
        same(false, container.createIfNotExists(), "create if it is not there");
        BlobContainerProperties properties = container.getProperties();
        same(Map.of("color", "red"), properties.getMetadata(), "metadata");
        same(List.of(LeaseStatusType.UNLOCKED, LeaseStateType.AVAILABLE, false, false),
            List.of(properties.getLeaseStatus(), properties.getLeaseState(), properties.hasLegalHold(), properties.hasImmutabilityPolicy()), "lease, hold, policy");
        same(null, properties.getBlobPublicAccess(), "public access");

        BlockBlobClient blob = put(container, "blob", "text");
        container.delete();
        refused(404, "ContainerNotFound", container::delete, "delete again");
        same(false, container.deleteIfExists(), "delete if it is there");
        refused(404, "ContainerNotFound", container::getProperties, "properties of a deleted container");
        refused(404, "ContainerNotFound", () -> names(container.listBlobs()), "list of a deleted container");
        refused(404, "ContainerNotFound", () -> put(container, "blob", "text"), "upload into a deleted container");
        refused(404, "ContainerNotFound", () -> text(blob), "download from a deleted container");
        container.create();
        refused(404, "BlobNotFound", () -> text(blob), "the old blob in the new container");

        for (String bad : List.of("UPPER", "under_score", "two--dashes", "-dash", "dash-", "dot.ted")) {
            refused(400, "InvalidResourceName", () -> service.createBlobContainer(bad), "create " + bad);
        }
        for (String bad : List.of("ab", "a".repeat(64))) {
            refused(400, "OutOfRangeInput", () -> service.createBlobContainer(bad), "create " + bad);
        }
        service.createBlobContainer(dropLater(name + "0".repeat(63 - name.length())));
    }

    @Scenario("container-list")
    void list() {
        BlobServiceClient service = service();
        String prefix = "java" + freshText();
        List<String> names = new ArrayList<>();
        for (String letter : List.of("a", "b", "c", "d", "e")) {
            names.add(dropLater(prefix + "-" + letter));
            service.createBlobContainerWithResponse(prefix + "-" + letter, Map.of("letter", letter), null, Context.NONE);
        }
        List<BlobContainerItem> items = service.listBlobContainers(options(prefix), null).stream().toList();
        same(names, items.stream().map(BlobContainerItem::getName).toList(), "containers by prefix");
        BlobContainerProperties own = service.getBlobContainerClient(names.get(0)).getProperties();
        same(own.getETag().replace("\"", "") + own.getLastModified(),
            items.get(0).getProperties().getETag().replace("\"", "") + items.get(0).getProperties().getLastModified(), "properties in the list");
        same(0L, service.listBlobContainers(options(prefix + "-x"), null).stream().count(), "no container");

        List<PagedResponse<BlobContainerItem>> pages = service.listBlobContainers(options(prefix).setMaxResultsPerPage(2), null).streamByPage().toList();
        same(List.of(2, 2, 1), pages.stream().map(page -> page.getValue().size()).toList(), "sizes of pages");
        List<String> rest = service().listBlobContainers(options(prefix).setMaxResultsPerPage(2), null)
            .streamByPage(pages.get(0).getContinuationToken()).flatMap(page -> page.getValue().stream()).map(BlobContainerItem::getName).toList();
        same(names.subList(2, 5), rest, "pages from a token");
        ListBlobContainersOptions detailed = options(prefix).setDetails(new BlobContainerListDetails().setRetrieveMetadata(true));
        same(List.of("a", "b", "c", "d", "e"), service.listBlobContainers(detailed, null).stream().map(item -> item.getMetadata().get("letter")).toList(),
            "metadata in the list");
    }

    private static ListBlobContainersOptions options(String prefix) {
        return new ListBlobContainersOptions().setPrefix(prefix);
    }

    @Scenario("container-metadata")
    void metadata() {
        BlobContainerClient container = service().getBlobContainerClient(containerName());
        container.createWithResponse(Map.of("color", "red", "size", "xl"), null, null, Context.NONE);
        same(Map.of("color", "red", "size", "xl"), container.getProperties().getMetadata(), "metadata of the create");
        String etag = container.getProperties().getETag();
        container.setMetadata(Map.of("shape", "round, or so"));
        same(Map.of("shape", "round, or so"), container.getProperties().getMetadata(), "replaced metadata");
        same(false, etag.equals(container.getProperties().getETag()), "the same ETag");
        refused(400, "InvalidMetadata", () -> container.setMetadata(Map.of("not-a-name", "x")), "a bad name");
        refused(400, "MetadataTooLarge", () -> container.setMetadata(Map.of("large", "x".repeat((8 << 10) + 1))), "more than 8 KiB");
        refused(412, "ConditionNotMet", () -> container.setMetadataWithResponse(Map.of(),
            conditions().setIfModifiedSince(OffsetDateTime.now().plusMinutes(1)), null, Context.NONE), "under a condition that does not hold");
        same(Map.of("shape", "round, or so"), container.getProperties().getMetadata(), "metadata after the refusals");
        container.setMetadata(Map.of());
        same(Map.of(), container.getProperties().getMetadata(), "cleared metadata");
    }
}
