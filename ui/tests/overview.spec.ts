// Tests of the overview in a browser.
import { seriousFindings } from './themes';
import { expect, test } from './fixture';
import { accountSas, call, makeTable } from './seed';
import { Server } from './server';
import { query, signInWith } from './traffic';

test('rates, storage and the busiest table appear while requests come in', async ({ page, server }) => {
  await makeTable(server, 'Busy', [{ PartitionKey: 'p', RowKey: 'r' }]);
  await page.goto('/');
  await expect(page.getByText('Ready', { exact: true })).toBeVisible();
  const now = page.getByLabel('Now');
  // Requests until a poll has seen some, then figures stay on the page.
  await expect(async () => {
    await Promise.all(Array.from({ length: 20 }, () => query(server, 'Busy', "PartitionKey eq 'p'")));
    await expect(now.getByText(/^[1-9][\d.,]*\/s$/).first()).toBeVisible({ timeout: 500 });
  }).toPass();
  await expect(now.getByText('Latency p99')).toBeVisible();
  await expect(page.getByRole('img', { name: /Requests a second/ })).toBeVisible();
  await expect(page.getByRole('region', { name: 'Storage' })).toContainText('Rows');
  const tables = page.getByRole('region', { name: 'Busiest tables' });
  await expect(tables.getByRole('link', { name: 'Busy', exact: true })).toBeVisible({ timeout: 30_000 });
  await expect(page.getByRole('heading', { name: 'Get started' })).toHaveCount(0);
  expect(await seriousFindings(page)).toEqual([]);
});

test('an empty server says what to do first, and does not show its key', async ({ page, context }) => {
  const server = await Server.start();
  try {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const key = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
    // The page of the worker's server, and the data of an empty one.
    await page.route('**/table/**', (route) => forward(route, server.admin));
    await page.route('**/insights**', (route) => forward(route, server.admin));
    await page.goto('/');
    const start = page.getByRole('region', { name: 'Get started' });
    await expect(start).toContainText('AccountKey=••••••••');
    await expect(start).not.toContainText(key);
    await start.getByRole('button', { name: 'Copy connection string' }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toContain(`AccountKey=${key}`);
    expect(copied).toContain('TableEndpoint=http://127.0.0.1:10002/devstoreaccount1');
    await start.getByRole('button', { name: 'Show key' }).click();
    await expect(start).toContainText(key);
    await start.getByRole('tab', { name: 'C#' }).click();
    await expect(start.getByRole('tabpanel')).toContainText('TableClient');
    expect(await seriousFindings(page)).toEqual([]);
    await start.getByRole('link', { name: 'Design its keys' }).click();
    await expect(page.getByRole('heading', { level: 1, name: 'Designer' })).toBeVisible();
  } finally {
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.goto('about:blank');
    await server.stop();
  }
});

test('a signature for blobs sees the rates of the server and why there are no tables', async ({ page, server }) => {
  await call(server, 'blob', 'PUT', '/overview', { query: 'restype=container' });
  await page.goto('/');
  await signInWith(page, accountSas({ services: 'b' }));
  await expect(page.getByRole('region', { name: 'Tables and findings' })).toContainText('not for the table service');
  await expect(page.getByLabel('Now').getByText('Requests')).toBeVisible();
});

/** Sends a request of the page to another server. */
async function forward(route: import('@playwright/test').Route, admin: string): Promise<void> {
  const url = new URL(route.request().url());
  const headers = await route.request().allHeaders();
  const response = await fetch(`${admin}${url.pathname}${url.search}`, {
    headers: { 'x-larimar-console': headers['x-larimar-console'] ?? '', accept: headers['accept'] ?? '*/*' },
  });
  await route.fulfill({
    status: response.status,
    body: await response.text(),
    headers: Object.fromEntries(response.headers),
  });
}
