package larimar.sdk;


import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableSignedIdentifier;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.stream.IntStream;

/** Stored access policies, and signatures that refer to them. */
class PoliciesTest extends Fixture {
    @Scenario("acl")
    void acl() {
        TableClient table = newTable();
        same(List.of(), policies(table), "policies of a new table");

        List<TableSignedIdentifier> two = List.of(
            policy("readers", AccessTest.LONG_AGO, AccessTest.FAR_AHEAD, "r"),
            policy("everyone & <all>", AccessTest.NOT_SO_LONG, AccessTest.FARTHER_YET, "raud"));
        table.setAccessPolicies(two);
        same(two.stream().map(PoliciesTest::text).toList(), policies(table), "policies read back");

        table.setAccessPolicies(many(5));
        same(many(5).stream().map(PoliciesTest::text).toList(), policies(table), "five policies replace the two");
        refused(400, "InvalidXmlDocument", () -> table.setAccessPolicies(many(6)), "six policies");
        same(many(5).stream().map(PoliciesTest::text).toList(), policies(table), "policies after the refusal");

        table.setAccessPolicies(List.of());
        same(List.of(), policies(table), "policies after clearing them");
    }

    @Scenario("stored-policy")
    void storedPolicy() {
        TableClient table = newTable();
        table.createEntity(entity("p", "r"));
        TableClient client = AccessTest.signed(table, new TableSasSignatureValues("team"));

        refused(403, "AuthenticationFailed", () -> client.getEntity("p", "r"), "get before the policy exists");
        grant(table, AccessTest.FAR_AHEAD, "r");
        client.getEntity("p", "r");
        refused(403, AccessTest.PERMISSION, () -> client.createEntity(entity("p", "x")), "insert by a policy for reading");
        grant(table, AccessTest.FAR_AHEAD, "a");
        client.createEntity(entity("p", "added"));
        refused(403, AccessTest.PERMISSION, () -> client.getEntity("p", "r"), "get after the policy was changed");
        grant(table, AccessTest.NOT_SO_LONG, "r");
        refused(403, "AuthenticationFailed", () -> client.getEntity("p", "r"), "get after the policy's end");
        grant(table, AccessTest.FAR_AHEAD, "r");
        client.getEntity("p", "r");
        table.setAccessPolicies(List.of());
        refused(403, "AuthenticationFailed", () -> client.getEntity("p", "r"), "get after the policy was removed");

        // A policy may leave permissions to the signature.
        table.setAccessPolicies(List.of(policy("team", AccessTest.LONG_AGO, AccessTest.FAR_AHEAD, null)));
        AccessTest.signed(table, new TableSasSignatureValues("team").setPermissions(TableSasPermission.parse("r"))).getEntity("p", "r");
    }

    private static void grant(TableClient table, OffsetDateTime expiry, String permissions) {
        table.setAccessPolicies(List.of(
            policy("team", AccessTest.LONG_AGO, expiry, permissions),
            policy("another", AccessTest.LONG_AGO, AccessTest.FAR_AHEAD, "raud")));
    }

    private static List<TableSignedIdentifier> many(int count) {
        return IntStream.range(0, count).mapToObj(i -> policy("policy-" + i, AccessTest.LONG_AGO, AccessTest.FAR_AHEAD, "ra")).toList();
    }

    private static TableSignedIdentifier policy(String id, OffsetDateTime start, OffsetDateTime expiry, String permissions) {
        return new TableSignedIdentifier(id)
            .setAccessPolicy(new TableAccessPolicy().setStartsOn(start).setExpiresOn(expiry).setPermissions(permissions));
    }

    private static List<String> policies(TableClient table) {
        List<TableSignedIdentifier> identifiers = table.getAccessPolicies().getIdentifiers();
        return identifiers == null ? List.of() : identifiers.stream().map(PoliciesTest::text).toList();
    }

    /** All of a policy, in a form that compares. */
    private static String text(TableSignedIdentifier identifier) {
        TableAccessPolicy policy = identifier.getAccessPolicy();
        return identifier.getId() + " " + policy.getStartsOn().toInstant() + " " + policy.getExpiresOn().toInstant() + " " + policy.getPermissions();
    }
}
