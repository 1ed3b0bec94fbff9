// Property values: every type, its extremes and its limits.

import assert from "node:assert/strict";
import { collect, freshTable, propertiesOf, refused, scenario } from "./target.js";

const etagShape = /^W\/"datetime'(\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z)'"$/;
const atKey = { partitionKey: "p", rowKey: "r" };

/** Stores the properties as one entity and reads it back; a query must agree with the point get. */
async function writtenAndRead(table, properties, readOptions = {}) {
  await table.createEntity({ ...atKey, ...properties });
  const got = await table.getEntity("p", "r", readOptions);
  const [listed] = await collect(table.listEntities(readOptions));
  assert.deepEqual(propertiesOf(listed), propertiesOf(got));
  assert.equal(listed.etag, got.etag);
  return propertiesOf(got);
}

/** The JSON text of a stored entity: this SDK reads `3.0` and `3` alike. */
async function textOf(table) {
  let text;
  await table.getEntity("p", "r", { onResponse: (response) => (text = response.bodyAsText) });
  return text;
}

const typed = (type, value) => ({ type, value });

scenario("entity-types", "every type comes back as it was written", async (t) => {
  const table = await freshTable(t);
  const got = await writtenAndRead(table, {
    text: "some text", small: 42, big: 42n, ratio: 2.5, whole: typed("Double", "3"), yes: true, no: false,
    when: new Date("2021-06-08T02:05:09.123Z"), id: typed("Guid", "A455C695-DF98-5678-AAAA-81D3367E5A34"),
    bytes: Uint8Array.from({ length: 256 }, (_, n) => n), nothing: new Uint8Array(),
  });
  assert.deepEqual({ ...got, bytes: [...got.bytes], nothing: [...got.nothing] }, {
    text: "some text", small: 42, big: 42n, ratio: 2.5, whole: 3, yes: true, no: false,
    when: new Date("2021-06-08T02:05:09.123Z"), id: typed("Guid", "a455c695-df98-5678-aaaa-81d3367e5a34"),
    bytes: Array.from({ length: 256 }, (_, n) => n), nothing: [],
  });
  const text = await textOf(table);
  assert.match(text, /"small":42,/);
  assert.match(text, /"whole":3\.0[,}]/);
  assert.doesNotMatch(text, /"Timestamp@odata.type"/);
});

scenario("entity-types", "types may be named and sent as text", async (t) => {
  const table = await freshTable(t);
  const got = await writtenAndRead(table, {
    small: typed("Int32", "7"), yes: typed("Boolean", "true"), no: typed("Boolean", "false"),
    whole: typed("Double", "5"), big: typed("Int64", "7"), text: typed("String", "12"),
    bytes: typed("Binary", "AQI="),
  });
  assert.deepEqual({ ...got, bytes: [...got.bytes] }, {
    small: 7, yes: true, no: false, whole: 5, big: 7n, text: "12", bytes: [1, 2],
  });
});

scenario("entity-types", "types are told without conversion too", async (t) => {
  const properties = {
    text: typed("String", "some text"), small: typed("Int32", "42"), big: typed("Int64", "42"),
    ratio: typed("Double", "2.5"), yes: typed("Boolean", "true"), when: typed("DateTime", "2021-06-08T02:05:09Z"),
    id: typed("Guid", "a455c695-df98-5678-aaaa-81d3367e5a34"), bytes: typed("Binary", "AQI="),
  };
  assert.deepEqual(await writtenAndRead(await freshTable(t), properties, { disableTypeConversion: true }), properties);
});

scenario("entity-types", "one name may have another type on another entity", async (t) => {
  const table = await freshTable(t);
  const values = ["text", 7, 1.5, true, 7n];
  for (const [n, value] of values.entries()) await table.createEntity({ partitionKey: "p", rowKey: `${n}`, value });
  assert.deepEqual((await collect(table.listEntities())).map((entity) => entity.value), values);
});

scenario("entity-types", "the timestamp is the service's and makes the etag", async (t) => {
  const table = await freshTable(t);
  const inserted = await table.createEntity({ ...atKey, timestamp: new Date("2001-01-01T00:00:00Z") });
  const got = await table.getEntity("p", "r");
  assert.ok(Math.abs(Date.parse(got.timestamp) - Date.now()) < 300_000, got.timestamp);
  assert.equal(got.etag, inserted.etag);
  assert.match(inserted.etag, etagShape);
  assert.equal(etagShape.exec(inserted.etag)[1].replaceAll("%3A", ":"), got.timestamp);
});

scenario("int64-extremes", "integers keep their width and value", async (t) => {
  const properties = {
    smallestLong: -(2n ** 63n), largestLong: 2n ** 63n - 1n, zeroLong: 0n, minusOne: -1n, unsafe: 2n ** 53n + 1n,
    pastInt32: 2n ** 31n, fitsInt32: 2n ** 31n - 1n, smallest: -(2 ** 31), largest: 2 ** 31 - 1, zero: 0,
  };
  assert.deepEqual(await writtenAndRead(await freshTable(t), properties), properties);
});

scenario("double-specials", "doubles stay doubles", async (t) => {
  const table = await freshTable(t);
  const values = [0, 1, -1, 0.1, 1 / 3, 1e15, 1e16, 123456789012345680, 1e21, 1.23456789012346e24, 5e-324,
    2.2250738585072014e-308, Number.MAX_VALUE, -Number.MAX_VALUE];
  const sent = Object.fromEntries(values.map((value, n) => [`d${n}`, typed("Double", String(value))]));
  const specials = { nan: "NaN", up: "Infinity", down: "-Infinity" };
  for (const [name, value] of Object.entries(specials)) sent[name] = typed("Double", value);

  const got = await writtenAndRead(table, sent);
  assert.deepEqual(got, { ...Object.fromEntries(values.map((value, n) => [`d${n}`, value])), ...specials });
  const text = await textOf(table);
  for (const n of values.keys()) {
    assert.match(text, new RegExp(`"d${n}":-?[0-9]+(\\.[0-9]+|\\.?[0-9]*[eE][+-]?[0-9]+)[,}]`));
  }
  for (const name of Object.keys(specials)) assert.ok(text.includes(`"${name}@odata.type":"Edm.Double"`), text);
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
    ["2000-02-29T23:59:59.999Z", "2000-02-29T23:59:59.999Z"],
  ]) {
    await table.upsertEntity({ ...atKey, when: typed("DateTime", sent) }, "Replace");
    const got = await table.getEntity("p", "r", { disableTypeConversion: true });
    assert.deepEqual(got.when, typed("DateTime", stored));
  }
});

scenario("datetime-extremes", "dates are kept to the millisecond", async (t) => {
  const dates = {
    first: new Date("1601-01-01T00:00:00.000Z"), last: new Date("9999-12-31T23:59:59.999Z"),
    leap: new Date("2024-02-29T01:02:03.004Z"), epoch: new Date(0), before: new Date(-1),
  };
  assert.deepEqual(await writtenAndRead(await freshTable(t), dates), dates);
});

scenario("datetime-extremes", "a datetime before 1601 is refused", async (t) => {
  const table = await freshTable(t);
  for (const text of ["1600-12-31T23:59:59.9999999Z", "0001-01-01T00:00:00Z"]) {
    await refused(400, "OutOfRangeInput", table.createEntity({ ...atKey, when: typed("DateTime", text) }));
  }
  assert.deepEqual(await collect(table.listEntities()), []);
});

scenario("strings", "strings come back unchanged", async (t) => {
  const span = (from, to) => String.fromCharCode(...Array.from({ length: to - from }, (_, n) => from + n));
  const values = [
    "", " ", "  both ends  ", "tab\tand\r\nline\n", "it's \"quoted\"", "back\\slash /slash", "a''b", span(1, 32),
    span(0x7f, 0xa0), "null", "true", "2020-01-01T00:00:00Z", "naïve Ünïcödé", "e\u0301 é", "日本語", "שלום",
    "\u2028\u2029\ufeff", "😀", "👩\u200d👩\u200d👧", "a\u{10ffff}z", "<tag>&amp;</tag>", '{"json": [1]}', "%41%2B+",
  ];
  const properties = { ...Object.fromEntries(values.map((value, n) => [`s${n}`, value])), Größe: "name" };
  assert.deepEqual(await writtenAndRead(await freshTable(t), properties), properties);
});

scenario("large-values", "values of 64 KiB are accepted and no more", async (t) => {
  for (const [value, oneMore] of [
    ["x".repeat(32768), "x".repeat(32769)],
    ["é".repeat(32768), "é".repeat(32769)],
    ["😀".repeat(16384), "😀".repeat(16384) + "x"],
    [Buffer.alloc(65536, 255), Buffer.alloc(65537, 255)],
  ]) {
    const table = await freshTable(t);
    const got = await writtenAndRead(table, { value });
    assert.ok(Buffer.from(value).equals(Buffer.from(got.value)));
    const more = { partitionKey: "p", rowKey: "more", value: oneMore };
    await refused(400, "PropertyValueTooLarge", table.createEntity(more));
    await refused(400, "PropertyValueTooLarge", table.upsertEntity({ ...more, rowKey: "r" }));
    const [kept, ...others] = await collect(table.listEntities());
    assert.deepEqual([kept.value.length, others], [value.length, []]);
  }
});

scenario("large-values", "252 properties are accepted and no more", async (t) => {
  const table = await freshTable(t);
  const properties = Object.fromEntries(Array.from({ length: 252 }, (_, n) => [`p${n}`, n]));
  assert.deepEqual(await writtenAndRead(table, properties), properties);
  const more = { partitionKey: "p", rowKey: "more", ...properties, oneMore: 1 };
  await refused(400, "TooManyProperties", table.createEntity(more));
  await refused(400, "TooManyProperties", table.updateEntity({ ...atKey, oneMore: 1 }, "Merge"));
  assert.deepEqual(propertiesOf(await table.getEntity("p", "r")), properties);
});
