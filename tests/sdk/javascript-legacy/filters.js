// `$filter`: operators, literals, keys and what is not a filter.

import assert from "node:assert/strict";
import azure from "azure-storage";
import { edm, entity, freshTable, keysOf, refused, rowsOf, scenario } from "./target.js";

const { TableQuery } = azure;
const { QueryComparisons } = azure.TableUtilities;

scenario("filter-operators", "operators and their precedence", async (t) => {
  const table = await freshTable(t);
  for (const [row, properties] of Object.entries({
    1: { Num: 1, Name: "a", Flag: true },
    2: { Num: 2, Name: "b", Flag: false },
    3: { Num: 3, Name: "c", Flag: true },
    4: { Num: 4, Name: "d" },
    5: { Name: "e", Flag: true },
  })) {
    await table.insert(entity(row, properties));
  }
  for (const [filter, expected] of Object.entries({
    "Num == 3": "3",
    "Num != 3": "124",
    "Num > 2": "34",
    "Num >= 2": "234",
    "Num < 2": "1",
    "Num <= 2": "12",
    "Name gt 'b' and Name le 'd'": "34",
    "Num > 1 && Num < 4": "23",
    "Num == 1 || Num == 4": "14",
    "not (Num eq 3)": "1245",
    "not (Num gt 1 and Num lt 4)": "145",
    "Name eq 'a' or Name eq 'c' and Flag eq false": "1",
    "(Name eq 'a' or Name eq 'c') and Flag eq false": "",
    "not (Num ne 3) and Flag eq true": "35",
    "not (Flag eq true) or Num eq 1": "124",
    "((Num ge 2) and ((Num le 3)))": "23",
    "Num ge 2 and not (Name eq 'c') and Flag eq false or Name eq 'e'": "25",
    "3 eq Num": "3",
    "2 lt Num": "34",
    "Flag": "135",
    "not Flag": "24",
    "Flag lt true": "2",
    "Missing eq 1": "",
    "Missing ne 1": "",
    "not (Missing eq 1)": "12345",
    "not (Name ne '')": "",
  })) {
    assert.equal(rowsOf(await table.all(filter)).join(""), expected, filter);
  }
  const built = new TableQuery().where("Num > ?", 1).and("Num < ?", 4).or("Name == ?", "e");
  assert.equal(rowsOf(await table.all(built)).join(""), "235");
});

const when = new Date("2021-06-08T02:05:09.123Z");
const id = "a455c695-df98-5678-aaaa-81d3367e5a34";
const bytes = Buffer.from([1, 0xab]);

/** Row `r` holds a value of each type; row `s`, after it in every order, holds others. */
async function typedTable(t) {
  const table = await freshTable(t);
  await table.insert(entity("r", {
    Text: edm.String("it's"), Small: edm.Int32(7), Negative: edm.Int32(-7), Ratio: edm.Double(2.5),
    Whole: edm.Double(3), Big: edm.Int64("1099511627776"), Little: edm.Int64("7"), Yes: edm.Boolean(true),
    When: edm.DateTime(when), Id: edm.Guid(id), Bytes: edm.Binary(bytes),
  }));
  await table.insert(entity("s", {
    Text: edm.String("it't"), Small: edm.Int32(8), Negative: edm.Int32(-6), Ratio: edm.Double(2.75),
    Whole: edm.Double(4), Big: edm.Int64("1099511627777"), Little: edm.Int64("8"), Yes: edm.Boolean(false),
    When: edm.DateTime(new Date(when.getTime() + 1)), Id: edm.Guid(id.replace(/^a/, "f")),
    Bytes: edm.Binary(Buffer.from([1, 0xac])),
  }));
  return table;
}

scenario("filter-literals", "the SDK formats values of every type", async (t) => {
  const table = await typedTable(t);
  const expected = {
    EQUAL: "r", NOT_EQUAL: "s", GREATER_THAN: "s", GREATER_THAN_OR_EQUAL: "rs", LESS_THAN: "", LESS_THAN_OR_EQUAL: "r",
  };
  for (const [filter, ...args] of [
    [TableQuery.stringFilter, "Text", "it's"], [TableQuery.int32Filter, "Small", 7],
    [TableQuery.int32Filter, "Negative", -7], [TableQuery.doubleFilter, "Ratio", 2.5],
    [TableQuery.int64Filter, "Big", "1099511627776"], [TableQuery.int64Filter, "Little", 7],
    [TableQuery.dateFilter, "When", when], [TableQuery.guidFilter, "Id", id], [TableQuery.binaryFilter, "Bytes", bytes],
    // `3` for a whole double: the SDK drops the fraction, and the service widens the literal.
    [TableQuery.doubleFilter, "Whole", 3],
  ]) {
    for (const [operator, rows] of Object.entries(expected)) {
      const text = filter(args[0], QueryComparisons[operator], args[1]);
      assert.equal(rowsOf(await table.all(text)).join(""), rows, text);
    }
  }
  const trueOnes = TableQuery.booleanFilter("Yes", QueryComparisons.EQUAL, true);
  assert.deepEqual(rowsOf(await table.all(trueOnes)), ["r"]);
  const all = "Text == ?string? && Small == ?int32? && Big == ?int64? && Yes == ?bool? && Ratio == ?double?" +
    " && When == ?date? && Bytes == ?binary? && Id == ?guid?";
  const values = ["it's", 7, "1099511627776", true, 2.5, when, bytes, id];
  assert.deepEqual(rowsOf(await table.all(new TableQuery().where(all, ...values))), ["r"]);
});

scenario("filter-literals", "literals as text, and literals of another type", async (t) => {
  const table = await typedTable(t);
  for (const [filter, expected] of Object.entries({
    "Text eq 'it''s'": "r",
    "Big eq 1099511627776l": "r",
    "Ratio eq 25e-1": "r",
    "Bytes eq x'01AB'": "r",
    "Bytes eq binary'01ab'": "r",
    "Id eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'": "r",
    "When eq datetime'2021-06-08T02:05:09.1230000Z'": "r",
    "When gt datetime'2021-06-08T02:05:09.1229999Z' and When lt datetime'2021-06-08T02:05:09.1230001Z'": "r",
    "Timestamp gt datetime'2020-01-01T00:00:00Z'": "rs",
    // A narrower literal is widened to the property, a property never to the literal; any other mismatch reads as
    // if the property were less than the literal.
    "Big gt 7": "rs",
    "Whole eq 3L": "r",
    "Small eq 7L": "",
    "Small ne 7L": "rs",
    "Little eq 7.0": "",
    "Small eq '7'": "",
    "Small lt '0'": "rs",
    "Text eq 7": "",
  })) {
    assert.equal(rowsOf(await table.all(filter)).join(""), expected, filter);
  }
});

scenario("filter-keys", "key filters find exactly their rows in key order", async (t) => {
  const table = await freshTable(t);
  const rows = ["1", "10", "2", "B", "a", "é", "😀", "～"]; // the order of UTF-16 code units
  for (const partition of "cab") {
    await table.batch(rows.toReversed().map((row) => ["insertEntity", entity(row, {}, partition)]));
  }
  const allOf = (partition, chosen = rows) => chosen.map((row) => `${partition}/${row}`);

  assert.deepEqual(keysOf(await table.all()), [...allOf("a"), ...allOf("b"), ...allOf("c")]);
  for (const [filter, expected] of Object.entries({
    "PartitionKey eq 'b' and RowKey eq '2'": ["b/2"],
    "PartitionKey eq 'b' and RowKey eq 'absent'": [],
    "PartitionKey eq 'b'": allOf("b"),
    "PartitionKey eq 'b' and RowKey ge '10' and RowKey lt 'a'": allOf("b", ["10", "2", "B"]),
    "PartitionKey eq 'b' and RowKey gt '10' and RowKey le 'a'": allOf("b", ["2", "B", "a"]),
    "PartitionKey eq 'b' and RowKey gt 'a'": allOf("b", ["é", "😀", "～"]),
    "PartitionKey gt 'a'": [...allOf("b"), ...allOf("c")],
    "PartitionKey ge 'a' and PartitionKey lt 'c'": [...allOf("a"), ...allOf("b")],
    "PartitionKey ne 'b'": [...allOf("a"), ...allOf("c")],
    "not (PartitionKey eq 'b')": [...allOf("a"), ...allOf("c")],
    "RowKey eq '2'": ["a/2", "b/2", "c/2"],
    "(PartitionKey eq 'c' and RowKey eq '1') or (PartitionKey eq 'a' and RowKey eq '2')": ["a/2", "c/1"],
    "PartitionKey eq 'b' and (RowKey eq 'a' or RowKey eq '1' or RowKey eq 'x')": ["b/1", "b/a"],
    "PartitionKey eq 'c' or PartitionKey eq 'a'": [...allOf("a"), ...allOf("c")],
    "PartitionKey eq 'b' and (RowKey le '2' or RowKey le '10')": allOf("b", ["1", "10", "2"]),
    "PartitionKey eq 'a' and PartitionKey eq 'b'": [],
    "PartitionKey eq 'b' and RowKey gt '2' and RowKey lt '10'": [],
  })) {
    assert.deepEqual(keysOf(await table.all(filter)), expected, filter);
  }
});

scenario("filter-errors", "malformed filters are refused", async (t) => {
  const table = await freshTable(t);
  for (const filter of [
    "aaa bbb ccc", "PartitionKey eq", "eq 'a'", "PartitionKey eq 'a", "(PartitionKey eq 'a'", "PartitionKey eq 'a')",
    "PartitionKey = 'a'", "PartitionKey eq 'a' and", "PartitionKey eq 'a' RowKey eq 'b'", "PartitionKey EQ 'a'",
    "Id eq guid'nonsense'", "When eq datetime'nonsense'", "Bytes eq X'0'", "Value eq null", "1", 'PartitionKey eq "a"',
  ]) {
    const refusal = refused(400, "InvalidInput", table.all(filter));
    await assert.doesNotReject(refusal, filter);
  }
});

scenario("filter-errors", "functions are not implemented", async (t) => {
  const table = await freshTable(t);
  await refused(501, "NotImplemented", table.all("startswith(RowKey,'a')"));
  await refused(501, "NotImplemented", table.all("substringof('a',RowKey)"));
});
