/** Permissions and times of signatures. */
import { expect, test } from 'vitest';
import { unknownLetters, withPermission } from './permissions';
import { fromField, minutesFromNow, toField } from './times';

test('a permission is added in the order of the service', () => {
  expect(withPermission('queue', 'p', 'r', true)).toBe('rp');
  expect(withPermission('container', 'rl', 'w', true)).toBe('rwl');
  expect(withPermission('table', 'raud', 'a', false)).toBe('rud');
});

test('letters that have no label stay, and unknown ones are named', () => {
  expect(withPermission('container', 'ri', 'l', true)).toBe('rli');
  expect(unknownLetters('queue', 'rw')).toBe('w');
});

test('a time survives its field', () => {
  for (const time of ['2026-11-17T08:00:00Z', '2026-07-01T23:59:59Z']) expect(fromField(toField(time))).toBe(time);
  expect(toField('')).toBe('');
  expect(fromField('nonsense')).toBe('');
  expect(minutesFromNow(60, Date.UTC(2026, 10, 17, 8))).toBe('2026-11-17T09:00:00Z');
});
