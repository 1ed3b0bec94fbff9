package larimar.sdk;


import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.sas.TableAccountSasPermission;
import com.azure.data.tables.sas.TableAccountSasResourceType;
import com.azure.data.tables.sas.TableAccountSasService;
import com.azure.data.tables.sas.TableAccountSasSignatureValues;
import com.azure.data.tables.sas.TableSasIpRange;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasProtocol;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/** Access: the account's key, shared access signatures of a table and of the account. */
class AccessTest extends Fixture {
    // Times far from the present, so that no test depends on the clock.
    static final OffsetDateTime LONG_AGO = OffsetDateTime.of(2001, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);
    static final OffsetDateTime NOT_SO_LONG = OffsetDateTime.of(2002, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);
    static final OffsetDateTime FAR_AHEAD = OffsetDateTime.of(2099, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);
    static final OffsetDateTime FARTHER_YET = OffsetDateTime.of(2100, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);

    static final String PERMISSION = "AuthorizationPermissionMismatch";
    private static final String RESOURCE = "AuthorizationResourceTypeMismatch";
    private static final String OUTSIDE = "AuthorizationFailure";
    private static final TableEntityUpdateMode MERGE = TableEntityUpdateMode.MERGE;
    private static final TableEntityUpdateMode REPLACE = TableEntityUpdateMode.REPLACE;

    @Scenario("bad-signature")
    void badSignature() {
        TableClient table = newTable();
        String wrong = Base64.getEncoder().encodeToString("k".repeat(64).getBytes());
        TableServiceClient service = builder().credential(new AzureNamedKeyCredential(ACCOUNT, wrong)).buildClient();
        TableClient intruder = service.getTableClient(table.getTableName());
        String unused = tableName();

        refused(403, "AuthenticationFailed", () -> service.createTable(unused), "create a table");
        refused(403, "AuthenticationFailed", () -> intruder.createEntity(entity("p", "r")), "insert");
        refused(403, "AuthenticationFailed", () -> intruder.getEntity("p", "r"), "get");
        refused(403, "AuthenticationFailed", () -> query(intruder, "PartitionKey eq 'p'"), "query");
        refused(403, "AuthenticationFailed", () -> intruder.submitTransaction(List.of(create("p", "r"))), "transaction");
        refused(403, "AuthenticationFailed", intruder::getAccessPolicies, "read the access policies");
        refused(403, "AuthenticationFailed", service::getProperties, "read the service properties");
        same(List.of(), keys(table, null), "entities in the end");
    }

    @Scenario("table-sas")
    void tableSas() {
        TableClient table = newTable();
        table.createEntity(entity("p", "r", "V", 1));
        eachPermission(table);

        signed(table, values("raud")).submitTransaction(List.of(create("p", "batch"),
            new TableTransactionAction(TableTransactionActionType.DELETE, entity("p", "r"))));
        same(List.of("p batch"), keys(table, null), "entities after a transaction with every permission");

        signed(table, values("r").setProtocol(TableSasProtocol.HTTPS_HTTP).setSasIpRange(TableSasIpRange.parse("127.0.0.1"))).getEntity("p", "batch");
        notGotten("AuthenticationFailed", table, values("r").setStartTime(LONG_AGO).setExpiryTime(NOT_SO_LONG), "expired");
        notGotten("AuthenticationFailed", table, values("r").setStartTime(FAR_AHEAD).setExpiryTime(FARTHER_YET), "not yet valid");
        notGotten("AuthorizationProtocolMismatch", table, values("r").setProtocol(TableSasProtocol.HTTPS_ONLY), "over http");
        notGotten("AuthorizationSourceIPMismatch", table, values("r").setSasIpRange(TableSasIpRange.parse("203.0.113.7")), "from elsewhere");
        String forged = table.generateSas(values("r")).replace("sp=r", "sp=raud");
        refused(403, "AuthenticationFailed", () -> withToken(forged).getTableClient(table.getTableName()).getEntity("p", "batch"), "a changed token");
    }

    /** Every write and read with one permission each. */
    private void eachPermission(TableClient table) {
        TableClient reader = signed(table, values("r").setStartTime(LONG_AGO));
        TableClient adder = signed(table, values("a"));
        TableClient updater = signed(table, values("u"));
        TableClient deleter = signed(table, values("d"));
        same(Map.of("V", 1), propertiesOf(reader, "p", "r"), "get with r");
        same(List.of("p r"), keys(reader, null), "query with r");
        refused(403, PERMISSION, () -> reader.createEntity(entity("p", "x")), "insert with r");
        adder.createEntity(entity("p", "added"));
        refused(403, PERMISSION, () -> adder.getEntity("p", "r"), "get with a");
        refused(403, PERMISSION, () -> query(adder, "PartitionKey eq 'p'"), "query with a");
        refused(403, PERMISSION, () -> upsert(adder, entity("p", "upserted"), MERGE), "upsert with a");
        update(updater, entity("p", "r", "V", 2), REPLACE, false);
        refused(403, PERMISSION, () -> upsert(updater, entity("p", "upserted"), MERGE), "upsert with u");
        upsert(signed(table, values("au")), entity("p", "upserted"), MERGE);
        refused(403, PERMISSION, () -> deleter.createEntity(entity("p", "x")), "insert with d");
        deleter.deleteEntity("p", "added");
        deleter.deleteEntity("p", "upserted");
        refused(403, PERMISSION, () -> reader.deleteEntity("p", "r"), "delete with r");
        same(List.of("p r"), keys(table, null), "entities");

        String token = table.generateSas(values("raud"));
        String other = newTable().getTableName();
        String unused = tableName();
        refused(403, OUTSIDE, () -> withToken(token).getTableClient(other).getEntity("p", "r"), "get from another table");
        refused(403, OUTSIDE, () -> withToken(token).createTable(unused), "create a table");
    }

    /** The SDK wants both keys for an end of a range, or none. */
    @Scenario("sas-key-range")
    void sasKeyRange() {
        TableClient table = newTable();
        for (String partition : List.of("p1", "p2", "p3")) {
            for (String row : List.of("a", "b", "c", "d")) {
                table.createEntity(entity(partition, row));
            }
        }
        TableClient rows = signed(table, from(to(values("raud"), "p2", "c"), "p2", "b"));
        same(List.of("p2 b", "p2 c"), keys(rows, null), "query within rows");
        same(List.of(), keys(rows, "PartitionKey eq 'p1'"), "query outside the range");
        same(List.of("p2 c"), keys(rows, "PartitionKey eq 'p2' and RowKey ge 'c'"), "query across the range's end");
        rows.getEntity("p2", "b");
        refused(404, "ResourceNotFound", () -> rows.getEntity("p2", "a"), "get before the range");
        rows.createEntity(entity("p2", "bb"));
        refused(403, OUTSIDE, () -> rows.createEntity(entity("p2", "e")), "insert behind the range");
        refused(403, OUTSIDE, () -> rows.createEntity(entity("p3", "b")), "insert into another partition");
        refused(403, OUTSIDE, () -> update(rows, entity("p2", "d"), REPLACE, false), "replace behind the range");
        refused(403, OUTSIDE, () -> upsert(rows, entity("p1", "b"), MERGE), "upsert before the range");
        refused(403, OUTSIDE, () -> rows.deleteEntity("p2", "a"), "delete before the range");
        try {
            rows.submitTransaction(List.of(create("p2", "bc"), create("p2", "z")));
            same(OUTSIDE, "accepted", "transaction with one row outside");
        } catch (HttpResponseException error) {
            same(OUTSIDE, codeOf(error), "transaction with one row outside");
        }
        same(List.of("p2 a", "p2 b", "p2 bb", "p2 c", "p2 d"), keys(table, "PartitionKey eq 'p2'"), "rows in the end");

        TableClient across = signed(table, from(to(values("r"), "p3", "a"), "p1", "d"));
        same(List.of("p1 d", "p2 a", "p2 b", "p2 c", "p2 d", "p3 a"), keys(across, "RowKey ne 'bb'"), "query across partitions");
        TableClient tail = signed(table, from(values("r"), "p3", "c"));
        same(List.of("p3 c", "p3 d"), keys(tail, null), "query from a row on");
        TableClient head = signed(table, to(values("r"), "p1", "b"));
        same(List.of("p1 a", "p1 b"), keys(head, null), "query up to a row");
        refused(404, "ResourceNotFound", () -> head.getEntity("p2", "a"), "get behind the range");
    }

    @Scenario("account-sas")
    void accountSas() {
        String name = tableName();
        String unused = tableName();
        with("t", "c", "c").createTable(name);
        refused(403, RESOURCE, () -> with("t", "o", "rwdlacu").createTable(unused), "create a table with o");
        refused(403, PERMISSION, () -> with("t", "c", "r").createTable(unused), "create a table with r");
        same(List.of(name), TablesTest.list(with("t", "c", "l"), new ListTablesOptions().setFilter("TableName eq '" + name + "'")), "list tables with c, l");

        entities(name, "a").createEntity(entity("p", "r", "V", 1));
        same(Map.of("V", 1), propertiesOf(entities(name, "r"), "p", "r"), "get with o, r");
        same(List.of("p r"), keys(entities(name, "r"), null), "query with o, r");
        refused(403, PERMISSION, () -> entities(name, "r").createEntity(entity("p", "x")), "insert with r");
        refused(403, RESOURCE, () -> with("t", "sc", "rwdlacu").getTableClient(name).getEntity("p", "r"), "get with s and c");
        update(entities(name, "u"), entity("p", "r"), MERGE, false);
        refused(403, PERMISSION, () -> upsert(entities(name, "u"), entity("p", "r"), MERGE), "upsert with u");
        upsert(entities(name, "au"), entity("p", "r"), MERGE);
        entities(name, "d").deleteEntity("p", "r");
        same(List.of(), keys(entities(name, "r"), null), "entities after the delete");
        with("t", "s", "r").getProperties();
        refused(403, RESOURCE, () -> with("t", "co", "r").getProperties(), "service properties with c and o");

        TableAccountSasSignatureValues several = accountValues("bqt", "sco", "rwdlacu").setStartTime(LONG_AGO).setProtocol(TableSasProtocol.HTTPS_HTTP);
        same(List.of(), keys(withToken(service().generateAccountSas(several)).getTableClient(name), null), "query, several services");
        notQueried("AuthorizationServiceMismatch", name, accountValues("bq", "sco", "rwdlacu"), "other services");
        notQueried("AuthorizationProtocolMismatch", name, accountValues("t", "sco", "rwdlacu").setProtocol(TableSasProtocol.HTTPS_ONLY), "over http");
        notQueried("AuthorizationSourceIPMismatch", name, accountValues("t", "sco", "rwdlacu").setSasIpRange(TableSasIpRange.parse("203.0.113.7")), "from elsewhere");
        notQueried("AuthenticationFailed", name, new TableAccountSasSignatureValues(NOT_SO_LONG, TableAccountSasPermission.parse("r"),
            TableAccountSasService.parse("t"), TableAccountSasResourceType.parse("o")), "expired");

        same(204, with("t", "c", "d").deleteTableWithResponse(name, null, null).getStatusCode(), "delete the table with c, d");
    }

    static TableTransactionAction create(String partitionKey, String rowKey) {
        return new TableTransactionAction(TableTransactionActionType.CREATE, entity(partitionKey, rowKey));
    }

    static TableSasSignatureValues values(String permissions) {
        return new TableSasSignatureValues(FAR_AHEAD, TableSasPermission.parse(permissions));
    }

    private static TableSasSignatureValues from(TableSasSignatureValues values, String partitionKey, String rowKey) {
        return values.setStartPartitionKey(partitionKey).setStartRowKey(rowKey);
    }

    private static TableSasSignatureValues to(TableSasSignatureValues values, String partitionKey, String rowKey) {
        return values.setEndPartitionKey(partitionKey).setEndRowKey(rowKey);
    }

    /** A client of the table that has a signature and no key. */
    static TableClient signed(TableClient table, TableSasSignatureValues values) {
        return withToken(table.generateSas(values)).getTableClient(table.getTableName());
    }

    private static TableServiceClient withToken(String token) {
        return builder().sasToken(token).buildClient();
    }

    private void notGotten(String code, TableClient table, TableSasSignatureValues values, String what) {
        refused(403, code, () -> signed(table, values).getEntity("p", "batch"), what);
    }

    private static TableAccountSasSignatureValues accountValues(String services, String types, String permissions) {
        return new TableAccountSasSignatureValues(FAR_AHEAD, TableAccountSasPermission.parse(permissions),
            TableAccountSasService.parse(services), TableAccountSasResourceType.parse(types));
    }

    private static TableServiceClient with(String services, String types, String permissions) {
        return withToken(service().generateAccountSas(accountValues(services, types, permissions)));
    }

    private static TableClient entities(String name, String permissions) {
        return with("t", "o", permissions).getTableClient(name);
    }

    private void notQueried(String code, String name, TableAccountSasSignatureValues values, String what) {
        refused(403, code, () -> query(withToken(service().generateAccountSas(values)).getTableClient(name), "PartitionKey eq 'p'"), what);
    }
}
