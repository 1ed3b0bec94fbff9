package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.core.util.Context;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.common.sas.AccountSasPermission;
import com.azure.storage.common.sas.AccountSasResourceType;
import com.azure.storage.common.sas.AccountSasService;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.QueueServiceClientBuilder;
import com.azure.storage.queue.models.PeekedMessageItem;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.SendMessageResult;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;

/** What the scenarios of queues share: clients, fresh queues, messages in and out. */
abstract class QueueFixture extends Checks {
    static final String QUEUES = environment("LARIMAR_QUEUE_ENDPOINT").replaceAll("/$", "");
    static final Duration HOUR = Duration.ofHours(1);
    static final Duration WEEK = Duration.ofDays(7);

    private final List<String> queues = new ArrayList<>();

    /** Drops the queues that a scenario named, whether or not it created them. */
    @AfterEach
    void dropQueues() {
        queues.forEach(name -> service().getQueueClient(name).deleteIfExists());
    }

    static QueueServiceClientBuilder builder() {
        return new QueueServiceClientBuilder().endpoint(QUEUES).retryOptions(noRetries());
    }

    /** A new client of the account, signing with its key. */
    static QueueServiceClient service() {
        return builder().credential(new StorageSharedKeyCredential(ACCOUNT, KEY)).buildClient();
    }

    static QueueServiceClient withToken(String token) {
        return builder().sasToken(token).buildClient();
    }

    static AccountSasSignatureValues accountValues(String services, String types, String permissions) {
        return new AccountSasSignatureValues(AccessTest.FAR_AHEAD, AccountSasPermission.parse(permissions),
            AccountSasService.parse(services), AccountSasResourceType.parse(types));
    }

    /** Fresh for every call; dropped at the end of the scenario. */
    String queueName() {
        return dropLater("java" + freshText());
    }

    String dropLater(String name) {
        queues.add(name);
        return name;
    }

    QueueClient newQueue() {
        return service().createQueue(queueName());
    }

    static SendMessageResult put(QueueClient queue, String text, Duration delay, Duration life) {
        return queue.sendMessageWithResponse(text, delay, life, null, Context.NONE).getValue();
    }

    static List<QueueMessageItem> get(QueueClient queue, int count, Duration hidden) {
        return queue.receiveMessages(count, hidden, null, Context.NONE).stream().toList();
    }

    /** The one message that is there, hidden for an hour. */
    static QueueMessageItem getOne(QueueClient queue) {
        List<QueueMessageItem> messages = get(queue, 32, HOUR);
        assertEquals(1, messages.size(), "messages to get");
        return messages.get(0);
    }

    static List<PeekedMessageItem> peek(QueueClient queue, int count) {
        return queue.peekMessages(count, null, Context.NONE).stream().toList();
    }

    static String text(QueueMessageItem message) {
        return message.getBody().toString();
    }

    static void remove(QueueClient queue, QueueMessageItem message) {
        queue.deleteMessage(message.getMessageId(), message.getPopReceipt());
    }

    /** The approximate count is never below the number of messages, and comes to it. */
    void countIs(QueueClient queue, int number, String what) {
        same(true, queue.getProperties().getApproximateMessagesCount() >= number, what);
        eventually(() -> queue.getProperties().getApproximateMessagesCount() == number, what);
    }

    void empty(QueueClient queue, String what) {
        same(0, peek(queue, 32).size(), what + ": messages to peek");
        same(0, get(queue, 32, HOUR).size(), what + ": messages to get");
    }
}
