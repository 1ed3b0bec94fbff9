// Tests of `toml.ts`.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseToml, TomlError, writeToml } from './toml';

const EXAMPLES = new URL('../../../../crates/design/src/examples/', import.meta.url);

test('every example of the server is read, and read back from what is written', () => {
  const files = readdirSync(EXAMPLES).filter((file) => file.endsWith('.toml'));
  expect(files.length).toBeGreaterThan(10);
  for (const file of files) {
    const parsed = parseToml(readFileSync(new URL(file, EXAMPLES), 'utf8'));
    expect(parsed['entity'], file).toBeTypeOf('string');
    expect(parseToml(writeToml(parsed)), file).toEqual(parsed);
  }
});

test('values of all kinds survive', () => {
  const text = String.raw`
a = "x \"y\" \\ \t ü \u00e9" # comment
b = 'C:\n'
c = 1_000
d = -0.25
e = [ "x", # one
  "y", ]
f = { p = "A", share = 0.5 }
"g h" = true
[t]
x.y = 1
`;
  const parsed = parseToml(text);
  expect(parsed).toMatchObject({ a: 'x "y" \\ \t ü é', b: 'C:\\n', c: 1000, d: -0.25, e: ['x', 'y'], 'g h': true });
  expect(parsed['f']).toMatchObject({ p: 'A', share: 0.5 });
  expect(parseToml(writeToml(parsed))).toEqual(parsed);
});

test('what cannot be read is refused with its line', () => {
  const lineOf = (text: string) => {
    try {
      parseToml(text);
    } catch (error) {
      return error instanceof TomlError ? error.line : error;
    }
    return 0;
  };
  expect(lineOf('a = 1\nb = \n')).toBe(2);
  expect(lineOf('a = 1\na = 2')).toBe(2);
  expect(lineOf('a = "x')).toBe(1);
  expect(lineOf('a = 1 b = 2')).toBe(1);
  expect(lineOf('a = """x"""')).toBe(1);
  expect(lineOf('a = 1\n[a]\nb = 1')).toBe(2);
  expect(lineOf(`a = ${'['.repeat(100_000)}`)).toBe(1);
  expect(lineOf(`a = ${'{a='.repeat(100_000)}`)).toBe(1);
  expect(lineOf('a = 2026-11-17')).toBe(1);
});

test('names of every object are plain names', () => {
  const parsed = parseToml('__proto__ = 1\nconstructor = "x"');
  expect(Object.keys(parsed)).toEqual(['__proto__', 'constructor']);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});
