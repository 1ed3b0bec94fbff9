// Tests of `findings.ts`.
import { expect, test } from 'vitest';
import type { Finding } from '../../protocol';
import { dismissalOf, savingOf, titleOf, unused } from './findings';

const finding = (id: string, table: string) => ({ id, table }) as Finding;
const work = (requests: number, rows: number) => ({ requests, rows });

test('the dismissal of the table counts before the one of all tables', () => {
  const ofAll = { finding: 'table-scan' };
  const ofOne = { finding: 'table-scan', table: 'ORDERS' };
  const other = { finding: 'row-by-row' };
  const scan = finding('table-scan', 'Orders');
  expect(dismissalOf(scan, [ofAll, ofOne])).toBe(ofOne);
  expect(dismissalOf(finding('table-scan', 'People'), [ofAll, ofOne])).toBe(ofAll);
  expect(dismissalOf(finding('hot-partition', 'Orders'), [ofAll, ofOne])).toBeUndefined();
  expect(unused([ofAll, ofOne, other], [scan])).toEqual([ofAll, other]);
});

test('a saving is told in what shrinks the most', () => {
  expect(savingOf({ of: 'x', now: work(20, 24_000), after: work(20, 20) })).toBe('1,200 times fewer rows');
  expect(savingOf({ of: 'x', now: work(100, 100), after: work(1, 100) })).toBe('100 times fewer requests');
  expect(savingOf({ of: 'x', now: work(1, 1), after: work(2, 1) })).toBe('');
  expect(savingOf({ of: 'x', now: work(1, 1), after: work(0, 0) })).toBe('');
});

test('kinds that a later server knows have a title, too', () => {
  expect(titleOf('table-scan')).toBe('Table scan');
  expect(titleOf('new-kind')).toBe('New kind');
});
