// Keys: characters that need care on the way to the server, and those that are not allowed.
package sdk

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var specialKeyTexts = []string{
	"it's", "'", "''", "a''''b", "100%", "%25", "a%2Fb", "a b", " lead", "trail ", "a+b", "a&b=c", `say "hi"`,
	"(x)", "a,b", "semi;colon:at@", "$!*~", "[]{}|^`", "<tag>", "ünïcødé", "漢字", "🚀", "a.b..", "RowKey='x'",
}

func specialKeys(s *scenario) {
	table := s.newTable()
	for _, key := range specialKeyTexts {
		s.keyLife(table, key, "r")
		s.keyLife(table, "p", key)
		s.keyLife(table, key, key)
	}
	s.keyLife(table, "p", "")

	// aztables refuses an empty partition key in point operations before sending anything.
	s.add(table, s.plain("", "", props{"V": "empty"}))
	got := s.query(table, "PartitionKey eq '' and RowKey eq ''")
	if len(got) != 1 || got[0].Properties["V"] != "empty" {
		s.Errorf("empty keys: got %v", got)
	}

	// Inside a transaction aztables leaves quotes in the URL to the caller, so deletes double them.
	other := s.newTable()
	var adds, deletes []aztables.TransactionAction
	for _, key := range specialKeyTexts {
		adds = append(adds, action(aztables.TransactionTypeAdd, s.plain("it's 100%", key, nil)))
		deletes = append(deletes, action(aztables.TransactionTypeDelete, s.plain("it''s 100%", strings.ReplaceAll(key, "'", "''"), nil)))
	}
	_, err := other.SubmitTransaction(s.ctx, adds, nil)
	s.must(err, "insert special keys by a transaction")
	s.equal(len(s.query(other, "PartitionKey eq 'it''s 100%'")), len(specialKeyTexts), "entities after the transaction")
	_, err = other.SubmitTransaction(s.ctx, deletes, nil)
	s.must(err, "delete special keys by a transaction")
	s.equal(s.keys(other, ""), []string{}, "entities after the second transaction")
}

// keyLife takes one key through every operation that spells it in a body, a URL or a filter.
func (s *scenario) keyLife(table *aztables.Client, pk, rk string) {
	s.Helper()
	what := fmt.Sprintf("keys %q %q", pk, rk)
	_, err := table.AddEntity(s.ctx, s.plain(pk, rk, props{"V": int32(1)}), nil)
	s.must(err, "insert "+what)
	_, err = table.AddEntity(s.ctx, s.plain(pk, rk, nil), nil)
	s.refused(err, 409, "EntityAlreadyExists", "insert again "+what)
	_, err = s.update(table, s.plain(pk, rk, props{"W": int32(2)}), aztables.UpdateModeMerge, "*")
	s.must(err, "merge "+what)
	fetched, err := table.GetEntity(s.ctx, pk, rk, nil)
	s.must(err, "get "+what)
	got := s.decode(fetched.Value)
	s.equal([]string{got.PartitionKey, got.RowKey}, []string{pk, rk}, what)
	s.equal(got.Properties, props{"V": int32(1), "W": int32(2)}, what)

	literal := func(text string) string { return strings.ReplaceAll(text, "'", "''") }
	filter := fmt.Sprintf("PartitionKey eq '%s' and RowKey eq '%s'", literal(pk), literal(rk))
	s.equal(s.rows(table, filter), []string{rk}, "filter for "+what)
	_, err = table.DeleteEntity(s.ctx, pk, rk, nil)
	s.must(err, "delete "+what)
	s.equal(s.rows(table, filter), []string{}, "filter after delete of "+what)
}

func forbiddenKeys(s *scenario) {
	table := s.newTable()
	for _, character := range []string{"/", `\`, "#", "?", "\t", "\n", "\u0001", "\u007f", "\u0085"} {
		key := "a" + character + "b"
		_, err := table.AddEntity(s.ctx, s.plain(key, "r", nil), nil)
		s.refused(err, 400, "OutOfRangeInput", fmt.Sprintf("insert with partition key %q", key))
		_, err = table.AddEntity(s.ctx, s.plain("p", key, nil), nil)
		s.refused(err, 400, "OutOfRangeInput", fmt.Sprintf("insert with row key %q", key))
	}
	// In a URL the slashes are a matter of syntax.
	for character, code := range map[string]string{"/": "InvalidInput", `\`: "InvalidInput", "#": "OutOfRangeInput", "?": "OutOfRangeInput"} {
		key := "a" + character + "b"
		_, err := table.UpsertEntity(s.ctx, s.plain("p", key, nil), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
		s.refused(err, 400, code, fmt.Sprintf("upsert with row key %q", key))
		_, err = table.UpsertEntity(s.ctx, s.plain(key, "r", nil), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge})
		s.refused(err, 400, code, fmt.Sprintf("upsert with partition key %q", key))
	}
	s.equal(s.keys(table, ""), []string{}, "entities in the end")
}
