// Tests of the designer in a browser.
import { seriousFindings } from './themes';
import { expect, test } from './fixture';
import { accountSas, call, makeTable } from './seed';
import type { Server } from './server';
import { signInWith } from './traffic';

async function tables(server: Server): Promise<string[]> {
  const headers = { accept: 'application/json;odata=nometadata' };
  const response = await call(server, 'table', 'GET', '/Tables', { headers });
  const { value } = (await response.json()) as { value: { TableName: string }[] };
  return value.map(({ TableName }) => TableName);
}

test('from a sample to a table that was tried', async ({ page, server }) => {
  await page.goto('/#/designer');
  const rows = Array.from(
    { length: 200 },
    (_, at) => `D${at % 8},${String(at).padStart(6, '0')},Name${at % 40},${20 + (at % 45)}`,
  );
  await page.getByLabel('Sample file').setInputFiles({
    name: 'people.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from(`Department,Number,LastName,Age\n${rows.join('\n')}\n`),
  });
  await expect(page.getByText(/Properties are from people.csv/)).toBeVisible();
  const form = page.getByRole('region', { name: 'Description' });
  await expect(form.getByLabel('Entity')).toHaveValue('People');
  await expect(form.getByRole('button', { name: /^Number/ })).toBeVisible();

  // A query and a write, with the form.
  await form.getByRole('button', { name: 'Query', exact: true }).click();
  await form.getByRole('textbox', { name: 'Name', exact: true }).fill('by last name');
  await form.getByRole('textbox', { name: 'Name', exact: true }).press('Tab');
  const known = form.getByRole('group', { name: 'These are known', exact: true });
  await known.getByText('Department', { exact: true }).click();
  await known.getByText('LastName', { exact: true }).click();
  await form.getByRole('button', { name: 'Write', exact: true }).click();

  const designs = page.getByRole('region', { name: 'Designs side by side' });
  await expect(designs.getByRole('row', { name: /by last name/ })).toContainText('row');
  await expect(page.getByRole('region', { name: /Keys of design 1/ })).toContainText('PartitionKey');

  await page.getByText('TOML', { exact: true }).click();
  await expect(page.getByRole('textbox', { name: 'Description in TOML' })).toContainText(
    'equals = ["Department", "LastName"]',
  );

  const trial = page.getByRole('region', { name: /Try design 1/ });
  await trial.getByLabel('Entities').fill('500');
  await trial.getByRole('button', { name: 'Try it' }).click();
  await expect(trial.getByRole('row', { name: /by last name/ })).toContainText('as predicted', { timeout: 60_000 });
  expect((await tables(server)).filter((name) => name.startsWith('larimartry'))).toEqual([]);
});

test('an example is a link, and every design has its costs', async ({ page }) => {
  await page.goto('/#/designer?example=last-name&edit=text');
  await expect(page.getByRole('textbox', { name: 'Description in TOML' })).toContainText('entity = "Employee"');
  await expect(page.getByRole('heading', { name: '2 designs' })).toBeVisible();
  const designs = page.getByRole('region', { name: 'Designs side by side' });
  await expect(designs.getByRole('row', { name: /by last name/ })).toContainText('points');
  await designs.getByRole('button', { name: 'Design 2' }).click();
  await expect(page).toHaveURL(/design=2/);
  await expect(page.getByRole('region', { name: /Keys of design 2/ })).toContainText('{LastName}_{EmployeeId}');
  await page.goBack();
  await expect(page.getByRole('region', { name: /Keys of design 1/ })).toBeVisible();
});

test('a mistake is shown with its line and can be corrected', async ({ page }) => {
  await page.goto('/#/designer?example=email&edit=text');
  await expect(page.getByRole('region', { name: 'Designs side by side' })).toBeVisible();
  const editor = page.getByRole('textbox', { name: 'Description in TOML' });
  await editor.press('Control+End');
  await page.keyboard.type('\n[[query]]\nname = "q"\nequals = ["Nothing"]\n');
  await expect(page.getByRole('alert')).toContainText(/unknown property 'Nothing'.*line \d+/);
  await expect(page).not.toHaveURL(/example/);
});

test('cancelling a trial, or leaving it, deletes its tables', async ({ page, server }) => {
  await page.goto('/#/designer?example=last-name');
  const trial = page.getByRole('region', { name: /Try design 1/ });
  const scratch = async () => (await tables(server)).filter((name) => name.startsWith('larimartry'));
  for (const leave of ['cancel', 'other page']) {
    await trial.getByLabel('Entities').fill('6000');
    await trial.getByRole('button', { name: 'Try it' }).click();
    await expect.poll(scratch).not.toEqual([]);
    if (leave === 'cancel') await trial.getByRole('button', { name: 'Cancel' }).click();
    else await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click();
    await expect.poll(scratch).toEqual([]);
  }
});

test('tables that an earlier trial left can be deleted', async ({ page, server }) => {
  await makeTable(server, 'larimartryabcx0');
  await page.goto('/#/designer');
  await page.getByText('1 scratch table of an earlier trial is left.').waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete 1 table' }).click();
  await expect(page.getByText(/of an earlier trial/)).toHaveCount(0);
  expect(await tables(server)).not.toContain('larimartryabcx0');
});

test('a signature that may not create tables designs, but does not try', async ({ page }) => {
  await page.goto('/#/designer?example=email');
  await signInWith(page, accountSas({ permissions: 'rl' }));
  const trial = page.getByRole('region', { name: /Try design 1/ });
  await expect(trial).toContainText('A trial creates and deletes tables');
  await expect(trial.getByRole('button', { name: 'Try it' })).toHaveCount(0);
  await signInWith(page, accountSas({ services: 'b' }));
  await expect(page.getByText('The designer needs a credential for the whole account')).toBeVisible();
});

test('the designer has no serious accessibility problem', async ({ page }) => {
  await page.goto('/#/designer');
  await expect(page.getByRole('button', { name: /telemetry/ })).toBeVisible();
  expect(await seriousFindings(page)).toEqual([]);
  await page.getByRole('button', { name: /^orders/ }).click();
  await expect(page.getByRole('region', { name: 'Designs side by side' })).toBeVisible();
  await page.getByRole('button', { name: /^latest orders/ }).click();
  expect(await seriousFindings(page)).toEqual([]);
  await page.getByText('TOML', { exact: true }).click();
  await expect(page.getByRole('textbox', { name: 'Description in TOML' })).toBeVisible();
  expect(await seriousFindings(page)).toEqual([]);
});
