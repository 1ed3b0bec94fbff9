package larimar.sdk;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.http.rest.PagedResponse;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableItem;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Tables: connecting, their life, listing them. */
class TablesTest extends Fixture {
    @Scenario("development-connection-string")
    void developmentConnectionString() {
        String text = "DefaultEndpointsProtocol=http;AccountName=" + ACCOUNT + ";AccountKey=" + KEY + ";TableEndpoint=" + ENDPOINT + ";";
        TableServiceClient service = new TableServiceClientBuilder().connectionString(text).buildClient();
        TableClient table = service.createTable(tableName());
        table.createEntity(entity("p", "r", "Answer", 42));
        same(Map.of("Answer", 42), propertiesOf(table, "p", "r"), "entity");
        table.deleteTable();

        TableServiceClient development = new TableServiceClientBuilder().connectionString("UseDevelopmentStorage=true").buildClient();
        same("http://127.0.0.1:10002/devstoreaccount1", development.getServiceEndpoint().replaceAll("/$", ""), "endpoint of the short form");
    }

    @Scenario("table-lifecycle")
    void tableLifecycle() {
        TableServiceClient service = service();
        String name = tableName();
        String upper = name.toUpperCase(Locale.ROOT);
        String lower = name.toLowerCase(Locale.ROOT);

        same(204, service.createTableWithResponse(name, null, null).getStatusCode(), "create a table, without content");
        refused(409, "TableAlreadyExists", () -> service.createTable(name), "create it again");
        refused(409, "TableAlreadyExists", () -> service.createTable(upper), "create it again in upper case");
        same(409, service.createTableIfNotExistsWithResponse(name, null, null).getStatusCode(), "create it if it does not exist");
        same(List.of(name), list(service, named(name)), "the list keeps the name's spelling");

        service.getTableClient(lower).createEntity(entity("p", "r", "V", "x"));
        same(Map.of("V", "x"), propertiesOf(service.getTableClient(upper), "p", "r"), "entity by another spelling of the table");

        same(204, service.deleteTableWithResponse(lower, null, null).getStatusCode(), "delete it by another spelling");
        same(List.of(), list(service, named(name)), "list after the delete");
        // The SDK keeps a missing table to itself, but for the status.
        same(404, service.deleteTableWithResponse(name, null, null).getStatusCode(), "delete it again");
        refused(404, "TableNotFound", () -> service.getTableClient(name).createEntity(entity("p", "r")), "insert after the delete");
    }

    @Scenario("table-list")
    void tableList() {
        TableServiceClient service = service();
        String prefix = tableName();
        List<String> want = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            want.add(dropLater(prefix + i));
            service.createTable(prefix + i);
        }

        same(want.subList(3, 4), list(service, named(want.get(3))), "list by name");
        String inRange = "TableName ge '" + prefix + "0' and TableName lt '" + prefix + "9'";
        same(want, list(service, new ListTablesOptions().setFilter(inRange)), "list by a range of names, in order");
        String middle = "TableName gt '" + prefix + "0' and TableName le '" + prefix + "2'";
        same(want.subList(1, 3), list(service, new ListTablesOptions().setFilter(middle)), "list by the middle of the range");

        ListTablesOptions byTwo = new ListTablesOptions().setFilter(inRange).setTop(2);
        same(want, list(service, byTwo), "list in pages of two");
        List<PagedResponse<TableItem>> pages = pages(service, byTwo, null);
        assertTrue(pages.size() >= 3, "five tables in pages of two: got " + pages.size() + " pages");
        pages.forEach(page -> assertTrue(page.getValue().size() <= 2, "a page is at most as long as asked for"));

        PagedResponse<TableItem> first = pages.get(0);
        List<String> rest = new ArrayList<>();
        pages(service(), byTwo, first.getContinuationToken()).forEach(page -> page.getValue().forEach(table -> rest.add(table.getName())));
        same(want.subList(first.getValue().size(), 5), rest, "a new client resumes from the token");

        assertTrue(list(service, new ListTablesOptions()).containsAll(want), "list without a filter");
    }

    private static ListTablesOptions named(String name) {
        return new ListTablesOptions().setFilter("TableName eq '" + name + "'");
    }

    static List<String> list(TableServiceClient service, ListTablesOptions options) {
        List<String> names = new ArrayList<>();
        pages(service, options, null).forEach(page -> page.getValue().forEach(table -> names.add(table.getName())));
        return names;
    }

    private static List<PagedResponse<TableItem>> pages(TableServiceClient service, ListTablesOptions options, String token) {
        List<PagedResponse<TableItem>> pages = new ArrayList<>();
        var answer = service.listTables(options, null, null);
        for (PagedResponse<TableItem> page : token == null ? answer.iterableByPage() : answer.iterableByPage(token)) {
            pages.add(page);
            assertTrue(pages.size() <= PAGES_MAX, "more than " + PAGES_MAX + " pages");
        }
        return pages;
    }
}
