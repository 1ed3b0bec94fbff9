package larimar.sdk;


import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Keys: characters that need care on the way to the server, and those that are not allowed. */
class KeysTest extends Fixture {
    private static final List<String> SPECIAL = List.of(
        "it's", "'", "''", "a''''b", "100%", "%25", "a%2Fb", "a b", " lead", "trail ", "a+b", "a&b=c", "say \"hi\"",
        "(x)", "a,b", "semi;colon:at@", "$!*~", "[]{}|^`", "<tag>", "ünïcødé", "漢字", "🚀", "a.b..", "RowKey='x'", "");

    @Scenario("special-keys")
    void specialKeys() {
        TableClient table = newTable();
        for (String key : SPECIAL) {
            attempt(() -> life(table, key, "r"), "partition key '" + key + "'");
            attempt(() -> life(table, "p", key), "row key '" + key + "'");
            attempt(() -> life(table, key, key), "both keys '" + key + "'");
        }

        TableClient other = newTable();
        List<TableTransactionAction> creates = new ArrayList<>();
        List<TableTransactionAction> merges = new ArrayList<>();
        List<TableTransactionAction> deletes = new ArrayList<>();
        for (String key : SPECIAL) {
            creates.add(new TableTransactionAction(TableTransactionActionType.CREATE, entity("it's 100%", key)));
            merges.add(new TableTransactionAction(TableTransactionActionType.UPDATE_MERGE, entity("it's 100%", key, "V", 1)));
            deletes.add(new TableTransactionAction(TableTransactionActionType.DELETE, entity("it's 100%", key)));
        }
        other.submitTransaction(creates);
        other.submitTransaction(merges);
        same(SPECIAL.size(), query(other, "PartitionKey eq 'it''s 100%' and V eq 1").size(), "entities after two transactions");
        other.submitTransaction(deletes);
        same(List.of(), keys(other, null), "entities after the third transaction");
    }

    /** Takes one key through every operation that spells it in a body, a URL or a filter. */
    private void life(TableClient table, String partitionKey, String rowKey) {
        String what = "keys '" + partitionKey + "' '" + rowKey + "'";
        table.createEntity(entity(partitionKey, rowKey, "V", 1));
        refused(409, "EntityAlreadyExists", () -> table.createEntity(entity(partitionKey, rowKey)), "insert again " + what);
        update(table, entity(partitionKey, rowKey, "W", 2), TableEntityUpdateMode.MERGE, false);
        TableEntity got = table.getEntity(partitionKey, rowKey);
        same(List.of(partitionKey, rowKey), List.of(got.getPartitionKey(), got.getRowKey()), what);
        same(Map.of("V", 1, "W", 2), properties(got), what);

        String filter = "PartitionKey eq '" + partitionKey.replace("'", "''") + "' and RowKey eq '" + rowKey.replace("'", "''") + "'";
        same(List.of(rowKey), query(table, filter).stream().map(TableEntity::getRowKey).toList(), "filter for " + what);
        same(204, table.deleteEntityWithResponse(entity(partitionKey, rowKey), false, null, null).getStatusCode(), "delete " + what);
        same(List.of(), keys(table, filter), "filter after delete of " + what);
    }

    @Scenario("forbidden-keys")
    void forbiddenKeys() {
        TableClient table = newTable();
        for (String character : List.of("/", "\\", "#", "?", "\t", "\n", "\u0001", "\u007f", "\u0085")) {
            String key = "a" + character + "b";
            refused(400, "OutOfRangeInput", () -> table.createEntity(entity(key, "r")), "insert with partition key " + key);
            refused(400, "OutOfRangeInput", () -> table.createEntity(entity("p", key)), "insert with row key " + key);
        }
        // In a URL the slashes are a matter of syntax.
        Map.of("/", "InvalidInput", "\\", "InvalidInput", "#", "OutOfRangeInput", "?", "OutOfRangeInput").forEach((character, code) -> {
            String key = "a" + character + "b";
            refused(400, code, () -> upsert(table, entity("p", key), TableEntityUpdateMode.REPLACE), "upsert with row key " + key);
            refused(400, code, () -> upsert(table, entity(key, "r"), TableEntityUpdateMode.MERGE), "upsert with partition key " + key);
        });
        same(List.of(), keys(table, null), "entities in the end");
    }
}
