// Transactions: all kinds of operation, failures by index, the rules that refuse a whole batch.
package sdk

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func action(kind aztables.TransactionType, entity []byte, condition ...azcore.ETag) aztables.TransactionAction {
	made := aztables.TransactionAction{ActionType: kind, Entity: entity}
	if len(condition) > 0 {
		made.IfMatch = &condition[0]
	}
	return made
}

// Ten kinds of operation, ten rows each; every kind has its own outcome.
func transaction(s *scenario) {
	table := s.newTable()
	old := props{"Old": "old", "Both": int32(1)}
	sent := props{"Both": int32(2), "New": "new"}
	merged := props{"Old": "old", "Both": int32(2), "New": "new"}
	kinds := []struct {
		name    string
		kind    aztables.TransactionType
		present bool
		match   string // "" none, "*" any, "etag" the current one
		want    props
	}{
		{"add", aztables.TransactionTypeAdd, false, "", sent},
		{"delete-any", aztables.TransactionTypeDelete, true, "*", nil},
		{"delete-etag", aztables.TransactionTypeDelete, true, "etag", nil},
		{"merge-any", aztables.TransactionTypeUpdateMerge, true, "*", merged},
		{"merge-etag", aztables.TransactionTypeUpdateMerge, true, "etag", merged},
		{"replace-any", aztables.TransactionTypeUpdateReplace, true, "*", sent},
		{"replace-etag", aztables.TransactionTypeUpdateReplace, true, "etag", sent},
		{"upsert-merge", aztables.TransactionTypeInsertMerge, true, "", merged},
		{"upsert-merge-absent", aztables.TransactionTypeInsertMerge, false, "", sent},
		{"upsert-replace", aztables.TransactionTypeInsertReplace, true, "", sent},
	}
	var actions []aztables.TransactionAction
	etags := map[string]azcore.ETag{}
	for _, k := range kinds {
		for i := range 10 {
			row := fmt.Sprintf("%s-%d", k.name, i)
			if k.present {
				etags[row] = s.add(table, s.edm("p", row, old))
			}
			made := action(k.kind, s.edm("p", row, sent))
			switch k.match {
			case "*":
				made.IfMatch = ptr(azcore.ETagAny)
			case "etag":
				made.IfMatch = ptr(etags[row])
			}
			actions = append(actions, made)
		}
	}
	s.equal(len(actions), operationsMax, "operations")
	_, err := table.SubmitTransaction(s.ctx, actions, nil)
	s.must(err, "submit the transaction")

	for _, k := range kinds {
		for i := range 10 {
			row := fmt.Sprintf("%s-%d", k.name, i)
			if k.want == nil {
				s.refused(second(table.GetEntity(s.ctx, "p", row, nil)), 404, "ResourceNotFound", row)
				continue
			}
			got := s.get(table, "p", row)
			s.equal(got.Properties, k.want, row)
			if got.ETag == string(etags[row]) {
				s.Errorf("%s: the etag did not change", row)
			}
		}
	}
}

func transactionFailure(s *scenario) {
	table := s.newTable()
	stale := s.add(table, s.edm("p", "present", props{"V": int32(0)}))
	_, err := s.update(table, s.edm("p", "present", props{"V": int32(1)}), aztables.UpdateModeReplace, stale)
	s.must(err, "replace")
	before := s.get(table, "p", "present")

	add := func(row string) aztables.TransactionAction {
		return action(aztables.TransactionTypeAdd, s.edm("p", row, props{"V": int32(9)}))
	}
	present := s.edm("p", "present", props{"V": int32(9)})
	missing := s.edm("p", "missing", props{"V": int32(9)})
	cases := []struct {
		what    string
		actions []aztables.TransactionAction
		want    failedOperation
	}{
		{"insert of a present key", []aztables.TransactionAction{add("n0"), add("n1"), add("present"), add("n3")},
			failedOperation{409, "EntityAlreadyExists", 2}},
		{"replace with a stale etag", []aztables.TransactionAction{add("n0"), action(aztables.TransactionTypeUpdateReplace, present, stale)},
			failedOperation{412, "UpdateConditionNotSatisfied", 1}},
		{"merge of a missing entity", []aztables.TransactionAction{add("n0"), add("n1"), add("n2"), action(aztables.TransactionTypeUpdateMerge, missing, "*")},
			failedOperation{404, "ResourceNotFound", 3}},
		{"delete with a stale etag, after a change elsewhere", []aztables.TransactionAction{add("n0"), action(aztables.TransactionTypeDelete, present, stale), add("n2")},
			failedOperation{412, "UpdateConditionNotSatisfied", 1}},
		{"delete of a missing entity", []aztables.TransactionAction{action(aztables.TransactionTypeInsertReplace, present), action(aztables.TransactionTypeDelete, missing)},
			failedOperation{404, "ResourceNotFound", 1}},
		{"a value out of bounds", []aztables.TransactionAction{add("n0"), action(aztables.TransactionTypeAdd, s.edm("p", "n1", tooManyProperties()))},
			failedOperation{400, "TooManyProperties", 1}},
	}
	for _, c := range cases {
		_, err := table.SubmitTransaction(s.ctx, c.actions, nil)
		s.failed(err, c.want, c.what)
		s.equal(s.query(table, ""), []aztables.EDMEntity{withoutMetadata(before)}, "nothing is applied: "+c.what)
	}

	absent := s.service().NewClient(s.tableName())
	_, err = absent.SubmitTransaction(s.ctx, []aztables.TransactionAction{add("n0"), add("n1")}, nil)
	s.failed(err, failedOperation{404, "TableNotFound", 0}, "transaction on a missing table")
}

func transactionRules(s *scenario) {
	table := s.newTable()
	add := func(pk, row string) aztables.TransactionAction {
		return action(aztables.TransactionTypeAdd, s.edm(pk, row, nil))
	}
	var many []aztables.TransactionAction
	for i := range operationsMax + 1 {
		many = append(many, add("p", fmt.Sprintf("%03d", i)))
	}
	cases := []struct {
		what    string
		actions []aztables.TransactionAction
		want    failedOperation
	}{
		{"an entity twice", []aztables.TransactionAction{add("p", "a"), add("p", "a")},
			failedOperation{400, "InvalidDuplicateRow", 1}},
		{"an entity twice, by two kinds", []aztables.TransactionAction{add("p", "a"), add("p", "b"), action(aztables.TransactionTypeInsertMerge, s.edm("p", "a", nil))},
			failedOperation{400, "InvalidDuplicateRow", 2}},
		{"two partitions", []aztables.TransactionAction{add("p", "a"), add("q", "b")},
			failedOperation{400, "CommandsInBatchActOnDifferentPartitions", 1}},
		{"101 operations", many, failedOperation{400, "InvalidInput", 99}},
	}
	for _, c := range cases {
		_, err := table.SubmitTransaction(s.ctx, c.actions, nil)
		s.failed(err, c.want, c.what)
		s.equal(s.keys(table, ""), []string{}, "nothing is applied: "+c.what)
	}
	_, err := table.SubmitTransaction(s.ctx, many[:operationsMax], nil)
	s.must(err, "100 operations")
	s.equal(len(s.keys(table, "")), operationsMax, "entities after 100 operations")
}

func tooManyProperties() props {
	properties := props{}
	for i := range 253 {
		properties[fmt.Sprintf("P%03d", i)] = int32(i)
	}
	return properties
}

// withoutMetadata is a point get's entity as a query gives it: the metadata link is the page's there.
func withoutMetadata(entity aztables.EDMEntity) aztables.EDMEntity {
	entity.Metadata = ""
	return entity
}
