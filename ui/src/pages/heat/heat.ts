/** The heat map as numbers: key ranges by slots of time, and where a click leads. */

import { quoted, type InsightsReport, type RangeReport, type TableReport } from '../../protocol';

export const KINDS = ['both', 'reads', 'writes'] as const;
export type Kind = (typeof KINDS)[number];

export interface HeatMap {
  /** The beginnings of the slots, without gaps, in milliseconds since 1970. */
  readonly slots: readonly number[];
  readonly slotMillis: number;
  /** In key order. */
  readonly ranges: readonly RangeReport[];
  /** By range, then by slot. */
  readonly reads: readonly Float64Array[];
  readonly writes: readonly Float64Array[];
}

/** Slots of a map at most: a week by hours, and some more. */
const SLOTS_MAX = 400;

export function heatMap(report: InsightsReport, table: TableReport): HeatMap {
  const slotMillis = report.resolution === 'minute' ? 60_000 : 3_600_000;
  const heat = table.heat ?? [];
  const times = heat.map(({ time }) => floorTo(Date.parse(time), slotMillis)).filter((time) => !Number.isNaN(time));
  const until = floorTo(Date.parse(report.until), slotMillis);
  const since = Math.min(floorTo(Date.parse(report.since), slotMillis), ...times);
  const last = Math.max(Number.isNaN(until) ? since : until, ...times);
  const count = Number.isNaN(since) ? 0 : Math.min(SLOTS_MAX, Math.round((last - since) / slotMillis) + 1);
  const slots = Array.from({ length: count }, (_, at) => last - (count - 1 - at) * slotMillis);
  const empty = () => table.ranges.map(() => new Float64Array(count));
  const [reads, writes] = [empty(), empty()];
  for (const slot of heat) {
    const at = Math.round((floorTo(Date.parse(slot.time), slotMillis) - (slots[0] ?? 0)) / slotMillis);
    if (!(at >= 0 && at < count)) continue;
    slot.reads.forEach((value, range) => add(reads[range], at, value));
    slot.writes.forEach((value, range) => add(writes[range], at, value));
  }
  return { slots, slotMillis, ranges: table.ranges, reads, writes };
}

export function countAt(map: HeatMap, kind: Kind, range: number, slot: number): number {
  const [reads, writes] = [map.reads[range]?.[slot] ?? 0, map.writes[range]?.[slot] ?? 0];
  return kind === 'reads' ? reads : kind === 'writes' ? writes : reads + writes;
}

export function maxOf(map: HeatMap, kind: Kind): number {
  let max = 0;
  for (let range = 0; range < map.ranges.length; range++) {
    for (let slot = 0; slot < map.slots.length; slot++) max = Math.max(max, countAt(map, kind, range, slot));
  }
  return max;
}

/** How hot a count is, from 0 to 1: logarithmic, so that one hot range does not hide the others. */
export function intensity(count: number, max: number): number {
  return count <= 0 || max <= 0 ? 0 : Math.log1p(count) / Math.log1p(max);
}

/** A filter of the Tables page and what it shows. */
export interface Target {
  readonly filter: string;
  readonly label: string;
}

/** What a click on a range opens: its busiest partition if it has one that is known, or the range itself. */
export function targetOf(table: TableReport, range: number): Target {
  const [from, to] = [table.ranges[range], table.ranges[range + 1]];
  const busiest = table.partitions.find(({ partition }) => hasPartition(from, to, partition));
  if (busiest && isWhole(busiest.partition)) return partitionTarget(busiest.partition);
  const bounds = [
    ...(from && from.partition !== '' ? [`PartitionKey ge ${quoted(from.partition)}`] : []),
    ...(to ? [`PartitionKey ${to.row === '' ? 'lt' : 'le'} ${quoted(to.partition)}`] : []),
  ];
  return { filter: bounds.join(' and '), label: 'this range of partitions' };
}

export function partitionTarget(partition: string): Target {
  // A key that was cut is only the beginning of one.
  const filter = isWhole(partition)
    ? `PartitionKey eq ${quoted(partition)}`
    : `PartitionKey ge ${quoted(partition)} and PartitionKey lt ${quoted(partition + HIGHEST)}`;
  return { filter, label: `partition ${keyText(partition)}` };
}

function hasPartition(from: RangeReport | undefined, to: RangeReport | undefined, partition: string): boolean {
  if (from && compare(partition, from.partition) < 0) return false;
  if (!to) return true;
  const order = compare(partition, to.partition);
  return order < 0 || (order === 0 && to.row !== '');
}

/** Keys are cut at 96 bytes. */
function isWhole(key: string): boolean {
  return new TextEncoder().encode(key).length < KEY_BYTES_MAX - 3;
}

/** The order of the service: by UTF-16 units. */
function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** A key as a label: quoted if it begins or ends with a space. */
export function keyText(key: string): string {
  if (key === '') return '(empty)';
  return key === key.trim() ? key : `'${key}'`;
}

/** Where a range begins, in words. */
export function rangeText(range: RangeReport | undefined): string {
  if (!range || (range.partition === '' && range.row === '')) return 'the first key';
  return range.row === '' ? keyText(range.partition) : `${keyText(range.partition)} / ${keyText(range.row)}`;
}

/** A range as `from A to B`. */
export function spanText(ranges: readonly RangeReport[], range: number): string {
  const to = ranges[range + 1];
  return `${rangeText(ranges[range])} to ${to ? rangeText(to) : 'the last key'}`;
}

/**
 * A filter to start from for a shape of queries, whose literals are `?`. `undefined` if the shape was cut, so that a filter
 * cannot be made of it.
 */
export function filterOfShape(shape: string): string | undefined {
  const whole = shape.replaceAll(/\s+(and|or) …/g, '');
  if (whole.includes('…')) return undefined;
  return whole.replaceAll('?', "''");
}

/** How inserts are ordered, in words. */
export function orderText({ compared, above, below }: TableReport['insertOrder']): string {
  if (compared < 10) return '–';
  const [up, down] = [above / compared, below / compared];
  if (up >= 0.9) return 'ascending';
  return down >= 0.9 ? 'descending' : 'mixed';
}

function floorTo(value: number, step: number): number {
  return Math.floor(value / step) * step;
}

function add(cells: Float64Array | undefined, at: number, value: number): void {
  if (cells) cells[at] = (cells[at] ?? 0) + value;
}

const KEY_BYTES_MAX = 96;
/** Sorts after every text that begins with the same. */
const HIGHEST = '\uFFFF';
