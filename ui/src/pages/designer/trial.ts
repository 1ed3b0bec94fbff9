/** A trial of a design: sample entities in scratch tables, the queries with what the server read for them, the tables deleted. */

import {
  ProtocolError,
  TRANSACTION_WRITES_MAX,
  type Client,
  type DesignAccess,
  type DesignTrial,
  type EdmValue,
  type Entity,
  type Write,
} from '../../protocol';

/** Scratch tables begin with this, here and in `larimar design try`. */
export const SCRATCH_PREFIX = 'larimartry';
export const TABLES_MAX = 32;
const IN_FLIGHT_MAX = 4;

export interface Measured {
  readonly name: string;
  readonly predicted: DesignAccess;
  readonly plans: readonly string[];
  readonly rows: number;
  readonly requests: number;
  readonly returned: number;
}

/** What a trial is doing. */
export interface Step {
  readonly what: 'Creating tables' | 'Writing entities' | 'Running queries' | 'Deleting tables';
  readonly done: number;
  readonly total: number;
}

type Tables = Client['tables'];

/** Runs a trial. Scratch tables are deleted whatever happens; those that could not be are returned. */
export async function runTrial(
  tables: Tables,
  trial: DesignTrial,
  signal: AbortSignal,
  onstep: (step: Step) => void,
): Promise<{ measured: Measured[]; left: string[]; error?: unknown }> {
  const names = scratchNames(trial, randomId());
  const created: string[] = [];
  const result: { measured: Measured[]; left: string[]; error?: unknown } = { measured: [], left: [] };
  try {
    if (names.size > TABLES_MAX) {
      throw new Error(
        `A trial of this design needs ${names.size} tables; at most ${TABLES_MAX} are made. Try fewer entities.`,
      );
    }
    await inParallel([...names.values()], signal, 'Creating tables', onstep, async (name) => {
      created.push(name);
      await tables.create(name, { signal });
    });
    await inParallel(transactionsOf(trial, names), signal, 'Writing entities', onstep, ({ table, writes }) =>
      tables.transaction(table, writes, { signal }),
    );
    let done = 0;
    for (const query of trial.queries) {
      onstep({ what: 'Running queries', done, total: trial.queries.length });
      result.measured.push(await measure(tables, query, names, signal));
      done++;
    }
  } catch (error) {
    result.error = error;
  }
  // Not with the signal: it may have been aborted, and the tables have to go all the same.
  await inParallel(created, undefined, 'Deleting tables', onstep, async (name) => {
    try {
      await tables.delete(name);
    } catch (error) {
      if (!(error instanceof ProtocolError && error.isMissing)) result.left.push(name);
    }
  });
  return result;
}

/** The full names of a trial's tables by the ends that it gives them. */
export function scratchNames(trial: DesignTrial, id: string): Map<string, string> {
  return new Map(trial.rows.map(({ table }) => [table, `${SCRATCH_PREFIX}${id}${table}`]));
}

/** The rows in transactions: each of one table and one partition. */
export function transactionsOf(
  trial: DesignTrial,
  names: ReadonlyMap<string, string>,
): { table: string; writes: Write[] }[] {
  const open = new Map<string, { table: string; writes: Write[] }>();
  const all: { table: string; writes: Write[] }[] = [];
  for (const row of trial.rows) {
    const entity = entityOf(row.entity);
    const key = JSON.stringify([row.table, entity.partitionKey]);
    let transaction = open.get(key);
    if (!transaction || transaction.writes.length >= TRANSACTION_WRITES_MAX) {
      transaction = { table: names.get(row.table) ?? '', writes: [] };
      open.set(key, transaction);
      all.push(transaction);
    }
    transaction.writes.push({ kind: 'insert', entity });
  }
  return all;
}

/** An entity from the service's JSON, read by `JSON.parse`: trials have no numbers that lose digits by it. */
export function entityOf(json: Readonly<Record<string, unknown>>): Entity {
  const properties = new Map<string, EdmValue>();
  for (const [name, value] of Object.entries(json)) {
    if (name === 'PartitionKey' || name === 'RowKey' || name.endsWith('@odata.type')) continue;
    properties.set(name, valueOf(value, json[`${name}@odata.type`]));
  }
  return { partitionKey: String(json['PartitionKey']), rowKey: String(json['RowKey']), properties };
}

function valueOf(value: unknown, type: unknown): EdmValue {
  switch (type) {
    case 'Edm.Int64':
      return { type: 'Int64', value: BigInt(String(value)) };
    case 'Edm.Double':
      return { type: 'Double', value: Number(value) };
    case 'Edm.DateTime':
    case 'Edm.Guid':
    case 'Edm.Binary':
      return { type: type.slice(4) as 'DateTime' | 'Guid' | 'Binary', value: String(value) };
  }
  if (typeof value === 'boolean') return { type: 'Boolean', value };
  return typeof value === 'number' ? { type: 'Int32', value } : { type: 'String', value: String(value) };
}

async function measure(
  tables: Tables,
  query: DesignTrial['queries'][number],
  names: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<Measured> {
  const plans = new Set<string>();
  let [rows, requests, returned] = [0, 0, 0];
  await inParallel(query.requests, signal, undefined, undefined, async ({ table, filter, top }) => {
    requests += 1;
    const name = names.get(table);
    // A period that no sample entity is in has no table.
    if (name === undefined) return;
    let [pages, missing] = [0, top ?? Infinity];
    for await (const page of tables.pages(name, { filter, top, explain: 'run', signal })) {
      if (!page.explanation) {
        throw new Error('This server does not explain queries: only Larimar does, unless it is in strict mode.');
      }
      plans.add(page.explanation.kind);
      rows += page.explanation.rowsRead;
      returned += page.explanation.rowsReturned;
      missing -= page.entities.length;
      pages += 1;
      if (missing <= 0) break;
    }
    requests += Math.max(pages, 1) - 1;
  });
  return { name: query.name, predicted: query.predicted, plans: [...plans].sort(), rows, requests, returned };
}

/** Does something for all items, a few at a time. The first error ends it. */
async function inParallel<Item>(
  items: readonly Item[],
  signal: AbortSignal | undefined,
  what: Step['what'] | undefined,
  onstep: ((step: Step) => void) | undefined,
  run: (item: Item) => Promise<unknown>,
): Promise<void> {
  let [next, done, failed] = [0, 0, false];
  const report = () => what && onstep?.({ what, done, total: items.length });
  report();
  const worker = async () => {
    while (next < items.length && !failed) {
      signal?.throwIfAborted();
      const item = items[next++] as Item;
      try {
        await run(item);
      } catch (error) {
        failed = true;
        throw error;
      }
      done++;
      report();
    }
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(IN_FLIGHT_MAX, items.length) }, worker));
  const rejected = results.find((result) => result.status === 'rejected');
  if (rejected) throw rejected.reason;
}

function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(6))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
