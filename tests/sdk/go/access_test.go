// Access: the account's key, shared access signatures of a table and of the account.
package sdk

import (
	"encoding/base64"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// Times far from the present, so that no test depends on the clock.
var (
	longAgo    = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	notSoLong  = time.Date(2002, 1, 1, 0, 0, 0, 0, time.UTC)
	farAhead   = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	fartherYet = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

func badSignature(s *scenario) {
	table, name := s.newNamedTable()
	wrong, err := aztables.NewSharedKeyCredential(account(), base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 64))))
	s.must(err, "make a credential")
	service, err := aztables.NewServiceClientWithSharedKey(endpoint(), wrong, clientOptions())
	s.must(err, "make a client")
	intruder := service.NewClient(name)

	_, err = service.CreateTable(s.ctx, s.tableName(), nil)
	s.refused(err, 403, "AuthenticationFailed", "create a table")
	_, err = intruder.AddEntity(s.ctx, s.edm("p", "r", nil), nil)
	s.refused(err, 403, "AuthenticationFailed", "insert")
	_, err = intruder.GetEntity(s.ctx, "p", "r", nil)
	s.refused(err, 403, "AuthenticationFailed", "get")
	s.refused(s.queryError(intruder, "PartitionKey eq 'p'"), 403, "AuthenticationFailed", "query")
	_, err = intruder.SubmitTransaction(s.ctx, []aztables.TransactionAction{action(aztables.TransactionTypeAdd, s.edm("p", "r", nil))}, nil)
	s.refused(err, 403, "AuthenticationFailed", "transaction")
	_, err = intruder.GetAccessPolicy(s.ctx, nil)
	s.refused(err, 403, "AuthenticationFailed", "read the access policies")
	_, err = service.GetProperties(s.ctx, nil)
	s.refused(err, 403, "AuthenticationFailed", "read the service properties")
	s.equal(s.keys(table, ""), []string{}, "entities in the end")
}

func tableSAS(s *scenario) {
	table, name := s.newNamedTable()
	s.add(table, s.edm("p", "r", props{"V": int32(1)}))
	s.checkTablePermissions(name)

	// The SDK's own URL needs an endpoint with a slash at its end.
	owner, err := aztables.NewServiceClientWithSharedKey(endpoint()+"/", s.credential(), clientOptions())
	s.must(err, "make a client")
	address, err := owner.NewClient(name).GetTableSASURL(aztables.SASPermissions{Read: true}, longAgo, farAhead)
	s.must(err, "make a SAS URL")
	reader, err := aztables.NewClientWithNoCredential(address, clientOptions())
	s.must(err, "make a client from a SAS URL")
	s.equal(s.keys(reader, ""), []string{"p r"}, "query by the SDK's own URL")

	whole := s.tableClient(name, s.tableToken(aztables.SASSignatureValues{TableName: name, Permissions: "raud", ExpiryTime: farAhead}))
	_, err = whole.SubmitTransaction(s.ctx, []aztables.TransactionAction{
		action(aztables.TransactionTypeAdd, s.edm("p", "batch", nil)),
		action(aztables.TransactionTypeDelete, s.edm("p", "r", nil)),
	}, nil)
	s.must(err, "transaction with every permission")
	s.equal(s.keys(table, ""), []string{"p batch"}, "entities after the transaction")

	get := func(client *aztables.Client) error { return second(client.GetEntity(s.ctx, "p", "batch", nil)) }
	with := func(values aztables.SASSignatureValues) *aztables.Client {
		values.TableName, values.Permissions = name, "raud"
		return s.tableClient(name, s.tableToken(values))
	}
	loopback, elsewhere := net.ParseIP("127.0.0.1"), net.ParseIP("203.0.113.7")
	s.must(get(with(aztables.SASSignatureValues{ExpiryTime: farAhead, Protocol: aztables.SASProtocolHTTPSandHTTP, IPRange: aztables.IPRange{Start: loopback}})),
		"get from a named address")
	s.refused(get(with(aztables.SASSignatureValues{StartTime: longAgo, ExpiryTime: notSoLong})), 403, "AuthenticationFailed", "expired")
	s.refused(get(with(aztables.SASSignatureValues{StartTime: farAhead, ExpiryTime: fartherYet})), 403, "AuthenticationFailed", "not yet valid")
	s.refused(get(with(aztables.SASSignatureValues{ExpiryTime: farAhead, Protocol: aztables.SASProtocolHTTPS})), 403, "AuthorizationProtocolMismatch", "over http")
	s.refused(get(with(aztables.SASSignatureValues{ExpiryTime: farAhead, IPRange: aztables.IPRange{Start: elsewhere}})), 403, "AuthorizationSourceIPMismatch", "from elsewhere")

	forged := s.tableToken(aztables.SASSignatureValues{TableName: name, Permissions: "r", ExpiryTime: farAhead})
	forged = strings.Replace(forged, "sp=r", "sp=raud", 1)
	s.refused(get(s.tableClient(name, forged)), 403, "AuthenticationFailed", "a changed token")
}

// checkTablePermissions tries every write and read with one permission each.
func (s *scenario) checkTablePermissions(name string) {
	s.Helper()
	with := func(permissions string) *aztables.Client {
		return s.tableClient(name, s.tableToken(aztables.SASSignatureValues{TableName: name, Permissions: permissions, StartTime: longAgo, ExpiryTime: farAhead}))
	}
	upsert := func(client *aztables.Client) error {
		return second(client.UpsertEntity(s.ctx, s.edm("p", "upserted", nil), nil))
	}
	const mismatch = "AuthorizationPermissionMismatch"

	reader, adder, updater, deleter := with("r"), with("a"), with("u"), with("d")
	s.equal(s.get(reader, "p", "r").Properties, props{"V": int32(1)}, "get with r")
	s.equal(s.keys(reader, ""), []string{"p r"}, "query with r")
	s.refused(second(reader.AddEntity(s.ctx, s.edm("p", "x", nil), nil)), 403, mismatch, "insert with r")
	s.add(adder, s.edm("p", "added", nil))
	s.refused(second(adder.GetEntity(s.ctx, "p", "r", nil)), 403, mismatch, "get with a")
	s.refused(s.queryError(adder, "PartitionKey eq 'p'"), 403, mismatch, "query with a")
	s.refused(upsert(adder), 403, mismatch, "upsert with a")
	s.must(second(s.update(updater, s.edm("p", "r", props{"V": int32(2)}), aztables.UpdateModeReplace, "*")), "replace with u")
	s.refused(upsert(updater), 403, mismatch, "upsert with u")
	s.must(upsert(with("au")), "upsert with au")
	s.refused(second(deleter.AddEntity(s.ctx, s.edm("p", "x", nil), nil)), 403, mismatch, "insert with d")
	s.must(second(deleter.DeleteEntity(s.ctx, "p", "added", nil)), "delete with d")
	s.must(second(deleter.DeleteEntity(s.ctx, "p", "upserted", nil)), "delete with d")
	s.refused(second(reader.DeleteEntity(s.ctx, "p", "r", nil)), 403, mismatch, "delete with r")

	_, other := s.newNamedTable()
	stray := s.tableClient(other, s.tableToken(aztables.SASSignatureValues{TableName: name, Permissions: "raud", ExpiryTime: farAhead}))
	s.refused(second(stray.GetEntity(s.ctx, "p", "r", nil)), 403, "AuthorizationFailure", "get from another table")
	s.refused(second(stray.CreateTable(s.ctx, nil)), 403, "AuthorizationFailure", "create a table")
}

func sasKeyRange(s *scenario) {
	table, name := s.newNamedTable()
	for _, pk := range []string{"p1", "p2", "p3"} {
		for _, rk := range []string{"a", "b", "c", "d"} {
			s.add(table, s.edm(pk, rk, nil))
		}
	}
	within := func(values aztables.SASSignatureValues) *aztables.Client {
		values.TableName, values.Permissions, values.ExpiryTime = name, "raud", farAhead
		return s.tableClient(name, s.tableToken(values))
	}
	const outside = "AuthorizationFailure"

	rows := within(aztables.SASSignatureValues{StartPartitionKey: "p2", StartRowKey: "b", EndPartitionKey: "p2", EndRowKey: "c"})
	s.equal(s.keys(rows, ""), []string{"p2 b", "p2 c"}, "query within rows")
	s.equal(s.keys(rows, "PartitionKey eq 'p1'"), []string{}, "query outside the range")
	s.equal(s.keys(rows, "PartitionKey eq 'p2' and RowKey ge 'c'"), []string{"p2 c"}, "query across the range's end")
	s.get(rows, "p2", "b")
	s.refused(second(rows.GetEntity(s.ctx, "p2", "a", nil)), 404, "ResourceNotFound", "get before the range")
	s.add(rows, s.edm("p2", "bb", nil))
	s.refused(second(rows.AddEntity(s.ctx, s.edm("p2", "e", nil), nil)), 403, outside, "insert behind the range")
	s.refused(second(rows.AddEntity(s.ctx, s.edm("p3", "b", nil), nil)), 403, outside, "insert into another partition")
	s.refused(second(s.update(rows, s.edm("p2", "d", nil), aztables.UpdateModeReplace, "*")), 403, outside, "replace behind the range")
	s.refused(second(rows.UpsertEntity(s.ctx, s.edm("p1", "b", nil), nil)), 403, outside, "upsert before the range")
	s.refused(second(rows.DeleteEntity(s.ctx, "p2", "a", nil)), 403, outside, "delete before the range")
	_, err := rows.SubmitTransaction(s.ctx, []aztables.TransactionAction{
		action(aztables.TransactionTypeAdd, s.edm("p2", "bc", nil)),
		action(aztables.TransactionTypeAdd, s.edm("p2", "z", nil)),
	}, nil)
	s.equal(errorCodeInside(err), outside, "transaction with one row outside")
	s.equal(s.rows(table, "PartitionKey eq 'p2'"), []string{"a", "b", "bb", "c", "d"}, "rows in the end")

	across := within(aztables.SASSignatureValues{StartPartitionKey: "p1", StartRowKey: "d", EndPartitionKey: "p3", EndRowKey: "a"})
	s.equal(s.keys(across, "RowKey ne 'bb'"), []string{"p1 d", "p2 a", "p2 b", "p2 c", "p2 d", "p3 a"}, "query across partitions")
	whole := within(aztables.SASSignatureValues{StartPartitionKey: "p2", EndPartitionKey: "p2"})
	s.equal(s.keys(whole, ""), []string{"p2 a", "p2 b", "p2 bb", "p2 c", "p2 d"}, "query within a partition")
	tail := within(aztables.SASSignatureValues{StartPartitionKey: "p3"})
	s.equal(s.keys(tail, ""), []string{"p3 a", "p3 b", "p3 c", "p3 d"}, "query from a partition on")
	s.refused(second(tail.GetEntity(s.ctx, "p2", "a", nil)), 404, "ResourceNotFound", "get before the partition")
}

func accountSAS(s *scenario) {
	name := s.tableName()
	with := func(services, types, permissions string) *aztables.ServiceClient {
		return s.accountClient(aztables.AccountSASSignatureValues{Services: services, ResourceTypes: types, Permissions: permissions, ExpiryTime: farAhead})
	}
	const permission, resource = "AuthorizationPermissionMismatch", "AuthorizationResourceTypeMismatch"

	s.must(second(with("t", "c", "c").CreateTable(s.ctx, name, nil)), "create a table with c, c")
	s.refused(second(with("t", "o", "rwdlacu").CreateTable(s.ctx, s.tableName(), nil)), 403, resource, "create a table with o")
	s.refused(second(with("t", "c", "r").CreateTable(s.ctx, s.tableName(), nil)), 403, permission, "create a table with r")
	s.equal(s.tablesLike(with("t", "c", "l"), name), []string{name}, "list tables with c, l")

	entities := func(permissions string) *aztables.Client { return with("t", "o", permissions).NewClient(name) }
	s.add(entities("a"), s.edm("p", "r", props{"V": int32(1)}))
	s.equal(s.get(entities("r"), "p", "r").Properties, props{"V": int32(1)}, "get with o, r")
	s.equal(s.keys(entities("r"), ""), []string{"p r"}, "query with o, r")
	s.refused(second(entities("r").AddEntity(s.ctx, s.edm("p", "x", nil), nil)), 403, permission, "insert with r")
	s.refused(second(with("t", "sc", "rwdlacu").NewClient(name).GetEntity(s.ctx, "p", "r", nil)), 403, resource, "get with s and c")
	s.must(second(s.update(entities("u"), s.edm("p", "r", nil), aztables.UpdateModeMerge, "*")), "merge with u")
	s.refused(second(entities("u").UpsertEntity(s.ctx, s.edm("p", "r", nil), nil)), 403, permission, "upsert with u")
	s.must(second(entities("au").UpsertEntity(s.ctx, s.edm("p", "r", nil), nil)), "upsert with au")
	s.must(second(entities("d").DeleteEntity(s.ctx, "p", "r", nil)), "delete with d")
	s.must(second(with("t", "s", "r").GetProperties(s.ctx, nil)), "service properties with s, r")
	s.refused(second(with("t", "co", "r").GetProperties(s.ctx, nil)), 403, resource, "service properties with c and o")

	query := func(values aztables.AccountSASSignatureValues) error {
		values.ResourceTypes, values.Permissions = "sco", "rwdlacu"
		return s.queryError(s.accountClient(values).NewClient(name), "PartitionKey eq 'p'")
	}
	s.must(query(aztables.AccountSASSignatureValues{Services: "bqt", ExpiryTime: farAhead, Protocol: aztables.SASProtocolHTTPSandHTTP}), "query, several services")
	s.refused(query(aztables.AccountSASSignatureValues{Services: "bq", ExpiryTime: farAhead}), 403, "AuthorizationServiceMismatch", "other services")
	s.refused(query(aztables.AccountSASSignatureValues{Services: "t", ExpiryTime: notSoLong}), 403, "AuthenticationFailed", "expired")
	address, err := s.service().GetAccountSASURL(aztables.AccountSASResourceTypes{Object: true}, aztables.AccountSASPermissions{Read: true}, longAgo, farAhead)
	s.must(err, "make a SAS URL")
	secure, err := aztables.NewServiceClientWithNoCredential(address, clientOptions())
	s.must(err, "make a client from a SAS URL")
	s.refused(s.queryError(secure.NewClient(name), "PartitionKey eq 'p'"), 403, "AuthorizationProtocolMismatch", "the SDK's own URL, which asks for https")

	s.must(second(with("t", "c", "d").DeleteTable(s.ctx, name, nil)), "delete the table with c, d")
}

// tableToken signs a table SAS. aztables signs the key range but leaves it out of the token, so it is added.
func (s *scenario) tableToken(values aztables.SASSignatureValues) string {
	s.Helper()
	token, err := values.Sign(s.credential())
	s.must(err, "sign a SAS")
	fields := url.Values{}
	for field, value := range map[string]string{
		"spk": values.StartPartitionKey, "srk": values.StartRowKey, "epk": values.EndPartitionKey, "erk": values.EndRowKey,
	} {
		if value != "" {
			fields.Set(field, value)
		}
	}
	return token + "&" + fields.Encode()
}

func (s *scenario) tableClient(name, token string) *aztables.Client {
	s.Helper()
	client, err := aztables.NewClientWithNoCredential(endpoint()+"/"+name+"?"+token, clientOptions())
	s.must(err, "make a client from a SAS")
	return client
}

func (s *scenario) accountClient(values aztables.AccountSASSignatureValues) *aztables.ServiceClient {
	s.Helper()
	token, err := values.Sign(s.credential())
	s.must(err, "sign an account SAS")
	client, err := aztables.NewServiceClientWithNoCredential(endpoint()+"/?"+token.Encode(), clientOptions())
	s.must(err, "make a client from an account SAS")
	return client
}

// errorCodeInside finds a refusal's code, be it of a whole transaction or of an operation in it.
func errorCodeInside(err error) string {
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		return ""
	}
	if response.ErrorCode != "" {
		return response.ErrorCode
	}
	body, _ := runtime.Payload(response.RawResponse)
	code, _ := odataError(innerError.Find(body))
	return code
}
