package larimar.sdk;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Marks the test of one scenario of {@code scenarios.toml}; its outcome is one line of the results. */
@Test
@ExtendWith(Results.class)
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@interface Scenario {
    /** The scenario's id. */
    String value();
}
