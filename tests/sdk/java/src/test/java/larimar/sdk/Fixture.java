package larimar.sdk;

import static org.junit.jupiter.api.Assertions.fail;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.http.rest.PagedResponse;
import com.azure.core.http.rest.Response;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceException;
import com.azure.data.tables.models.TableTransactionFailedException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.function.Executable;

/** What the scenarios share: clients, fresh tables, entities in and out, and checks of refusals. */
abstract class Fixture {
    static final String ENDPOINT = environment("LARIMAR_TABLE_ENDPOINT").replaceAll("/$", "");
    static final String ACCOUNT = environment("LARIMAR_ACCOUNT");
    static final String KEY = environment("LARIMAR_KEY");
    static final int PAGES_MAX = 100;

    private static final Pattern ERROR_CODE = Pattern.compile("\"code\":\\s*\"(\\w+)\"|<(?:m:)?[cC]ode>(\\w+)</");

    private final List<String> tables = new ArrayList<>();
    private final List<String> problems = new ArrayList<>();

    private static String environment(String name) {
        String value = System.getenv(name);
        if (value == null || value.isEmpty()) {
            throw new IllegalStateException(name + " is not set: start a server and name it, or run `cargo xtask sdk java`");
        }
        return value;
    }

    /** Drops the tables that a scenario named, whether or not it created them, and tells its problems. */
    @AfterEach
    void finish() {
        TableServiceClient service = service();
        tables.forEach(service::deleteTable);
        if (!problems.isEmpty()) {
            fail(String.join("\n", problems));
        }
    }

    /** Without retries, so that a 5xx shows instead of being tried again. */
    static TableServiceClientBuilder builder() {
        return new TableServiceClientBuilder()
            .endpoint(ENDPOINT)
            .retryOptions(new RetryOptions(new FixedDelayOptions(0, Duration.ofMillis(1))));
    }

    /** A new client of the account, signing with its key. */
    static TableServiceClient service() {
        return builder().credential(new AzureNamedKeyCredential(ACCOUNT, KEY)).buildClient();
    }

    /** Fresh for every call; dropped at the end of the scenario. */
    String tableName() {
        byte[] random = new byte[8];
        new SecureRandom().nextBytes(random);
        return dropLater("Java" + HexFormat.of().formatHex(random));
    }

    String dropLater(String name) {
        tables.add(name);
        return name;
    }

    TableClient newTable() {
        return service().createTable(tableName());
    }

    /** An entity from alternating names and values. */
    static TableEntity entity(String partitionKey, String rowKey, Object... namesAndValues) {
        TableEntity entity = new TableEntity(partitionKey, rowKey);
        for (int i = 0; i < namesAndValues.length; i += 2) {
            entity.addProperty((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return entity;
    }

    static TableEntity withETag(TableEntity entity, String etag) {
        return entity.addProperty("odata.etag", etag);
    }

    /** An entity's own properties: no keys, no Timestamp, no metadata. */
    static Map<String, Object> properties(TableEntity entity) {
        Map<String, Object> properties = new TreeMap<>(entity.getProperties());
        properties.keySet().removeIf(name -> name.contains("odata.") || List.of("PartitionKey", "RowKey", "Timestamp").contains(name));
        return properties;
    }

    static Map<String, Object> propertiesOf(TableClient table, String partitionKey, String rowKey) {
        return properties(table.getEntity(partitionKey, rowKey));
    }

    /** The etag as reads give it: the SDK cuts the last quote off the header of writes. */
    static String etagOf(TableClient table, String partitionKey, String rowKey) {
        return table.getEntity(partitionKey, rowKey).getETag();
    }

    static Response<Void> update(TableClient table, TableEntity entity, TableEntityUpdateMode mode, boolean ifUnchanged) {
        return table.updateEntityWithResponse(entity, mode, ifUnchanged, null, null);
    }

    static Response<Void> upsert(TableClient table, TableEntity entity, TableEntityUpdateMode mode) {
        return table.upsertEntityWithResponse(entity, mode, null, null);
    }

    /** All entities of a filter's answer; a null filter is none. */
    static List<TableEntity> query(TableClient table, String filter) {
        List<TableEntity> entities = new ArrayList<>();
        pages(table, new ListEntitiesOptions().setFilter(filter), null).forEach(page -> entities.addAll(page.getValue()));
        return entities;
    }

    /** All pages, from a token or from the start. */
    static List<PagedResponse<TableEntity>> pages(TableClient table, ListEntitiesOptions options, String token) {
        List<PagedResponse<TableEntity>> pages = new ArrayList<>();
        var answer = table.listEntities(options, null, null);
        for (PagedResponse<TableEntity> page : token == null ? answer.iterableByPage() : answer.iterableByPage(token)) {
            pages.add(page);
            if (pages.size() > PAGES_MAX) {
                fail("more than " + PAGES_MAX + " pages");
            }
        }
        return pages;
    }

    /** The row keys of a filter's answer, in its order. */
    static String rows(TableClient table, String filter) {
        return String.join(" ", query(table, filter).stream().map(TableEntity::getRowKey).toList());
    }

    /** The "PartitionKey RowKey" of a filter's answer, in its order. */
    static List<String> keys(TableClient table, String filter) {
        return query(table, filter).stream().map(Fixture::key).toList();
    }

    static String key(TableEntity entity) {
        return entity.getPartitionKey() + " " + entity.getRowKey();
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

    /** The transaction is refused because of the operation with this index. */
    void failed(String code, int index, Executable call, String what) {
        try {
            call.execute();
            problems.add(what + ": was not refused, want " + code + " at " + index);
        } catch (TableTransactionFailedException error) {
            same(code + " at " + index, codeOf(error) + " at " + error.getFailedTransactionActionIndex(), what);
        } catch (Throwable thrown) {
            problems.add(what + ": got " + thrown + ", want " + code + " at " + index);
        }
    }

    private static String described(Object value) {
        return value == null ? "null" : value.getClass().getSimpleName() + " " + value;
    }

    /** XML answers do not reach the SDK's error type, but every message carries the body. */
    static String codeOf(HttpResponseException error) {
        if (error instanceof TableServiceException refusal && refusal.getValue() != null && refusal.getValue().getErrorCode() != null) {
            return refusal.getValue().getErrorCode().toString();
        }
        Matcher matcher = ERROR_CODE.matcher(error.getMessage());
        if (!matcher.find()) {
            return error.getMessage();
        }
        return matcher.group(1) != null ? matcher.group(1) : matcher.group(2);
    }
}
