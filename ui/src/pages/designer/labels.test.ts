// Tests of `labels.ts`.
import { expect, test } from 'vitest';
import { amount, isAsPredicted, kindText, things } from './labels';

const access = { kind: 'partition-scan', seeks: 1, rows: 20, requests: 1, returned: 20, isSortedByClient: false };

test('all of a partition is no scan if all of it is wanted', () => {
  expect(kindText(access)).toBe('partition');
  expect(kindText({ ...access, seeks: 3 })).toBe('partitions');
  expect(kindText({ ...access, returned: 2 })).toBe('partition scan');
  expect(kindText({ ...access, isSortedByClient: true })).toBe('partition scan');
  expect(kindText({ ...access, kind: 'table-scan' })).toBe('table scan');
});

test('numbers have three digits that count', () => {
  expect([0, 0.00004, 0.4625, 12.34, 1234.5].map(amount)).toEqual(['0', '< 0.001', '0.463', '12.3', '1,235']);
  expect([things(1, 'row'), things(2, 'row'), things(1.5, 'row')]).toEqual(['1 row', '2 rows', '1.5 rows']);
});

test('a measurement is as predicted within a factor of two', () => {
  expect(isAsPredicted(access, { rows: 35, requests: 1 })).toBe(true);
  expect(isAsPredicted(access, { rows: 500, requests: 1 })).toBe(false);
  expect(isAsPredicted(access, { rows: 20, requests: 9 })).toBe(false);
});
