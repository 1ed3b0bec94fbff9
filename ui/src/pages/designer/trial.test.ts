// Tests of `trial.ts`.
import { expect, test } from 'vitest';
import { ProtocolError, type Client, type DesignTrial } from '../../protocol';
import { entityOf, runTrial, scratchNames, transactionsOf } from './trial';

const predicted = { kind: 'point', seeks: 1, rows: 1, requests: 1, returned: 1, isSortedByClient: false };
const row = (table: string, partition: string, key: number) => ({
  table,
  entity: { PartitionKey: partition, RowKey: String(key) },
});

const TRIAL: DesignTrial = {
  rows: [...Array.from({ length: 150 }, (_, key) => row('x0', 'a', key)), row('x0', 'b', 1), row('x1', 'a', 1)],
  queries: [
    {
      name: 'q',
      predicted,
      requests: [
        { table: 'x0', filter: 'f' },
        { table: 'gone', filter: 'f' },
      ],
    },
  ],
  notTried: [],
};

class FakeTables {
  tables = new Set<string>();
  deleted: string[] = [];
  written = 0;
  failAt: string | undefined;

  create(name: string) {
    this.tables.add(name);
    return Promise.resolve();
  }

  delete(name: string) {
    this.deleted.push(name);
    if (name === this.failAt) return Promise.reject(new ProtocolError(503, 'ServerBusy', 'busy'));
    return Promise.resolve();
  }

  transaction(_table: string, writes: unknown[]) {
    this.written += writes.length;
    return this.failAt === 'write' ? Promise.reject(new Error('no')) : Promise.resolve([]);
  }

  async *pages() {
    yield { entities: [], explanation: { plan: 'point', kind: 'point', rowsRead: 1, rowsReturned: 1, micros: 5 } };
    yield { entities: [], explanation: { plan: 'point', kind: 'point', rowsRead: 2, rowsReturned: 1, micros: 5 } };
  }
}

const run = (fake: FakeTables, signal = new AbortController().signal) =>
  runTrial(fake as unknown as Client['tables'], TRIAL, signal, () => undefined);

test('rows are written in transactions of one partition and at most 100 writes', () => {
  const transactions = transactionsOf(TRIAL, scratchNames(TRIAL, 'id'));
  expect(transactions.map(({ table, writes }) => [table, writes.length])).toEqual([
    ['larimartryidx0', 100],
    ['larimartryidx0', 50],
    ['larimartryidx0', 1],
    ['larimartryidx1', 1],
  ]);
});

test('a trial measures all pages of its queries and deletes its tables', async () => {
  const fake = new FakeTables();
  const { measured, left, error } = await run(fake);
  expect(error).toBeUndefined();
  expect(measured).toMatchObject([{ name: 'q', plans: ['point'], rows: 3, requests: 3, returned: 2 }]);
  expect(fake.written).toBe(152);
  expect(left).toEqual([]);
  expect(new Set(fake.deleted)).toEqual(fake.tables);
});

test('a trial that fails or is cancelled deletes its tables, and says which are left', async () => {
  const failing = new FakeTables();
  failing.failAt = 'write';
  expect((await run(failing)).error).toEqual(new Error('no'));
  expect(failing.deleted).toHaveLength(2);

  const fake = new FakeTables();
  const controller = new AbortController();
  fake.transaction = () => {
    controller.abort();
    [fake.failAt] = fake.tables;
    return Promise.resolve([]);
  };
  const cancelled = await run(fake, controller.signal);
  expect(cancelled.error).toMatchObject({ name: 'AbortError' });
  expect(cancelled.left).toEqual([fake.failAt]);
});

test('values keep their types', () => {
  const { properties } = entityOf({
    PartitionKey: 'p',
    RowKey: 'r',
    A: 'x',
    B: 5,
    C: true,
    D: '9007199254740993',
    'D@odata.type': 'Edm.Int64',
    E: 1,
    'E@odata.type': 'Edm.Double',
    F: '2026-01-01T00:00:00Z',
    'F@odata.type': 'Edm.DateTime',
  });
  expect([...properties]).toEqual([
    ['A', { type: 'String', value: 'x' }],
    ['B', { type: 'Int32', value: 5 }],
    ['C', { type: 'Boolean', value: true }],
    ['D', { type: 'Int64', value: 9007199254740993n }],
    ['E', { type: 'Double', value: 1 }],
    ['F', { type: 'DateTime', value: '2026-01-01T00:00:00Z' }],
  ]);
});
