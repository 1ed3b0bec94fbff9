// Tests of `heat.ts`.
import { expect, test } from 'vitest';
import type { InsightsReport, TableReport } from '../../protocol';
import {
  countAt,
  filterOfShape,
  heatMap,
  intensity,
  maxOf,
  orderText,
  partitionTarget,
  spanText,
  targetOf,
} from './heat';
import { sinceOf } from './spans';

const range = (partition: string, row = '') => ({ partition, row, reads: 0, writes: 0 });
const partition = (name: string) => ({ partition: name }) as TableReport['partitions'][number];
const table = (changes: Partial<TableReport>) => ({ ranges: [], partitions: [], ...changes }) as unknown as TableReport;

function report(resolution: 'minute' | 'hour', since: string, until: string): InsightsReport {
  return { account: 'a', since, until, resolution, tables: [], otherRequests: 0 };
}

test('slots without requests are empty columns', () => {
  const heat = [
    { time: '2026-11-17T08:00:00Z', reads: [1, 2], writes: [0, 1] },
    { time: '2026-11-17T08:03:00Z', reads: [5, 0], writes: [0, 0] },
  ];
  const map = heatMap(
    report('minute', '2026-11-17T08:00:30Z', '2026-11-17T08:04:10Z'),
    table({ ranges: [range(''), range('m')], heat }),
  );
  expect(map.slots).toHaveLength(5);
  expect([...(map.reads[0] ?? [])]).toEqual([1, 0, 0, 5, 0]);
  expect(countAt(map, 'both', 1, 0)).toBe(3);
  expect(countAt(map, 'writes', 1, 0)).toBe(1);
  expect(maxOf(map, 'both')).toBe(5);
});

test('a report with nonsense times does not make a large map', () => {
  const map = heatMap(report('minute', 'x', 'y'), table({ ranges: [range('')], heat: [] }));
  expect(map.slots).toEqual([]);
  const long = heatMap(
    report('minute', '1970-01-01T00:00:00Z', '2026-11-17T08:00:00Z'),
    table({ ranges: [range('')] }),
  );
  expect(long.slots.length).toBeLessThanOrEqual(400);
});

test('a click opens the busiest partition of a range, or the range', () => {
  const busy = table({
    ranges: [range(''), range('hot'), range('hot', 'r5'), range('z')],
    partitions: [partition('hot'), partition('cold')],
  });
  expect(targetOf(busy, 0).filter).toBe("PartitionKey eq 'cold'");
  expect(targetOf(busy, 1).filter).toBe("PartitionKey eq 'hot'");
  expect(targetOf(busy, 2).filter).toBe("PartitionKey eq 'hot'");
  expect(targetOf(busy, 3).filter).toBe("PartitionKey ge 'z'");
  const unknown = table({ ranges: [range(''), range("it's"), range('z', 'r')] });
  expect(targetOf(unknown, 0).filter).toBe("PartitionKey lt 'it''s'");
  expect(targetOf(unknown, 1).filter).toBe("PartitionKey ge 'it''s' and PartitionKey le 'z'");
  expect(spanText(unknown.ranges, 2)).toBe('z / r to the last key');
  expect(partitionTarget('').filter).toBe("PartitionKey eq ''");
  expect(partitionTarget('x'.repeat(96)).filter).toContain(' lt ');
});

test('a shape becomes a filter unless it was cut', () => {
  expect(filterOfShape('Email eq ?')).toBe("Email eq ''");
  expect(filterOfShape('PartitionKey eq ? and (RowKey eq ? or …)')).toBe("PartitionKey eq '' and (RowKey eq '')");
  expect(filterOfShape('A eq ? and B e…')).toBeUndefined();
  expect(filterOfShape('')).toBe('');
});

test('colours are logarithmic and counts of none have none', () => {
  expect(intensity(0, 100)).toBe(0);
  expect(intensity(100, 100)).toBe(1);
  expect(intensity(9, 99)).toBeCloseTo(0.5);
});

test('the order of inserts is told only if there are enough of them', () => {
  expect(orderText({ compared: 5, above: 5, below: 0 })).toBe('–');
  expect(orderText({ compared: 100, above: 95, below: 1 })).toBe('ascending');
  expect(orderText({ compared: 100, above: 1, below: 95 })).toBe('descending');
  expect(orderText({ compared: 100, above: 50, below: 1 })).toBe('mixed');
});

test('an hour is asked for by minutes', () => {
  const now = Date.UTC(2026, 10, 17, 8, 0, 0);
  expect(sinceOf('hour', now)).toBe('2026-11-17T07:01:00Z');
  expect(sinceOf('day', now)).toBe('2026-11-16T08:00:00Z');
});
