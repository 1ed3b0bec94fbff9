package larimar.sdk;

import static org.junit.jupiter.api.Assertions.fail;

import com.azure.core.exception.HttpResponseException;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.models.BlobAnalyticsLogging;
import com.azure.storage.blob.models.BlobImmutabilityPolicy;
import com.azure.storage.blob.models.BlobImmutabilityPolicyMode;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobListDetails;
import com.azure.storage.blob.models.BlobMetrics;
import com.azure.storage.blob.models.BlobRetentionPolicy;
import com.azure.storage.blob.models.BlobServiceProperties;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;

/** Storage analytics: requests in logs, sums in metrics; and what the blob service refuses to do. */
class AnalyticsTest extends BlobFixture {
    private static final Pattern FIELD = Pattern.compile("(\"[^\"]*\"|[^;]*);");
    private static final String LOG_NAME = "blob/\\d{4}/\\d\\d/\\d\\d/\\d\\d00/\\d{6}\\.log";

    @Scenario("blob-out-of-scope")
    void outOfScope() {
        BlockBlobClient blob = newBlob("text");
        String etag = blob.getProperties().getETag();
        refused(501, "NotImplemented", blob::undelete, "undelete");
        refused(501, "NotImplemented", () -> text(blob.getVersionClient("2020-01-01T00:00:00.0000000Z")), "read a version");
        refused(400, "UnsupportedHeader", () -> blob.setImmutabilityPolicy(
            new BlobImmutabilityPolicy().setExpiryTime(AccessTest.FAR_AHEAD).setPolicyMode(BlobImmutabilityPolicyMode.UNLOCKED)), "set an immutability policy");
        refused(501, "NotImplemented", blob::deleteImmutabilityPolicy, "clear an immutability policy");
        refused(400, "UnsupportedHeader", () -> blob.setLegalHold(true), "set a legal hold");
        refused(501, "NotImplemented", () -> service().undeleteBlobContainer("java" + freshText(), "01D60F8BB59A4652"), "undelete a container");
        refused(501, "NotImplemented", () -> service().getUserDelegationKey(null, AccessTest.FAR_AHEAD), "get a user delegation key");
        same(List.of(etag, "text"), List.of(blob.getProperties().getETag(), text(blob)), "the blob after the refusals");
    }

    /** Asks for longer than others do: a minute's metrics are written when the minute is over. */
    private static void within(Duration limit, BooleanSupplier ask, String what) throws InterruptedException {
        for (Instant until = Instant.now().plus(limit); Instant.now().isBefore(until); Thread.sleep(100)) {
            if (ask.getAsBoolean()) {
                return;
            }
        }
        fail(what + " did not come true within " + limit);
    }

    private static BlobRetentionPolicy forever() {
        return new BlobRetentionPolicy().setEnabled(false);
    }

    private static BlobServiceProperties logging(boolean on) {
        return new BlobServiceProperties().setLogging(new BlobAnalyticsLogging().setVersion("1.0").setRead(on).setWrite(on).setDelete(on).setRetentionPolicy(forever()));
    }

    /** The lines of all logs that are about an object, as fields. */
    private static List<List<String>> logged(BlobContainerClient logs, String key) {
        List<List<String>> lines = new ArrayList<>();
        for (BlobItem log : logs.listBlobs(new ListBlobsOptions().setPrefix("blob/"), null)) {
            for (String line : text(logs.getBlobClient(log.getName())).split("\n")) {
                List<String> fields = FIELD.matcher(line + ";").results().map((MatchResult field) -> field.group(1)).toList();
                if (fields.size() == 30 && fields.get(12).equals(key)) {
                    lines.add(fields);
                }
            }
        }
        return lines;
    }

    @Scenario("analytics-logs")
    void logs() throws InterruptedException {
        BlobServiceClient service = service();
        service.setProperties(logging(true));
        BlobContainerClient container = newContainer();
        BlockBlobClient blob = put(container, "logged", "12345");
        text(blob);
        blob.delete();
        service.setProperties(logging(false));
        BlobContainerClient logs = service.getBlobContainerClient("$logs");
        String key = "\"/" + ACCOUNT + "/" + container.getBlobContainerName() + "/logged\"";
        within(Duration.ofMinutes(1), () -> logged(logs, key).size() >= 3, "the lines of a blob");
        List<List<String>> lines = logged(logs, key);
        same(List.of("PutBlob Success 201", "GetBlob Success 200", "DeleteBlob Success 202"),
            lines.stream().map(fields -> String.join(" ", fields.subList(2, 5))).toList(), "what is told");
        for (List<String> fields : lines) {
            same(List.of("authenticated", ACCOUNT, ACCOUNT, "blob"), fields.subList(7, 11), "fields of a line");
            same(true, fields.get(27).contains("azsdk-java-"), "agent " + fields.get(27));
        }
        BlobItem log = items(logs, new ListBlobsOptions().setPrefix("blob/").setDetails(new BlobListDetails().setRetrieveMetadata(true))).get(0);
        same(true, log.getName().matches(LOG_NAME), "the log " + log.getName());
        same("1.0", log.getMetadata().get("LogVersion"), "version of the log");
        same(true, log.getMetadata().get("StartTime").compareTo(log.getMetadata().get("EndTime")) <= 0, "time of the log");
    }

    private static BlobServiceProperties metrics(boolean on) {
        BlobMetrics metrics = new BlobMetrics().setVersion("1.0").setEnabled(on).setIncludeApis(on ? true : null).setRetentionPolicy(forever());
        return new BlobServiceProperties().setHourMetrics(metrics).setMinuteMetrics(metrics);
    }

    @Scenario("analytics-metrics")
    void metrics() throws InterruptedException {
        BlobServiceClient service = service();
        service.setProperties(metrics(true));
        try {
            OffsetDateTime began = OffsetDateTime.now(ZoneOffset.UTC);
            text(put(newContainer(), "counted", "text"));
            counted("$MetricsHourPrimaryTransactionsBlob", began.format(DateTimeFormatter.ofPattern("yyyyMMdd'T'HH'00'")));
            counted("$MetricsMinutePrimaryTransactionsBlob", began.format(DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmm")));
        } finally {
            service.setProperties(metrics(false));
        }
    }

    private void counted(String name, String from) throws InterruptedException {
        TableClient table = Fixture.service().getTableClient(name);
        Map<String, Map<String, Object>> rows = new HashMap<>();
        within(Duration.ofSeconds(90), () -> {
            try {
                for (TableEntity row : Fixture.query(table, "PartitionKey ge '" + from + "'")) {
                    rows.put(row.getRowKey(), Fixture.properties(row));
                }
            } catch (HttpResponseException missing) {
                // Until there are any, their table may not be there.
                return false;
            }
            return rows.containsKey("user;GetBlob");
        }, name);
        same(true, (Long) rows.get("user;All").get("TotalRequests") >= 2, name + ": requests");
        same(true, (Long) rows.get("user;PutBlob").get("Success") >= 1, name + ": uploads");
        Double available = (Double) rows.get("user;All").get("Availability");
        same(true, available > 0 && available <= 100, name + ": availability " + available);
    }
}
