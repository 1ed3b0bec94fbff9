package larimar.sdk;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.QueueServiceClientBuilder;
import com.azure.storage.queue.models.QueueItem;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.QueuesSegmentOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The life of queues: connecting, creating, listing, metadata, deleting. */
class QueuesTest extends QueueFixture {
    @Scenario("queue-connection-string")
    void connectionString() {
        String name = newQueue().getQueueName();
        String connection = "DefaultEndpointsProtocol=http;AccountName=" + ACCOUNT + ";AccountKey=" + KEY + ";QueueEndpoint=" + QUEUES + ";";
        QueueClient queue = new QueueServiceClientBuilder().connectionString(connection).buildClient().getQueueClient(name);
        queue.sendMessage("hello");
        same("hello", text(getOne(queue)), "text");
        same("http://127.0.0.1:10001/devstoreaccount1",
            new QueueServiceClientBuilder().connectionString("UseDevelopmentStorage=true").buildClient().getQueueServiceUrl(), "development storage");
    }

    @Scenario("queue-lifecycle")
    void lifecycle() {
        String name = queueName();
        QueueServiceClient service = service();
        QueueClient queue = service.getQueueClient(name);
        same(201, queue.createWithResponse(null, null, Context.NONE).getStatusCode(), "status of the first create");
        same(204, queue.createWithResponse(null, null, Context.NONE).getStatusCode(), "status of the second create");
        refused(409, "QueueAlreadyExists", () -> queue.createWithResponse(Map.of("color", "red"), null, Context.NONE), "create with other metadata");

        queue.delete();
        refused(404, "QueueNotFound", queue::delete, "delete again");
        same(false, queue.deleteIfExists(), "delete if it is there");
        refused(404, "QueueNotFound", queue::getProperties, "properties of a deleted queue");
        refused(404, "QueueNotFound", () -> queue.sendMessage("lost"), "put into a deleted queue");
        refused(404, "QueueNotFound", () -> get(queue, 1, HOUR), "get from a deleted queue");

        for (String bad : List.of("UPPER", "under_score", "two--dashes", "-dash", "dash-", "dot.ted")) {
            refused(400, "InvalidResourceName", () -> service.createQueue(bad), "create " + bad);
        }
        for (String bad : List.of("ab", "a".repeat(64))) {
            refused(400, "OutOfRangeInput", () -> service.createQueue(bad), "create " + bad);
        }
        service.createQueue(dropLater(name + "0".repeat(63 - name.length())));
    }

    @Scenario("queue-list")
    void list() {
        QueueServiceClient service = service();
        String prefix = "java" + freshText();
        List<String> names = new ArrayList<>();
        for (String letter : List.of("a", "b", "c", "d", "e")) {
            names.add(dropLater(prefix + "-" + letter));
            service.createQueueWithResponse(prefix + "-" + letter, Map.of("letter", letter), null, Context.NONE);
        }
        same(names, names(service, options(prefix)), "queues by prefix");
        same(names.subList(3, 4), names(service, options(names.get(3))), "one queue");
        same(List.of(), names(service, options(prefix + "-x")), "no queue");

        List<PagedResponse<QueueItem>> pages = service.listQueues(options(prefix).setMaxResultsPerPage(2), null, Context.NONE).streamByPage().toList();
        same(List.of(2, 2, 1), pages.stream().map(page -> page.getValue().size()).toList(), "sizes of pages");
        List<String> rest = service().listQueues(options(prefix).setMaxResultsPerPage(2), null, Context.NONE)
            .streamByPage(pages.get(0).getContinuationToken()).flatMap(page -> page.getValue().stream()).map(QueueItem::getName).toList();
        same(names.subList(2, 5), rest, "pages from a token");
        List<String> letters = service.listQueues(options(prefix).setIncludeMetadata(true), null, Context.NONE).stream()
            .map(queue -> queue.getMetadata().get("letter")).toList();
        same(List.of("a", "b", "c", "d", "e"), letters, "metadata in the list");
    }

    private static QueuesSegmentOptions options(String prefix) {
        return new QueuesSegmentOptions().setPrefix(prefix);
    }

    private static List<String> names(QueueServiceClient service, QueuesSegmentOptions options) {
        return service.listQueues(options, null, Context.NONE).stream().map(QueueItem::getName).toList();
    }

    @Scenario("queue-metadata")
    void metadata() {
        QueueClient queue = service().getQueueClient(queueName());
        queue.createWithResponse(Map.of("color", "red", "size", "xl"), null, Context.NONE);
        same(Map.of("color", "red", "size", "xl"), queue.getProperties().getMetadata(), "metadata of the create");
        queue.setMetadata(Map.of("shape", "round, or so"));
        same(Map.of("shape", "round, or so"), queue.getProperties().getMetadata(), "replaced metadata");
        refused(400, "InvalidMetadata", () -> queue.setMetadata(Map.of("not-a-name", "x")), "a bad name");
        queue.setMetadata(Map.of());
        same(Map.of(), queue.getProperties().getMetadata(), "cleared metadata");

        countIs(queue, 0, "count of an empty queue");
        List.of("1", "2", "3").forEach(queue::sendMessage);
        QueueMessageItem message = get(queue, 1, HOUR).get(0);
        countIs(queue, 3, "count with a hidden message");
        remove(queue, message);
        countIs(queue, 2, "count after a delete");
    }
}
