package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.models.AccountKind;
import com.azure.storage.blob.models.BlobAnalyticsLogging;
import com.azure.storage.blob.models.BlobCorsRule;
import com.azure.storage.blob.models.BlobMetrics;
import com.azure.storage.blob.models.BlobRetentionPolicy;
import com.azure.storage.blob.models.BlobServiceProperties;
import com.azure.storage.blob.models.BlobServiceStatistics;
import com.azure.storage.blob.models.GeoReplicationStatus;
import com.azure.storage.blob.models.StorageAccountInfo;
import com.azure.storage.common.StorageSharedKeyCredential;
import java.time.OffsetDateTime;
import java.util.Collections;
import java.util.List;

/** The blob service as a whole: properties, stats, account information. */
class BlobServiceTest extends BlobFixture {
    @Scenario("blob-service-properties")
    void serviceProperties() {
        BlobServiceClient service = service();
        BlobServiceProperties want = new BlobServiceProperties()
            .setLogging(logging(true, days(5)))
            .setHourMetrics(metrics(true, days(7)))
            .setMinuteMetrics(metrics(false, days(1)))
            .setCors(List.of(rule("http://www.example.com"), rule("*")));
        try {
            service.setProperties(want);
            same(text(want), text(service.getProperties()), "everything read back");
            want.setLogging(logging(false, off()));
            // The SDK sends rules in any case, and none if it has none.
            service.setProperties(new BlobServiceProperties().setLogging(want.getLogging()).setCors(want.getCors()));
            same(text(want), text(service.getProperties()), "logging changed, the rest kept");
            want.setCors(List.of(rule("https://only.example.com")));
            service.setProperties(new BlobServiceProperties().setCors(want.getCors()));
            same(text(want), text(service.getProperties()), "CORS changed, the rest kept");
            want.setMinuteMetrics(noMetrics());
            service.setProperties(new BlobServiceProperties().setMinuteMetrics(noMetrics()).setCors(want.getCors()));
            same(text(want), text(service.getProperties()), "minute metrics changed, the rest kept");

            // The SDK itself refuses to keep anything for more than a year.
            assertThrows(IllegalArgumentException.class, () -> service.setProperties(new BlobServiceProperties().setLogging(logging(true, days(366)))));
            refused(400, "InvalidXmlDocument",
                () -> service.setProperties(new BlobServiceProperties().setCors(Collections.nCopies(6, rule("http://www.example.com")))), "six CORS rules");
            same(text(want), text(service.getProperties()), "refused settings change nothing");
        } finally {
            service.setProperties(new BlobServiceProperties().setLogging(logging(false, off()))
                .setHourMetrics(noMetrics()).setMinuteMetrics(noMetrics()).setCors(List.of()));
        }
    }

    @Scenario("blob-service-stats")
    void serviceStats() {
        BlobServiceClient secondary = builder().endpoint(BLOBS + "-secondary").credential(new StorageSharedKeyCredential(ACCOUNT, KEY)).buildClient();
        BlobServiceStatistics stats = secondary.getStatistics();
        same(GeoReplicationStatus.LIVE, stats.getGeoReplication().getStatus(), "status");
        OffsetDateTime last = stats.getGeoReplication().getLastSyncTime();
        same(true, last.isAfter(AccessTest.LONG_AGO) && last.isBefore(OffsetDateTime.now().plusMinutes(15)), "last sync time " + last);
        refused(400, "InvalidQueryParameterValue", () -> service().getStatistics(), "stats from the primary endpoint");
        StorageAccountInfo info = service().getAccountInfo();
        same(AccountKind.STORAGE_V2, info.getAccountKind(), "kind of the account");
        same(true, info.getSkuName().toString().startsWith("Standard_"), "SKU " + info.getSkuName());
    }

    private static BlobAnalyticsLogging logging(boolean on, BlobRetentionPolicy retention) {
        return new BlobAnalyticsLogging().setVersion("1.0").setRead(on).setWrite(false).setDelete(on).setRetentionPolicy(retention);
    }

    private static BlobMetrics metrics(boolean includeApis, BlobRetentionPolicy retention) {
        return new BlobMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(includeApis).setRetentionPolicy(retention);
    }

    private static BlobMetrics noMetrics() {
        return new BlobMetrics().setVersion("1.0").setEnabled(false).setRetentionPolicy(off());
    }

    private static BlobRetentionPolicy days(int days) {
        return new BlobRetentionPolicy().setEnabled(true).setDays(days);
    }

    private static BlobRetentionPolicy off() {
        return new BlobRetentionPolicy().setEnabled(false);
    }

    private static BlobCorsRule rule(String origin) {
        return new BlobCorsRule().setAllowedOrigins(origin).setAllowedMethods("GET,PUT").setAllowedHeaders("x-ms-date,x-ms-meta-*")
            .setExposedHeaders("x-ms-request-id").setMaxAgeInSeconds(500);
    }

    /** All of the properties, in a form that compares. */
    private static String text(BlobServiceProperties properties) {
        BlobAnalyticsLogging logging = properties.getLogging();
        StringBuilder text = new StringBuilder("logging " + logging.getVersion() + " " + logging.isRead() + " " + logging.isWrite() + " "
            + logging.isDelete() + " " + text(logging.getRetentionPolicy()));
        for (BlobMetrics metrics : List.of(properties.getHourMetrics(), properties.getMinuteMetrics())) {
            text.append("\nmetrics " + metrics.getVersion() + " " + metrics.isEnabled() + " " + metrics.isIncludeApis() + " "
                + text(metrics.getRetentionPolicy()));
        }
        for (BlobCorsRule rule : properties.getCors()) {
            text.append("\ncors " + rule.getAllowedOrigins() + " " + rule.getAllowedMethods() + " " + rule.getAllowedHeaders() + " "
                + rule.getExposedHeaders() + " " + rule.getMaxAgeInSeconds());
        }
        return text.toString();
    }

    private static String text(BlobRetentionPolicy retention) {
        return "retention " + retention.isEnabled() + " " + retention.getDays();
    }
}
