package larimar.sdk;

import com.azure.core.util.Context;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.common.sas.SasIpRange;
import com.azure.storage.common.sas.SasProtocol;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.models.QueueAccessPolicy;
import com.azure.storage.queue.models.QueueSignedIdentifier;
import com.azure.storage.queue.models.QueuesSegmentOptions;
import com.azure.storage.queue.models.SendMessageResult;
import com.azure.storage.queue.sas.QueueSasPermission;
import com.azure.storage.queue.sas.QueueServiceSasSignatureValues;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** Access to queues: the account's key, shared access signatures, stored policies. */
class QueueAccessTest extends QueueFixture {
    private static final String PERMISSION = AccessTest.PERMISSION;

    @Scenario("queue-bad-signature")
    void badSignature() {
        String name = newQueue().getQueueName();
        String wrong = Base64.getEncoder().encodeToString("k".repeat(64).getBytes());
        QueueServiceClient service = builder().credential(new StorageSharedKeyCredential(ACCOUNT, wrong)).buildClient();
        QueueClient queue = service.getQueueClient(name);
        refused(403, "AuthenticationFailed", () -> service.listQueues().stream().count(), "list");
        refused(403, "AuthenticationFailed", queue::create, "create");
        refused(403, "AuthenticationFailed", queue::getProperties, "properties");
        refused(403, "AuthenticationFailed", () -> queue.sendMessage("x"), "put");
        refused(403, "AuthenticationFailed", () -> get(queue, 1, HOUR), "get");
        refused(403, "AuthenticationFailed", queue::delete, "delete");
    }

    /** Something that a client does with messages, and the letter that it needs. */
    private record Call(String what, String letter, Consumer<QueueClient> act) {
    }

    private static List<Call> calls(QueueClient queue) {
        return List.of(
            new Call("peek", "r", client -> peek(client, 1)),
            new Call("put", "a", client -> client.sendMessage("x")),
            new Call("update", "u", client -> {
                SendMessageResult put = queue.sendMessage("text");
                client.updateMessage(put.getMessageId(), put.getPopReceipt(), "new", Duration.ZERO);
            }),
            new Call("get", "p", client -> get(client, 1, HOUR)),
            new Call("delete", "p", client -> {
                SendMessageResult put = queue.sendMessage("text");
                client.deleteMessage(put.getMessageId(), put.getPopReceipt());
            }));
    }

    @Scenario("queue-sas")
    void queueSas() {
        QueueClient queue = newQueue();
        List<Call> calls = new ArrayList<>(calls(queue));
        calls.add(new Call("properties", "r", QueueClient::getProperties));
        for (String permissions : List.of("r", "a", "u", "p", "raup")) {
            QueueClient client = signed(queue, values(permissions));
            for (Call call : calls) {
                if (permissions.contains(call.letter)) {
                    attempt(() -> call.act.accept(client), call.what + " with " + permissions);
                } else {
                    refused(403, PERMISSION, () -> call.act.accept(client), call.what + " with " + permissions);
                }
            }
        }

        peek(signed(queue, values("r").setStartTime(AccessTest.LONG_AGO).setProtocol(SasProtocol.HTTPS_HTTP).setSasIpRange(SasIpRange.parse("127.0.0.1"))), 1);
        notPeeked("AuthenticationFailed", queue, values("r").setStartTime(AccessTest.LONG_AGO).setExpiryTime(AccessTest.NOT_SO_LONG), "expired");
        notPeeked("AuthenticationFailed", queue, values("r").setStartTime(AccessTest.FAR_AHEAD).setExpiryTime(AccessTest.FARTHER_YET), "not yet valid");
        notPeeked("AuthorizationProtocolMismatch", queue, values("r").setProtocol(SasProtocol.HTTPS_ONLY), "over http");
        notPeeked("AuthorizationSourceIPMismatch", queue, values("r").setSasIpRange(SasIpRange.parse("203.0.113.7")), "from elsewhere");

        String token = queue.generateSas(values("raup"));
        String other = newQueue().getQueueName();
        refused(403, "AuthenticationFailed", () -> peek(withToken(token).getQueueClient(other), 1), "another queue");
        String forged = token.replace("sp=raup", "sp=r");
        refused(403, "AuthenticationFailed", () -> peek(withToken(forged).getQueueClient(queue.getQueueName()), 1), "a changed token");
        QueueClient all = signed(queue, values("raup"));
        refused(403, "AuthorizationFailure", all::delete, "delete the queue");
        refused(403, "AuthorizationFailure", () -> all.getAccessPolicy().stream().count(), "read the policies");
    }

    private static QueueServiceSasSignatureValues values(String permissions) {
        return new QueueServiceSasSignatureValues(AccessTest.FAR_AHEAD, QueueSasPermission.parse(permissions));
    }

    /** A client of the queue that has a signature and no key. */
    private static QueueClient signed(QueueClient queue, QueueServiceSasSignatureValues values) {
        return withToken(queue.generateSas(values)).getQueueClient(queue.getQueueName());
    }

    private void notPeeked(String code, QueueClient queue, QueueServiceSasSignatureValues values, String what) {
        refused(403, code, () -> peek(signed(queue, values), 1), what);
    }

    private static QueueSignedIdentifier policy(String id, String permissions, OffsetDateTime expiry) {
        return new QueueSignedIdentifier().setId(id)
            .setAccessPolicy(new QueueAccessPolicy().setStartsOn(AccessTest.LONG_AGO).setExpiresOn(expiry).setPermissions(permissions));
    }

    private static String policies(QueueClient queue) {
        return text(queue.getAccessPolicy().stream().toList());
    }

    private static String text(List<QueueSignedIdentifier> policies) {
        StringBuilder text = new StringBuilder();
        for (QueueSignedIdentifier policy : policies) {
            QueueAccessPolicy access = policy.getAccessPolicy();
            text.append(policy.getId() + " " + access.getStartsOn() + " " + access.getExpiresOn() + " " + access.getPermissions() + "\n");
        }
        return text.toString();
    }

    @Scenario("queue-acl")
    void acl() {
        QueueClient queue = newQueue();
        same("", policies(queue), "policies of a new queue");
        List<QueueSignedIdentifier> two = List.of(policy("readers", "r", AccessTest.FAR_AHEAD), policy("everyone & <all>", "raup", AccessTest.FARTHER_YET));
        queue.setAccessPolicy(two);
        same(text(two), policies(queue), "policies read back");
        List<QueueSignedIdentifier> six = new ArrayList<>();
        for (int n = 0; n < 6; n++) {
            six.add(policy("policy " + n, "r", AccessTest.FAR_AHEAD));
        }
        refused(400, "InvalidXmlDocument", () -> queue.setAccessPolicy(six), "six policies");
        same(text(two), policies(queue), "policies after the refusal");
        queue.setAccessPolicy(six.subList(0, 5));
        same(text(six.subList(0, 5)), policies(queue), "five policies");
        queue.setAccessPolicy(List.of());
        same("", policies(queue), "policies after clearing them");
    }

    @Scenario("queue-stored-policy")
    void storedPolicy() {
        QueueClient queue = newQueue();
        queue.sendMessage("text");
        QueueClient client = signed(queue, new QueueServiceSasSignatureValues("team"));
        QueueSignedIdentifier another = policy("another", "raup", AccessTest.FAR_AHEAD);
        refused(403, "AuthenticationFailed", () -> peek(client, 1), "before the policy exists");
        queue.setAccessPolicy(List.of(policy("team", "r", AccessTest.FAR_AHEAD), another));
        same(1, peek(client, 1).size(), "messages by the policy");
        refused(403, PERMISSION, () -> client.sendMessage("x"), "put by a policy for reading");
        queue.setAccessPolicy(List.of(policy("team", "a", AccessTest.FAR_AHEAD), another));
        client.sendMessage("x");
        refused(403, PERMISSION, () -> peek(client, 1), "peek after the policy was changed");
        queue.setAccessPolicy(List.of(policy("team", "r", AccessTest.NOT_SO_LONG), another));
        refused(403, "AuthenticationFailed", () -> peek(client, 1), "after the policy expired");
        queue.setAccessPolicy(List.of(policy("team", "r", AccessTest.FAR_AHEAD), another));
        same(2, peek(client, 2).size(), "messages after the policy was renewed");
        queue.setAccessPolicy(List.of(another));
        refused(403, "AuthenticationFailed", () -> peek(client, 1), "after the policy was removed");
    }

    /** Something that a client of the account does, the kind of resource and the letter that it needs. */
    private record AccountCall(String what, String kind, String letter, Consumer<QueueServiceClient> act) {
    }

    @Scenario("queue-account-sas")
    void accountSas() {
        QueueClient queue = newQueue();
        String name = queue.getQueueName();
        List<AccountCall> calls = new ArrayList<>(List.of(
            new AccountCall("service properties", "s", "r", QueueServiceClient::getProperties),
            new AccountCall("list", "s", "l", service -> list(service, name)),
            new AccountCall("properties", "c", "r", service -> service.getQueueClient(name).getProperties()),
            new AccountCall("set metadata", "c", "w", service -> service.getQueueClient(name).setMetadata(Map.of())),
            new AccountCall("clear", "o", "d", service -> service.getQueueClient(name).clearMessages())));
        for (Call call : calls(queue)) {
            calls.add(new AccountCall(call.what, "o", call.letter, service -> call.act.accept(service.getQueueClient(name))));
        }
        for (AccountCall call : calls) {
            String otherKind = call.kind.equals("s") ? "co" : "s";
            String otherLetters = call.letter.equals("r") ? "wdlacup" : "r";
            attempt(() -> call.act.accept(with("sco", "rwdlacup")), call.what + " with everything");
            attempt(() -> call.act.accept(with(call.kind, call.letter)), call.what + " with what it needs");
            refused(403, "AuthorizationResourceTypeMismatch", () -> call.act.accept(with(otherKind, "rwdlacup")), call.what + " with " + otherKind);
            refused(403, PERMISSION, () -> call.act.accept(with("sco", otherLetters)), call.what + " with " + otherLetters);
        }

        String made = queueName();
        with("c", "c").createQueue(made);
        refused(403, PERMISSION, () -> with("c", "c").deleteQueue(made), "delete with c");
        with("c", "d").deleteQueue(made);
        list(by(accountValues("bqt", "s", "l")), name);
        refused(403, "AuthorizationServiceMismatch", () -> list(by(accountValues("bt", "s", "l")), name), "other services");
        refused(403, "AuthenticationFailed", () -> list(by(accountValues("q", "s", "l").setExpiryTime(AccessTest.NOT_SO_LONG)), name), "expired");
        refused(403, "AuthorizationProtocolMismatch", () -> list(by(accountValues("q", "s", "l").setProtocol(SasProtocol.HTTPS_ONLY)), name), "over http");
    }

    private static void list(QueueServiceClient service, String name) {
        service.listQueues(new QueuesSegmentOptions().setPrefix(name), null, Context.NONE).stream().count();
    }

    private static QueueServiceClient with(String types, String permissions) {
        return by(accountValues("q", types, permissions));
    }

    private static QueueServiceClient by(AccountSasSignatureValues values) {
        return withToken(service().generateAccountSas(values));
    }
}
