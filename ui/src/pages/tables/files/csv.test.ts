// Tests of `csv.ts`.
import { expect, test } from 'vitest';
import type { EdmValue, Entity } from '../../../protocol';
import { CsvReader, CsvWriter } from './csv';

function read(text: string, size = text.length || 1): [number, readonly string[]][] {
  const reader = new CsvReader();
  const records = [];
  for (let at = 0; at < text.length; at += size) records.push(...reader.push(text.slice(at, at + size)));
  return [...records, ...reader.end()].map(({ line, cells }) => [line, cells]);
}

test('quotes, line ends and blank lines are read, whatever pieces the text comes in', () => {
  const text = '\uFEFFk,a\r\nx,"1\r\n2"\r\n\r\ny,"""q"""\nz,\n"",last "x"';
  const expected = [
    [1, ['k', 'a']],
    [2, ['x', '1\r\n2']],
    [5, ['y', '"q"']],
    [6, ['z', '']],
    [7, ['', 'last "x"']],
  ];
  for (const size of [1, 2, 3, 7, 1000]) expect(read(text, size), `pieces of ${size}`).toEqual(expected);
  expect(read('')).toEqual([]);
  expect(read('""')).toEqual([[1, ['']]]);
});

test('a quote that is not closed is named by its line', () => {
  expect(() => read('a,b\n1,"x\n\n2,3')).toThrow(/Line 2: a quote is not closed/);
});

test('rows that were made before a column was known are padded, and every type is kept', () => {
  const writer = new CsvWriter({ types: true, formulaSafe: false });
  const entity = (rowKey: string, properties: Record<string, EdmValue>): Entity => ({
    partitionKey: 'p,"',
    rowKey,
    timestamp: '2026-11-17T08:00:00Z',
    properties: new Map(Object.entries(properties)),
  });
  const rows = [
    writer.row(entity('1', { a: { type: 'Int64', value: 5n } })),
    writer.row(entity('2', { b: { type: 'String', value: '' }, c: { type: 'Double', value: 3 } })),
  ];
  const text = [writer.header, ...rows.map((row) => row.text + writer.padding(row.columns))].join('\r\n');
  expect(read(text).map(([, cells]) => cells)).toEqual([
    ['PartitionKey', 'RowKey', 'Timestamp', 'a', 'a@type', 'b', 'b@type', 'c', 'c@type'],
    ['p,"', '1', '2026-11-17T08:00:00Z', '5', 'Edm.Int64', '', '', '', ''],
    ['p,"', '2', '2026-11-17T08:00:00Z', '', '', '', 'Edm.String', '3.0', 'Edm.Double'],
  ]);
});

test('formulas can be made harmless', () => {
  const writer = new CsvWriter({ types: false, formulaSafe: true });
  const properties = new Map<string, EdmValue>([
    ['a', { type: 'String', value: '=cmd' }],
    ['b', { type: 'Int32', value: -5 }],
  ]);
  expect(writer.row({ partitionKey: '+p', rowKey: 'r', properties }).text).toBe("'+p,r,,'=cmd,-5");
});
