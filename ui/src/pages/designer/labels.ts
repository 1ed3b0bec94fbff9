/** Costs and patterns of designs in words. */

import type { Design, DesignAccess } from '../../protocol';

/** How a query is answered. All of a partition is no scan if all that is read is wanted. */
export function kindText({ kind, rows, returned, seeks, isSortedByClient }: DesignAccess): string {
  if (kind === 'partition-scan' && rows <= Math.ceil(returned) * seeks && !isSortedByClient) {
    return seeks > 1 ? 'partitions' : 'partition';
  }
  return kind.replace('-', ' ');
}

/** Whether a query reads much more than it has to. */
export function isScan(access: DesignAccess): boolean {
  return /scan/.test(kindText(access));
}

/** A number with three digits that count: `1,234`, `12.3`, `0.462`. */
export function amount(value: number): string {
  if (value > 0 && value < 0.001) return '< 0.001';
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}

export function things(value: number, one: string): string {
  const shown = amount(value);
  return `${shown} ${one}${shown === '1' ? '' : 's'}`;
}

export const CONSISTENCY: Record<Design['writes'][number]['consistency'], string> = {
  single: '',
  transaction: 'in one transaction',
  eventual: 'copies follow a moment later',
};

export const PATTERNS: Record<string, string> = {
  T1: 'secondary index within the partition',
  T2: 'secondary index in other partitions',
  T3: 'eventually consistent transactions',
  T4: 'index entities',
  T5: 'denormalisation',
  T6: 'compound key',
  T7: 'log tail',
  T8: 'a table for each period',
  T9: 'data series',
  T10: 'wide entities',
  T11: 'large entities in blobs',
  T12: 'spread keys',
  T13: 'logs in blobs',
  R1: 'one-to-many in one partition',
};

/** Whether rows and requests are what was predicted: within a factor of two, which is what estimates are good for. */
export function isAsPredicted(predicted: DesignAccess, measured: { rows: number; requests: number }): boolean {
  const near = (one: number, other: number) => Math.max(one, 1) <= 2 * Math.max(other, 1) + 1;
  return near(measured.rows, predicted.rows) && near(measured.requests, predicted.requests);
}
