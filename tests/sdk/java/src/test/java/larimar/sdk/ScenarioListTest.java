package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Every id of {@code scenarios.toml} has exactly one test here, and every test an id there. */
class ScenarioListTest {
    private static final List<Class<?>> SUITE = List.of(
        TablesTest.class, ValuesTest.class, WritesTest.class, FiltersTest.class, PagingTest.class,
        TransactionsTest.class, KeysTest.class, AccessTest.class, PoliciesTest.class, ServiceTest.class);

    @Test
    void everyScenarioHasItsTest() throws IOException {
        List<String> listed = listed();
        List<String> tested = tested();
        assertFalse(listed.isEmpty(), "scenarios.toml names no scenario");
        for (String id : listed) {
            if (!tested.contains(id)) {
                Results.report(id, "failed", "this suite has no test for it");
            }
        }
        assertEquals(listed.stream().sorted().toList(), tested.stream().sorted().toList());
    }

    /** The {@code id = "..."} lines of the shared list. */
    private static List<String> listed() throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("..", "scenarios.toml"))) {
            return lines.map(String::strip)
                .filter(line -> line.startsWith("id = "))
                .map(line -> line.substring("id = ".length()).replace("\"", ""))
                .toList();
        }
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
