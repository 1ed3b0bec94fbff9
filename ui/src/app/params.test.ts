// Tests of `params.ts`.
import { expect, test } from 'vitest';
import { flag, fragment, integer, list, oneOf, parseFragment, readParams, text, writeParams } from './params';

const spec = { filter: text(), top: integer(100, 1, 1000), all: flag(), view: oneOf('grid', 'json'), columns: list() };

test('a link keeps names and values whatever their characters are', () => {
  const query = writeParams(spec, { filter: "a eq '&=#?/%'", columns: ['a,b', 'ü'], view: 'json' });
  const link = fragment(['tables', 'a/b c'], query);
  const parsed = parseFragment(link);
  expect(parsed.segments).toEqual(['tables', 'a/b c']);
  expect(readParams(spec, parsed.query)).toEqual({
    filter: "a eq '&=#?/%'",
    top: 100,
    all: false,
    view: 'json',
    columns: ['a,b', 'ü'],
  });
});

test('defaults are left out and other parameters stay', () => {
  const before = new URLSearchParams('filter=x&other=1&top=5');
  expect(writeParams(spec, { filter: '', top: 100 }, before).toString()).toBe('other=1');
});

test('values that make no sense become defaults', () => {
  const query = new URLSearchParams('top=9999&view=nonsense&all=yes');
  expect(readParams(spec, query)).toMatchObject({ top: 100, view: 'grid', all: false });
  expect(parseFragment('#/%E0%A4%A/x')).toMatchObject({ segments: ['%E0%A4%A', 'x'] });
  expect(parseFragment('')).toMatchObject({ segments: [] });
});
