package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** Filters and projection. The SDK has no formatter for filter parameters, so literals are written out. */
class FiltersTest extends Fixture {
    @Scenario("filter-operators")
    void filterOperators() {
        TableClient table = newTable();
        for (int i = 0; i < 6; i++) {
            TableEntity entity = entity("p", "" + i, "N", i, "Even", i % 2 == 0);
            table.createEntity(i < 3 ? entity.addProperty("Name", "name" + i) : entity);
        }
        finds(table,
            "N eq 3", "3",
            "N ne 3", "0 1 2 4 5",
            "N gt 3", "4 5",
            "N ge 3", "3 4 5",
            "N lt 3", "0 1 2",
            "N le 3", "0 1 2 3",
            "N gt 1 and N lt 4", "2 3",
            "N lt 1 or N gt 4", "0 5",
            "not (N lt 4)", "4 5",
            "not(N lt 4)", "4 5",
            "not (N lt 2 or N gt 3)", "2 3",
            "N eq 5 or N gt 1 and N lt 3", "2 5",
            "(N eq 5 or N gt 1) and N lt 3", "2",
            "((N eq 1))", "1",
            "4 lt N", "5",
            "Even eq true and N gt 2", "4",
            "Even", "0 2 4",
            "not Even", "1 3 5",
            "N lt 2 and Name eq 'name1'", "1",
            // A comparison with a missing property is false, whatever its operator; `not` turns that around.
            "Name ne 'name1'", "0 2",
            "Name lt 'zzz'", "0 1 2",
            "not (Name eq 'name1')", "0 2 3 4 5",
            "Missing eq 1 or N eq 2", "2",
            "N gt 3 and N lt 3", "");
    }

    @Scenario("filter-literals")
    void filterLiterals() {
        TableClient table = newTable();
        String guid = "8f6b3a1c-0000-4d2e-9c57-0123456789";
        table.createEntity(entity("p", "a", "S", "it's", "I", -5, "L", 5_000_000_000L, "D", 2.5, "B", false,
            "T", OffsetDateTime.of(2024, 5, 1, 10, 0, 0, 123_456_700, ZoneOffset.UTC),
            "G", UUID.fromString(guid + "aa"), "X", new byte[] {0x0a, (byte) 0xff}));
        table.createEntity(entity("p", "b", "S", "its", "I", 5, "L", 5_000_000_001L, "D", 1e10, "B", true,
            "T", OffsetDateTime.of(2024, 5, 2, 10, 0, 0, 0, ZoneOffset.UTC),
            "G", UUID.fromString(guid + "bb"), "X", new byte[] {0x0b}));
        finds(table,
            "S eq 'it''s'", "a", "S ne 'it''s'", "b", "S gt 'it''s'", "b", "S eq 'ITS'", "",
            "I eq -5", "a", "I gt -5", "b",
            "L eq 5000000000L", "a", "L gt 5000000000L", "b", "L le 5000000001L", "a b",
            "D eq 2.5", "a", "D lt 3.0", "a", "D eq 1e10", "b", "D gt 2.5", "b",
            "B eq false", "a", "B eq true", "b", "B ne true", "a",
            "T eq datetime'2024-05-01T10:00:00.1234567Z'", "a", "T gt datetime'2024-05-01T10:00:00.1234567Z'", "b",
            "T eq datetime'2024-05-02T10:00:00Z'", "b", "T eq datetime'2024-05-02T10:00:00.0000000Z'", "b",
            "G eq guid'" + guid + "aa'", "a", "G ne guid'" + guid + "aa'", "b",
            "X eq X'0aff'", "a", "X eq X'0AFF'", "a", "X eq binary'0b'", "b", "X gt X'0aff'", "b",
            "Timestamp gt datetime'2020-01-01T00:00:00Z'", "a b", "Timestamp lt datetime'2020-01-01T00:00:00Z'", "",
            // A literal is widened to the property's type, never the other way; other types are never equal.
            "L gt 7", "a b", "D eq 10000000000L", "b", "D gt 2", "a b",
            "I eq 5L", "", "I eq 5.0", "", "I eq '5'", "", "S eq 5", "", "I ne '5'", "a b");
    }

    @Scenario("filter-keys")
    void filterKeys() {
        TableClient table = newTable();
        for (String partition : List.of("p3", "p1", "p2")) {
            for (String row : List.of("c", "a", "d", "b")) {
                table.createEntity(entity(partition, row, "K", partition + row));
            }
        }
        findsKeys(table,
            "PartitionKey eq 'p2' and RowKey eq 'b'", "p2 b",
            "PartitionKey eq 'p2' and RowKey eq 'missing'", "",
            "PartitionKey eq 'p2' and RowKey ge 'b' and RowKey lt 'd'", "p2 b,p2 c",
            "PartitionKey eq 'p2' and RowKey gt 'b'", "p2 c,p2 d",
            "PartitionKey eq 'p1'", "p1 a,p1 b,p1 c,p1 d",
            "PartitionKey eq 'p1' and K eq 'p1c'", "p1 c",
            "PartitionKey gt 'p1' and PartitionKey le 'p3' and RowKey eq 'a'", "p2 a,p3 a",
            "RowKey eq 'd'", "p1 d,p2 d,p3 d",
            "(PartitionKey eq 'p3' and RowKey eq 'a') or (PartitionKey eq 'p1' and RowKey eq 'c')", "p1 c,p3 a",
            "PartitionKey eq 'p2' and (RowKey eq 'd' or RowKey eq 'a' or RowKey eq 'x')", "p2 a,p2 d",
            "PartitionKey eq 'p3' and RowKey le 'b' or PartitionKey eq 'p1' and RowKey ge 'd'", "p1 d,p3 a,p3 b",
            "PartitionKey eq 'p1' and (RowKey lt 'c' or RowKey lt 'b')", "p1 a,p1 b",
            "not (PartitionKey eq 'p1') and not (RowKey ne 'a')", "p2 a,p3 a",
            "PartitionKey eq 'p1' and PartitionKey eq 'p2'", "",
            "PartitionKey eq 'P1'", "");

        // Keys order by UTF-16 code unit: upper case before lower, surrogate pairs before the last of the plane.
        List<String> ordered = List.of("", "A", "B", "a", "~", "é", "漢", "𝄞", "～");
        for (int i = ordered.size() - 1; i >= 0; i--) {
            table.createEntity(entity("order", ordered.get(i)));
        }
        same(ordered, rowList(table, "PartitionKey eq 'order'"), "order of row keys");
        same(ordered.subList(4, 8), rowList(table, "PartitionKey eq 'order' and RowKey gt 'a' and RowKey lt '～'"), "range over that order");
    }

    @Scenario("filter-errors")
    void filterErrors() {
        TableClient table = newTable();
        table.createEntity(entity("p", "r", "A", 1));
        List<String> malformed = List.of("aaa bbb ccc", "A eq", "eq 1", "A == 1", "(A eq 1", "A eq 1)", "A eq 'open", "A eq 1 and",
            "A eq 1 B eq 2", "A eq datetime'yesterday'", "A eq guid'1234'", "A eq null", "1");
        malformed.forEach(filter -> refused(400, "InvalidInput", () -> query(table, filter), filter));
        for (String filter : List.of("startswith(A,'x')", "A eq B")) {
            refused(501, "NotImplemented", () -> query(table, filter), filter);
        }
        same("r", rows(table, "A eq 1"), "a well-formed filter");
    }

    @Scenario("select")
    void select() {
        TableClient table = newTable();
        table.createEntity(entity("p", "full", "A", "a", "B", 2, "C", 3L));
        table.createEntity(entity("p", "half", "A", "half"));
        String etag = etagOf(table, "p", "full");

        List<TableEntity> got = choose(table, List.of("A", "C"), "PartitionKey eq 'p'");
        same(2, got.size(), "entities");
        TableEntity point = table.getEntityWithResponse("p", "full", List.of("A", "C"), null, null).getValue();
        for (TableEntity entity : List.of(got.get(0), point)) {
            same(Map.of("A", "a", "C", 3L), properties(entity), "chosen properties");
            assertNull(entity.getPartitionKey(), "a key that was not chosen");
            assertNull(entity.getTimestamp(), "Timestamp was not chosen");
            same(etag, entity.getETag(), "the etag comes along");
        }
        same("half", got.get(1).getProperty("A"), "chosen property");
        assertTrue(got.get(1).getProperties().containsKey("C"), "a chosen property that the entity lacks is there");
        assertNull(got.get(1).getProperty("C"), "a chosen property that the entity lacks is null");

        TableEntity whole = table.getEntity("p", "full");
        List<String> system = List.of("PartitionKey", "RowKey", "Timestamp");
        for (TableEntity entity : List.of(
            choose(table, system, "RowKey eq 'full'").get(0), table.getEntityWithResponse("p", "full", system, null, null).getValue())) {
            same(Map.of(), properties(entity), "no other property");
            same(key(whole), key(entity), "keys");
            same(whole.getTimestamp(), entity.getTimestamp(), "Timestamp");
        }
        same(Map.of("B", 2), properties(choose(table, List.of("B"), "A eq 'a'").get(0)), "filter on a property that is not chosen");
    }

    private static List<TableEntity> choose(TableClient table, List<String> names, String filter) {
        return table.listEntities(new ListEntitiesOptions().setSelect(names).setFilter(filter), null, null).stream().toList();
    }

    /** Alternating filters and the row keys they find; all are tried. */
    private void finds(TableClient table, String... cases) {
        for (int i = 0; i < cases.length; i += 2) {
            String filter = cases[i];
            String want = cases[i + 1];
            attempt(() -> same(want, rows(table, filter), filter), filter);
        }
    }

    private void findsKeys(TableClient table, String... cases) {
        for (int i = 0; i < cases.length; i += 2) {
            String filter = cases[i];
            String want = cases[i + 1];
            attempt(() -> same(want, String.join(",", keys(table, filter)), filter), filter);
        }
    }

    private static List<String> rowList(TableClient table, String filter) {
        return query(table, filter).stream().map(TableEntity::getRowKey).toList();
    }
}
