// Tests of `format.ts`.
import { expect, test } from 'vitest';
import { ago, bytes, clock, compact, count, micros, percent, plural, seconds, time } from './format';

test('figures have the unit that people would choose', () => {
  expect([0, 1023, 1024, 1536, 10 * 2 ** 30, 2 ** 60].map(bytes)).toEqual([
    '0 B',
    '1,023 B',
    '1 KiB',
    '1.5 KiB',
    '10 GiB',
    '1,048,576 TiB',
  ]);
  expect([0, 999, 1250, 2_500_000].map(micros)).toEqual(['0 µs', '999 µs', '1.25 ms', '2.5 s']);
  expect([59, 120, 7200, 864_000].map(seconds)).toEqual(['59 s', '2 min', '2 h', '10 d']);
  expect([count(1234567), compact(1234567), compact(0.123), percent(0.1234)]).toEqual([
    '1,234,567',
    '1.23M',
    '0.12',
    '12.3 %',
  ]);
  expect([plural(1, 'row'), plural(2, 'row'), plural(0, 'entity', 'entities')]).toEqual([
    '1 row',
    '2 rows',
    '0 entities',
  ]);
});

test('times are of the browser and what is no time is empty', () => {
  expect(time(new Date(2026, 10, 7, 9, 5, 3))).toBe('2026-11-07 09:05:03');
  expect(clock('nonsense') + time('nonsense') + ago('nonsense')).toBe('');
  const now = Date.UTC(2026, 0, 1);
  expect([ago(now - 180_000, now), ago(now + 7_200_000, now), ago(now, now)]).toEqual(['3 min ago', 'in 2 h', 'now']);
});
