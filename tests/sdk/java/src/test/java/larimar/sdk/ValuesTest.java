package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** Values: every EDM type comes back as it was written, up to the limits. */
class ValuesTest extends Fixture {
    private static final String ETAG_SHAPE = "W/\"datetime'\\d{4}-\\d\\d-\\d\\dT\\d\\d%3A\\d\\d%3A\\d\\d(\\.\\d{1,7})?Z'\"";

    @Scenario("entity-types")
    void entityTypes() {
        TableClient table = newTable();
        byte[] bytes = {0, 1, 2, (byte) 0xfd, (byte) 0xfe, (byte) 0xff};
        Map<String, Object> want = new LinkedHashMap<>();
        want.put("String", "text");
        want.put("Int32", -42);
        want.put("Int64", 1L << 40);
        want.put("Double", 2.5);
        want.put("True", true);
        want.put("False", false);
        want.put("DateTime", OffsetDateTime.of(2024, 2, 29, 12, 34, 56, 789_000_000, ZoneOffset.UTC));
        want.put("Guid", UUID.fromString("8f6b3a1c-0000-4d2e-9c57-0123456789ab"));
        want.put("Binary", bytes);
        TableEntity sent = entity("p", "r");
        want.forEach(sent::addProperty);
        table.createEntity(sent);

        TableEntity got = table.getEntity("p", "r");
        sameProperties(want, got, "point get");
        sameProperties(want, query(table, null).get(0), "query");
        assertTrue(got.getETag().matches(ETAG_SHAPE), got.getETag());
        String stamp = got.getTimestamp().format(DateTimeFormatter.ISO_OFFSET_DATE_TIME);
        same(trimmed(stamp), trimmed(got.getETag().replace("W/\"datetime'", "").replace("'\"", "").replace("%3A", ":")), "etag spells the timestamp");

        // The SDK asks for full metadata on every read.
        Map<String, Object> members = got.getProperties();
        same(ACCOUNT + "." + table.getTableName(), members.get("odata.type"), "odata.type");
        same(ENDPOINT + "/" + table.getTableName() + "(PartitionKey='p',RowKey='r')", members.get("odata.id"), "odata.id");
        same(table.getTableName() + "(PartitionKey='p',RowKey='r')", members.get("odata.editLink"), "odata.editLink");
        same("Edm.DateTime", members.get("Timestamp@odata.type"), "type of Timestamp");

        // The same name may have another type on another entity, and a client cannot set Timestamp.
        OffsetDateTime early = OffsetDateTime.of(2001, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);
        table.createEntity(entity("p", "other", "Int32", "now a string", "Timestamp", early));
        same(Map.of("Int32", "now a string"), propertiesOf(table, "p", "other"), "another type under the same name");
        assertNotEquals(early, table.getEntity("p", "other").getTimestamp());
    }

    @Scenario("int64-extremes")
    void int64Extremes() {
        TableClient table = newTable();
        Map<String, Object> want = Map.of("Max64", Long.MAX_VALUE, "Min64", Long.MIN_VALUE, "Past53", (1L << 53) + 1, "Zero64", 0L,
            "Max32", Integer.MAX_VALUE, "Min32", Integer.MIN_VALUE);
        TableEntity sent = entity("p", "r");
        want.forEach(sent::addProperty);
        table.createEntity(sent);
        same(want, propertiesOf(table, "p", "r"), "point get");
        same(want, properties(query(table, null).get(0)), "query");
        refused(400, "InvalidInput",
            () -> table.createEntity(entity("p", "over", "V", "9223372036854775808", "V@odata.type", "Edm.Int64")), "an Int64 past the largest");
    }

    /** The SDK annotates no doubles, so those that JSON has no number for are annotated here. */
    @Scenario("double-specials")
    void doubleSpecials() {
        TableClient table = newTable();
        Map<String, Double> want = new LinkedHashMap<>();
        want.put("NotANumber", Double.NaN);
        want.put("Positive", Double.POSITIVE_INFINITY);
        want.put("Negative", Double.NEGATIVE_INFINITY);
        want.put("Whole", 3.0);
        want.put("Zero", 0.0);
        want.put("Large", 1e21);
        want.put("Larger", 12345678901234567890.0);
        want.put("Max", Double.MAX_VALUE);
        want.put("Min", -Double.MAX_VALUE);
        want.put("Small", Double.MIN_NORMAL);
        want.put("Smallest", Double.MIN_VALUE);
        want.put("Tenth", 0.1);
        want.put("Third", 1.0 / 3);
        TableEntity sent = entity("p", "r");
        want.forEach((name, value) -> {
            sent.addProperty(name, value);
            if (value.isNaN() || value.isInfinite()) {
                sent.addProperty(name + "@odata.type", "Edm.Double");
            }
        });
        table.createEntity(sent);

        for (Map<String, Object> got : List.of(propertiesOf(table, "p", "r"), properties(query(table, null).get(0)))) {
            want.forEach((name, value) -> same(value, got.get(name), name));
        }
        same("r", rows(table, "Whole eq 3.0"), "filter with a double literal");
        same("r", rows(table, "Larger gt 1e19"), "filter with an exponent");
    }

    @Scenario("datetime-extremes")
    void datetimeExtremes() {
        TableClient table = newTable();
        Map<String, Object> want = Map.of(
            "First", OffsetDateTime.of(1601, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC),
            "Last", OffsetDateTime.of(9999, 12, 31, 23, 59, 59, 999_999_900, ZoneOffset.UTC),
            "Tick", OffsetDateTime.of(2024, 1, 1, 0, 0, 0, 100, ZoneOffset.UTC),
            "Tenths", OffsetDateTime.of(2024, 1, 1, 23, 59, 59, 120_000_000, ZoneOffset.UTC),
            "Whole", OffsetDateTime.of(1970, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC));
        TableEntity sent = entity("p", "r");
        want.forEach(sent::addProperty);
        table.createEntity(sent);
        same(want, propertiesOf(table, "p", "r"), "point get");
        same("r", rows(table, "Tick gt datetime'2024-01-01T00:00:00Z'"), "a tick counts in a filter");

        OffsetDateTime zoned = OffsetDateTime.of(2024, 6, 1, 12, 0, 0, 0, ZoneOffset.ofHours(2));
        table.createEntity(entity("p", "zoned", "V", zoned));
        same(Map.of("V", zoned.withOffsetSameInstant(ZoneOffset.UTC)), propertiesOf(table, "p", "zoned"), "an offset becomes UTC");

        OffsetDateTime early = OffsetDateTime.of(1600, 12, 31, 23, 59, 59, 999_999_900, ZoneOffset.UTC);
        refused(400, "OutOfRangeInput", () -> table.createEntity(entity("p", "early", "V", early)), "a DateTime before 1601");
    }

    @Scenario("strings")
    void strings() {
        TableClient table = newTable();
        Map<String, Object> want = new LinkedHashMap<>();
        want.put("Empty", "");
        want.put("Space", " ");
        want.put("Blanks", "  two before, two after  ");
        want.put("Quotes", "it's \"quoted\" ''twice''");
        want.put("Control", "tab\tline\nreturn\rone\u0001unit\u001fdelete\u007f");
        want.put("Backslash", "C:\\temp\\\"x\"/");
        want.put("Accents", "ünïcødé e\u0301");
        want.put("Han", "漢字かな");
        want.put("Astral", "🚀 𝄞 👩‍👩‍👧");
        want.put("Separators", "\u2028\u2029\ufeff\u00a0");
        want.put("Markup", "<a href='x'>&amp;</a>");
        want.put("LooksTyped", "2024-01-01T00:00:00Z");
        want.put("Digits", "123");
        TableEntity sent = entity("p", "r");
        want.forEach(sent::addProperty);
        table.createEntity(sent);
        same(want, propertiesOf(table, "p", "r"), "point get");
        same(want, properties(query(table, null).get(0)), "query");
        for (String name : new String[] {"Empty", "Quotes", "Han", "Astral", "Blanks"}) {
            String literal = ((String) want.get(name)).replace("'", "''");
            same("r", rows(table, name + " eq '" + literal + "'"), "filter by " + name);
        }
    }

    @Scenario("large-values")
    void largeValues() {
        TableClient table = newTable();
        accepted(table, entity("p", "string of 64 KiB", "V", "x".repeat(32768)));
        refusedAs("PropertyValueTooLarge", table, entity("p", "string past 64 KiB", "V", "x".repeat(32769)));
        accepted(table, entity("p", "three-byte characters", "V", "漢".repeat(32768)));
        accepted(table, entity("p", "surrogate pairs", "V", "🚀".repeat(16384)));
        refusedAs("PropertyValueTooLarge", table, entity("p", "one pair past", "V", "🚀".repeat(16385)));
        accepted(table, entity("p", "binary of 64 KiB", "V", bytes(65536)));
        refusedAs("PropertyValueTooLarge", table, entity("p", "binary past 64 KiB", "V", bytes(65537)));
        accepted(table, numbered("252 properties", 252, 7));
        refusedAs("TooManyProperties", table, numbered("253 properties", 253, 7));
        accepted(table, numbered("almost 1 MiB", 15, bytes(65536)));
        refusedAs("EntityTooLarge", table, numbered("past 1 MiB", 17, bytes(65536)));
    }

    private void accepted(TableClient table, TableEntity entity) {
        attempt(() -> {
            table.createEntity(entity);
            sameProperties(properties(entity), table.getEntity("p", entity.getRowKey()), entity.getRowKey());
        }, entity.getRowKey());
    }

    private void refusedAs(String code, TableClient table, TableEntity entity) {
        refused(400, code, () -> table.createEntity(entity), entity.getRowKey());
    }

    static TableEntity numbered(String row, int count, Object value) {
        TableEntity entity = entity("p", row);
        for (int i = 0; i < count; i++) {
            entity.addProperty(String.format("P%03d", i), value);
        }
        return entity;
    }

    private static byte[] bytes(int count) {
        byte[] bytes = new byte[count];
        Arrays.fill(bytes, (byte) 0xa5);
        return bytes;
    }

    /** One by one, since arrays in a map do not compare. */
    private void sameProperties(Map<String, Object> want, TableEntity entity, String what) {
        Map<String, Object> got = properties(entity);
        same(want.keySet(), got.keySet(), what);
        want.forEach((name, value) -> same(value, got.get(name), what + ": " + name));
    }

    /** Java prints fractions in groups of three digits, the service without trailing zeros. */
    private static String trimmed(String time) {
        return time.contains(".") ? time.replaceAll("0*Z$", "Z") : time;
    }
}
