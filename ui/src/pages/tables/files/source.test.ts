// Tests of `source.ts`.
import { expect, test } from 'vitest';
import type { EdmType } from '../../../protocol';
import { entityOfRow, formatOf, suggestedMapping, survey, type Mapping } from './source';

const { signal } = new AbortController();

test('the narrowest type of all values is taken', async () => {
  const cases: [string[], EdmType][] = [
    [['1', '', '-2'], 'Int32'],
    [['1', '5000000000'], 'Int64'],
    [['1', '1.5', '-2e3'], 'Double'],
    [['true', 'False'], 'Boolean'],
    [['true', '1'], 'String'],
    [['2024-01-02', '2024-01-02T03:04:05.1234567Z'], 'DateTime'],
    [['c9da6455-213d-42c9-9a79-3e9149a57833'], 'Guid'],
    [['01234', '5'], 'String'],
    [['+49'], 'String'],
    [['', ''], 'String'],
  ];
  for (const [values, type] of cases) {
    const csv = `k,a\r\n${values.map((value) => `x,${value}\r\n`).join('')}`;
    const { columns } = await survey(new Blob([csv]), 'csv', signal);
    const inferred = columns.find(({ name }) => name === 'a')?.inferred ?? 'String';
    expect(inferred, values.join()).toBe(type);
  }
});

test('types beside values are kept, and an empty text differs from an absent property', async () => {
  const csv =
    'PartitionKey,RowKey,Timestamp,Age,Age@type,Name,Name@type\n' +
    'p,r1,2024-01-02T03:04:05.678Z,5,Edm.Int64,,Edm.String\n' +
    'p,r2,2024-01-02T03:04:05.678Z,,,"a,b",Edm.String\n';
  const found = await survey(new Blob([csv]), 'csv', signal);
  const mapping = suggestedMapping(found);
  const [one, two] = found.first.map((row, at) => entityOfRow(row, mapping, at + 1));
  expect(one).toEqual({
    partitionKey: 'p',
    rowKey: 'r1',
    properties: new Map<string, unknown>([
      ['Age', { type: 'Int64', value: 5n }],
      ['Name', { type: 'String', value: '' }],
    ]),
  });
  expect(two).toEqual({
    partitionKey: 'p',
    rowKey: 'r2',
    properties: new Map([['Name', { type: 'String', value: 'a,b' }]]),
  });
});

test('keys come from a column, the number of the row or a fixed text', async () => {
  const found = await survey(new Blob(['country,n\nDE,x\nU/S,2\n']), 'csv', signal);
  const mapping: Mapping = {
    ...suggestedMapping(found),
    rowKey: { from: 'number' },
    types: new Map([['n', 'Int32']]),
  };
  const entities = found.first.map((row, at) => entityOfRow(row, mapping, at + 1));
  expect(entities).toEqual([
    { error: expect.stringMatching(/^n: Expected a whole number/) },
    { error: 'PartitionKey: A key cannot have the character /' },
  ]);
  const fixed = {
    ...mapping,
    partitionKey: { from: 'text', text: 'all' } as const,
    types: new Map([['n', 'skip' as const]]),
  };
  expect(found.first[1] && entityOfRow(found.first[1], fixed, 7)).toEqual({
    partitionKey: 'all',
    rowKey: '0000000007',
    properties: new Map([['country', { type: 'String', value: 'U/S' }]]),
  });
});

test('rows that do not fit are named by their lines', async () => {
  const csv = await survey(new Blob(['a,b\n1,2\n3\n']), 'csv', signal);
  expect(csv.refused).toEqual([{ line: 3, message: '1 cells, but the first line has 2.' }]);
  const json = await survey(new Blob(['{"a":1}\n{"a":{}}\n']), 'json', signal);
  expect(json.refused).toEqual([{ line: 2, message: expect.stringMatching(/a is an object/) }]);
  await expect(survey(new Blob([new Uint8Array([0x61, 0xff])]), 'csv', signal)).rejects.toThrow(/UTF-8/);
  await expect(survey(new Blob(['a,a\n']), 'csv', signal)).rejects.toThrow(/two columns/);
});

test('the format follows the name, or the first character', () => {
  expect(formatOf('x.CSV', '{')).toBe('csv');
  expect(formatOf('x.jsonl', 'a')).toBe('json');
  expect(formatOf('x', ' [{')).toBe('json');
  expect(formatOf('x', 'a,b')).toBe('csv');
});
