package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Every id of {@code scenarios.toml} has exactly one test here, and every test an id there. */
class ScenarioListTest {
    private static final List<Class<?>> SUITE = List.of(
        TablesTest.class, ValuesTest.class, WritesTest.class, FiltersTest.class, PagingTest.class,
        TransactionsTest.class, KeysTest.class, AccessTest.class, PoliciesTest.class, ServiceTest.class,
        QueuesTest.class, MessagesTest.class, QueueAccessTest.class, QueueServiceTest.class,
        ContainersTest.class, BlobsTest.class, BlobReadsTest.class, BlocksTest.class, PagesTest.class, CopiesTest.class,
        ListsTest.class, LeasesTest.class, TagsTest.class, FeaturesTest.class, BlobAccessTest.class, BlobServiceTest.class, AnalyticsTest.class);

    @Test
    void everyScenarioHasItsTest() {
        List<String> listed = List.copyOf(services().keySet());
        List<String> tested = tested();
        assertFalse(listed.isEmpty(), "scenarios.toml names no scenario");
        for (String id : listed) {
            if (!tested.contains(id)) {
                Results.report(id, "failed", "this suite has no test for it");
            }
        }
        assertEquals(listed.stream().sorted().toList(), tested.stream().sorted().toList());
    }

    /** The service of every scenario: the {@code id = "..."} lines of the shared list, with the {@code service} before them. */
    static Map<String, String> services() {
        Map<String, String> services = new LinkedHashMap<>();
        String service = "table";
        try {
            for (String line : Files.readAllLines(Path.of("..", "scenarios.toml"))) {
                String value = line.substring(line.indexOf('=') + 1).replace("\"", "").strip();
                if (line.equals("[[scenario]]")) {
                    service = "table";
                } else if (line.startsWith("service = ")) {
                    service = value;
                } else if (line.startsWith("id = ")) {
                    services.put(value, service);
                }
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return services;
    }

    private static List<String> tested() {
        List<String> ids = new ArrayList<>();
        for (Class<?> topic : SUITE) {
            for (Method method : topic.getDeclaredMethods()) {
                if (method.isAnnotationPresent(Scenario.class)) {
                    ids.add(method.getAnnotation(Scenario.class).value());
                }
            }
        }
        return ids;
    }
}
