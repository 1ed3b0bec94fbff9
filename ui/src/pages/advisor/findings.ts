/** Findings of the advisor in words, and which dismissal hides one. */

import type { Dismissal, Finding } from '../../protocol';

/** What a kind of finding is called. */
export function titleOf(id: string): string {
  return TITLES[id] ?? id.replaceAll('-', ' ').replace(/^./, (letter) => letter.toUpperCase());
}

const TITLES: Record<string, string> = {
  'table-scan': 'Table scan',
  'partition-scan': 'Partition scan',
  'hot-partition': 'Hot partition',
  'append-only': 'Append-only keys',
  'large-partition': 'Large partition',
  'one-entity-per-partition': 'One entity per partition',
  'large-entity': 'Large entity',
  'wide-entity': 'Wide entity',
  'row-by-row': 'Reads row by row',
  'log-data': 'Log data in a table',
  'mass-delete': 'Mass delete',
  'conflict-retries': 'Conflicts and retries',
};

/** What the advisor looks for, and how much of it there has to be. */
export const CHECKS: readonly { readonly id: string; readonly needs: string }[] = [
  {
    id: 'table-scan',
    needs: '10 pages of queries that read 100 rows or more across partitions and return less than a tenth',
  },
  { id: 'partition-scan', needs: '10 such pages within a partition' },
  { id: 'hot-partition', needs: '1,000 entities a second in one partition, or 10 requests answered with 503' },
  { id: 'append-only', needs: '1,000 inserts, 95 % of them after (or before) all others' },
  { id: 'large-partition', needs: 'about a million rows of one partition' },
  { id: 'one-entity-per-partition', needs: '500 inserts, each into a partition of its own, that are read together' },
  { id: 'large-entity', needs: 'an entity of 512 KiB' },
  { id: 'wide-entity', needs: 'an entity with 200 properties' },
  { id: 'row-by-row', needs: '200 reads by key, most of them in the partition of the read before' },
  { id: 'log-data', needs: 'append-only inserts with times in their keys, and hardly a read' },
  { id: 'mass-delete', needs: '500 deletes outside of transactions, with times in the keys' },
  { id: 'conflict-retries', needs: '100 writes that failed with 412, twice as many as succeeded' },
];

/** The dismissal that hides a finding: the one of its table, else the one of all tables. */
export function dismissalOf(finding: Finding, dismissals: readonly Dismissal[]): Dismissal | undefined {
  const same = dismissals.filter((dismissal) => dismissal.finding === finding.id);
  const name = finding.table.toLowerCase();
  return (
    same.find((dismissal) => dismissal.table?.toLowerCase() === name) ??
    same.find((dismissal) => dismissal.table === undefined)
  );
}

/** Dismissals that hide none of the findings. */
export function unused(dismissals: readonly Dismissal[], findings: readonly Finding[]): Dismissal[] {
  const used = new Set(findings.map((finding) => dismissalOf(finding, dismissals)));
  return dismissals.filter((dismissal) => !used.has(dismissal));
}

/** How much less work the advice leaves: `1,200 times fewer rows`. Empty if that is not the point. */
export function savingOf({ now, after }: Finding['cost']): string {
  const ratio = (before: number, later: number) => (later > 0 ? before / later : 0);
  const [rows, requests] = [ratio(now.rows, after.rows), ratio(now.requests, after.requests)];
  const [best, what] = rows >= requests ? [rows, 'rows'] : [requests, 'requests'];
  if (best < 1.5) return '';
  const shown = best < 10 ? String(Number(best.toPrecision(2))) : Math.round(best).toLocaleString('en-US');
  return `${shown} times fewer ${what}`;
}

/** A phrase of the server as a sentence. */
export function sentence(phrase: string): string {
  const start = phrase.charAt(0).toUpperCase() + phrase.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
