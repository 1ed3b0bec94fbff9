package larimar.sdk;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static com.azure.data.tables.models.TableTransactionActionType.DELETE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_REPLACE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_REPLACE;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionResult;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Transactions: all kinds of operation, failures by index, the rules that refuse a whole batch. */
class TransactionsTest extends Fixture {
    private static final int OPERATIONS_MAX = 100;

    /** One kind of operation and what becomes of an entity; a null outcome is its absence. */
    private record Kind(String name, TableTransactionActionType type, boolean present, boolean ifUnchanged, Map<String, Object> outcome) {
    }

    /** Ten kinds of operation, ten rows each; every kind has its own outcome. */
    @Scenario("transaction")
    void transaction() {
        TableClient table = newTable();
        Map<String, Object> sent = Map.of("Both", 2, "New", "new");
        Map<String, Object> merged = Map.of("Old", "old", "Both", 2, "New", "new");
        List<Kind> kinds = List.of(
            new Kind("create", CREATE, false, false, sent),
            new Kind("delete-any", DELETE, true, false, null),
            new Kind("delete-etag", DELETE, true, true, null),
            new Kind("merge-any", UPDATE_MERGE, true, false, merged),
            new Kind("merge-etag", UPDATE_MERGE, true, true, merged),
            new Kind("replace-any", UPDATE_REPLACE, true, false, sent),
            new Kind("replace-etag", UPDATE_REPLACE, true, true, sent),
            new Kind("upsert-merge", UPSERT_MERGE, true, false, merged),
            new Kind("upsert-merge-absent", UPSERT_MERGE, false, false, sent),
            new Kind("upsert-replace", UPSERT_REPLACE, true, false, sent));
        List<TableTransactionAction> actions = new ArrayList<>();
        Map<String, String> etags = new HashMap<>();
        for (Kind kind : kinds) {
            for (int i = 0; i < 10; i++) {
                String row = kind.name() + "-" + i;
                TableEntity entity = entity("p", row, "Both", 2, "New", "new");
                if (kind.present()) {
                    table.createEntity(entity("p", row, "Old", "old", "Both", 1));
                    etags.put(row, etagOf(table, "p", row));
                    withETag(entity, etags.get(row));
                }
                actions.add(new TableTransactionAction(kind.type(), entity, kind.ifUnchanged()));
            }
        }
        TableTransactionResult result = table.submitTransaction(actions);
        same(Collections.nCopies(OPERATIONS_MAX, 204),
            result.getTransactionActionResponses().stream().map(answer -> answer.getStatusCode()).toList(), "one answer for each operation");

        for (Kind kind : kinds) {
            for (int i = 0; i < 10; i++) {
                String row = kind.name() + "-" + i;
                if (kind.outcome() == null) {
                    refused(404, "ResourceNotFound", () -> table.getEntity("p", row), row);
                } else {
                    same(kind.outcome(), propertiesOf(table, "p", row), row);
                    assertNotEquals(etags.get(row), etagOf(table, "p", row), row);
                }
            }
        }
    }

    @Scenario("transaction-failure")
    void transactionFailure() {
        TableClient table = newTable();
        table.createEntity(entity("p", "present", "V", 0));
        String stale = etagOf(table, "p", "present");
        update(table, entity("p", "present", "V", 1), TableEntityUpdateMode.REPLACE, false);
        Map<String, Object> before = table.getEntity("p", "present").getProperties();
        TableEntity present = withETag(entity("p", "present", "V", 9), stale);
        TableEntity missing = entity("p", "missing", "V", 9);

        applyNothing(table, before, "insert of a present key", "EntityAlreadyExists", 2,
            add("n0"), add("n1"), add("present"), add("n3"));
        applyNothing(table, before, "replace with a stale etag", "UpdateConditionNotSatisfied", 1,
            add("n0"), new TableTransactionAction(UPDATE_REPLACE, present, true));
        applyNothing(table, before, "merge of a missing entity", "ResourceNotFound", 3,
            add("n0"), add("n1"), add("n2"), new TableTransactionAction(UPDATE_MERGE, missing));
        applyNothing(table, before, "delete with a stale etag, between inserts", "UpdateConditionNotSatisfied", 1,
            add("n0"), new TableTransactionAction(DELETE, present, true), add("n2"));
        applyNothing(table, before, "delete of a missing entity", "ResourceNotFound", 1,
            new TableTransactionAction(UPSERT_REPLACE, present), new TableTransactionAction(DELETE, missing));
        applyNothing(table, before, "a value out of bounds", "TooManyProperties", 1,
            add("n0"), new TableTransactionAction(CREATE, ValuesTest.numbered("n1", 253, 7)));

        TableClient absent = service().getTableClient(tableName());
        failed("TableNotFound", 0, () -> absent.submitTransaction(List.of(add("n0"), add("n1"))), "transaction on a missing table");
    }

    @Scenario("transaction-rules")
    void transactionRules() {
        TableClient table = newTable();
        List<TableTransactionAction> many = new ArrayList<>();
        for (int i = 0; i <= OPERATIONS_MAX; i++) {
            many.add(add(String.format("%03d", i)));
        }
        failed("InvalidDuplicateRow", 1, () -> table.submitTransaction(List.of(add("a"), add("a"))), "an entity twice");
        failed("InvalidDuplicateRow", 2, () -> table.submitTransaction(List.of(add("a"), add("b"), new TableTransactionAction(UPSERT_MERGE, entity("p", "a")))),
            "an entity twice, by two kinds");
        failed("CommandsInBatchActOnDifferentPartitions", 1,
            () -> table.submitTransaction(List.of(add("a"), new TableTransactionAction(CREATE, entity("q", "b")))), "two partitions");
        failed("InvalidInput", 99, () -> table.submitTransaction(many), "101 operations");
        same(List.of(), keys(table, null), "nothing is applied");

        table.submitTransaction(many.subList(0, OPERATIONS_MAX));
        same(OPERATIONS_MAX, keys(table, null).size(), "entities after 100 operations");
    }

    private void applyNothing(TableClient table, Map<String, Object> before, String what, String code, int index, TableTransactionAction... actions) {
        failed(code, index, () -> table.submitTransaction(List.of(actions)), what);
        same(List.of(before), query(table, null).stream().map(TableEntity::getProperties).toList(), "nothing is applied: " + what);
    }

    private static TableTransactionAction add(String row) {
        return new TableTransactionAction(CREATE, entity("p", row, "V", 9));
    }
}
