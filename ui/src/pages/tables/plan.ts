/** Plans of queries in words: how good one is, and what to do about it. */

import type { Explanation } from '../../protocol';

export interface PlanWords {
  readonly title: string;
  readonly tone: 'good' | 'fair' | 'warn' | 'bad' | 'none';
  /** What the server reads. */
  readonly reads: string;
  /** How to make it cheaper. */
  readonly advice?: string;
}

export function planWords(kind: string, hasFilter = true): PlanWords {
  if (kind === 'table-scan' && !hasFilter) return BROWSING;
  return PLANS[kind] ?? { title: kind, tone: 'none', reads: '' };
}

/** The ranges of keys of a plan, one each. */
export function planRanges({ plan, kind }: Explanation): string[] {
  const text = plan.slice(kind.length).trim();
  if (!text.includes('[')) return text ? [text] : [];
  return text.split(/ (?=\[")| (?=and \d+ more$)/);
}

/** What all pages of a query cost so far. */
export interface Cost {
  readonly pages: number;
  readonly rowsRead: number;
  readonly rowsReturned: number;
  readonly micros: number;
}

export const NO_COST: Cost = { pages: 0, rowsRead: 0, rowsReturned: 0, micros: 0 };

export function addCost(cost: Cost, page: Explanation | undefined): Cost {
  return {
    pages: cost.pages + 1,
    rowsRead: cost.rowsRead + (page?.rowsRead ?? 0),
    rowsReturned: cost.rowsReturned + (page?.rowsReturned ?? 0),
    micros: cost.micros + (page?.micros ?? 0),
  };
}

/** Whether a query read many more rows than it returned. */
export function isWasteful({ rowsRead, rowsReturned }: Cost): boolean {
  return rowsRead >= 100 && rowsRead > rowsReturned * 10;
}

/** Without a filter, reading the table is what was asked for. */
const BROWSING: PlanWords = {
  title: 'Table scan',
  tone: 'none',
  reads: 'No filter: entities are read from the start of the table, page by page while you scroll.',
};

const PLANS: Record<string, PlanWords> = {
  nothing: {
    title: 'Nothing to read',
    tone: 'good',
    reads: 'No entity can match: the filter contradicts itself, or is outside of the range that the signature allows.',
  },
  point: {
    title: 'Point query',
    tone: 'good',
    reads: 'Reads one entity by PartitionKey and RowKey. There is no cheaper query.',
  },
  points: {
    title: 'Point queries',
    tone: 'good',
    reads: 'Reads several entities, each by PartitionKey and RowKey.',
  },
  'row-range': {
    title: 'Row range',
    tone: 'good',
    reads: 'Reads a range of RowKeys in one partition. The cost grows with the range, not with the partition.',
  },
  'row-ranges': {
    title: 'Row ranges',
    tone: 'good',
    reads:
      'Reads ranges of RowKeys in one or more partitions. The cost grows with the ranges, not with the partitions.',
  },
  'partition-scan': {
    title: 'Partition scan',
    tone: 'fair',
    reads: 'Reads every entity of the partition. The cost grows with the partition, not with the table.',
    advice: 'Add a range of RowKeys, or a copy of the entity under a RowKey made of the property that you filter by.',
  },
  'partition-range': {
    title: 'Range of partitions',
    tone: 'warn',
    reads: 'Reads every entity of all partitions in a range. The cost grows with all of them.',
    advice: "Name one PartitionKey: PartitionKey eq '…'.",
  },
  'table-scan': {
    title: 'Table scan',
    tone: 'bad',
    reads: 'Reads every entity of the table. The cost grows with the table, even if few entities match.',
    advice:
      "Start with PartitionKey eq '…'. If you cannot, keep a copy of the entities under the key that you search by.",
  },
};
