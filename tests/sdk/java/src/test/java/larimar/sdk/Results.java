package larimar.sdk;

import com.azure.core.util.CoreUtils;
import com.azure.json.JsonProviders;
import com.azure.json.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.TestWatcher;

/** Appends one JSON line per scenario to the file that {@code LARIMAR_RESULTS} names. */
final class Results implements TestWatcher {
    @Override
    public void testSuccessful(ExtensionContext context) {
        report(id(context), "passed", "");
    }

    @Override
    public void testFailed(ExtensionContext context, Throwable cause) {
        // What the fixture collected comes second when the scenario also threw.
        StringBuilder detail = new StringBuilder(String.valueOf(cause));
        for (Throwable suppressed : cause.getSuppressed()) {
            detail.append('\n').append(suppressed);
        }
        report(id(context), "failed", detail.toString());
    }

    @Override
    public void testAborted(ExtensionContext context, Throwable cause) {
        report(id(context), "skipped", String.valueOf(cause.getMessage()));
    }

    @Override
    public void testDisabled(ExtensionContext context, Optional<String> reason) {
        report(id(context), "skipped", reason.orElse(""));
    }

    static void report(String scenario, String outcome, String detail) {
        String path = System.getenv("LARIMAR_RESULTS");
        if (path == null || path.isEmpty()) {
            return;
        }
        Map<String, String> line = new LinkedHashMap<>();
        line.put("sdk", "java");
        line.put("version", version(scenario));
        line.put("scenario", scenario);
        line.put("outcome", outcome);
        line.put("detail", detail);
        StringWriter text = new StringWriter();
        try (JsonWriter writer = JsonProviders.createWriter(text)) {
            writer.writeMap(line, JsonWriter::writeString).flush();
            Files.writeString(Path.of(path), text + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The version of the package that shows the scenario. */
    private static String version(String scenario) {
        String artifact = switch (ScenarioListTest.services().get(scenario)) {
            case "queue" -> "azure-storage-queue";
            case "blob" -> "azure-storage-blob";
            default -> "azure-data-tables";
        };
        return CoreUtils.getProperties(artifact + ".properties").get("version");
    }

    private static String id(ExtensionContext context) {
        return context.getRequiredTestMethod().getAnnotation(Scenario.class).value();
    }
}
