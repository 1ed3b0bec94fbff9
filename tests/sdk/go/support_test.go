// What the scenarios share: clients, fresh tables, entities in and out, and checks of refusals.
package sdk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

type props = map[string]any

// pagesMax bounds every loop over pages.
const pagesMax = 100

// clientOptions switches retries off, so that a 5xx shows instead of being tried again.
func clientOptions() *aztables.ClientOptions {
	return &aztables.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
}

func endpoint() string { return strings.TrimSuffix(os.Getenv("LARIMAR_TABLE_ENDPOINT"), "/") }
func account() string  { return os.Getenv("LARIMAR_ACCOUNT") }

func (s *scenario) credential() *aztables.SharedKeyCredential {
	s.Helper()
	credential, err := aztables.NewSharedKeyCredential(account(), os.Getenv("LARIMAR_KEY"))
	s.must(err, "read the account key")
	return credential
}

// service is a new client of the account, signing with its key.
func (s *scenario) service() *aztables.ServiceClient {
	s.Helper()
	client, err := aztables.NewServiceClientWithSharedKey(endpoint(), s.credential(), clientOptions())
	s.must(err, "make a service client")
	return client
}

// tableName is fresh for every call; it goes away at the end of the scenario if it was created.
func (s *scenario) tableName() string {
	var random [8]byte
	rand.Read(random[:])
	name := "Go" + hex.EncodeToString(random[:])
	s.Cleanup(func() { s.dropTable(name) })
	return name
}

// dropTable forgives: the scenario may have deleted the table, or never created it.
func (s *scenario) dropTable(name string) {
	// Clean-up runs when the scenario's own context is over.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = s.service().DeleteTable(ctx, name, nil)
}

// newTable creates a table and gives its client.
func (s *scenario) newTable() *aztables.Client {
	s.Helper()
	client, _ := s.newNamedTable()
	return client
}

func (s *scenario) newNamedTable() (*aztables.Client, string) {
	s.Helper()
	name := s.tableName()
	client := s.service().NewClient(name)
	_, err := client.CreateTable(s.ctx, nil)
	s.must(err, "create a table")
	return client, name
}

// edm is an entity as the SDK marshals it, with type annotations.
func (s *scenario) edm(pk, rk string, properties props) []byte {
	s.Helper()
	return s.json(aztables.EDMEntity{
		Entity:     aztables.Entity{PartitionKey: pk, RowKey: rk},
		Properties: properties,
	})
}

// plain is an entity whose members are sent as they are. EDMEntity doubles quotes in keys, in the body too,
// so entities whose keys have quotes are written in this form.
func (s *scenario) plain(pk, rk string, properties props) []byte {
	s.Helper()
	members := props{"PartitionKey": pk, "RowKey": rk}
	for name, value := range properties {
		members[name] = value
	}
	return s.json(members)
}

func (s *scenario) json(value any) []byte {
	s.Helper()
	text, err := json.Marshal(value)
	s.must(err, "marshal")
	return text
}

func (s *scenario) add(table *aztables.Client, entity []byte) azcore.ETag {
	s.Helper()
	added, err := table.AddEntity(s.ctx, entity, nil)
	s.must(err, "insert an entity")
	return added.ETag
}

func (s *scenario) get(table *aztables.Client, pk, rk string) aztables.EDMEntity {
	s.Helper()
	got, err := table.GetEntity(s.ctx, pk, rk, nil)
	s.must(err, "get an entity")
	return s.decode(got.Value)
}

func (s *scenario) decode(text []byte) aztables.EDMEntity {
	s.Helper()
	var entity aztables.EDMEntity
	s.must(json.Unmarshal(text, &entity), "read an entity")
	return entity
}

// query reads all pages of a filter; an empty filter is none.
func (s *scenario) query(table *aztables.Client, filter string) []aztables.EDMEntity {
	s.Helper()
	options := &aztables.ListEntitiesOptions{}
	if filter != "" {
		options.Filter = &filter
	}
	var entities []aztables.EDMEntity
	for _, page := range s.pages(table, options) {
		for _, text := range page.Entities {
			entities = append(entities, s.decode(text))
		}
	}
	return entities
}

func (s *scenario) pages(table *aztables.Client, options *aztables.ListEntitiesOptions) []aztables.ListEntitiesResponse {
	s.Helper()
	pager := table.NewListEntitiesPager(options)
	var pages []aztables.ListEntitiesResponse
	for pager.More() {
		page, err := pager.NextPage(s.ctx)
		s.must(err, "read a page")
		pages = append(pages, page)
		if len(pages) > pagesMax {
			s.Fatalf("more than %d pages", pagesMax)
		}
	}
	return pages
}

// queryError is the refusal of a query's first page.
func (s *scenario) queryError(table *aztables.Client, filter string) error {
	_, err := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}).NextPage(s.ctx)
	return err
}

// rows are the row keys of a filter's answer, in its order.
func (s *scenario) rows(table *aztables.Client, filter string) []string {
	s.Helper()
	rows := []string{}
	for _, entity := range s.query(table, filter) {
		rows = append(rows, entity.RowKey)
	}
	return rows
}

// keys are the "PartitionKey RowKey" of a filter's answer, in its order.
func (s *scenario) keys(table *aztables.Client, filter string) []string {
	s.Helper()
	keys := []string{}
	for _, entity := range s.query(table, filter) {
		keys = append(keys, entity.PartitionKey+" "+entity.RowKey)
	}
	return keys
}

// must stops the scenario on an error.
func (s *scenario) must(err error, what string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

func (s *scenario) equal(got, want any, what string) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Errorf("%s: got %T %#v, want %T %#v", what, got, got, want, want)
	}
}

// refused checks the status and the service's code of an error.
func (s *scenario) refused(err error, status int, code, what string) {
	s.Helper()
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		s.Errorf("%s: got %v, want a refusal with %d %s", what, err, status, code)
		return
	}
	if response.StatusCode != status || response.ErrorCode != code {
		s.Errorf("%s: got %d %s, want %d %s", what, response.StatusCode, response.ErrorCode, status, code)
	}
}

// failedOperation is the answer to a transaction: aztables keeps the multipart text and looks no further,
// so status, code and index are read from there.
type failedOperation struct {
	status int
	code   string
	index  int
}

var (
	innerStatus = regexp.MustCompile(`HTTP/1\.1 (\d{3})`)
	innerError  = regexp.MustCompile(`\{"odata\.error":.*\}`)
)

// failed checks that a transaction was accepted (202) and that its one part is the failed operation.
func (s *scenario) failed(err error, want failedOperation, what string) {
	s.Helper()
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		s.Errorf("%s: got %v, want %+v", what, err, want)
		return
	}
	body, err := runtime.Payload(response.RawResponse)
	s.must(err, "read a transaction's answer")
	if response.StatusCode != 202 {
		s.Errorf("%s: got %d %s, want 202 and inside it %+v", what, response.StatusCode, body, want)
		return
	}
	statuses := innerStatus.FindAllSubmatch(body, -1)
	if len(statuses) != 1 {
		s.Errorf("%s: got %d parts, want one: %s", what, len(statuses), body)
		return
	}
	got := failedOperation{index: -1}
	got.status, _ = strconv.Atoi(string(statuses[0][1]))
	code, message := odataError(innerError.Find(body))
	got.code = code
	if prefix, _, found := strings.Cut(message, ":"); found {
		if index, err := strconv.Atoi(prefix); err == nil {
			got.index = index
		}
	}
	if got != want {
		s.Errorf("%s: got %+v, want %+v: %s", what, got, want, message)
	}
}

// odataError takes code and message from a JSON error body.
func odataError(body []byte) (code, message string) {
	var decoded struct {
		Error struct {
			Code    string `json:"code"`
			Message struct {
				Value string `json:"value"`
			} `json:"message"`
		} `json:"odata.error"`
	}
	_ = json.Unmarshal(body, &decoded)
	return decoded.Error.Code, decoded.Error.Message.Value
}

// second drops the answer of a call that is expected to be refused.
func second[T any](_ T, err error) error { return err }

func ptr[T any](value T) *T { return &value }
