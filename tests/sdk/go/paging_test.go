// Pages: many entities in order, tokens that outlive their client, the newest n.
package sdk

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const (
	partitions       = 5
	rowsPerPartition = 500
	operationsMax    = 100
)

func paging(s *scenario) {
	table, name := s.newNamedTable()
	want := s.fill(table)

	s.equal(s.keys(table, ""), want, "all entities, in order")
	for _, page := range s.pages(table, nil) {
		if len(page.Entities) > 1000 {
			s.Errorf("a page of %d entities", len(page.Entities))
		}
	}

	for _, filter := range []string{"", "V ge 250"} {
		s.resume(name, filter, want)
	}

	// A page that ends the answer has no token, even if it is as long as was asked for.
	exact := s.pages(table, &aztables.ListEntitiesOptions{Filter: ptr("PartitionKey eq 'p2'"), Top: ptr(int32(rowsPerPartition))})
	last := exact[len(exact)-1]
	if last.NextPartitionKey != nil || last.NextRowKey != nil || len(last.Entities) == 0 {
		s.Errorf("the last page has %d entities and tokens %v %v", len(last.Entities), last.NextPartitionKey, last.NextRowKey)
	}
}

// resume reads two pages, saves the token as text, and reads the rest with a new client.
func (s *scenario) resume(name, filter string, all []string) {
	s.Helper()
	want := all
	if filter != "" {
		want = nil
		for i, key := range all {
			if i%rowsPerPartition >= 250 {
				want = append(want, key)
			}
		}
	}
	options := aztables.ListEntitiesOptions{Filter: &filter, Top: ptr(int32(400))}
	if filter == "" {
		options.Filter = nil
	}
	pager := s.service().NewClient(name).NewListEntitiesPager(&options)
	var got []string
	var saved []byte
	for range 2 {
		page, err := pager.NextPage(s.ctx)
		s.must(err, "read a page")
		if len(page.Entities) > 400 || page.NextPartitionKey == nil {
			s.Fatalf("page of %d entities, token %v", len(page.Entities), page.NextPartitionKey)
		}
		got = append(got, s.keysOf(page)...)
		saved = s.json([]*string{page.NextPartitionKey, page.NextRowKey})
	}

	var token []*string
	s.must(json.Unmarshal(saved, &token), "read the saved token")
	options.NextPartitionKey, options.NextRowKey = token[0], token[1]
	for _, page := range s.pages(s.service().NewClient(name), &options) {
		if len(page.Entities) > 400 {
			s.Errorf("page of %d entities, asked for 400", len(page.Entities))
		}
		got = append(got, s.keysOf(page)...)
	}
	s.equal(got, want, fmt.Sprintf("two pages and the rest, filter %q", filter))
}

// fill writes the entities by transactions and gives their keys in order.
func (s *scenario) fill(table *aztables.Client) []string {
	s.Helper()
	var keys []string
	for p := range partitions {
		pk := fmt.Sprintf("p%d", p)
		for start := 0; start < rowsPerPartition; start += operationsMax {
			var actions []aztables.TransactionAction
			for row := start; row < start+operationsMax; row++ {
				rk := fmt.Sprintf("%04d", row)
				keys = append(keys, pk+" "+rk)
				actions = append(actions, aztables.TransactionAction{
					ActionType: aztables.TransactionTypeAdd,
					Entity:     s.edm(pk, rk, props{"V": int32(row)}),
				})
			}
			_, err := table.SubmitTransaction(s.ctx, actions, nil)
			s.must(err, "insert a hundred entities")
		}
	}
	return keys
}

func logTail(s *scenario) {
	table := s.newTable()
	const ticksMax = 3155378975999999999
	for i := range 30 {
		ticks := int64(638_000_000_000_000_000) + int64(i*7%30)*600_000_000
		s.add(table, s.edm("log", fmt.Sprintf("%019d", ticksMax-ticks), props{"Ticks": aztables.EDMInt64(ticks)}))
		s.add(table, s.edm("other", fmt.Sprintf("%019d", ticksMax-ticks), nil))
	}
	page, err := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{
		Filter: ptr("PartitionKey eq 'log'"), Top: ptr(int32(10)),
	}).NextPage(s.ctx)
	s.must(err, "read the first page")
	var got []aztables.EDMInt64
	for _, text := range page.Entities {
		got = append(got, s.decode(text).Properties["Ticks"].(aztables.EDMInt64))
	}
	var want []aztables.EDMInt64
	for i := 29; i >= 20; i-- {
		want = append(want, aztables.EDMInt64(638_000_000_000_000_000+int64(i)*600_000_000))
	}
	s.equal(got, want, "the latest ten, newest first")
}

func (s *scenario) keysOf(page aztables.ListEntitiesResponse) []string {
	s.Helper()
	var keys []string
	for _, text := range page.Entities {
		entity := s.decode(text)
		keys = append(keys, entity.PartitionKey+" "+entity.RowKey)
	}
	return keys
}

// firstPage gives the members of a query's only entity exactly as the server wrote them.
func (s *scenario) firstPage(table *aztables.Client, options *aztables.ListEntitiesOptions) map[string]json.RawMessage {
	s.Helper()
	var response *http.Response
	_, err := table.NewListEntitiesPager(options).NextPage(policy.WithCaptureResponse(s.ctx, &response))
	s.must(err, "read a page")
	body, err := runtime.Payload(response)
	s.must(err, "read the answer")
	var page struct {
		Value []map[string]json.RawMessage `json:"value"`
	}
	s.must(json.Unmarshal(body, &page), "read the answer's JSON")
	if len(page.Value) != 1 {
		s.Fatalf("got %d entities, want one", len(page.Value))
	}
	return page.Value[0]
}
