package larimar.sdk;

import static org.junit.jupiter.api.Assertions.fail;

import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.HttpHeaderName;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.data.tables.models.TableServiceException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.function.Executable;

/** What all scenarios share: the account, and checks that go on, so that one run shows all of a scenario's problems. */
abstract class Checks {
    static final String ACCOUNT = environment("LARIMAR_ACCOUNT");
    static final String KEY = environment("LARIMAR_KEY");
    static final int PAGES_MAX = 100;

    private static final Pattern ERROR_CODE = Pattern.compile("\"code\":\\s*\"(\\w+)\"|<(?:m:)?[cC]ode>(\\w+)</");

    private final List<String> problems = new ArrayList<>();

    static String environment(String name) {
        String value = System.getenv(name);
        if (value == null || value.isEmpty()) {
            throw new IllegalStateException(name + " is not set: start a server and name it, or run `cargo xtask sdk java`");
        }
        return value;
    }

    /** Tells the problems; what a scenario made is removed before, by the fixture of its service. */
    @AfterEach
    void tellProblems() {
        if (!problems.isEmpty()) {
            fail(String.join("\n", problems));
        }
    }

    /** A 5xx shows instead of being tried again. */
    static RetryOptions noRetries() {
        return new RetryOptions(new FixedDelayOptions(0, Duration.ofMillis(1)));
    }

    /** Sixteen letters and digits, fresh for every call. */
    static String freshText() {
        byte[] random = new byte[8];
        new SecureRandom().nextBytes(random);
        return HexFormat.of().formatHex(random);
    }

    void note(String problem) {
        problems.add(problem);
    }

    /** Notes a difference and goes on, so that one run shows all of a scenario's problems. */
    void same(Object want, Object got, String what) {
        if (!Objects.deepEquals(want, got)) {
            problems.add(what + ": got " + described(got) + ", want " + described(want));
        }
    }

    /** Notes whatever a part of a scenario throws and goes on. */
    void attempt(Executable part, String what) {
        try {
            part.execute();
        } catch (Throwable thrown) {
            problems.add(what + ": " + thrown);
        }
    }

    /** The call is refused with this status and this code of the service. */
    void refused(int status, String code, Executable call, String what) {
        try {
            call.execute();
            problems.add(what + ": was not refused, want " + status + " " + code);
        } catch (HttpResponseException error) {
            Object got = error.getResponse() == null ? error.getMessage() : error.getResponse().getStatusCode();
            same(status + " " + code, got + " " + codeOf(error), what);
        } catch (Throwable thrown) {
            problems.add(what + ": got " + thrown + ", want " + status + " " + code);
        }
    }

    /** Asks until the answer is yes: what becomes true with time has no exact moment for a client. */
    void eventually(BooleanSupplier ask, String what) {
        for (int attempt = 0; attempt < 100; attempt++) {
            if (ask.getAsBoolean()) {
                return;
            }
            try {
                Thread.sleep(100);
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
        fail(what + " did not come true within ten seconds");
    }

    private static String described(Object value) {
        return value == null ? "null" : value.getClass().getSimpleName() + " " + value;
    }

    /** XML answers do not reach the tables' error type, but the header or the message tells. */
    static String codeOf(HttpResponseException error) {
        if (error instanceof TableServiceException refusal && refusal.getValue() != null && refusal.getValue().getErrorCode() != null) {
            return refusal.getValue().getErrorCode().toString();
        }
        String header = error.getResponse() == null ? null : error.getResponse().getHeaderValue(HttpHeaderName.fromString("x-ms-error-code"));
        if (header != null) {
            return header;
        }
        Matcher matcher = ERROR_CODE.matcher(error.getMessage());
        if (!matcher.find()) {
            return error.getMessage();
        }
        return matcher.group(1) != null ? matcher.group(1) : matcher.group(2);
    }
}
