package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.TableServiceCorsRule;
import com.azure.data.tables.models.TableServiceGeoReplicationStatus;
import com.azure.data.tables.models.TableServiceLogging;
import com.azure.data.tables.models.TableServiceMetrics;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableServiceRetentionPolicy;
import com.azure.data.tables.models.TableServiceStatistics;
import java.time.OffsetDateTime;
import java.util.Collections;
import java.util.List;

/** The account's service: properties and stats. */
class ServiceTest extends Fixture {
    @Scenario("service-properties")
    void serviceProperties() {
        TableServiceClient service = service();
        TableServiceProperties want = new TableServiceProperties()
            .setLogging(logging(true, false, true, days(5)))
            .setHourMetrics(metrics(true, days(7)))
            .setMinuteMetrics(metrics(false, days(1)))
            .setCorsRules(List.of(rule("http://www.example.com"), rule("*")));
        try {
            service.setProperties(want);
            same(text(want), text(service.getProperties()), "everything read back");

            want.setLogging(logging(false, true, false, off()));
            service.setProperties(new TableServiceProperties().setLogging(want.getLogging()));
            same(text(want), text(service.getProperties()), "logging changed, the rest kept");
            want.setCorsRules(List.of(rule("https://only.example.com")));
            service.setProperties(new TableServiceProperties().setCorsRules(want.getCorsRules()));
            same(text(want), text(service.getProperties()), "CORS changed, the rest kept");
            want.setMinuteMetrics(noMetrics());
            service.setProperties(new TableServiceProperties().setMinuteMetrics(want.getMinuteMetrics()));
            same(text(want), text(service.getProperties()), "minute metrics changed, the rest kept");

            refused(400, "InvalidXmlDocument", () -> service.setProperties(new TableServiceProperties().setLogging(logging(true, true, true, days(366)))),
                "retention of 366 days");
            refused(400, "InvalidXmlDocument",
                () -> service.setProperties(new TableServiceProperties().setCorsRules(Collections.nCopies(6, rule("http://www.example.com")))), "six CORS rules");
            same(text(want), text(service.getProperties()), "refused settings change nothing");

            want.setCorsRules(List.of());
            service.setProperties(new TableServiceProperties().setCorsRules(List.of()));
            same(text(want), text(service.getProperties()), "CORS rules cleared, the rest kept");
        } finally {
            service.setProperties(new TableServiceProperties().setLogging(logging(false, false, false, off()))
                .setHourMetrics(noMetrics()).setMinuteMetrics(noMetrics()).setCorsRules(List.of()));
        }
    }

    @Scenario("service-stats")
    void serviceStats() {
        TableServiceClient secondary = builder().endpoint(ENDPOINT + "-secondary").credential(new AzureNamedKeyCredential(ACCOUNT, KEY)).buildClient();
        TableServiceStatistics stats = secondary.getStatistics();
        same(TableServiceGeoReplicationStatus.LIVE, stats.getGeoReplication().getStatus(), "status");
        OffsetDateTime last = stats.getGeoReplication().getLastSyncTime();
        assertTrue(last.isAfter(AccessTest.LONG_AGO) && last.isBefore(OffsetDateTime.now().plusMinutes(15)), "last sync time " + last);
        refused(400, "InvalidQueryParameterValue", () -> service().getStatistics(), "stats from the primary endpoint");
    }

    private static TableServiceLogging logging(boolean read, boolean write, boolean delete, TableServiceRetentionPolicy retention) {
        return new TableServiceLogging().setAnalyticsVersion("1.0").setReadLogged(read).setWriteLogged(write).setDeleteLogged(delete)
            .setRetentionPolicy(retention);
    }

    private static TableServiceMetrics metrics(boolean includeApis, TableServiceRetentionPolicy retention) {
        return new TableServiceMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(includeApis).setRetentionPolicy(retention);
    }

    private static TableServiceMetrics noMetrics() {
        return new TableServiceMetrics().setVersion("1.0").setEnabled(false).setRetentionPolicy(off());
    }

    private static TableServiceRetentionPolicy days(int days) {
        return new TableServiceRetentionPolicy().setEnabled(true).setDaysToRetain(days);
    }

    private static TableServiceRetentionPolicy off() {
        return new TableServiceRetentionPolicy().setEnabled(false);
    }

    private static TableServiceCorsRule rule(String origin) {
        return new TableServiceCorsRule().setAllowedOrigins(origin).setAllowedMethods("GET,PUT").setAllowedHeaders("x-ms-date,x-ms-meta-*")
            .setExposedHeaders("x-ms-request-id").setMaxAgeInSeconds(500);
    }

    /** All of the properties, in a form that compares. */
    private static String text(TableServiceProperties properties) {
        TableServiceLogging logging = properties.getLogging();
        StringBuilder text = new StringBuilder("logging " + logging.getAnalyticsVersion() + " " + logging.isReadLogged() + " "
            + logging.isWriteLogged() + " " + logging.isDeleteLogged() + " " + text(logging.getRetentionPolicy()));
        for (TableServiceMetrics metrics : List.of(properties.getHourMetrics(), properties.getMinuteMetrics())) {
            text.append("\nmetrics " + metrics.getVersion() + " " + metrics.isEnabled() + " " + metrics.isIncludeApis() + " "
                + text(metrics.getTableServiceRetentionPolicy()));
        }
        // No rules are either an empty list or none at all.
        List<TableServiceCorsRule> rules = properties.getCorsRules();
        for (TableServiceCorsRule rule : rules == null ? List.<TableServiceCorsRule>of() : rules) {
            text.append("\ncors " + rule.getAllowedOrigins() + " " + rule.getAllowedMethods() + " " + rule.getAllowedHeaders() + " "
                + rule.getExposedHeaders() + " " + rule.getMaxAgeInSeconds());
        }
        return text.toString();
    }

    private static String text(TableServiceRetentionPolicy retention) {
        return "retention " + retention.isEnabled() + " " + retention.getDaysToRetain();
    }
}
