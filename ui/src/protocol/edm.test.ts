// Tests of `edm.ts`.
import { expect, test } from 'vitest';
import { edmText, entityOfJson, entityToJson, filterLiteral, parseEdm, type EdmType } from './edm';
import { parseJson, type Json } from './json';

const entity = (text: string) => entityOfJson(parseJson(text) as Map<string, Json>);

const WIRE = `{"odata.etag":"W/\\"datetime'x'\\"","PartitionKey":"p","RowKey":"r","Timestamp":"2026-11-17T08:00:00.1234567Z",
 "S":"3","B":true,"I":3,"D":3.0,"E":1.5E+300,"N@odata.type":"Edm.Double","N":"NaN","M@odata.type":"Edm.Double","M":"-Infinity",
 "Z":-0.0,"L@odata.type":"Edm.Int64","L":"9223372036854775807","T@odata.type":"Edm.DateTime","T":"2026-11-17T08:00:00.1234567Z",
 "G@odata.type":"Edm.Guid","G":"5b0b0b3e-7c1c-4d0e-9a3e-0d2f6a1c7b11","X@odata.type":"Edm.Binary","X":"AAEC","Gone":null,
 "__proto__":"own"}`;

test('every value keeps its type from the wire and back', () => {
  const read = entity(WIRE);
  const types = [...read.properties].map(([name, value]) => [name, value.type]);
  expect(Object.fromEntries(types.filter(([name]) => name !== '__proto__'))).toEqual({
    S: 'String',
    B: 'Boolean',
    I: 'Int32',
    D: 'Double',
    E: 'Double',
    N: 'Double',
    M: 'Double',
    Z: 'Double',
    L: 'Int64',
    T: 'DateTime',
    G: 'Guid',
    X: 'Binary',
  });
  expect(read.properties.get('__proto__')).toEqual({ type: 'String', value: 'own' });
  expect(Object.is(read.properties.get('Z')?.value, -0)).toBe(true);
  expect(read.properties.get('L')?.value).toBe(9223372036854775807n);
  expect(read).toMatchObject({ partitionKey: 'p', rowKey: 'r', timestamp: '2026-11-17T08:00:00.1234567Z' });
  const again = entity(entityToJson(read));
  expect(again.properties).toEqual(read.properties);
});

test('doubles are written as doubles', () => {
  const properties = new Map([
    ['A', { type: 'Double', value: 5 }],
    ['B', { type: 'Double', value: 1e21 }],
    ['C', { type: 'Double', value: -0 }],
  ] as const);
  expect(entityToJson({ partitionKey: '"', rowKey: '', properties })).toBe(
    '{"PartitionKey":"\\"","RowKey":"","A@odata.type":"Edm.Double","A":5.0,"B@odata.type":"Edm.Double","B":1e+21,' +
      '"C@odata.type":"Edm.Double","C":-0.0}',
  );
});

test('what a user typed becomes a value of the type, or an error', () => {
  const good: [EdmType, string, string][] = [
    ['Int32', '-2147483648', '-2147483648'],
    ['Int64', ' 9223372036854775807 ', '9223372036854775807'],
    ['Double', '5', '5.0'],
    ['Double', '-0', '-0.0'],
    ['Double', '-Infinity', '-Infinity'],
    ['Boolean', 'TRUE', 'true'],
    ['DateTime', '2026-11-17', '2026-11-17T00:00:00Z'],
    ['DateTime', '2026-11-17 08:30:00.1230000+01:00', '2026-11-17T07:30:00.123Z'],
    ['DateTime', '9999-12-31T23:59:59.9999999Z', '9999-12-31T23:59:59.9999999Z'],
    ['Guid', '5B0B0B3E-7C1C-4D0E-9A3E-0D2F6A1C7B11', '5b0b0b3e-7c1c-4d0e-9a3e-0d2f6a1c7b11'],
    ['Binary', 'AA EC', 'AAEC'],
    ['String', ' kept ', ' kept '],
  ];
  for (const [type, input, shown] of good) {
    const value = parseEdm(type, input);
    expect('error' in value ? value.error : edmText(value), `${type} ${input}`).toBe(shown);
  }
  const bad: [EdmType, string][] = [
    ['Int32', '2147483648'],
    ['Int32', '1.5'],
    ['Int64', '9223372036854775808'],
    ['Double', '1e999'],
    ['Double', 'five'],
    ['Boolean', 'yes'],
    ['DateTime', '2026-02-30'],
    ['DateTime', '1600-12-31'],
    ['DateTime', '9999-12-31T23:59:59-05:00'],
    ['DateTime', '2026-11-17T08:00:00.12345678Z'],
    ['Guid', 'nothing'],
    ['Binary', 'A'],
    ['Binary', 'AAE'],
    ['String', 'x'.repeat(32_769)],
  ];
  for (const [type, input] of bad) expect(parseEdm(type, input), `${type} ${input}`).toHaveProperty('error');
});

test('literals of filters have the form of their type', () => {
  const cases: [EdmType, string, string][] = [
    ['String', "it's", "'it''s'"],
    ['Int64', '5', '5L'],
    ['Double', '5', '5.0'],
    ['DateTime', '2026-11-17', "datetime'2026-11-17T00:00:00Z'"],
    ['Binary', 'AAEC', "X'000102'"],
    ['Boolean', 'true', 'true'],
  ];
  for (const [type, input, literal] of cases) {
    const value = parseEdm(type, input);
    expect('error' in value ? value.error : filterLiteral(value)).toBe(literal);
  }
});

test('the parser refuses what is not JSON and takes escapes as they are meant', () => {
  for (const text of ['', '{', '{"a":}', '[1,]', '01', '"a', 'tru', '{"a":1}x', '"\u0001"', '['.repeat(100)]) {
    expect(() => parseJson(text), text).toThrow(SyntaxError);
  }
  expect(parseJson('["\\\\","\\"","\\u00e9\\n", "a\\\\\\"b"]')).toEqual(['\\', '"', 'é\n', 'a\\"b']);
  expect(parseJson(' { } ')).toEqual(new Map());
});
