package larimar.sdk;

import static org.junit.jupiter.api.Assertions.fail;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.http.rest.PagedResponse;
import com.azure.core.http.rest.Response;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableTransactionFailedException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.function.Executable;

/** What the scenarios of tables share: clients, fresh tables, entities in and out. */
abstract class Fixture extends Checks {
    static final String ENDPOINT = environment("LARIMAR_TABLE_ENDPOINT").replaceAll("/$", "");

    private final List<String> tables = new ArrayList<>();

    /** Drops the tables that a scenario named, whether or not it created them. */
    @AfterEach
    void dropTables() {
        TableServiceClient service = service();
        tables.forEach(service::deleteTable);
    }

    /** Without retries, so that a 5xx shows instead of being tried again. */
    static TableServiceClientBuilder builder() {
        return new TableServiceClientBuilder()
            .endpoint(ENDPOINT)
            .retryOptions(noRetries());
    }

    /** A new client of the account, signing with its key. */
    static TableServiceClient service() {
        return builder().credential(new AzureNamedKeyCredential(ACCOUNT, KEY)).buildClient();
    }

    /** Fresh for every call; dropped at the end of the scenario. */
    String tableName() {
        return dropLater("Java" + freshText());
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

    /** The transaction is refused because of the operation with this index. */
    void failed(String code, int index, Executable call, String what) {
        try {
            call.execute();
            note(what + ": was not refused, want " + code + " at " + index);
        } catch (TableTransactionFailedException error) {
            same(code + " at " + index, codeOf(error) + " at " + error.getFailedTransactionActionIndex(), what);
        } catch (Throwable thrown) {
            note(what + ": got " + thrown + ", want " + code + " at " + index);
        }
    }
}
