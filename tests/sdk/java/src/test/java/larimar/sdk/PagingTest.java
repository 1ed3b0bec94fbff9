package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.http.rest.PagedResponse;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;

/** Pages: many entities in order, tokens that outlive their client, the newest n. */
class PagingTest extends Fixture {
    private static final int PARTITIONS = 5;
    private static final int ROWS_PER_PARTITION = 500;
    private static final int OPERATIONS_MAX = 100;

    @Scenario("paging")
    void paging() {
        TableClient table = newTable();
        List<String> want = fill(table);

        same(want, keys(table, null), "all entities, in order");
        pages(table, new ListEntitiesOptions(), null).forEach(page -> assertTrue(page.getValue().size() <= 1000, "a page has at most 1,000 entities"));

        resume(table.getTableName(), null, want);
        List<String> halves = IntStream.range(0, want.size()).filter(i -> i % ROWS_PER_PARTITION >= 250).mapToObj(want::get).toList();
        resume(table.getTableName(), "V ge 250", halves);

        // A page that ends the answer has no token, even if it is as long as was asked for.
        List<PagedResponse<TableEntity>> exact
            = pages(table, new ListEntitiesOptions().setFilter("PartitionKey eq 'p2'").setTop(ROWS_PER_PARTITION), null);
        PagedResponse<TableEntity> last = exact.get(exact.size() - 1);
        assertNull(last.getContinuationToken(), "token of the last page");
        assertFalse(last.getValue().isEmpty(), "the last page has entities");
    }

    /** Two pages, then the rest with a new client from the saved token. */
    private void resume(String name, String filter, List<String> want) {
        ListEntitiesOptions options = new ListEntitiesOptions().setFilter(filter).setTop(400);
        Iterator<PagedResponse<TableEntity>> start
            = service().getTableClient(name).listEntities(options, null, null).iterableByPage().iterator();
        List<String> got = new ArrayList<>();
        String token = null;
        for (int i = 0; i < 2; i++) {
            PagedResponse<TableEntity> page = start.next();
            collect(page, got);
            token = page.getContinuationToken();
            assertNotNull(token, "token of a page in the middle");
        }
        pages(service().getTableClient(name), options, token).forEach(page -> collect(page, got));
        same(want, got, "two pages and the rest, filter " + filter);
    }

    private static void collect(PagedResponse<TableEntity> page, List<String> keys) {
        assertTrue(page.getValue().size() <= 400, "a page is at most as long as asked for");
        page.getValue().forEach(entity -> keys.add(key(entity)));
    }

    /** Writes the entities by transactions and gives their keys in order. */
    private static List<String> fill(TableClient table) {
        List<String> keys = new ArrayList<>();
        for (int p = 0; p < PARTITIONS; p++) {
            for (int start = 0; start < ROWS_PER_PARTITION; start += OPERATIONS_MAX) {
                List<TableTransactionAction> actions = new ArrayList<>();
                for (int row = start; row < start + OPERATIONS_MAX; row++) {
                    TableEntity entity = entity("p" + p, String.format("%04d", row), "V", row);
                    keys.add(key(entity));
                    actions.add(new TableTransactionAction(TableTransactionActionType.CREATE, entity));
                }
                table.submitTransaction(actions);
            }
        }
        return keys;
    }

    @Scenario("log-tail")
    void logTail() {
        TableClient table = newTable();
        long ticksMax = 3155378975999999999L;
        for (int i = 0; i < 30; i++) {
            long ticks = ticks(i * 7 % 30);
            table.createEntity(entity("log", String.format("%019d", ticksMax - ticks), "Ticks", ticks));
            table.createEntity(entity("other", String.format("%019d", ticksMax - ticks)));
        }
        PagedResponse<TableEntity> first = table.listEntities(new ListEntitiesOptions().setFilter("PartitionKey eq 'log'").setTop(10), null, null)
            .iterableByPage().iterator().next();
        List<Object> got = first.getValue().stream().map(entity -> entity.getProperty("Ticks")).toList();
        same(IntStream.range(0, 10).mapToObj(i -> (Object) ticks(29 - i)).toList(), got, "the latest ten, newest first");
    }

    private static long ticks(int minute) {
        return 638_000_000_000_000_000L + minute * 600_000_000L;
    }
}
