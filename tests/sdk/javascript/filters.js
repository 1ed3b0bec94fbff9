// `$filter`: operators, literals, keys and what is not a filter.

import assert from "node:assert/strict";
import { odata } from "@azure/data-tables";
import { collect, freshTable, keysOf, query, refused, rowKeys, scenario } from "./target.js";

scenario("filter-operators", "operators and their precedence", async (t) => {
  const table = await freshTable(t);
  for (const [rowKey, properties] of Object.entries({
    1: { Num: 1, Name: "a", Flag: true },
    2: { Num: 2, Name: "b", Flag: false },
    3: { Num: 3, Name: "c", Flag: true },
    4: { Num: 4, Name: "d" },
    5: { Name: "e", Flag: true },
  })) {
    await table.createEntity({ partitionKey: "p", rowKey, ...properties });
  }
  for (const [filter, expected] of Object.entries({
    "Num eq 3": "3",
    "Num ne 3": "124",
    "Num gt 2": "34",
    "Num ge 2": "234",
    "Num lt 2": "1",
    "Num le 2": "12",
    "Name gt 'b' and Name le 'd'": "34",
    "Num gt 1 and Num lt 4": "23",
    "Num eq 1 or Num eq 4": "14",
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
    "": "12345",
  })) {
    assert.equal((await rowKeys(query(table, filter))).join(""), expected, filter);
  }
});

const when = new Date("2021-06-08T02:05:09.123Z");
const later = new Date("2021-06-08T02:05:09.124Z");
const id = "a455c695-df98-5678-aaaa-81d3367e5a34";
const whole = (value) => ({ type: "Double", value });

/** Row `r` holds a value of each type; row `s`, after it in every order, holds others. */
async function typedTable(t) {
  const table = await freshTable(t);
  await table.createEntity({
    partitionKey: "p", rowKey: "r", Text: "it's", Small: 7, Negative: -7, Ratio: 2.5, Whole: whole("3"),
    Big: 2n ** 40n, Little: 7n, Yes: true, When: when, Id: { type: "Guid", value: id }, Bytes: Buffer.from([1, 0xab]),
  });
  await table.createEntity({
    partitionKey: "p", rowKey: "s", Text: "it't", Small: 8, Negative: -6, Ratio: 2.75, Whole: whole("4"),
    Big: 2n ** 40n + 1n, Little: 8n, Yes: false, When: later, Id: { type: "Guid", value: id.replace(/^a/, "f") },
    Bytes: Buffer.from([1, 0xac]),
  });
  return table;
}

scenario("filter-literals", "the odata template formats every type", async (t) => {
  const table = await typedTable(t);
  const bytes = Buffer.from([1, 0xab]).toString("hex");
  for (const filter of [
    (operator) => odata`Text ${raw(operator)} ${"it's"}`,
    (operator) => odata`Small ${raw(operator)} ${7}`,
    (operator) => odata`Negative ${raw(operator)} ${-7}`,
    (operator) => odata`Ratio ${raw(operator)} ${2.5}`,
    (operator) => odata`Whole ${raw(operator)} ${3}`,
    (operator) => odata`Big ${raw(operator)} ${2n ** 40n}L`,
    (operator) => odata`Little ${raw(operator)} ${7}`,
    (operator) => odata`When ${raw(operator)} ${when}`,
    (operator) => odata`Id ${raw(operator)} guid'${id}'`,
    (operator) => odata`Bytes ${raw(operator)} X'${bytes}'`,
  ]) {
    for (const [operator, expected] of Object.entries({ eq: "r", ne: "s", gt: "s", ge: "rs", lt: "", le: "r" })) {
      assert.equal((await rowKeys(query(table, filter(operator)))).join(""), expected, filter(operator));
    }
  }
  assert.deepEqual(await rowKeys(query(table, odata`Yes eq ${true}`)), ["r"]);
  assert.deepEqual(await rowKeys(query(table, odata`Yes eq ${false}`)), ["s"]);
});

/** Text that the template leaves alone: it quotes only strings. */
function raw(text) {
  return { toString: () => text };
}

scenario("filter-literals", "literals as text, and literals of another type", async (t) => {
  const table = await typedTable(t);
  for (const [filter, expected] of Object.entries({
    "Text eq 'it''s'": "r",
    "Big eq 1099511627776L": "r",
    "Big eq 1099511627776l": "r",
    "Ratio eq 25e-1": "r",
    "Ratio lt 2.6": "r",
    "Bytes eq X'01ab'": "r",
    "Bytes eq x'01AB'": "r",
    "Bytes eq binary'01ab'": "r",
    "Id eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'": "r",
    "When eq datetime'2021-06-08T02:05:09.1230000Z'": "r",
    "When gt datetime'2021-06-08T02:05:09.1229999Z' and When lt datetime'2021-06-08T02:05:09.1230001Z'": "r",
    "When ge datetime'2021-06-08'": "rs",
    "Timestamp gt datetime'2020-01-01T00:00:00Z'": "rs",
    "Timestamp lt datetime'2020-01-01T00:00:00Z'": "",
    // A narrower literal is widened to the property, a property never to the literal; any other mismatch reads as
    // if the property were less than the literal.
    "Big gt 7": "rs",
    "Whole eq 3L": "r",
    "Small eq 7L": "",
    "Small ne 7L": "rs",
    "Little eq 7.0": "",
    "Small eq '7'": "",
    "Small ne '7'": "rs",
    "Small lt '0'": "rs",
    "Small gt '0'": "",
    "Text eq 7": "",
  })) {
    assert.equal((await rowKeys(query(table, filter))).join(""), expected, filter);
  }
});

scenario("filter-keys", "key filters find exactly their rows in key order", async (t) => {
  const table = await freshTable(t);
  const rows = ["1", "10", "2", "B", "a", "é", "😀", "～"]; // the order of UTF-16 code units
  for (const partitionKey of "cab") {
    await table.submitTransaction(rows.toReversed().map((rowKey) => ["create", { partitionKey, rowKey }]));
  }
  const allOf = (partition, chosen = rows) => chosen.map((row) => `${partition}/${row}`);

  assert.deepEqual(await keysOf(collect(table.listEntities())), [...allOf("a"), ...allOf("b"), ...allOf("c")]);
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
    assert.deepEqual(await keysOf(query(table, filter)), expected, filter);
  }
});

scenario("filter-errors", "malformed filters are refused", async (t) => {
  const table = await freshTable(t);
  for (const filter of [
    "aaa bbb ccc", "PartitionKey eq", "eq 'a'", "PartitionKey eq 'a", "(PartitionKey eq 'a'", "PartitionKey eq 'a')",
    "PartitionKey = 'a'", "PartitionKey eq 'a' and", "PartitionKey eq 'a' RowKey eq 'b'", "PartitionKey EQ 'a'",
    "Id eq guid'nonsense'", "When eq datetime'nonsense'", "Bytes eq X'0'", "Value eq null", "1", 'PartitionKey eq "a"',
  ]) {
    const refusal = refused(400, "InvalidInput", query(table, filter));
    await assert.doesNotReject(refusal, filter);
  }
});

scenario("filter-errors", "functions are not implemented", async (t) => {
  const table = await freshTable(t);
  await refused(501, "NotImplemented", query(table, "startswith(RowKey,'a')"));
  await refused(501, "NotImplemented", query(table, "substringof('a',RowKey)"));
});
