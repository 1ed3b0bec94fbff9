package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.models.PeekedMessageItem;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.SendMessageResult;
import com.azure.storage.queue.models.UpdateMessageResult;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Messages: put, get, peek, update, delete, clear; what is visible when. */
class MessagesTest extends QueueFixture {
    private static final String GUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";

    @Scenario("message-roundtrip")
    void roundtrip() {
        QueueClient queue = newQueue();
        for (String text : List.of("plain", "  spaces  around ", "lines\nand\ttabs\n", "<a href=\"x\">&amp;</a>", "]]>", "'quotes' \"both\"",
            "na\u00efve \u65e5\u672c\u8a9e \ud83d\ude00", "aGVsbG8=", "%41+%20", " ")) {
            queue.sendMessage(text);
            QueueMessageItem message = getOne(queue);
            same(text, text(message), "text");
            remove(queue, message);
        }
        empty(queue, "after the deletes");

        SendMessageResult put = queue.sendMessage("text");
        same(true, put.getMessageId().matches(GUID), "id " + put.getMessageId());
        same(WEEK, Duration.between(put.getInsertionTime(), put.getExpirationTime()), "life");
        same(put.getInsertionTime(), put.getTimeNextVisible(), "visible at once");
        QueueMessageItem got = getOne(queue);
        same(List.of(put.getMessageId(), put.getInsertionTime(), put.getExpirationTime(), 1L),
            List.of(got.getMessageId(), got.getInsertionTime(), got.getExpirationTime(), got.getDequeueCount()), "what get tells");
        same(false, put.getPopReceipt().equals(got.getPopReceipt()), "the same receipt");
        remove(queue, got);

        SendMessageResult regretted = queue.sendMessage("regretted");
        queue.deleteMessage(regretted.getMessageId(), regretted.getPopReceipt());
        empty(queue, "after a delete by the receipt of the put");
    }

    @Scenario("message-size")
    void size() {
        QueueClient queue = newQueue();
        for (String text : List.of("x".repeat(64 << 10), "\u00e9".repeat(32 << 10), "<".repeat(64 << 10))) {
            queue.sendMessage(text);
            QueueMessageItem message = getOne(queue);
            assertTrue(text.equals(text(message)), "the text that came back");
            remove(queue, message);
        }
        for (String text : List.of("x".repeat((64 << 10) + 1), "\u00e9".repeat((32 << 10) + 1))) {
            refused(413, "RequestBodyTooLarge", () -> queue.sendMessage(text), "one past 64 KiB");
        }
        empty(queue, "in the end");
    }

    @Scenario("message-visibility")
    void visibility() {
        QueueClient queue = newQueue();
        SendMessageResult later = put(queue, "later", HOUR, null);
        same(HOUR, Duration.between(later.getInsertionTime(), later.getTimeNextVisible()), "delay");
        empty(queue, "before the delay ends");
        put(queue, "soon", Duration.ofSeconds(1), null);

        List<QueueMessageItem> got = new ArrayList<>();
        eventually(() -> got.addAll(get(queue, 32, Duration.ofSeconds(1))), "a delayed message");
        same("soon 1", text(got.get(0)) + " " + got.get(0).getDequeueCount(), "first get");
        eventually(() -> got.addAll(get(queue, 32, HOUR)), "a message whose timeout ended");
        same(got.get(0).getMessageId() + " 2", got.get(1).getMessageId() + " " + got.get(1).getDequeueCount(), "second get");
        empty(queue, "while it is hidden");
        refused(400, "PopReceiptMismatch", () -> remove(queue, got.get(0)), "delete by the first receipt");
        remove(queue, got.get(1));
        for (Duration wrong : List.of(Duration.ZERO, WEEK.plusSeconds(1))) {
            refused(400, "OutOfRangeQueryParameterValue", () -> get(queue, 1, wrong), "get for " + wrong);
        }
    }

    @Scenario("message-update")
    void update() {
        QueueClient queue = newQueue();
        SendMessageResult put = queue.sendMessage("one");
        QueueMessageItem got = getOne(queue);
        UpdateMessageResult updated = queue.updateMessage(got.getMessageId(), got.getPopReceipt(), "two <&>", Duration.ZERO);
        same(false, updated.getPopReceipt().equals(got.getPopReceipt()), "the same receipt");
        refused(400, "PopReceiptMismatch", () -> queue.updateMessage(got.getMessageId(), got.getPopReceipt(), "three", Duration.ZERO),
            "update by the first receipt");
        QueueMessageItem again = getOne(queue);
        same(List.of("two <&>", 2L, put.getExpirationTime()), List.of(text(again), again.getDequeueCount(), again.getExpirationTime()), "the updated message");

        UpdateMessageResult hidden = queue.updateMessage(again.getMessageId(), again.getPopReceipt(), null, HOUR);
        empty(queue, "after an update that hides");
        queue.updateMessage(again.getMessageId(), hidden.getPopReceipt(), null, Duration.ZERO);
        same("two <&>", text(getOne(queue)), "text after updates of visibility alone");
    }

    @Scenario("message-receipts")
    void receipts() {
        QueueClient queue = newQueue();
        SendMessageResult put = queue.sendMessage("text");
        String id = put.getMessageId();
        String stale = put.getPopReceipt();
        String current = queue.updateMessage(id, stale, "text", Duration.ZERO).getPopReceipt();
        String unknown = "00000000-0000-0000-0000-000000000000";
        refused(400, "PopReceiptMismatch", () -> queue.deleteMessage(id, stale), "delete with a stale receipt");
        refused(400, "PopReceiptMismatch", () -> queue.updateMessage(id, stale, "x", Duration.ZERO), "update with a stale receipt");
        refused(400, "InvalidQueryParameterValue", () -> queue.deleteMessage(id, "no receipt"), "delete with a malformed receipt");
        refused(400, "InvalidQueryParameterValue", () -> queue.updateMessage(id, "no receipt", "x", Duration.ZERO), "update with a malformed receipt");
        refused(404, "MessageNotFound", () -> queue.deleteMessage(unknown, current), "delete with an unknown id");
        refused(404, "MessageNotFound", () -> queue.updateMessage(unknown, current, "x", Duration.ZERO), "update with an unknown id");
        queue.deleteMessage(id, current);
        refused(404, "MessageNotFound", () -> queue.deleteMessage(id, current), "delete again");
        refused(404, "MessageNotFound", () -> queue.updateMessage(id, current, "x", Duration.ZERO), "update a deleted message");
    }

    @Scenario("message-ttl")
    void timeToLive() {
        QueueClient queue = newQueue();
        same(WEEK, life(queue.sendMessage("default")), "default life");
        same(Duration.ofMinutes(1), life(put(queue, "short", null, Duration.ofMinutes(1))), "a minute");
        same(WEEK.multipliedBy(10), life(put(queue, "long", null, WEEK.multipliedBy(10))), "ten weeks");
        same(OffsetDateTime.parse("9999-12-31T23:59:59Z"), put(queue, "never", null, Duration.ofSeconds(-1)).getExpirationTime(), "never");
        refused(400, "InvalidQueryParameterValue", () -> put(queue, "x", null, Duration.ZERO), "no life");
        refused(400, "OutOfRangeQueryParameterValue", () -> put(queue, "x", null, Duration.ofSeconds(-2)), "a life of -2");

        QueueClient brief = newQueue();
        put(brief, "brief", null, Duration.ofSeconds(2));
        QueueMessageItem message = get(brief, 1, Duration.ofSeconds(1)).get(0);
        countIs(brief, 0, "the end of a message");
        empty(brief, "after the end of its life");
        refused(404, "MessageNotFound", () -> remove(brief, message), "delete an expired message");
    }

    private static Duration life(SendMessageResult put) {
        return Duration.between(put.getInsertionTime(), put.getExpirationTime());
    }

    @Scenario("message-peek")
    void peek() {
        QueueClient queue = newQueue();
        SendMessageResult put = queue.sendMessage("seen");
        for (int time = 0; time < 2; time++) {
            PeekedMessageItem seen = peek(queue, 32).get(0);
            same(List.of(put.getMessageId(), "seen", 0L, put.getInsertionTime(), put.getExpirationTime()),
                List.of(seen.getMessageId(), seen.getBody().toString(), seen.getDequeueCount(), seen.getInsertionTime(), seen.getExpirationTime()),
                "what peek tells");
        }
        same(1L, getOne(queue).getDequeueCount(), "dequeues");
        empty(queue, "after the get");
    }

    @Scenario("message-clear")
    void clear() {
        QueueClient queue = newQueue();
        List.of("1", "2", "3").forEach(queue::sendMessage);
        put(queue, "delayed", HOUR, null);
        QueueMessageItem hidden = get(queue, 1, HOUR).get(0);
        queue.clearMessages();
        empty(queue, "after the clear");
        countIs(queue, 0, "count");
        refused(404, "MessageNotFound", () -> remove(queue, hidden), "delete a cleared message");
        queue.sendMessage("new");
        same("new", text(getOne(queue)), "text after the clear");
    }

    @Scenario("message-get-many")
    void getMany() {
        QueueClient queue = newQueue();
        List<String> texts = IntStream.range(0, 40).mapToObj(n -> "message %02d".formatted(n)).toList();
        texts.forEach(queue::sendMessage);
        same(32, peek(queue, 32).size(), "messages to peek");
        List<QueueMessageItem> first = get(queue, 32, HOUR);
        List<QueueMessageItem> rest = get(queue, 32, HOUR);
        same(List.of(32, 8), List.of(first.size(), rest.size()), "messages to get");
        same(texts, Stream.concat(first.stream(), rest.stream()).map(QueueFixture::text).sorted().toList(), "texts");
        for (int wrong : List.of(0, 33)) {
            refused(400, "OutOfRangeQueryParameterValue", () -> get(queue, wrong, HOUR), "get " + wrong);
            refused(400, "OutOfRangeQueryParameterValue", () -> peek(queue, wrong), "peek " + wrong);
        }
    }

    @Scenario("message-consumers")
    void consumers() throws Exception {
        QueueClient queue = newQueue();
        List<String> texts = IntStream.range(0, 200).mapToObj(n -> "message %03d".formatted(n)).toList();
        texts.forEach(queue::sendMessage);
        ExecutorService threads = Executors.newFixedThreadPool(16);
        try {
            List<Future<List<String>>> consumers = threads.invokeAll(Collections.nCopies(16, () -> consume(queue)));
            List<String> got = new ArrayList<>();
            for (Future<List<String>> consumer : consumers) {
                got.addAll(consumer.get());
            }
            same(texts, got.stream().sorted().toList(), "texts that the consumers got");
        } finally {
            threads.shutdown();
        }
        countIs(queue, 0, "count in the end");
    }

    /** Gets and deletes messages until there are none. */
    private static List<String> consume(QueueClient queue) {
        List<String> texts = new ArrayList<>();
        for (List<QueueMessageItem> messages = get(queue, 5, HOUR); !messages.isEmpty(); messages = get(queue, 5, HOUR)) {
            for (QueueMessageItem message : messages) {
                texts.add(text(message));
                remove(queue, message);
            }
        }
        return texts;
    }
}
