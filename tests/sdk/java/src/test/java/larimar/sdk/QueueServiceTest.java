package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.HttpResponse;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.models.QueueAnalyticsLogging;
import com.azure.storage.queue.models.QueueCorsRule;
import com.azure.storage.queue.models.QueueMetrics;
import com.azure.storage.queue.models.QueueRetentionPolicy;
import com.azure.storage.queue.models.QueueServiceProperties;
import java.util.Collections;
import java.util.List;

/** The queue service as a whole: properties and stats. */
class QueueServiceTest extends QueueFixture {
    @Scenario("queue-service-properties")
    void serviceProperties() {
        QueueServiceClient service = service();
        QueueServiceProperties want = new QueueServiceProperties()
            .setAnalyticsLogging(logging(true, days(5)))
            .setHourMetrics(metrics(true, days(7)))
            .setMinuteMetrics(metrics(false, days(1)))
            .setCors(List.of(rule("http://www.example.com"), rule("*")));
        try {
            service.setProperties(want);
            same(text(want), text(service.getProperties()), "everything read back");
            want.setAnalyticsLogging(logging(false, off()));
            service.setProperties(new QueueServiceProperties().setAnalyticsLogging(want.getAnalyticsLogging()));
            same(text(want), text(service.getProperties()), "logging changed, the rest kept");
            want.setCors(List.of(rule("https://only.example.com")));
            service.setProperties(new QueueServiceProperties().setCors(want.getCors()));
            same(text(want), text(service.getProperties()), "CORS changed, the rest kept");
            want.setMinuteMetrics(noMetrics());
            service.setProperties(new QueueServiceProperties().setMinuteMetrics(noMetrics()));
            same(text(want), text(service.getProperties()), "minute metrics changed, the rest kept");

            refused(400, "InvalidXmlDocument", () -> service.setProperties(new QueueServiceProperties().setAnalyticsLogging(logging(true, days(366)))),
                "retention of 366 days");
            refused(400, "InvalidXmlDocument",
                () -> service.setProperties(new QueueServiceProperties().setCors(Collections.nCopies(6, rule("http://www.example.com")))), "six CORS rules");
            same(text(want), text(service.getProperties()), "refused settings change nothing");
        } finally {
            service.setProperties(new QueueServiceProperties().setAnalyticsLogging(logging(false, off()))
                .setHourMetrics(noMetrics()).setMinuteMetrics(noMetrics()).setCors(List.of()));
        }
    }

    @Scenario("queue-service-stats")
    void serviceStats() {
        QueueServiceClient secondary = builder().endpoint(QUEUES + "-secondary").credential(new StorageSharedKeyCredential(ACCOUNT, KEY)).buildClient();
        // The SDK expects another root element than the service writes, so the answer is looked at.
        HttpResponse answer = assertThrows(HttpResponseException.class, secondary::getStatistics).getResponse();
        String body = answer.getBodyAsString().block();
        same(200, answer.getStatusCode(), "status");
        same(true, body.contains("<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>"), body);
        refused(400, "InvalidQueryParameterValue", () -> service().getStatistics(), "stats from the primary endpoint");
    }

    private static QueueAnalyticsLogging logging(boolean on, QueueRetentionPolicy retention) {
        return new QueueAnalyticsLogging().setVersion("1.0").setRead(on).setWrite(false).setDelete(on).setRetentionPolicy(retention);
    }

    private static QueueMetrics metrics(boolean includeApis, QueueRetentionPolicy retention) {
        return new QueueMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(includeApis).setRetentionPolicy(retention);
    }

    private static QueueMetrics noMetrics() {
        return new QueueMetrics().setVersion("1.0").setEnabled(false).setRetentionPolicy(off());
    }

    private static QueueRetentionPolicy days(int days) {
        return new QueueRetentionPolicy().setEnabled(true).setDays(days);
    }

    private static QueueRetentionPolicy off() {
        return new QueueRetentionPolicy().setEnabled(false);
    }

    private static QueueCorsRule rule(String origin) {
        return new QueueCorsRule().setAllowedOrigins(origin).setAllowedMethods("GET,PUT").setAllowedHeaders("x-ms-date,x-ms-meta-*")
            .setExposedHeaders("x-ms-request-id").setMaxAgeInSeconds(500);
    }

    /** All of the properties, in a form that compares. */
    private static String text(QueueServiceProperties properties) {
        QueueAnalyticsLogging logging = properties.getAnalyticsLogging();
        StringBuilder text = new StringBuilder("logging " + logging.getVersion() + " " + logging.isRead() + " " + logging.isWrite() + " "
            + logging.isDelete() + " " + text(logging.getRetentionPolicy()));
        for (QueueMetrics metrics : List.of(properties.getHourMetrics(), properties.getMinuteMetrics())) {
            text.append("\nmetrics " + metrics.getVersion() + " " + metrics.isEnabled() + " " + metrics.isIncludeApis() + " "
                + text(metrics.getRetentionPolicy()));
        }
        for (QueueCorsRule rule : properties.getCors()) {
            text.append("\ncors " + rule.getAllowedOrigins() + " " + rule.getAllowedMethods() + " " + rule.getAllowedHeaders() + " "
                + rule.getExposedHeaders() + " " + rule.getMaxAgeInSeconds());
        }
        return text.toString();
    }

    private static String text(QueueRetentionPolicy retention) {
        return "retention " + retention.isEnabled() + " " + retention.getDays();
    }
}
