// Tests of `description.ts`.
import { expect, test } from 'vitest';
import {
  descriptionFor,
  edit,
  EMPTY,
  freshName,
  listOf,
  numberOf,
  renameProperty,
  sampleOf,
  set,
  textOf,
} from './description';
import { parseToml } from './toml';

const TEXT = `# a comment
entity = "Order"
identity = ["Customer", "Id"]
[volume]
entities = 10
[[property]]
name = "Customer"
type = "string"
every = "1h"
[[related]]
name = "Line"
per = "Customer"
bytes = 5
[[query]]
name = "q"
equals = ["Customer"]
range = { property = "Customer", share = 0.1 }
order = "-Customer"
[[write]]
name = "w"
does = "update"
by = ["Customer", "Id"]
`;

test('an edit keeps what the form does not show', () => {
  const edited = parseToml(edit(TEXT, (root) => set(listOf(root, 'query')[0] ?? {}, 'top', 5)));
  expect(listOf(edited, 'property')[0]?.['every']).toBe('1h');
  expect(listOf(edited, 'related')).toHaveLength(1);
  expect(listOf(edited, 'query')[0]).toMatchObject({ top: 5, equals: ['Customer'] });
});

test('a property is renamed wherever it is named', () => {
  const edited = parseToml(edit(TEXT, (root) => renameProperty(root, 'Customer', 'Buyer')));
  expect(JSON.stringify(edited)).not.toContain('Customer');
  expect(edited).toMatchObject({ identity: ['Buyer', 'Id'] });
  expect(listOf(edited, 'query')[0]).toMatchObject({ order: '-Buyer', range: { property: 'Buyer' } });
});

test('nothing, false and empty lists are left out', () => {
  const table = { a: 1, b: true, c: ['x'] };
  set(table, 'a', undefined);
  set(table, 'b', false);
  set(table, 'c', []);
  expect(table).toEqual({});
});

test('numbers may have separators and must not be negative', () => {
  expect(['1 000', '1_000', '2,5', '0.5', '', 'x', '-1'].map(numberOf)).toEqual([
    1000,
    1000,
    25,
    0.5,
    undefined,
    undefined,
    undefined,
  ]);
});

test('a sample is cut at the end of a line and its format found', () => {
  expect(sampleOf('a.csv', 'x,y\n1,2\n')).toMatchObject({ format: 'csv', isCut: false });
  expect(sampleOf('a.txt', '\uFEFF{"x":1}')).toMatchObject({ format: 'jsonl' });
  expect(sampleOf('a.json', ' [{"x":1}]')).toMatchObject({ format: 'json' });
  const long = sampleOf('a.csv', `x\n${'12345\n'.repeat(100_000)}`);
  expect(long.isCut && long.text.endsWith('12345\n')).toBe(true);
});

test('a description for a file is named after it, whatever its name is', () => {
  for (const [name, entity] of [
    ['people.csv', 'People'],
    ['2026 orders (1).csv', 'Entity2026Orders1'],
    ['"\n.csv', 'Entity'],
  ]) {
    expect(textOf(parseToml(descriptionFor(name ?? ''))['entity'])).toBe(entity);
  }
});

test('a new item gets a name of its own', () => {
  expect(freshName('query', ['query', 'query2'])).toBe('query3');
  expect(parseToml(EMPTY)).toMatchObject({ entity: 'Entity' });
});
