// Tests of `jsonl.ts`.
import { expect, test } from 'vitest';
import { entityOfJson, parseJson, type EdmValue, type Json } from '../../../protocol';
import { entityJson, JsonReader, valuesOfJson } from './jsonl';

function read(text: string, size = text.length): [number, string][] {
  const reader = new JsonReader();
  const records = [];
  for (let at = 0; at < text.length; at += size) records.push(...reader.push(text.slice(at, at + size)));
  return [...records, ...reader.end()].map(({ line, text }) => [line, text]);
}

const A = '{"a":"}\\"\\\\","b":[{"c":1}]}';
const B = '{"x":"[\\u0041"}';

test('lines, an array and the body of a query are read, whatever pieces they come in', () => {
  const cases: [string, number[]][] = [
    [`${A}\n\n${B}\n`, [1, 3]],
    [`\uFEFF[\n${A},\n${B}\n]\n`, [2, 3]],
    [`{"odata.metadata":"http://x/$metadata#T","value":[${A},${B}]}`, [1, 1]],
    [`{"value" : [\n${A}\n,${B}]}`, [2, 3]],
  ];
  for (const [text, lines] of cases) {
    for (const size of [1, 2, 5, 11, 10_000]) {
      expect(read(text, size), `${text} in pieces of ${size}`).toEqual([
        [lines[0], A],
        [lines[1], B],
      ]);
    }
  }
  expect(read('[]')).toEqual([]);
  expect(read('')).toEqual([]);
});

test('what is not JSON is named by its line', () => {
  expect(() => read('{"a":1}\nx')).toThrow(/Line 2: expected a JSON object, found "x"/);
  expect(() => read('{"a":1}\n{"b":')).toThrow(/Line 2: the object is not closed/);
  expect(() => read('[{"a":1}')).toThrow(/not closed/);
});

test('numbers get the narrowest type, and annotations count', () => {
  const values = valuesOfJson(
    '{"i":5,"l":5000000000,"d":1.0,"n":null,"s":"x","b":true,"t":"2026-01-01T00:00:00Z","t@odata.type":"Edm.DateTime"}',
  );
  expect([...values].map(([name, value]) => [name, value.type])).toEqual([
    ['i', 'Int32'],
    ['l', 'Int64'],
    ['d', 'Double'],
    ['s', 'String'],
    ['b', 'Boolean'],
    ['t', 'DateTime'],
  ]);
  expect(() => valuesOfJson('{"a":[1]}')).toThrow(/a is a list/);
});

test('an exported line is the entity', () => {
  const properties = new Map<string, EdmValue>([
    ['d', { type: 'Double', value: 3 }],
    ['inf', { type: 'Double', value: -Infinity }],
    ['l', { type: 'Int64', value: 2n ** 60n }],
    ['s', { type: 'String', value: '<b>"\n' }],
    ['x', { type: 'Binary', value: 'AAH/' }],
  ]);
  const entity = { partitionKey: 'p', rowKey: 'r', timestamp: '2026-11-17T08:00:00Z', properties };
  expect(entityOfJson(parseJson(entityJson(entity)) as Map<string, Json>)).toEqual(entity);
});
