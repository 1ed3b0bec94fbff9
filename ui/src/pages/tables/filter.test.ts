// Tests of `filter.ts`.
import { expect, test } from 'vitest';
import { problemOf, serverPosition, tokens } from './filter';

test('filters that the service takes have no problem', () => {
  for (const filter of [
    '',
    '  ',
    "PartitionKey eq 'Sales' and RowKey ge '001'",
    "not (A ne '') or B",
    "'it''s' eq Name",
    'Age gt 5L and Rate le 1e3 or Rate eq -2.5',
    "When lt datetime'2026-11-17T08:00:00.1234567Z' and Id eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
    "Bits eq X'00ff' and Größe eq 1",
    'true',
    '(A) eq (1) and (1) eq A',
    'A eq 5d or A eq .5 or A eq 5.',
    "((((A eq 1))))and(B eq 'x')",
  ]) {
    expect(problemOf(filter), filter).toBeUndefined();
  }
});

test('an error has its place and says what to write', () => {
  const cases: [string, string, RegExp][] = [
    ['aaa bbb ccc', 'bbb', /one of eq/],
    ["A == 'x'", '=', /Write eq/],
    ["A EQ 'x'", 'EQ', /Write eq/],
    ['A eq "x"', '"', /single quotes/],
    ['A eq B', 'B', /single quotes/],
    ["startswith(A,'x')", 'startswith', /not supported/],
    ['A eq null', 'null', /no null/],
    ["A eq datetime'zz'", "datetime'zz'", /time such as/],
    ["A eq guid'zz'", "guid'zz'", /GUID/],
    ["A eq X'0'", "X'0'", /hexadecimal/],
    ['A eq 5000000000', '5000000000', /write 5000000000L/],
    ['A eq 1)', ')', /no opening/],
    ["A eq 'x' AND B eq 1", 'AND', /lower case/],
    ['1 eq 2', '2', /property on one side/],
    ['a-b eq 1', '-', /one of eq/],
    ['A eq 5f', '5', /Expected/],
  ];
  for (const [filter, at, message] of cases) {
    const problem = problemOf(filter);
    expect(problem?.message, filter).toMatch(message);
    expect(filter.slice(problem?.from, problem?.to), filter).toBe(at);
    expect(problem?.unfinished, filter).toBeUndefined();
  }
});

test('what is being typed is unfinished, not wrong', () => {
  for (const filter of ['PartitionKey eq', 'A eq 1 and', '(A eq 1', "A eq 'x", 'not', "'x'"]) {
    expect(problemOf(filter)?.unfinished, filter).toBe(true);
  }
});

test('hostile input ends', () => {
  expect(problemOf('('.repeat(100_000))?.message).toMatch(/deeply/);
  expect(tokens("'".repeat(30_001)).length).toBeGreaterThan(0);
});

test("the server's position is read", () => {
  expect(serverPosition("Syntax error at position 7 in 'aaa bbb ccc'.")).toBe(7);
  expect(serverPosition('Something else')).toBeUndefined();
});
