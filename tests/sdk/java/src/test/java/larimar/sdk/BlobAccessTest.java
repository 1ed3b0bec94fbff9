package larimar.sdk;

import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.models.BlobAccessPolicy;
import com.azure.storage.blob.models.BlobDownloadHeaders;
import com.azure.storage.blob.models.BlobSignedIdentifier;
import com.azure.storage.blob.models.ListBlobContainersOptions;
import com.azure.storage.blob.models.PublicAccessType;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.blob.specialized.BlobClientBase;
import com.azure.storage.blob.specialized.BlockBlobClient;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.common.sas.SasIpRange;
import com.azure.storage.common.sas.SasProtocol;
import java.io.ByteArrayInputStream;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** Access to blobs: the account's key, public access, shared access signatures, stored policies. */
class BlobAccessTest extends BlobFixture {
    private static final String PERMISSION = AccessTest.PERMISSION;
    private static final List<Integer> STRANGER = List.of(401, 403, 404);

    @Scenario("blob-bad-signature")
    void badSignature() {
        String name = newContainer().getBlobContainerName();
        String wrong = Base64.getEncoder().encodeToString("k".repeat(64).getBytes());
        BlobServiceClient service = builder().credential(new StorageSharedKeyCredential(ACCOUNT, wrong)).buildClient();
        BlobContainerClient container = service.getBlobContainerClient(name);
        refused(403, "AuthenticationFailed", () -> service.listBlobContainers().stream().count(), "list containers");
        refused(403, "AuthenticationFailed", container::create, "create");
        refused(403, "AuthenticationFailed", () -> names(container.listBlobs()), "list blobs");
        refused(403, "AuthenticationFailed", () -> put(container, "blob", "x"), "upload");
        refused(403, "AuthenticationFailed", () -> block(container, "blob").getProperties(), "properties");
        refused(403, "AuthenticationFailed", container::delete, "delete");
    }

    @Scenario("public-access")
    void publicAccess() {
        BlobContainerClient owner = newContainer();
        put(owner, "blob", "text");
        BlobContainerClient container = builder().buildClient().getBlobContainerClient(owner.getBlobContainerName());
        BlockBlobClient blob = block(container, "blob");
        refusedWith(STRANGER, () -> text(blob), "read from a private container");
        refusedWith(STRANGER, () -> names(container.listBlobs()), "list a private container");
        owner.setAccessPolicy(PublicAccessType.BLOB, null);
        same(PublicAccessType.BLOB, owner.getProperties().getBlobPublicAccess(), "public blobs");
        same("text", text(blob), "a public blob");
        refusedWith(STRANGER, () -> names(container.listBlobs()), "list a container with public blobs");
        owner.setAccessPolicy(PublicAccessType.CONTAINER, null);
        same(PublicAccessType.CONTAINER, owner.getProperties().getBlobPublicAccess(), "a public container");
        same(List.of("blob"), names(container.listBlobs()), "the list of a public container");
        refusedWith(STRANGER, () -> upload(blob, upload("other")), "upload");
        refusedWith(STRANGER, blob::delete, "delete a blob");
        refusedWith(STRANGER, container::delete, "delete the container");
        owner.setAccessPolicy(null, null);
        refusedWith(STRANGER, () -> text(blob), "read after closing it");
    }

    private static BlobSignedIdentifier policy(String id, String permissions, OffsetDateTime expiry) {
        return new BlobSignedIdentifier().setId(id)
            .setAccessPolicy(new BlobAccessPolicy().setStartsOn(AccessTest.LONG_AGO).setExpiresOn(expiry).setPermissions(permissions));
    }

    /** No policies are none at all for the SDK. */
    private static String policies(BlobContainerClient container) {
        List<BlobSignedIdentifier> policies = container.getAccessPolicy().getIdentifiers();
        return policies == null ? "" : text(policies);
    }

    private static String text(List<BlobSignedIdentifier> policies) {
        StringBuilder text = new StringBuilder();
        for (BlobSignedIdentifier policy : policies) {
            BlobAccessPolicy access = policy.getAccessPolicy();
            text.append(policy.getId() + " " + access.getStartsOn() + " " + access.getExpiresOn() + " " + access.getPermissions() + "\n");
        }
        return text.toString();
    }

    @Scenario("container-acl")
    void acl() {
        BlobContainerClient container = newContainer();
        same("", policies(container), "policies of a new container");
        List<BlobSignedIdentifier> two = List.of(policy("readers", "r", AccessTest.FAR_AHEAD), policy("everyone & <all>", "racwdl", AccessTest.FARTHER_YET));
        container.setAccessPolicy(null, two);
        same(text(two), policies(container), "policies read back");
        List<BlobSignedIdentifier> six = new ArrayList<>();
        for (int n = 0; n < 6; n++) {
            six.add(policy("policy " + n, "r", AccessTest.FAR_AHEAD));
        }
        refused(400, "InvalidXmlDocument", () -> container.setAccessPolicy(null, six), "six policies");
        same(text(two), policies(container), "policies after the refusal");
        container.setAccessPolicy(null, six.subList(0, 5));
        same(text(six.subList(0, 5)), policies(container), "five policies");
        container.setAccessPolicy(null, List.of());
        same("", policies(container), "policies after clearing them");
    }

    /** A client of the blob that has a signature and no key. */
    private static BlockBlobClient signed(BlobClientBase blob, BlobServiceSasSignatureValues values) {
        return block(withToken(blob.generateSas(values)).getBlobContainerClient(blob.getContainerName()), blob.getBlobName());
    }

    private static BlobContainerClient signed(BlobContainerClient container, BlobServiceSasSignatureValues values) {
        return withToken(container.generateSas(values)).getBlobContainerClient(container.getBlobContainerName());
    }

    /** Something that a client does with a blob, and the letter that it needs. */
    private record Call(String what, String letter, Consumer<BlockBlobClient> act) {
    }

    @Scenario("blob-sas")
    void blobSas() {
        BlobContainerClient container = newContainer();
        BlockBlobClient own = put(container, "blob", "text");
        List<Call> calls = List.of(new Call("read", "r", BlobFixture::text), new Call("metadata", "w", client -> client.setMetadata(Map.of())),
            new Call("stage", "w", client -> client.stageBlock(blockId("1"), new ByteArrayInputStream(new byte[1]), 1)),
            new Call("tags", "t", client -> client.setTags(Map.of("a", "b"))),
            new Call("delete", "d", client -> {
                client.delete();
                upload(own, upload("text"));
            }));
        for (String permissions : List.of("r", "c", "w", "t", "d", "racwdt")) {
            for (Call call : calls) {
                if (permissions.contains(call.letter)) {
                    attempt(() -> call.act.accept(signed(own, blobValues(permissions))), call.what + " with " + permissions);
                } else {
                    refused(403, PERMISSION, () -> call.act.accept(signed(own, blobValues(permissions))), call.what + " with " + permissions);
                }
            }
        }
        refused(403, "UnauthorizedBlobOverwrite", () -> upload(signed(own, blobValues("c")), upload("x")), "overwrite with c");

        BlobServiceSasSignatureValues other = blobValues("r").setContentType("application/x-other").setContentLanguage("fr").setContentDisposition("inline")
            .setCacheControl("no-store").setContentEncoding("identity");
        BlobDownloadHeaders answer = download(signed(own, other), null, null, false).getDeserializedHeaders();
        same("application/x-other fr inline no-store identity", String.join(" ", answer.getContentType(), answer.getContentLanguage(),
            answer.getContentDisposition(), answer.getCacheControl(), answer.getContentEncoding()), "headers that the token overrides");
        text(signed(own, blobValues("r").setStartTime(AccessTest.LONG_AGO).setProtocol(SasProtocol.HTTPS_HTTP).setSasIpRange(SasIpRange.parse("127.0.0.1"))));
        notRead("AuthenticationFailed", own, blobValues("r").setStartTime(AccessTest.LONG_AGO).setExpiryTime(AccessTest.NOT_SO_LONG), "expired");
        notRead("AuthenticationFailed", own, blobValues("r").setStartTime(AccessTest.FAR_AHEAD).setExpiryTime(AccessTest.FARTHER_YET), "not yet valid");
        notRead("AuthorizationProtocolMismatch", own, blobValues("r").setProtocol(SasProtocol.HTTPS_ONLY), "over http");
        notRead("AuthorizationSourceIPMismatch", own, blobValues("r").setSasIpRange(SasIpRange.parse("203.0.113.7")), "from elsewhere");

        put(container, "other", "text");
        BlobContainerClient holder = withToken(own.generateSas(blobValues("rwd"))).getBlobContainerClient(container.getBlobContainerName());
        refused(403, "AuthenticationFailed", () -> text(block(holder, "other")), "another blob");
        refused(403, "AuthenticationFailed", () -> names(holder.listBlobs()), "list with a token for a blob");
        BlobClientBase past = own.createSnapshot();
        upload(own, upload("after"));
        String token = past.generateSas(blobValues("r"));
        same("text", text(withToken(token).getBlobContainerClient(own.getContainerName()).getBlobClient("blob", past.getSnapshotId())), "a snapshot by its token");
    }

    private void notRead(String code, BlobClientBase blob, BlobServiceSasSignatureValues values, String what) {
        refused(403, code, () -> text(signed(blob, values)), what);
    }

    @Scenario("container-sas")
    void containerSas() {
        BlobContainerClient owner = newContainer();
        put(signed(owner, containerValues("c")), "dir/one", "text");
        put(signed(owner, containerValues("w")), "two", "text");
        same("text", text(block(signed(owner, containerValues("r")), "dir/one")), "read with r");
        same(List.of("dir/one", "two"), names(signed(owner, containerValues("l")).listBlobs()), "list with l");
        refused(403, PERMISSION, () -> put(signed(owner, containerValues("rl")), "three", "x"), "upload with rl");
        refused(403, PERMISSION, () -> names(signed(owner, containerValues("rcwd")).listBlobs()), "list with rcwd");
        refused(403, PERMISSION, () -> text(block(signed(owner, containerValues("cwdl")), "two")), "read with cwdl");
        refused(403, PERMISSION, () -> block(signed(owner, containerValues("rcwl")), "two").delete(), "delete with rcwl");
        block(signed(owner, containerValues("d")), "two").delete();
        same(List.of("dir/one"), names(owner.listBlobs()), "blobs in the end");

        BlobServiceClient holder = withToken(owner.generateSas(containerValues("racwdl")));
        String other = newContainer().getBlobContainerName();
        refused(403, "AuthenticationFailed", () -> names(holder.getBlobContainerClient(other).listBlobs()), "another container");
        refused(403, "AuthenticationFailed", () -> holder.listBlobContainers().stream().count(), "list containers");
        BlobContainerClient all = signed(owner, containerValues("racwdl"));
        refused(403, "AuthorizationFailure", all::delete, "delete the container");
        refused(403, "AuthorizationFailure", () -> all.setMetadata(Map.of()), "set the container's metadata");
        refused(403, "AuthorizationFailure", all::getAccessPolicy, "read the policies");
        refused(403, "AuthenticationFailed", () -> names(signed(owner, containerValues("l").setExpiryTime(AccessTest.NOT_SO_LONG)).listBlobs()), "expired");
    }

    @Scenario("blob-stored-policy")
    void storedPolicy() {
        BlobContainerClient owner = newContainer();
        put(owner, "blob", "text");
        BlobContainerClient client = signed(owner, new BlobServiceSasSignatureValues("team"));
        BlobSignedIdentifier another = policy("another", "racwdl", AccessTest.FAR_AHEAD);
        refused(403, "AuthenticationFailed", () -> text(block(client, "blob")), "before the policy exists");
        owner.setAccessPolicy(null, List.of(policy("team", "r", AccessTest.FAR_AHEAD), another));
        same("text", text(block(client, "blob")), "read by the policy");
        refused(403, PERMISSION, () -> put(client, "other", "x"), "upload by a policy for reading");
        owner.setAccessPolicy(null, List.of(policy("team", "cw", AccessTest.FAR_AHEAD), another));
        put(client, "other", "x");
        refused(403, PERMISSION, () -> text(block(client, "blob")), "read after the policy was changed");
        owner.setAccessPolicy(null, List.of(policy("team", "r", AccessTest.NOT_SO_LONG), another));
        refused(403, "AuthenticationFailed", () -> text(block(client, "blob")), "after the policy expired");
        owner.setAccessPolicy(null, List.of(policy("team", "r", AccessTest.FAR_AHEAD), another));
        same("text", text(block(client, "blob")), "read after the policy was renewed");
        owner.setAccessPolicy(null, List.of(another));
        refused(403, "AuthenticationFailed", () -> text(block(client, "blob")), "after the policy was removed");
    }

    /** Something that a client of the account does, the kind of resource and the letter that it needs. */
    private record AccountCall(String what, String kind, String letter, Consumer<BlobServiceClient> act) {
    }

    @Scenario("blob-account-sas")
    void accountSas() {
        BlobContainerClient owner = newContainer();
        String name = owner.getBlobContainerName();
        BlockBlobClient own = put(owner, "blob", "text");
        for (AccountCall call : List.of(
            new AccountCall("service properties", "s", "r", BlobServiceClient::getProperties),
            new AccountCall("list containers", "s", "l", service -> list(service, name)),
            new AccountCall("container properties", "c", "r", service -> service.getBlobContainerClient(name).getProperties()),
            new AccountCall("container metadata", "c", "w", service -> service.getBlobContainerClient(name).setMetadata(Map.of())),
            new AccountCall("list blobs", "c", "l", service -> names(service.getBlobContainerClient(name).listBlobs())),
            new AccountCall("read", "o", "r", service -> text(block(service.getBlobContainerClient(name), "blob"))),
            new AccountCall("upload", "o", "w", service -> put(service.getBlobContainerClient(name), "blob", "x")),
            new AccountCall("tags", "o", "t", service -> block(service.getBlobContainerClient(name), "blob").setTags(Map.of("a", "b"))),
            new AccountCall("delete", "o", "d", service -> {
                block(service.getBlobContainerClient(name), "blob").delete();
                upload(own, upload("text"));
            }))) {
            String otherKind = call.kind.equals("s") ? "co" : "s";
            String otherLetters = call.letter.equals("r") ? "wdlacupt" : "r";
            attempt(() -> call.act.accept(with("sco", "rwdlacupt")), call.what + " with everything");
            attempt(() -> call.act.accept(with(call.kind, call.letter)), call.what + " with what it needs");
            refused(403, "AuthorizationResourceTypeMismatch", () -> call.act.accept(with(otherKind, "rwdlacupt")), call.what + " with " + otherKind);
            refused(403, PERMISSION, () -> call.act.accept(with("sco", otherLetters)), call.what + " with " + otherLetters);
        }
        String made = containerName();
        with("c", "c").createBlobContainer(made);
        refused(403, PERMISSION, () -> with("c", "c").deleteBlobContainer(made), "delete with c");
        with("c", "d").deleteBlobContainer(made);
        list(by(QueueFixture.accountValues("bqt", "s", "l")), name);
        refused(403, "AuthorizationServiceMismatch", () -> list(by(QueueFixture.accountValues("qt", "s", "l")), name), "other services");
        refused(403, "AuthenticationFailed", () -> list(by(QueueFixture.accountValues("b", "s", "l").setExpiryTime(AccessTest.NOT_SO_LONG)), name), "expired");
        refused(403, "AuthorizationProtocolMismatch", () -> list(by(QueueFixture.accountValues("b", "s", "l").setProtocol(SasProtocol.HTTPS_ONLY)), name), "over http");
    }

    private static void list(BlobServiceClient service, String name) {
        service.listBlobContainers(new ListBlobContainersOptions().setPrefix(name), null).stream().count();
    }

    private static BlobServiceClient with(String types, String permissions) {
        return by(QueueFixture.accountValues("b", types, permissions));
    }

    private static BlobServiceClient by(AccountSasSignatureValues values) {
        return withToken(service().generateAccountSas(values));
    }
}
