// Filters and projection. aztables has no formatter for filter parameters, so literals are written out.
package sdk

import (
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// filterRows are expectations: a filter and the row keys it finds, in order.
type filterRows struct {
	filter string
	rows   string
}

func (s *scenario) checkFilters(table *aztables.Client, cases []filterRows) {
	s.Helper()
	for _, c := range cases {
		rows, err := s.tryRows(table, c.filter)
		if err != nil {
			s.Errorf("%s: %v", c.filter, err)
			continue
		}
		s.equal(strings.Join(rows, " "), c.rows, c.filter)
	}
}

// tryRows is rows for a filter that may be refused: one page, so that the other cases are still tried.
func (s *scenario) tryRows(table *aztables.Client, filter string) ([]string, error) {
	s.Helper()
	page, err := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}).NextPage(s.ctx)
	if err != nil {
		return nil, err
	}
	var rows []string
	for _, text := range page.Entities {
		rows = append(rows, s.decode(text).RowKey)
	}
	return rows, nil
}

func filterOperators(s *scenario) {
	table := s.newTable()
	for i := range 6 {
		properties := props{"N": int32(i), "Even": i%2 == 0}
		if i < 3 {
			properties["Name"] = fmt.Sprintf("name%d", i)
		}
		s.add(table, s.edm("p", fmt.Sprint(i), properties))
	}
	s.checkFilters(table, []filterRows{
		{"N eq 3", "3"},
		{"N ne 3", "0 1 2 4 5"},
		{"N gt 3", "4 5"},
		{"N ge 3", "3 4 5"},
		{"N lt 3", "0 1 2"},
		{"N le 3", "0 1 2 3"},
		{"N gt 1 and N lt 4", "2 3"},
		{"N lt 1 or N gt 4", "0 5"},
		{"not (N lt 4)", "4 5"},
		{"not(N lt 4)", "4 5"},
		{"not (N lt 2 or N gt 3)", "2 3"},
		{"N eq 5 or N gt 1 and N lt 3", "2 5"},
		{"(N eq 5 or N gt 1) and N lt 3", "2"},
		{"((N eq 1))", "1"},
		{"4 lt N", "5"},
		{"Even eq true and N gt 2", "4"},
		{"Even", "0 2 4"},
		{"not Even", "1 3 5"},
		{"N lt 2 and Name eq 'name1'", "1"},
		// A comparison with a missing property is false, whatever its operator; `not` turns that around.
		{"Name ne 'name1'", "0 2"},
		{"Name lt 'zzz'", "0 1 2"},
		{"not (Name eq 'name1')", "0 2 3 4 5"},
		{"Missing eq 1 or N eq 2", "2"},
		{"N gt 3 and N lt 3", ""},
	})
}

func filterLiterals(s *scenario) {
	table := s.newTable()
	guid := func(last string) aztables.EDMGUID {
		return aztables.EDMGUID("8f6b3a1c-0000-4d2e-9c57-0123456789" + last)
	}
	day := func(day, ticks int) aztables.EDMDateTime {
		return aztables.EDMDateTime(time.Date(2024, 5, day, 10, 0, 0, ticks*100, time.UTC))
	}
	s.add(table, s.edm("p", "a", props{
		"S": "it's", "I": int32(-5), "L": aztables.EDMInt64(5_000_000_000), "D": 2.5, "B": false,
		"T": day(1, 1234567), "G": guid("aa"), "X": aztables.EDMBinary{0x0a, 0xff},
	}))
	s.add(table, s.edm("p", "b", props{
		"S": "its", "I": int32(5), "L": aztables.EDMInt64(5_000_000_001), "B": true,
		"T": day(2, 0), "G": guid("bb"), "X": aztables.EDMBinary{0x0b},
		// aztables writes this double as an integer, so its type is named.
		"D": 1e10, "D@odata.type": "Edm.Double",
	}))
	s.checkFilters(table, []filterRows{
		{"S eq 'it''s'", "a"}, {"S ne 'it''s'", "b"}, {"S gt 'it''s'", "b"}, {"S eq 'ITS'", ""},
		{"I eq -5", "a"}, {"I gt -5", "b"},
		{"L eq 5000000000L", "a"}, {"L gt 5000000000L", "b"}, {"L le 5000000001L", "a b"},
		{"D eq 2.5", "a"}, {"D lt 3.0", "a"}, {"D eq 1e10", "b"}, {"D gt 2.5", "b"},
		{"B eq false", "a"}, {"B eq true", "b"}, {"B ne true", "a"},
		{"T eq datetime'2024-05-01T10:00:00.1234567Z'", "a"}, {"T gt datetime'2024-05-01T10:00:00.1234567Z'", "b"},
		{"T eq datetime'2024-05-02T10:00:00Z'", "b"}, {"T eq datetime'2024-05-02T10:00:00.0000000Z'", "b"},
		{"G eq guid'8f6b3a1c-0000-4d2e-9c57-0123456789aa'", "a"}, {"G ne guid'8f6b3a1c-0000-4d2e-9c57-0123456789aa'", "b"},
		{"X eq X'0aff'", "a"}, {"X eq X'0AFF'", "a"}, {"X eq binary'0b'", "b"}, {"X gt X'0aff'", "b"},
		{"Timestamp gt datetime'2020-01-01T00:00:00Z'", "a b"}, {"Timestamp lt datetime'2020-01-01T00:00:00Z'", ""},
		// A literal is widened to the property's type, never the other way; other types are never equal.
		{"L gt 7", "a b"}, {"D eq 10000000000L", "b"}, {"D gt 2", "a b"},
		{"I eq 5L", ""}, {"I eq 5.0", ""}, {"I eq '5'", ""}, {"S eq 5", ""}, {"I ne '5'", "a b"},
	})
}

func filterKeys(s *scenario) {
	table := s.newTable()
	for _, pk := range []string{"p3", "p1", "p2"} {
		for _, rk := range []string{"c", "a", "d", "b"} {
			s.add(table, s.edm(pk, rk, props{"K": pk + rk}))
		}
	}
	cases := []struct {
		filter string
		keys   string
	}{
		{"PartitionKey eq 'p2' and RowKey eq 'b'", "p2 b"},
		{"PartitionKey eq 'p2' and RowKey eq 'missing'", ""},
		{"PartitionKey eq 'p2' and RowKey ge 'b' and RowKey lt 'd'", "p2 b,p2 c"},
		{"PartitionKey eq 'p2' and RowKey gt 'b'", "p2 c,p2 d"},
		{"PartitionKey eq 'p1'", "p1 a,p1 b,p1 c,p1 d"},
		{"PartitionKey eq 'p1' and K eq 'p1c'", "p1 c"},
		{"PartitionKey gt 'p1' and PartitionKey le 'p3' and RowKey eq 'a'", "p2 a,p3 a"},
		{"RowKey eq 'd'", "p1 d,p2 d,p3 d"},
		{"(PartitionKey eq 'p3' and RowKey eq 'a') or (PartitionKey eq 'p1' and RowKey eq 'c')", "p1 c,p3 a"},
		{"PartitionKey eq 'p2' and (RowKey eq 'd' or RowKey eq 'a' or RowKey eq 'x')", "p2 a,p2 d"},
		{"PartitionKey eq 'p3' and RowKey le 'b' or PartitionKey eq 'p1' and RowKey ge 'd'", "p1 d,p3 a,p3 b"},
		{"PartitionKey eq 'p1' and (RowKey lt 'c' or RowKey lt 'b')", "p1 a,p1 b"},
		{"not (PartitionKey eq 'p1') and not (RowKey ne 'a')", "p2 a,p3 a"},
		{"PartitionKey eq 'p1' and PartitionKey eq 'p2'", ""},
		{"PartitionKey eq 'P1'", ""},
	}
	for _, c := range cases {
		s.equal(strings.Join(s.keys(table, c.filter), ","), c.keys, c.filter)
	}

	// Keys order by UTF-16 code unit: upper case before lower, surrogate pairs before the last of the plane.
	ordered := []string{"", "A", "B", "a", "~", "é", "漢", "𝄞", "～"}
	for i := range ordered {
		s.add(table, s.edm("order", ordered[len(ordered)-1-i], nil))
	}
	s.equal(s.rows(table, "PartitionKey eq 'order'"), ordered, "order of row keys")
	s.equal(s.rows(table, "PartitionKey eq 'order' and RowKey gt 'a' and RowKey lt '～'"), ordered[4:8], "range over that order")
}

func filterErrors(s *scenario) {
	table := s.newTable()
	s.add(table, s.edm("p", "r", props{"A": int32(1)}))
	for _, filter := range []string{
		"aaa bbb ccc",
		"A eq",
		"eq 1",
		"A == 1",
		"(A eq 1",
		"A eq 1)",
		"A eq 'open",
		"A eq 1 and",
		"A eq 1 B eq 2",
		"A eq datetime'yesterday'",
		"A eq guid'1234'",
		"A eq null",
		"1",
	} {
		s.refused(s.queryError(table, filter), 400, "InvalidInput", filter)
	}
	for _, filter := range []string{"startswith(A,'x')", "A eq B"} {
		s.refused(s.queryError(table, filter), 501, "NotImplemented", filter)
	}
	s.equal(s.rows(table, "A eq 1"), []string{"r"}, "a well-formed filter")
}

// aztables has no projection on point gets; a query for one key stands in for it.
func selectProperties(s *scenario) {
	table := s.newTable()
	s.add(table, s.edm("p", "full", props{"A": "a", "B": int32(2), "C": aztables.EDMInt64(3)}))
	s.add(table, s.edm("p", "half", props{"A": "half"}))
	choose := func(names, filter string) []aztables.EDMEntity {
		s.Helper()
		var entities []aztables.EDMEntity
		for _, page := range s.pages(table, &aztables.ListEntitiesOptions{Select: &names, Filter: &filter}) {
			for _, text := range page.Entities {
				entities = append(entities, s.decode(text))
			}
		}
		return entities
	}

	for _, names := range []string{"A,C", "A, C"} {
		got := choose(names, "PartitionKey eq 'p'")
		if len(got) != 2 {
			s.Fatalf("select %q: got %d entities", names, len(got))
		}
		s.equal(got[0].Properties, props{"A": "a", "C": aztables.EDMInt64(3)}, "chosen properties")
		s.equal(got[0].PartitionKey+got[0].RowKey, "", "keys that were not chosen")
		s.equal(time.Time(got[0].Timestamp).IsZero(), true, "Timestamp was not chosen")
		s.equal(got[0].ETag, s.get(table, "p", "full").ETag, "the etag comes along")
		// aztables reads a null as the first type it tries.
		s.equal(got[1].Properties["A"], "half", "chosen property")
	}
	wire := s.firstPage(table, &aztables.ListEntitiesOptions{Select: ptr("A,C"), Filter: ptr("RowKey eq 'half'")})
	s.equal(string(wire["C"]), "null", "a chosen property that the entity lacks")

	got := choose("PartitionKey,RowKey,Timestamp", "PartitionKey eq 'p' and RowKey eq 'full'")
	if len(got) != 1 {
		s.Fatalf("select of the system properties: got %d entities", len(got))
	}
	whole := s.get(table, "p", "full")
	s.equal(got[0].Entity, whole.Entity, "system properties")
	s.equal(got[0].Properties, props{}, "no other property")
	got = choose("B", "A eq 'a'")
	s.equal(len(got), 1, "filter on a property that is not chosen")
	s.equal(got[0].Properties, props{"B": int32(2)}, "chosen property only")
}
