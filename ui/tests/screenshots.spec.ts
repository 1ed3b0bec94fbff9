/**
 * Screenshots of the main pages for the documentation, written to the directory LARIMAR_SCREENSHOTS. Only with this variable:
 *
 *     LARIMAR_SCREENSHOTS=../docs/console npx playwright test tests/screenshots.spec.ts
 */
import type { Page } from '@playwright/test';
import { join, resolve } from 'node:path';
import { expect, test } from './fixture';
import { atOnce, call, makeContainer, makeQueue, makeTable, putBlob } from './seed';
import type { Server } from './server';
import { query } from './traffic';

const directory = process.env['LARIMAR_SCREENSHOTS'];
test.skip(!directory, 'LARIMAR_SCREENSHOTS is not set');

const DEPARTMENTS = ['Engineering', 'Finance', 'Marketing', 'Sales', 'Support'];
const NAMES = ['Ada', 'Alan', 'Barbara', 'Dennis', 'Edsger', 'Frances', 'Grace', 'Ken', 'Margaret', 'Radia'];

test.beforeAll(async ({ server }) => {
  test.setTimeout(180_000);
  await seed(server);
});

test('wide, light', async ({ page, server }) => {
  await page.setViewportSize({ width: 1280, height: 760 });
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  const filter = "PartitionKey eq 'Engineering' and Salary gt 70000";
  await page.goto('/#/overview');
  // A few points for the charts, with traffic between them.
  for (let points = 0; points < 8; points++) {
    const next = page.waitForResponse(/\/metrics/);
    await atOnce(Array.from({ length: 30 + points * 6 }), 6, () =>
      query(server, 'Employees', "PartitionKey eq 'Engineering'"),
    );
    await next;
  }
  await take(page, 'overview', undefined, 'Requests a second');
  await take(page, 'table', `/#/tables/Employees?filter=${encodeURIComponent(filter)}`, 'Engineering');
  await take(page, 'heat', '/#/heat', 'Busiest partitions');
  await take(page, 'advisor', '/#/advisor', /Employees/);
  await page.goto('/#/designer?example=last-name');
  await page.getByRole('region', { name: 'Designs side by side' }).scrollIntoViewIfNeeded();
  await take(page, 'designer', undefined, 'PartitionKey');
  await page.goto('/#/queues/orders');
  await page.getByRole('row', { name: /order/ }).first().click();
  await expect(page.getByLabel('Text of the message')).toBeVisible();
  await take(page, 'queue', undefined, 'Times taken');
  await take(page, 'blobs', '/#/blobs/invoices?open=2026%252F,2026%252F11%252F&blob=2026%2F11%2F1007.txt', '1009.txt');
  await take(page, 'properties', '/#/properties?service=table', 'CORS rules');
});

test('wide, dark', async ({ page }) => {
  await page.setViewportSize({ width: 1280, height: 760 });
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
  await take(page, 'table-dark', '/#/tables/Employees', 'Engineering');
});

test('narrow', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 760 });
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await take(page, 'narrow', '/#/queues', 'orders-poison');
});

async function take(page: Page, name: string, address: string | undefined, seen: string | RegExp): Promise<void> {
  if (address) await page.goto(address);
  await expect(page.getByText(seen).filter({ visible: true }).first()).toBeVisible();
  await expect(page.getByText(/Loading|The plan of the query is shown here/)).toHaveCount(0);
  await page.waitForLoadState('networkidle').catch(() => undefined);
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(resolve(directory ?? ''), `${name}.png`), animations: 'disabled', caret: 'hide' });
}

async function seed(server: Server): Promise<void> {
  const employees = Array.from({ length: 400 }, (_, at) => ({
    PartitionKey: DEPARTMENTS[at % DEPARTMENTS.length],
    RowKey: String(1000 + at),
    Name: `${NAMES[((at * at + 3 * at) % 97) % NAMES.length]} ${NAMES[((at * 31) % 89) % NAMES.length]}son`,
    Salary: 48_000 + ((at * 7919) % 61) * 1000,
    'Hired@odata.type': 'Edm.DateTime',
    Hired: new Date(Date.UTC(2012 + (at % 14), at % 12, 1 + (at % 28), 9)).toISOString(),
    Remote: at % 3 === 0,
    ...(at % 4 === 0 ? { Manager: String(1000 + (at % 20)) } : {}),
  }));
  await makeTable(server, 'Employees', employees);
  await makeTable(
    server,
    'Orders',
    Array.from({ length: 120 }, (_, at) => ({
      PartitionKey: `customer-${at % 12}`,
      RowKey: String(10_000 + at),
      Total: 19.9 + at,
      State: ['paid', 'sent', 'open'][at % 3],
    })),
  );
  for (const table of ['Departments', 'AuditLog', 'Sessions']) await makeTable(server, table);
  // Traffic: most of it goes to one partition, and some queries read the whole table.
  const filters = [
    ...Array.from({ length: 120 }, () => "PartitionKey eq 'Engineering'"),
    ...Array.from({ length: 25 }, (_, at) => `Salary eq ${50_000 + at * 1000}`),
  ];
  await atOnce(filters, 6, (filter) => query(server, 'Employees', filter));
  const orders = Array.from({ length: 14 }, (_, at) =>
    Buffer.from(JSON.stringify({ order: 10_000 + at, customer: `customer-${at % 12}`, total: 19.9 + at })).toString(
      'base64',
    ),
  );
  await makeQueue(server, 'orders', orders);
  await makeQueue(server, 'orders-poison', orders.slice(0, 3));
  for (const queue of ['emails', 'invoices', 'thumbnails']) await makeQueue(server, queue, orders.slice(0, 2));
  for (const container of ['backups', 'invoices', 'photos']) await makeContainer(server, container);
  for (let at = 0; at < 24; at++) {
    const text = `Invoice ${1000 + at}\n\nCustomer     customer-${at % 12}\nTotal        ${(19.9 + at).toFixed(2)} EUR\nDue          14 days\n`;
    await putBlob(server, 'invoices', `2026/${at % 2 ? 11 : 10}/${1000 + at}.txt`, text, 'text/plain', {
      'x-ms-meta-customer': `customer-${at % 12}`,
      'x-ms-tags': `state=${at % 3 ? 'paid' : 'open'}`,
    });
  }
  await putBlob(server, 'invoices', 'README.md', '# Invoices\n', 'text/markdown');
  const rule =
    '<CorsRule><AllowedOrigins>https://app.example.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>3600</MaxAgeInSeconds><ExposedHeaders>*</ExposedHeaders><AllowedHeaders>*</AllowedHeaders></CorsRule>';
  await call(server, 'table', 'PUT', '/', {
    query: 'restype=service&comp=properties',
    body: `<StorageServiceProperties><Cors>${rule}</Cors></StorageServiceProperties>`,
  });
}
