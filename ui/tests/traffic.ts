/** Requests from Node that pages about traffic can show. */
import type { Page } from '@playwright/test';
import { atOnce, call, makeTable } from './seed';
import type { Server } from './server';

const JSON_HEADERS = { accept: 'application/json;odata=nometadata' };

/** A table in which one partition is read much more than the others. */
export async function makeHotPartition(server: Server, table: string, hot: string): Promise<void> {
  const entity = (partition: string, row: number) => ({
    PartitionKey: partition,
    RowKey: String(row).padStart(3, '0'),
  });
  const cold = Array.from({ length: 12 }, (_, at) => entity(`cold-${at}`, 0));
  await makeTable(server, table, [...Array.from({ length: 5 }, (_, row) => entity(hot, row)), ...cold]);
  const reads = Array.from({ length: 300 }, (_, at) => at % 5);
  await atOnce(reads, 8, (row) =>
    call(
      server,
      'table',
      'GET',
      `/${table}(PartitionKey='${encodeURIComponent(hot.replaceAll("'", "''"))}',RowKey='${String(row).padStart(3, '0')}')`,
      { headers: JSON_HEADERS },
    ),
  );
}

/** A table with queries that scan it: enough of them for a finding of the advisor. */
export async function makeScans(server: Server, table: string): Promise<void> {
  const entities = Array.from({ length: 150 }, (_, at) => ({
    PartitionKey: `p${at % 30}`,
    RowKey: String(at),
    Email: `${at}@example.org`,
  }));
  await makeTable(server, table, entities);
  await atOnce(
    Array.from({ length: 14 }, (_, at) => at),
    4,
    (at) => query(server, table, `Email eq '${at}@example.org'`),
  );
}

export async function query(server: Server, table: string, filter: string): Promise<void> {
  await call(server, 'table', 'GET', `/${table}()`, {
    query: `$filter=${encodeURIComponent(filter)}`,
    headers: JSON_HEADERS,
  });
}

/** Signs out of the development account and in with something else, at the page that is shown. */
export async function signInWith(page: Page, secret: string, account = 'devstoreaccount1'): Promise<void> {
  await page.getByRole('button', { name: account }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel(/Account key, shared access signature/).fill(secret);
  await page.getByLabel('Account name').fill(account);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}
