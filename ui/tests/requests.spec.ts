// Tests of the live requests in a browser.
import { seriousFindings } from './themes';
import { expect, test } from './fixture';
import { accountSas, call, makeTable, putBlob, makeContainer } from './seed';
import { query, signInWith } from './traffic';

test('a request from elsewhere appears at once, with its details and without its signature', async ({
  page,
  server,
}) => {
  await makeTable(server, 'Live');
  await page.goto('/#/requests');
  await expect(page.getByText('Connected')).toBeVisible();
  const sas = accountSas();
  await query(server, 'Live', "PartitionKey eq 'secret-value'");
  const grid = page.getByRole('grid', { name: 'Live requests' });
  const row = grid.getByRole('row', { name: /QueryEntities/ }).first();
  await expect(row).toContainText('200 OK');
  await expect(row).toContainText('/Live');
  expect(await seriousFindings(page)).toEqual([]);
  await row.click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('shared access signature');
  await expect(dialog.getByRole('link', { name: 'Open Live' })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  const shown = await page.content();
  expect(shown).not.toContain('sig=');
  expect(shown).not.toContain(new URLSearchParams(sas).get('sig') ?? 'no signature');
  expect(shown).not.toContain('secret-value');
});

test('filters are links, and markup in names is text', async ({ page, server }) => {
  await makeContainer(server, 'livebox');
  await page.goto('/#/requests?service=blob&status=4xx');
  await expect(page.getByText('Connected')).toBeVisible();
  await putBlob(server, 'livebox', '<img src=x onerror=alert(1)>', 'x');
  await call(server, 'blob', 'GET', `/livebox/${encodeURIComponent('<b>gone</b>')}`, { allowed: [404] });
  const grid = page.getByRole('grid', { name: 'Live requests' });
  await expect(grid.getByRole('row', { name: /<b>gone<\/b>/ })).toContainText('404 Not found');
  await expect(grid.getByText('onerror')).toHaveCount(0);
  await page.getByLabel('Status', { exact: true }).selectOption('Successful (below 400)');
  await expect(page).toHaveURL(/status=ok/);
  await expect(grid.getByText('/livebox/<img src=x onerror=alert(1)>')).toBeVisible();
  await page.getByLabel('Filter requests').fill('nothing like this');
  await expect(page.getByText('No request matches the filter')).toBeVisible();
});

test('a pause holds the list and counts what comes', async ({ page, server }) => {
  await makeTable(server, 'Paused');
  await page.goto('/#/requests?search=Paused');
  await expect(page.getByText('Connected')).toBeVisible();
  await query(server, 'Paused', "RowKey eq '1'");
  const rows = page.getByRole('grid', { name: 'Live requests' }).getByRole('row', { name: /Paused/ });
  await expect(rows).toHaveCount(1);
  await page.getByRole('button', { name: 'Pause' }).click();
  await query(server, 'Paused', "RowKey eq '2'");
  const news = page.getByRole('button', { name: /new request/ });
  await expect(news).toBeVisible();
  await expect(rows).toHaveCount(1);
  await news.click();
  await expect(rows).toHaveCount(2);
});

test('a stream that breaks is said and opened again', async ({ page }) => {
  let answers = 0;
  await page.route('**/requests?**', async (route) => {
    answers++;
    if (answers === 1) await route.fulfill({ status: 503, body: '16 readers watch requests already' });
    else await route.fallback();
  });
  await page.goto('/#/requests');
  await expect(page.getByRole('alert')).toContainText('16 readers');
  await expect(page.getByText('Connected')).toBeVisible();
  await expect(page.getByRole('alert')).toHaveCount(0);
});

test('25,000 requests leave a list of bounded size, and a gap is shown', async ({ page }) => {
  const line = (number: number) =>
    JSON.stringify({
      time: '2026-11-17T08:00:00Z',
      client: '127.0.0.1',
      service: 'table',
      operation: 'InsertEntity',
      method: 'POST',
      resource: `/T${number}`,
      auth: 'sas',
      status: 201,
      code: null,
      bytes_in: 1,
      bytes_out: 1,
      request_id: String(number),
      ms: 1,
    });
  let answers = 0;
  await page.route('**/requests?**', async (route) => {
    answers++;
    if (answers > 1) return;
    const lines = Array.from({ length: 25_000 }, (_, number) => line(number));
    await route.fulfill({ status: 200, body: `${lines.join('\n')}\n{"lost":77}\n` });
  });
  await page.goto('/#/requests');
  await expect(page.getByText('77 not shown')).toBeVisible();
  await expect(page.getByText('10,000', { exact: true })).toBeVisible();
  expect(await page.getByRole('row').count()).toBeLessThan(80);
});

test('a signature that may not list sees an explanation', async ({ page }) => {
  await page.goto('/#/requests');
  await signInWith(page, accountSas({ permissions: 'r' }));
  await expect(page.getByText('Live requests need a credential for the whole account')).toBeVisible();
});
