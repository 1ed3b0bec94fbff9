// Property values: every type, its extremes and its limits.

import assert from "node:assert/strict";
import azure from "azure-storage";
import { edm, entity, etagOf, freshTable, propertiesOf, refused, scenario, written } from "./target.js";

const etagShape = /^W\/"datetime'(\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z)'"$/;
const { PayloadFormat } = azure.TableUtilities;

/** Stores the properties as one entity and reads it back; echo and query must agree with the point get. */
async function assertComesBack(table, properties, expected = written(properties)) {
  const echo = await table.insert(entity("r", properties), { echoContent: true, autoResolveProperties: true });
  const got = await table.get("p", "r");
  const [listed] = await table.all();
  assert.deepEqual(propertiesOf(got), expected);
  assert.deepEqual(listed, { ...got, ".metadata": { etag: etagOf(got) } });
  assert.equal(etagOf(echo), etagOf(got));
  assert.deepEqual(Object.keys(propertiesOf(echo)).sort(), Object.keys(expected).sort());
}

/** The text of a property as the service sent it. */
async function textOf(table, property) {
  const asText = (pk, rk, name, value, type) => (name === property ? "Edm.String" : type);
  return (await table.get("p", "r", { propertyResolver: asText }))[property]._;
}

scenario("entity-types", "every type comes back as it was written", async (t) => {
  const properties = {
    Text: edm.String("some text"), Small: edm.Int32(42), Big: edm.Int64("42"), Ratio: edm.Double(2.5),
    Whole: edm.Double(3), Yes: edm.Boolean(true), No: edm.Boolean(false),
    When: edm.DateTime(new Date("2021-06-08T02:05:09.123Z")), Id: edm.Guid("a455c695-df98-5678-aaaa-81d3367e5a34"),
    Bytes: edm.Binary(Buffer.from(Array.from({ length: 256 }, (_, n) => n))), Nothing: edm.Binary(Buffer.alloc(0)),
  };
  await assertComesBack(await freshTable(t), properties);
});

scenario("entity-types", "types may be guessed or sent as text", async (t) => {
  const when = new Date("2021-06-08T02:05:09.123Z");
  await assertComesBack(
    await freshTable(t),
    { Text: "some text", Small: 42, Ratio: 2.5, Yes: true, When: when, Number: edm.Int32("7") },
    {
      Text: ["Edm.String", "some text"], Small: ["Edm.Int32", 42], Ratio: ["Edm.Double", 2.5],
      Yes: ["Edm.Boolean", true], When: ["Edm.DateTime", when], Number: ["Edm.Int32", 7],
    },
  );
});

scenario("entity-types", "full and no metadata", async (t) => {
  const table = await freshTable(t);
  await table.insert(entity("r", { Big: edm.Int64("42"), Id: edm.Guid("a455c695-df98-5678-aaaa-81d3367e5a34") }));
  const whole = await table.get("p", "r", { payloadFormat: PayloadFormat.FULL_METADATA });
  assert.deepEqual([whole.Big, whole.Timestamp.$], [edm.Int64("42"), "Edm.DateTime"]);
  assert.match(whole[".metadata"].type, new RegExp(`\\.${table.name}$`));
  assert.match(whole[".metadata"].id, new RegExp(`/${table.name}\\(PartitionKey='p',RowKey='r'\\)$`));
  assert.equal(whole[".metadata"].editLink, `${table.name}(PartitionKey='p',RowKey='r')`);

  const bare = await table.get("p", "r", { payloadFormat: PayloadFormat.NO_METADATA });
  assert.deepEqual([bare.Big.$, bare.Big._], ["Edm.String", "42"]);
  assert.equal(etagOf(bare), etagOf(whole));
});

scenario("entity-types", "the timestamp is the service's and makes the etag", async (t) => {
  const table = await freshTable(t);
  const claimed = edm.DateTime(new Date("2001-01-01T00:00:00Z"));
  const inserted = await table.insert(entity("r", { Timestamp: claimed }));
  const got = await table.get("p", "r");
  assert.ok(Math.abs(got.Timestamp._ - Date.now()) < 300_000, got.Timestamp._);
  assert.equal(etagOf(got), etagOf(inserted));
  assert.match(etagOf(inserted), etagShape);
  const stamp = etagShape.exec(etagOf(inserted))[1].replaceAll("%3A", ":");
  assert.equal(await textOf(table, "Timestamp"), stamp);
});

scenario("int64-extremes", "integers keep their width and value", async (t) => {
  await assertComesBack(await freshTable(t), {
    SmallestLong: edm.Int64("-9223372036854775808"), LargestLong: edm.Int64("9223372036854775807"),
    ZeroLong: edm.Int64("0"), MinusOne: edm.Int64("-1"), Unsafe: edm.Int64("9007199254740993"),
    PastInt32: edm.Int64("2147483648"), FitsInt32: edm.Int64("2147483647"),
    Smallest: edm.Int32(-2147483648), Largest: edm.Int32(2147483647), Zero: edm.Int32(0),
  });
});

scenario("double-specials", "doubles stay doubles", async (t) => {
  const values = [1, -1, 0.1, 1 / 3, 1e15, 1e16, 123456789012345680, 1e21, 1.23456789012346e24, 5e-324,
    2.2250738585072014e-308, Number.MAX_VALUE, -Number.MAX_VALUE, NaN, Infinity, -Infinity, 0];
  const properties = Object.fromEntries(values.map((value, n) => [`D${n}`, edm.Double(value)]));
  await assertComesBack(await freshTable(t), properties);
});

scenario("datetime-extremes", "a datetime is kept to the tick", async (t) => {
  const table = await freshTable(t);
  for (const [sent, stored] of [
    ["1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"],
    ["9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"],
    ["2008-07-10T12:30:45.1234567Z", "2008-07-10T12:30:45.1234567Z"],
    ["2008-07-10T12:30:45.1200000Z", "2008-07-10T12:30:45.12Z"],
    ["2008-07-10T12:30:45.0000001Z", "2008-07-10T12:30:45.0000001Z"],
    ["2008-07-10T12:30:45.000Z", "2008-07-10T12:30:45Z"],
    ["2008-07-10T00:00:00", "2008-07-10T00:00:00Z"],
    ["2008-07-10T01:30:00+02:00", "2008-07-09T23:30:00Z"],
  ]) {
    await table.insertOrReplace(entity("r", { When: edm.DateTime(sent) }));
    assert.equal(await textOf(table, "When"), stored);
  }
});

scenario("datetime-extremes", "dates are kept to the millisecond", async (t) => {
  await assertComesBack(await freshTable(t), {
    First: edm.DateTime(new Date("1601-01-01T00:00:00.000Z")), Last: edm.DateTime(new Date("9999-12-31T23:59:59.999Z")),
    Leap: edm.DateTime(new Date("2024-02-29T01:02:03.004Z")), Epoch: edm.DateTime(new Date(0)),
  });
});

scenario("datetime-extremes", "a datetime before 1601 is refused", async (t) => {
  const table = await freshTable(t);
  for (const text of ["1600-12-31T23:59:59.9999999Z", "0001-01-01T00:00:00Z"]) {
    await refused(400, "OutOfRangeInput", table.insert(entity("r", { When: edm.DateTime(text) })));
  }
  assert.deepEqual(await table.all(), []);
});

scenario("strings", "strings come back unchanged", async (t) => {
  const span = (from, to) => String.fromCharCode(...Array.from({ length: to - from }, (_, n) => from + n));
  const values = [
    "", " ", "  both ends  ", "tab\tand\r\nline\n", "it's \"quoted\"", "back\\slash /slash", "a''b", span(1, 32),
    span(0x7f, 0xa0), "null", "true", "2020-01-01T00:00:00Z", "naïve Ünïcödé", "e\u0301 é", "日本語", "שלום",
    "\u2028\u2029\ufeff", "😀", "👩\u200d👩\u200d👧", "a\u{10ffff}z", "<tag>&amp;</tag>", '{"json": [1]}', "%41%2B+",
  ];
  const properties = Object.fromEntries(values.map((value, n) => [`S${n}`, edm.String(value)]));
  await assertComesBack(await freshTable(t), { ...properties, Größe: edm.String("name") });
});

scenario("large-values", "values of 64 KiB are accepted and no more", async (t) => {
  for (const [value, oneMore] of [
    [edm.String("x".repeat(32768)), edm.String("x".repeat(32769))],
    [edm.String("é".repeat(32768)), edm.String("é".repeat(32769))],
    [edm.String("😀".repeat(16384)), edm.String("😀".repeat(16384) + "x")],
    [edm.Binary(Buffer.alloc(65536, 255)), edm.Binary(Buffer.alloc(65537, 255))],
  ]) {
    const table = await freshTable(t);
    await assertComesBack(table, { Value: value });
    await refused(400, "PropertyValueTooLarge", table.insert(entity("more", { Value: oneMore })));
    await refused(400, "PropertyValueTooLarge", table.insertOrMerge(entity("r", { Value: oneMore })));
    assert.deepEqual((await table.all()).map((found) => found.Value._.length), [value._.length]);
  }
});

scenario("large-values", "252 properties are accepted and no more", async (t) => {
  const table = await freshTable(t);
  const properties = Object.fromEntries(Array.from({ length: 252 }, (_, n) => [`P${n}`, edm.Int32(n)]));
  await assertComesBack(table, properties);
  const oneMore = { OneMore: edm.Int32(1) };
  await refused(400, "TooManyProperties", table.insert(entity("more", { ...properties, ...oneMore })));
  await refused(400, "TooManyProperties", table.merge(entity("r", oneMore)));
  assert.deepEqual(propertiesOf(await table.get("p", "r")), written(properties));
});
