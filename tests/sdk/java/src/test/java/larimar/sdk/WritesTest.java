package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertNotEquals;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Writes: insert, replace, merge, the two upserts, delete, and their conditions. */
class WritesTest extends Fixture {
    private static final TableEntityUpdateMode MERGE = TableEntityUpdateMode.MERGE;
    private static final TableEntityUpdateMode REPLACE = TableEntityUpdateMode.REPLACE;

    @Scenario("insert-conflict")
    void insertConflict() {
        TableClient table = newTable();
        table.createEntity(entity("p", "r", "V", "first"));
        Map<String, Object> before = table.getEntity("p", "r").getProperties();

        refused(409, "EntityAlreadyExists", () -> table.createEntity(entity("p", "r", "V", "second", "W", "more")), "second insert of a key");
        same(before, table.getEntity("p", "r").getProperties(), "the first entity stays as it was");
        table.createEntity(entity("p", "R", "V", "keys have case"));
        table.createEntity(entity("P", "r", "V", "keys have case"));

        refused(404, "ResourceNotFound", () -> table.getEntity("p", "missing"), "get of a missing entity");
        refused(404, "ResourceNotFound", () -> update(table, entity("p", "missing"), REPLACE, false), "replace of a missing entity");
        refused(404, "ResourceNotFound", () -> update(table, entity("p", "missing"), MERGE, false), "merge of a missing entity");
        // The SDK keeps a missing entity to itself on delete, but for the status.
        same(404, table.deleteEntityWithResponse(entity("p", "missing"), false, null, null).getStatusCode(), "delete of a missing entity");

        TableClient absent = service().getTableClient(tableName());
        refused(404, "TableNotFound", () -> absent.createEntity(entity("p", "r")), "insert into a missing table");
        refused(404, "TableNotFound", () -> absent.getEntity("p", "r"), "get from a missing table");
        refused(404, "TableNotFound", () -> query(absent, "PartitionKey eq 'p'"), "query of a missing table");
        refused(404, "TableNotFound", () -> upsert(absent, entity("p", "r"), MERGE), "upsert into a missing table");
        same(404, absent.deleteEntityWithResponse(entity("p", "r"), false, null, null).getStatusCode(), "delete from a missing table");
    }

    @Scenario("etag-conflict")
    void etagConflict() {
        TableClient table = newTable();
        table.createEntity(entity("p", "r", "V", 1));
        String first = etagOf(table, "p", "r");
        same(204, update(table, withETag(entity("p", "r", "V", 2), first), REPLACE, true).getStatusCode(), "replace with the current etag");
        String replaced = etagOf(table, "p", "r");

        refused(412, "UpdateConditionNotSatisfied", () -> update(table, withETag(entity("p", "r", "V", 99), first), REPLACE, true), "replace with a stale etag");
        refused(412, "UpdateConditionNotSatisfied", () -> update(table, withETag(entity("p", "r", "V", 99), first), MERGE, true), "merge with a stale etag");
        refused(412, "UpdateConditionNotSatisfied", () -> remove(table, first), "delete with a stale etag");
        same(Map.of("V", 2), propertiesOf(table, "p", "r"), "value after refused writes");
        same(replaced, etagOf(table, "p", "r"), "etag after refused writes");

        update(table, withETag(entity("p", "r", "V", 3), replaced), MERGE, true);
        String merged = etagOf(table, "p", "r");
        update(table, withETag(entity("p", "r", "V", 4), first), REPLACE, false);
        String forced = etagOf(table, "p", "r");
        update(table, entity("p", "r", "V", 4), REPLACE, false);
        String same = etagOf(table, "p", "r");
        same(Map.of("V", 4), propertiesOf(table, "p", "r"), "value after a forced replace");
        Set<String> etags = new HashSet<>(List.of(first, replaced, merged, forced, same));
        same(5, etags.size(), "every write has a new etag");
        refused(400, "InvalidInput", () -> update(table, withETag(entity("p", "r", "V", 99), "not an etag"), REPLACE, true), "replace with a malformed etag");

        refused(412, "UpdateConditionNotSatisfied", () -> remove(table, forced), "delete with a stale etag");
        same(204, remove(table, same), "delete with the current etag");
        refused(404, "ResourceNotFound", () -> table.getEntity("p", "r"), "get after the delete");
        refused(404, "ResourceNotFound", () -> update(table, withETag(entity("p", "r", "V", 5), same), REPLACE, true), "replace after the delete");
        same(404, remove(table, same), "delete after the delete");
    }

    @Scenario("merge-and-replace")
    void mergeAndReplace() {
        TableClient table = newTable();
        table.createEntity(entity("p", "r", "A", "a", "B", 1, "C", true));

        update(table, entity("p", "r", "B", "now text", "D", 2.5), MERGE, false);
        same(Map.of("A", "a", "B", "now text", "C", true, "D", 2.5), propertiesOf(table, "p", "r"), "after a merge");
        update(table, entity("p", "r", "A", null, "C", false), MERGE, false);
        same(Map.of("A", "a", "B", "now text", "C", false, "D", 2.5), propertiesOf(table, "p", "r"), "a null leaves the old value");
        update(table, entity("p", "r", "E", "only"), REPLACE, false);
        same(Map.of("E", "only"), propertiesOf(table, "p", "r"), "after a replace");
        update(table, entity("p", "r"), REPLACE, false);
        same(Map.of(), propertiesOf(table, "p", "r"), "after a replace with nothing");

        // What a read gave may be written back with its metadata, which is not stored.
        TableEntity whole = table.getEntity("p", "r").addProperty("F", 1L);
        update(table, whole, REPLACE, true);
        same(Map.of("F", 1L), propertiesOf(table, "p", "r"), "after writing back what was read");
    }

    @Scenario("upserts")
    void upserts() {
        TableClient table = newTable();
        for (TableEntityUpdateMode mode : List.of(REPLACE, MERGE)) {
            String row = mode.toString();
            same(204, upsert(table, entity("p", row, "A", "a", "B", 1), mode).getStatusCode(), "absent entity, upsert by " + row);
            same(Map.of("A", "a", "B", 1), propertiesOf(table, "p", row), "absent entity, upsert by " + row);
            String inserted = etagOf(table, "p", row);
            same(204, upsert(table, entity("p", row, "B", 2, "C", "c"), mode).getStatusCode(), "present entity, upsert by " + row);
            Map<String, Object> want = mode == MERGE ? Map.of("A", "a", "B", 2, "C", "c") : Map.of("B", 2, "C", "c");
            same(want, propertiesOf(table, "p", row), "present entity, upsert by " + row);
            assertNotEquals(inserted, etagOf(table, "p", row), "etag after an upsert by " + row);
        }
        same(2, query(table, null).size(), "two entities in all");
    }

    private static int remove(TableClient table, String etag) {
        return table.deleteEntityWithResponse(withETag(entity("p", "r"), etag), true, null, null).getStatusCode();
    }
}
