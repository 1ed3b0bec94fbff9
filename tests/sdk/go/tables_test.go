// Tables: connecting, their life, listing them.
package sdk

import (
	"fmt"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// aztables does not know `UseDevelopmentStorage=true`; it takes the explicit form.
func developmentConnectionString(s *scenario) {
	text := fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;TableEndpoint=%s;",
		account(), os.Getenv("LARIMAR_KEY"), endpoint())
	service, err := aztables.NewServiceClientFromConnectionString(text, clientOptions())
	s.must(err, "make a client from a connection string")

	table := service.NewClient(s.tableName())
	_, err = table.CreateTable(s.ctx, nil)
	s.must(err, "create a table")
	s.add(table, s.edm("p", "r", props{"Answer": int32(42)}))
	s.equal(s.get(table, "p", "r").Properties, props{"Answer": int32(42)}, "entity")
	_, err = table.Delete(s.ctx, nil)
	s.must(err, "delete the table")
}

func tableLifecycle(s *scenario) {
	service, name := s.service(), s.tableName()
	upper, lower := strings.ToUpper(name), strings.ToLower(name)

	created, err := service.CreateTable(s.ctx, name, nil)
	s.must(err, "create a table")
	s.equal(*created.TableName, name, "name of the created table")
	_, err = service.CreateTable(s.ctx, name, nil)
	s.refused(err, 409, "TableAlreadyExists", "create it again")
	_, err = service.CreateTable(s.ctx, upper, nil)
	s.refused(err, 409, "TableAlreadyExists", "create it again in upper case")
	s.equal(s.tablesLike(service, name), []string{name}, "list keeps the name's spelling")

	s.add(service.NewClient(lower), s.edm("p", "r", props{"V": "x"}))
	s.equal(s.get(service.NewClient(upper), "p", "r").Properties, props{"V": "x"}, "entity by another spelling of the table")
	s.refused(second(service.NewClient(name).AddEntity(s.ctx, s.edm("p", "r", nil), nil)), 409, "EntityAlreadyExists",
		"insert of the same key by another spelling of the table")

	_, err = service.DeleteTable(s.ctx, lower, nil)
	s.must(err, "delete it by another spelling")
	s.equal(s.tablesLike(service, name), []string{}, "list after the delete")
	_, err = service.DeleteTable(s.ctx, name, nil)
	s.refused(err, 404, "ResourceNotFound", "delete it again")
	_, err = service.NewClient(name).AddEntity(s.ctx, s.edm("p", "r", nil), nil)
	s.refused(err, 404, "TableNotFound", "insert after the delete")
}

func tableList(s *scenario) {
	service, prefix := s.service(), s.tableName()
	want := []string{}
	for i := range 5 {
		name := fmt.Sprintf("%s%d", prefix, i)
		_, err := service.CreateTable(s.ctx, name, nil)
		s.must(err, "create a table")
		s.Cleanup(func() { s.dropTable(name) })
		want = append(want, name)
	}

	s.equal(s.tablesLike(service, want[3]), want[3:4], "list by name")
	inRange := fmt.Sprintf("TableName ge '%s0' and TableName lt '%s9'", prefix, prefix)
	names, _ := s.tablePages(service, &aztables.ListTablesOptions{Filter: &inRange})
	s.equal(names, want, "list by a range of names, in order")
	middle := fmt.Sprintf("TableName gt '%s0' and TableName le '%s2'", prefix, prefix)
	names, _ = s.tablePages(service, &aztables.ListTablesOptions{Filter: &middle})
	s.equal(names, want[1:3], "list by the middle of the range")

	names, pages := s.tablePages(service, &aztables.ListTablesOptions{Filter: &inRange, Top: ptr(int32(2))})
	s.equal(names, want, "list in pages of two")
	if pages < 3 {
		s.Errorf("five tables in pages of two: got %d pages", pages)
	}

	first, err := service.NewListTablesPager(&aztables.ListTablesOptions{Filter: &inRange, Top: ptr(int32(2))}).NextPage(s.ctx)
	s.must(err, "read the first page")
	if first.NextTableName == nil {
		s.Fatalf("the first page of two of five tables has no token")
	}
	rest, _ := s.tablePages(s.service(), &aztables.ListTablesOptions{Filter: &inRange, NextTableName: first.NextTableName})
	s.equal(rest, want[len(first.Tables):], "a new client resumes from the token")

	all, _ := s.tablePages(service, nil)
	present := map[string]bool{}
	for _, name := range all {
		present[name] = true
	}
	for _, name := range want {
		if !present[name] {
			s.Errorf("list without a filter lacks %s", name)
		}
	}
}

func (s *scenario) tablesLike(service *aztables.ServiceClient, name string) []string {
	s.Helper()
	filter := fmt.Sprintf("TableName eq '%s'", name)
	names, _ := s.tablePages(service, &aztables.ListTablesOptions{Filter: &filter})
	return names
}

// tablePages gives all names and the number of pages they came in, none longer than asked for.
func (s *scenario) tablePages(service *aztables.ServiceClient, options *aztables.ListTablesOptions) ([]string, int) {
	s.Helper()
	names, pages := []string{}, 0
	for pager := service.NewListTablesPager(options); pager.More(); pages++ {
		page, err := pager.NextPage(s.ctx)
		s.must(err, "list tables")
		if pages > pagesMax {
			s.Fatalf("more than %d pages", pagesMax)
		}
		if options != nil && options.Top != nil && len(page.Tables) > int(*options.Top) {
			s.Errorf("page of %d tables, asked for %d", len(page.Tables), *options.Top)
		}
		for _, table := range page.Tables {
			names = append(names, *table.Name)
		}
	}
	return names, pages
}
