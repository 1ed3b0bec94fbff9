// Values: every EDM type comes back as it was written, up to the limits.
package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var etagShape = regexp.MustCompile(`^W/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'"$`)

func entityTypes(s *scenario) {
	table, name := s.newNamedTable()
	want := props{
		"String":   "text",
		"Int32":    int32(-42),
		"Int64":    aztables.EDMInt64(1 << 40),
		"Double":   2.5,
		"True":     true,
		"False":    false,
		"DateTime": aztables.EDMDateTime(time.Date(2024, 2, 29, 12, 34, 56, 789000000, time.UTC)),
		"Guid":     aztables.EDMGUID("8f6b3a1c-0000-4d2e-9c57-0123456789ab"),
		"Binary":   aztables.EDMBinary([]byte{0, 1, 2, 0xfd, 0xfe, 0xff}),
	}
	etag := s.add(table, s.edm("p", "r", want))

	got := s.get(table, "p", "r")
	s.equal(got.Properties, want, "point get")
	s.equal(s.query(table, "")[0].Properties, want, "query")
	if !etagShape.MatchString(got.ETag) || got.ETag != string(etag) {
		s.Errorf("etag: insert gave %s, get gave %s", etag, got.ETag)
	}
	stamp := time.Time(got.Timestamp).Format("2006-01-02T15:04:05.9999999Z")
	s.equal(got.ETag, fmt.Sprintf(`W/"datetime'%s'"`, strings.ReplaceAll(stamp, ":", "%3A")), "etag spells the timestamp")

	// The same name may have another type on another entity, and a client cannot set Timestamp.
	s.add(table, s.edm("p", "other", props{"Int32": "now a string", "Timestamp": "2001-01-01T00:00:00Z"}))
	other := s.get(table, "p", "other")
	s.equal(other.Properties, props{"Int32": "now a string"}, "another type under the same name")
	if time.Time(other.Timestamp).Year() == 2001 {
		s.Errorf("the client's Timestamp was kept")
	}

	full := s.members(table, "p", "r", aztables.MetadataFormatFull)
	s.equal(string(full["odata.type"]), fmt.Sprintf(`"%s.%s"`, account(), name), "odata.type at full metadata")
	s.equal(string(full["odata.id"]), fmt.Sprintf(`"%s/%s(PartitionKey='p',RowKey='r')"`, endpoint(), name), "odata.id at full metadata")
	s.equal(string(full["odata.editLink"]), fmt.Sprintf(`"%s(PartitionKey='p',RowKey='r')"`, name), "odata.editLink at full metadata")
	s.equal(string(full["Timestamp@odata.type"]), `"Edm.DateTime"`, "type of Timestamp at full metadata")
	for member := range s.members(table, "p", "r", aztables.MetadataFormatNone) {
		if strings.Contains(member, "odata.") {
			s.Errorf("no metadata was asked for, got %s", member)
		}
	}
}

func int64Extremes(s *scenario) {
	table := s.newTable()
	want := props{
		"Max64":  aztables.EDMInt64(math.MaxInt64),
		"Min64":  aztables.EDMInt64(math.MinInt64),
		"Past53": aztables.EDMInt64(1<<53 + 1),
		"Zero64": aztables.EDMInt64(0),
		"Max32":  int32(math.MaxInt32),
		"Min32":  int32(math.MinInt32),
	}
	s.add(table, s.edm("p", "r", want))
	s.equal(s.get(table, "p", "r").Properties, want, "point get")
	s.equal(s.query(table, "")[0].Properties, want, "query")
	s.equal(string(s.members(table, "p", "r", aztables.MetadataFormatMinimal)["Max64"]), `"9223372036854775807"`, "Int64 on the wire")

	tooLarge := s.plain("p", "over", props{"V": "9223372036854775808", "V@odata.type": "Edm.Int64"})
	_, err := table.AddEntity(s.ctx, tooLarge, nil)
	s.refused(err, 400, "InvalidInput", "an Int64 past the largest")
}

// aztables writes 3.0 as `3`, has no spelling for NaN and forgets the type on the way back, so doubles are
// annotated by hand and read from the wire.
func doubleSpecials(s *scenario) {
	table := s.newTable()
	finite := map[string]float64{
		"Whole": 3, "Zero": 0, "Large": 1e21, "Larger": 12345678901234567890, "Max": math.MaxFloat64,
		"Min": -math.MaxFloat64, "Small": 2.2250738585072014e-308, "Smallest": 5e-324, "Tenth": 0.1, "Third": 1.0 / 3,
	}
	special := []string{"NaN", "Infinity", "-Infinity"}
	sent := props{}
	for name, value := range finite {
		sent[name], sent[name+"@odata.type"] = value, "Edm.Double"
	}
	for i, value := range special {
		name := fmt.Sprintf("Special%d", i)
		sent[name], sent[name+"@odata.type"] = value, "Edm.Double"
	}
	s.add(table, s.plain("p", "r", sent))

	got := s.members(table, "p", "r", aztables.MetadataFormatMinimal)
	for name, want := range finite {
		text := string(got[name])
		if !strings.ContainsAny(text, ".eE") {
			s.Errorf("%s: %s on the wire reads as an integer", name, text)
		}
		var value float64
		s.must(json.Unmarshal(got[name], &value), name)
		s.equal(value, want, name)
	}
	for i, want := range special {
		name := fmt.Sprintf("Special%d", i)
		s.equal(string(got[name]), `"`+want+`"`, name)
		s.equal(string(got[name+"@odata.type"]), `"Edm.Double"`, "type of "+name)
	}
	s.equal(s.rows(table, "Whole eq 3.0"), []string{"r"}, "filter with a double literal")
	s.equal(s.rows(table, "Larger gt 1e19"), []string{"r"}, "filter with an exponent")
}

func datetimeExtremes(s *scenario) {
	table := s.newTable()
	at := func(year int, month time.Month, day, hour, minute, second, ticks int) aztables.EDMDateTime {
		return aztables.EDMDateTime(time.Date(year, month, day, hour, minute, second, ticks*100, time.UTC))
	}
	want := props{
		"First":  at(1601, 1, 1, 0, 0, 0, 0),
		"Last":   at(9999, 12, 31, 23, 59, 59, 9999999),
		"Tick":   at(2024, 1, 1, 0, 0, 0, 1),
		"Tenths": at(2024, 1, 1, 23, 59, 59, 1200000),
		"Whole":  at(1970, 1, 1, 0, 0, 0, 0),
	}
	s.add(table, s.edm("p", "r", want))
	s.equal(s.get(table, "p", "r").Properties, want, "point get")
	wire := s.members(table, "p", "r", aztables.MetadataFormatMinimal)
	s.equal(string(wire["Tenths"]), `"2024-01-01T23:59:59.12Z"`, "fractions lose their trailing zeros")
	s.equal(string(wire["Whole"]), `"1970-01-01T00:00:00Z"`, "whole seconds have no fraction")
	s.equal(s.rows(table, "Tick gt datetime'2024-01-01T00:00:00Z'"), []string{"r"}, "a tick counts in a filter")

	_, err := table.AddEntity(s.ctx, s.edm("p", "early", props{"V": at(1600, 12, 31, 23, 59, 59, 9999999)}), nil)
	s.refused(err, 400, "OutOfRangeInput", "a DateTime before 1601")
}

func stringValues(s *scenario) {
	table := s.newTable()
	want := props{
		"Empty":      "",
		"Space":      " ",
		"Blanks":     "  two before, two after  ",
		"Quotes":     `it's "quoted" ''twice''`,
		"Control":    "tab\tline\nreturn\rone\u0001unit\u001fdelete\u007f",
		"Backslash":  `C:\temp\"x"/`,
		"Accents":    "ünïcødé e\u0301",
		"Han":        "漢字かな",
		"Astral":     "🚀 𝄞 👩‍👩‍👧",
		"Separators": "\u2028\u2029\ufeff\u00a0",
		"Markup":     "<a href='x'>&amp;</a>",
		"LooksTyped": "2024-01-01T00:00:00Z",
		"Digits":     "123",
	}
	s.add(table, s.edm("p", "r", want))
	s.equal(s.get(table, "p", "r").Properties, want, "point get")
	s.equal(s.query(table, "")[0].Properties, want, "query")
	for _, name := range []string{"Empty", "Quotes", "Han", "Astral", "Blanks"} {
		literal := strings.ReplaceAll(want[name].(string), "'", "''")
		s.equal(s.rows(table, fmt.Sprintf("%s eq '%s'", name, literal)), []string{"r"}, "filter by "+name)
	}
}

func largeValues(s *scenario) {
	table := s.newTable()
	accept := func(row string, properties props) {
		s.Helper()
		s.add(table, s.edm("p", row, properties))
		s.equal(s.get(table, "p", row).Properties, properties, row)
	}
	refuse := func(code, row string, properties props) {
		s.Helper()
		_, err := table.AddEntity(s.ctx, s.edm("p", row, properties), nil)
		s.refused(err, 400, code, row)
	}

	accept("string of 64 KiB", props{"V": strings.Repeat("x", 32768)})
	refuse("PropertyValueTooLarge", "string past 64 KiB", props{"V": strings.Repeat("x", 32769)})
	accept("three-byte characters", props{"V": strings.Repeat("漢", 32768)})
	accept("surrogate pairs", props{"V": strings.Repeat("🚀", 16384)})
	refuse("PropertyValueTooLarge", "one pair past", props{"V": strings.Repeat("🚀", 16385)})
	accept("binary of 64 KiB", props{"V": aztables.EDMBinary(bytes.Repeat([]byte{0xa5}, 65536))})
	refuse("PropertyValueTooLarge", "binary past 64 KiB", props{"V": aztables.EDMBinary(bytes.Repeat([]byte{0xa5}, 65537))})

	numbered := func(count int, value any) props {
		properties := props{}
		for i := range count {
			properties[fmt.Sprintf("P%03d", i)] = value
		}
		return properties
	}
	accept("252 properties", numbered(252, int32(7)))
	refuse("TooManyProperties", "253 properties", numbered(253, int32(7)))
	accept("almost 1 MiB", numbered(15, aztables.EDMBinary(bytes.Repeat([]byte{1}, 65536))))
	refuse("EntityTooLarge", "past 1 MiB", numbered(17, aztables.EDMBinary(bytes.Repeat([]byte{1}, 65536))))
}

// members are an entity's JSON members exactly as the server wrote them.
func (s *scenario) members(table *aztables.Client, pk, rk string, format aztables.MetadataFormat) map[string]json.RawMessage {
	s.Helper()
	var response *http.Response
	_, err := table.GetEntity(policy.WithCaptureResponse(s.ctx, &response), pk, rk, &aztables.GetEntityOptions{Format: &format})
	s.must(err, "get an entity")
	body, err := runtime.Payload(response)
	s.must(err, "read the answer")
	var members map[string]json.RawMessage
	s.must(json.Unmarshal(body, &members), "read the answer's JSON")
	return members
}
