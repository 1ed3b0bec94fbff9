/** The page of tables, and signing in. */
import { readFileSync } from 'node:fs';
import type { Locator, Page } from '@playwright/test';
import { findings } from './axe';
import { expect, test } from './fixture';
import { accountSas, atOnce, call } from './seed';
import { DEVELOPMENT_KEY } from './server';
import { connectionString, createTable, entitiesOf, fillTable, mergeEntity, tableSas, type Entity } from './table-data';

/** Rows of the scrolling test: a debug build inserts about 3,000 a second. A long run sets 1000000. */
const ROWS = Number(process.env['LARIMAR_TEST_ROWS'] ?? 20_000);

function filterEditor(page: Page): Locator {
  return page.getByRole('textbox', { name: 'Filter' });
}

async function typeFilter(page: Page, filter: string): Promise<void> {
  await filterEditor(page).fill(filter);
  // The list of completions takes Enter.
  await filterEditor(page).press('Escape');
}

function order(index: number): Entity {
  return {
    PartitionKey: `c${String(Math.floor(index / 100)).padStart(3, '0')}`,
    RowKey: String(index).padStart(6, '0'),
    Name: ['Jones', '<img src=x onerror=alert(1)>', 'שלום עולם'][index % 3],
    Quantity: index % 50,
    ...(index % 2 ? { Note: '' } : {}),
  };
}

async function openTable(page: Page, table: string, query: Record<string, string> = {}): Promise<void> {
  const text = new URLSearchParams(query).toString();
  await page.goto(`/#/tables/${table}${text ? `?${text}` : ''}`);
  await expect(page.getByRole('heading', { level: 1, name: table })).toBeVisible();
}

test('a table is created, found among many, and deleted after its name is typed', async ({ page, server }) => {
  const names = Array.from({ length: 1200 }, (_, at) => `Many${String(at).padStart(4, '0')}`);
  await atOnce(names, 8, (name) => createTable(server, name));
  await page.goto('/#/tables');
  // Signed in by itself, on a development server.
  await expect(page.getByRole('link', { name: 'Many0000' })).toBeVisible();
  await page.getByRole('button', { name: 'Create table' }).click();
  await page.getByLabel('Name').fill('1x');
  await expect(page.getByText('A name begins with a letter.')).toBeVisible();
  await page.getByLabel('Name').fill('ZebraCrossing');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await expect(page.getByText('This table is empty')).toBeVisible();

  await page.goto('/#/tables');
  await page.getByRole('searchbox', { name: 'Search tables' }).fill('zebra');
  await expect(page).toHaveURL(/search=zebra/);
  await expect(page.getByText(/^1 of 1,2\d\d tables$/)).toBeVisible();
  await page.getByRole('button', { name: 'Delete ZebraCrossing' }).click();
  const action = page.getByRole('button', { name: 'Delete table' });
  await expect(action).toBeDisabled();
  await page.getByRole('dialog').getByRole('textbox').fill('ZebraCrossing');
  await action.click();
  await expect(page.getByText('No table has this in its name')).toBeVisible();
  await page.getByRole('button', { name: 'Show all tables' }).click();
  // The last of more than a page of tables, with the keyboard.
  await page.getByRole('grid', { name: 'Tables' }).press('Control+End');
  await expect(page.getByRole('row').last()).toBeVisible();
  expect(await page.getByRole('row').count()).toBeLessThan(80);
});

test('a query shows its plan while it is typed, and its cost after it ran', async ({ page, server }) => {
  await fillTable(server, 'Costs', 2000, order);
  await openTable(page, 'Costs');
  await expect(page.getByText('c000').first()).toBeVisible();
  await typeFilter(page, "PartitionKey eq 'c003' and RowKey eq '000300'");
  await expect(page.getByText('Point query')).toBeVisible();
  await typeFilter(page, "PartitionKey eq 'c003' and Quantity eq 7");
  await expect(page.getByText('Partition scan')).toBeVisible();
  await typeFilter(page, 'Quantity eq 7');
  await expect(page.getByText(/Reads every entity of the table/)).toBeVisible();
  await filterEditor(page).press('Enter');
  const cost = page.getByLabel('Cost of the query');
  await expect(cost).toContainText('2,000 rows read');
  await expect(cost).toContainText('40 returned');
  await expect(cost).toContainText('50 read for each returned');
  await expect(page.getByText('40 entities', { exact: true })).toBeVisible();
  // The ranges, and what is checked for each row.
  await page.getByText(/1 key range, then a filter/).click();
  await expect(page.getByText('Quantity eq 7').last()).toBeVisible();

  // Markup and other scripts are text; missing and empty differ.
  await page.getByRole('button', { name: 'Queries' }).click();
  await page.getByRole('textbox', { name: 'Name of the query' }).fill('Sevens');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.keyboard.press('Escape');
  await page.goBack();
  await expect(page).not.toHaveURL(/filter/);
  await expect(page.getByText('<img src=x onerror=alert(1)>').first()).toBeVisible();
  await expect(page.getByRole('gridcell', { name: '— missing' }).first()).toBeVisible();
  await expect(page.getByRole('gridcell', { name: '""' }).first()).toBeVisible();
  await page.goForward();
  await expect(cost).toContainText('40 returned');

  // Saved and recent queries outlive a reload.
  await openTable(page, 'Costs');
  await page.reload();
  await page.getByRole('button', { name: 'Queries' }).click();
  await page.getByRole('button', { name: /^Sevens/ }).click();
  await expect(cost).toContainText('40 returned');
  await page.getByRole('button', { name: 'Queries' }).click();
  await page.getByRole('button', { name: 'Clear' }).click();
  await expect(page.getByText('Filters that you run on this table are listed here.')).toBeVisible();
});

test('an error of a filter shows its position, and properties are completed', async ({ page, server }) => {
  await fillTable(server, 'Errors', 100, order);
  await openTable(page, 'Errors');
  await expect(page.getByText('c000').first()).toBeVisible();
  await typeFilter(page, "Quantity == 'x'");
  await expect(page.getByText('Position 10: Write eq instead.')).toBeVisible();
  await typeFilter(page, "PartitionKey eq 'a' and");
  await expect(page.getByText(/^Expected a property/)).toBeVisible();
  await typeFilter(page, "startswith(Name, 'J')");
  await expect(page.getByText(/Position 1: Functions such as startswith/)).toBeVisible();
  // What only the server refuses.
  await openTable(page, 'Errors', { filter: `${'('.repeat(120)}A eq 1${')'.repeat(120)}` });
  await expect(page.getByRole('alert')).toContainText('Syntax error at position 101');
  await expect(page.getByText(/^Syntax error at position 101/).first()).toBeVisible();

  await openTable(page, 'Errors');
  await expect(page.getByText('c000').first()).toBeVisible();
  await filterEditor(page).fill('');
  await filterEditor(page).pressSequentially('Quan');
  await page.getByRole('option', { name: /Quantity/ }).click();
  await filterEditor(page).pressSequentially(' g');
  await expect(page.getByRole('option', { name: /greater than/ })).toBeVisible();
  await filterEditor(page).pressSequentially('t 48');
  await filterEditor(page).press('Enter');
  await expect(page.getByText('2 entities', { exact: true })).toBeVisible();
});

test('columns are chosen and ordered, and only they are asked for', async ({ page, server }) => {
  await fillTable(server, 'Columns', 100, order);
  await openTable(page, 'Columns');
  await expect(page.getByRole('columnheader', { name: /Quantity/ })).toBeVisible();
  await page.getByRole('button', { name: 'Columns', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Columns' });
  await dialog.getByRole('button', { name: 'None' }).click();
  await dialog.getByRole('checkbox', { name: /^Quantity/ }).check();
  await dialog.getByRole('checkbox', { name: /^RowKey/ }).check();
  for (let at = 0; at < 4; at++) await dialog.getByRole('button', { name: 'Move Quantity up' }).click();
  const asked = page.waitForRequest((request) => request.url().includes('%24select='));
  await dialog.getByRole('button', { name: 'Show 2 columns' }).click();
  expect(decodeURIComponent((await asked).url())).toContain('$select=PartitionKey,Quantity,RowKey');
  await expect(page.getByRole('columnheader')).toHaveText([/Quantity/, /RowKey/]);
  await expect(page).toHaveURL(/columns=Quantity%2CRowKey/);
  await page.getByLabel('Top').fill('7');
  await page.getByLabel('Top').press('Enter');
  await expect(page.getByText('7 entities', { exact: true })).toBeVisible();
  // A row of chosen columns opens with all of its properties.
  await page.getByRole('grid').press('ArrowDown');
  await page.getByRole('grid').press('Enter');
  await expect(page.getByRole('textbox', { name: 'Value of Name' })).toHaveValue(/img/);
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toBeHidden();
});

test('every type is inserted, shown, edited, cloned and deleted', async ({ page, server }) => {
  await createTable(server, 'Types');
  await openTable(page, 'Types', { dialog: 'insert' });
  const values: [string, string, string][] = [
    ['Text', 'String', '  two\nlines "quoted" <b>'],
    ['Whole', 'Int32', '-2147483648'],
    ['Large', 'Int64', '9223372036854775807'],
    ['Real', 'Double', '3'],
    ['Nothing', 'Double', 'NaN'],
    ['Yes', 'Boolean', 'true'],
    ['When', 'DateTime', '2026-11-17T08:30:00.1234567Z'],
    ['Id', 'Guid', 'C9DA6455-213D-42C9-9A79-3E9149A57833'],
    ['Bits', 'Binary', 'AAH/'],
    ['Empty', 'String', ''],
  ];
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('PartitionKey').fill('p/x');
  await dialog.getByLabel('RowKey').fill("it's");
  for (const [at, [name, type, value]] of values.entries()) {
    if (at > 0) await dialog.getByRole('button', { name: 'Add property' }).click();
    await dialog.getByRole('textbox', { name: 'Name of the new property' }).fill(name);
    await dialog.getByRole('combobox', { name: `Type of ${name}` }).selectOption(type);
    const field = dialog.getByLabel(`Value of ${name}`);
    if (type === 'Boolean') await field.selectOption(value);
    else await field.fill(value);
  }
  await dialog.getByLabel('Value of Whole').fill('2147483648');
  await dialog.getByRole('button', { name: 'Insert', exact: true }).click();
  await expect(dialog.getByText('A key cannot have the character /')).toBeVisible();
  await expect(dialog.getByText('Expected a whole number from -2147483648 to 2147483647.')).toBeVisible();
  await dialog.getByLabel('PartitionKey').fill('p');
  await dialog.getByLabel('Value of Whole').fill('-2147483648');
  await dialog.getByRole('button', { name: 'Insert', exact: true }).click();
  await expect(dialog).toBeHidden();
  expect(await entitiesOf(server, 'Types')).toEqual([
    {
      PartitionKey: 'p',
      RowKey: "it's",
      Text: '  two\nlines "quoted" <b>',
      Whole: -2147483648,
      'Large@odata.type': 'Edm.Int64',
      Large: '9223372036854775807',
      Real: 3,
      'Nothing@odata.type': 'Edm.Double',
      Nothing: 'NaN',
      Yes: true,
      'When@odata.type': 'Edm.DateTime',
      When: '2026-11-17T08:30:00.1234567Z',
      'Id@odata.type': 'Edm.Guid',
      Id: 'c9da6455-213d-42c9-9a79-3e9149a57833',
      'Bits@odata.type': 'Edm.Binary',
      Bits: 'AAH/',
      Empty: '',
    },
  ]);

  // Nothing to save until something changes; then a property's type changes and one is removed.
  await page.getByText("it's").click();
  await expect(dialog.getByLabel('PartitionKey')).toHaveAttribute('readonly');
  await expect(dialog.getByRole('button', { name: 'Save' })).toBeDisabled();
  await dialog.getByRole('combobox', { name: 'Type of Real' }).selectOption('Int32');
  await expect(dialog.getByText(/^Expected a whole number/)).toBeVisible();
  await dialog.getByLabel('Value of Real').fill('4');
  await dialog.getByRole('button', { name: 'Remove Nothing' }).click();
  await dialog.getByRole('radio', { name: /^Merge/ }).check();
  await expect(dialog.getByText('A merge cannot remove Nothing. Choose Replace.')).toBeVisible();
  await dialog.getByRole('radio', { name: /^Replace/ }).check();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(dialog).toBeHidden();
  const [saved] = await entitiesOf(server, 'Types');
  expect(saved).toMatchObject({ Real: 4, Large: '9223372036854775807', Bits: 'AAH/' });
  expect(saved).not.toHaveProperty('Nothing');

  await page.getByText("it's").click();
  await dialog.getByRole('button', { name: 'Clone' }).click();
  await expect(page.getByRole('dialog', { name: 'Clone entity' })).toBeVisible();
  await dialog.getByRole('button', { name: 'Insert', exact: true }).click();
  await expect(dialog.getByRole('alert')).toContainText('EntityAlreadyExists');
  await dialog.getByLabel('RowKey').fill('second');
  await dialog.getByRole('button', { name: 'Insert', exact: true }).click();
  await expect(page.getByText('2 entities', { exact: true })).toBeVisible();
  await page.getByText('second').click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog', { name: 'Delete entity?' }).getByRole('button', { name: 'Delete' }).click();
  await expect(page.getByText('1 entity', { exact: true })).toBeVisible();
  expect(await entitiesOf(server, 'Types')).toHaveLength(1);
});

test('a save that meets a change of somebody else shows both, and the user chooses', async ({ page, server }) => {
  await createTable(server, 'Conflicts');
  const key = { PartitionKey: 'p', RowKey: 'r' };
  await fillTable(server, 'Conflicts', 1, () => ({ ...key, Mine: 'old', Theirs: 'old', Both: 'old' }));
  await openTable(page, 'Conflicts', { dialog: 'edit', entity: 'p,r' });
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Value of Mine').fill('by me');
  await dialog.getByLabel('Value of Both').fill('by me');
  await mergeEntity(server, 'Conflicts', { ...key, Theirs: 'by them', Both: 'by them' });
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(dialog.getByText('Somebody changed this entity since you opened it.')).toBeVisible();
  await expect(dialog.getByRole('row', { name: /^Both both changed it/ })).toBeVisible();
  await expect(dialog.getByRole('radio', { name: /mine of Mine/ })).toBeChecked();
  await expect(dialog.getByRole('radio', { name: /theirs of Theirs/ })).toBeChecked();
  expect(await entitiesOf(server, 'Conflicts')).toEqual([{ ...key, Mine: 'old', Theirs: 'by them', Both: 'by them' }]);
  await dialog.getByRole('radio', { name: /theirs of Both/ }).check();
  await dialog.getByRole('button', { name: 'Save the chosen values' }).click();
  await expect(dialog).toBeHidden();
  expect(await entitiesOf(server, 'Conflicts')).toEqual([
    { ...key, Mine: 'by me', Theirs: 'by them', Both: 'by them' },
  ]);

  // Overwriting takes mine whole, but not over a third change.
  await openTable(page, 'Conflicts', { dialog: 'edit', entity: 'p,r' });
  await dialog.getByLabel('Value of Mine').fill('again');
  await mergeEntity(server, 'Conflicts', { ...key, Theirs: 'again' });
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(dialog.getByRole('radio', { name: /theirs of Theirs: again/ })).toBeVisible();
  await mergeEntity(server, 'Conflicts', { ...key, Theirs: 'once more' });
  await dialog.getByRole('button', { name: 'Overwrite with mine' }).click();
  await expect(dialog.getByText('once more')).toBeVisible();
  await dialog.getByRole('button', { name: 'Overwrite with mine' }).click();
  await expect(dialog).toBeHidden();
  expect(await entitiesOf(server, 'Conflicts')).toEqual([
    { ...key, Mine: 'again', Theirs: 'by them', Both: 'by them' },
  ]);

  // Deleted meanwhile.
  await openTable(page, 'Conflicts', { dialog: 'edit', entity: 'p,r' });
  await dialog.getByLabel('Value of Mine').fill('kept');
  await call(server, 'table', 'DELETE', "/Conflicts(PartitionKey='p',RowKey='r')", { headers: { 'if-match': '*' } });
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(dialog.getByText('Somebody deleted this entity since you opened it.')).toBeVisible();
  await dialog.getByRole('button', { name: 'Insert mine again' }).click();
  await expect(dialog).toBeHidden();
  expect(await entitiesOf(server, 'Conflicts')).toMatchObject([{ Mine: 'kept' }]);
});

test('ten thousand rows are imported, and rows that do not fit are named by their lines', async ({ page, server }) => {
  await createTable(server, 'Imported');
  const lines = Array.from(
    { length: 10_000 },
    (_, at) => `c${Math.floor(at / 1000)},${String(at).padStart(5, '0')},"name, ${at}",${at},${at % 2 ? '' : '0' + at}`,
  );
  lines[4999] = 'c4,too few';
  lines[7000] = 'c7/x,07000,slash,1,';
  const csv = ['PartitionKey,RowKey,name,n,zip', ...lines].join('\r\n');
  await openTable(page, 'Imported', { dialog: 'import' });
  const dialog = page.getByRole('dialog');
  const choose = () =>
    dialog
      .getByLabel('Choose a file')
      .setInputFiles({ name: 'people.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) });
  await choose();
  await expect(dialog.getByText(/9,999 rows, 3 properties/)).toBeVisible();
  await expect(dialog.getByLabel('Type of n', { exact: true })).toHaveValue('Int32');
  // Leading zeros are not a number.
  await expect(dialog.getByLabel('Type of zip')).toHaveValue('String');
  await dialog.getByLabel('Type of n', { exact: true }).selectOption('Int64');
  await dialog.getByRole('button', { name: 'Import 9,999 rows' }).click();
  await expect(dialog.getByText(/rows written in/)).toBeVisible({ timeout: 60_000 });
  await expect(dialog.getByText('9,998 of 9,999')).toBeVisible();
  await expect(dialog.getByRole('row', { name: /^5001 2 cells/ })).toBeVisible();
  await expect(
    dialog.getByRole('row', { name: /^7002 PartitionKey: A key cannot have the character \// }),
  ).toBeVisible();
  const stored = await entitiesOf(server, 'Imported');
  expect(stored).toHaveLength(9998);
  expect(stored[2]).toEqual({
    PartitionKey: 'c0',
    RowKey: '00002',
    name: 'name, 2',
    'n@odata.type': 'Edm.Int64',
    n: '2',
    zip: '02',
  });
});

test('an export has every value and type, and imports as it was', async ({ page, server }) => {
  const all: Entity[] = [
    { PartitionKey: 'a,"b"', RowKey: '1', s: 'line\r\ntwo, "q"', 'l@odata.type': 'Edm.Int64', l: '5', b: true },
    {
      PartitionKey: 'a,"b"',
      RowKey: '2',
      s: '',
      d: 1.5,
      'g@odata.type': 'Edm.Guid',
      g: 'c9da6455-213d-42c9-9a79-3e9149a57833',
    },
    {
      PartitionKey: 'a,"b"',
      RowKey: '3',
      'x@odata.type': 'Edm.Binary',
      x: 'AAH/',
      's@odata.type': 'Edm.DateTime',
      s: '2026-11-17T08:30:00.1234567Z',
    },
    { PartitionKey: 'a,"b"', RowKey: '4', 'd@odata.type': 'Edm.Double', d: '-Infinity', i: 7 },
  ];
  await fillTable(server, 'Exported', all.length, (index) => all[index] as Entity);
  await createTable(server, 'Again');
  const before = await entitiesOf(server, 'Exported');
  const dialog = page.getByRole('dialog');
  for (const format of ['CSV', 'JSON lines']) {
    await openTable(page, 'Exported', { dialog: 'export' });
    await dialog.getByRole('radio', { name: new RegExp(`^${format}`) }).check();
    const download = page.waitForEvent('download');
    await dialog.getByRole('button', { name: 'Download' }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe(format === 'CSV' ? 'Exported.csv' : 'Exported.jsonl');
    const content = readFileSync(await file.path());
    if (format === 'CSV') {
      expect(content.toString().split('\r\n')[0]).toMatch(/^PartitionKey,RowKey,Timestamp,(.*,)?l,l@type,/);
    }

    await openTable(page, 'Again', { dialog: 'import' });
    await dialog
      .getByLabel('Choose a file')
      .setInputFiles({ name: file.suggestedFilename(), mimeType: '', buffer: content });
    await dialog.getByLabel('Rows that exist').selectOption('replace');
    await dialog.getByRole('button', { name: 'Import 4 rows' }).click();
    await expect(dialog.getByText('4 of 4')).toBeVisible();
    expect(await entitiesOf(server, 'Again')).toEqual(before);
  }
});

test('what a filter finds is deleted after a preview, and nothing else', async ({ page, server }) => {
  await fillTable(server, 'Deleted', 2000, order);
  await openTable(page, 'Deleted', { filter: 'Quantity lt 10', dialog: 'delete' });
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByText('400', { exact: true }).first()).toBeVisible();
  await expect(dialog.getByRole('cell', { name: '000000' })).toBeVisible();
  const action = dialog.getByRole('button', { name: 'Delete 400 entities' });
  await expect(action).toBeDisabled();
  await dialog.getByRole('textbox').fill('40');
  await expect(action).toBeDisabled();
  await dialog.getByRole('textbox').fill('400');
  await action.click();
  await expect(dialog.getByText('400 of 400')).toBeVisible();
  await expect(dialog.getByText('deleted.', { exact: false })).toBeVisible();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await expect(page.getByText('No entity matches the filter')).toBeVisible();
  expect(await entitiesOf(server, 'Deleted')).toHaveLength(1600);
});

test('a signature of the form works, and its limits hold', async ({ page, server }) => {
  await fillTable(server, 'Signed', 300, order);
  await openTable(page, 'Signed', { dialog: 'sas' });
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('First PartitionKey').fill('c001');
  await dialog.getByLabel('Last PartitionKey').fill('c001');
  await dialog.getByLabel('Last RowKey').fill('000149');
  await dialog.getByRole('button', { name: 'Make signature' }).click();
  const signature = await dialog.locator('code').last().innerText();
  await expect(dialog.getByText(/^http:\/\/127\.0\.0\.1:\d+\/devstoreaccount1\/Signed\?/)).toBeVisible();
  const headers = { accept: 'application/json;odata=nometadata', 'content-type': 'application/json' };
  const read = await call(server, 'table', 'GET', '/Signed()', { headers, sas: signature });
  const { value } = (await read.json()) as { value: Entity[] };
  expect(value.map(({ RowKey }) => RowKey)).toEqual(
    Array.from({ length: 50 }, (_, at) => String(100 + at).padStart(6, '0')),
  );
  const body = JSON.stringify({ PartitionKey: 'c001', RowKey: '000120x' });
  const write = await call(server, 'table', 'POST', '/Signed', { headers, body, sas: signature, allowed: [403] });
  expect(write.status).toBe(403);

  // A stored policy, a signature that names it, and its end.
  await openTable(page, 'Signed', { dialog: 'policies' });
  await dialog.getByRole('button', { name: 'Add policy' }).click();
  await dialog.getByLabel('Name').fill('readers');
  await dialog.getByLabel('Expires').fill('2099-01-01T00:00:00');
  await dialog.getByRole('button', { name: 'Save policies' }).click();
  await expect(dialog).toBeHidden();
  await openTable(page, 'Signed', { dialog: 'sas' });
  await dialog.getByLabel('Stored access policy').selectOption('readers');
  await expect(dialog.getByLabel('Expires')).toBeHidden();
  await dialog.getByRole('button', { name: 'Make signature' }).click();
  const named = await dialog.locator('code').last().innerText();
  expect(named).not.toContain('sp=');
  expect((await call(server, 'table', 'GET', '/Signed()', { headers, sas: named })).status).toBe(200);
  await openTable(page, 'Signed', { dialog: 'policies' });
  await dialog.getByRole('button', { name: 'Remove policy readers' }).click();
  await dialog.getByRole('button', { name: 'Save policies' }).click();
  await expect(dialog).toBeHidden();
  const after = await call(server, 'table', 'GET', '/Signed()', { headers, sas: named, allowed: [403] });
  expect(after.status).toBe(403);
});

test('the query is shown as code, without a key', async ({ page, server }) => {
  await createTable(server, 'Coded');
  await openTable(page, 'Coded', { filter: "Name eq 'it''s'", columns: 'Name', top: '5', dialog: 'code' });
  const dialog = page.getByRole('dialog');
  for (const language of ['Python', 'JavaScript', '.NET', 'Java', 'Go', 'larimar', 'curl']) {
    await dialog.getByRole('radio', { name: language, exact: true }).check();
    const code = dialog.getByLabel(`Code in ${language}`);
    await expect(code).toContainText('Coded');
    await expect(code).toContainText('Name eq');
    await expect(code).not.toContainText(DEVELOPMENT_KEY);
  }
});

test('many rows are scrolled with few elements and little memory', async ({ page, server }) => {
  test.setTimeout(60_000 + ROWS);
  await fillTable(server, 'Scrolled', ROWS, (index) => ({
    PartitionKey: `p${String(Math.floor(index / 10_000)).padStart(4, '0')}`,
    RowKey: String(index).padStart(8, '0'),
    n: index,
  }));
  await page.addInitScript(() => {
    const tasks: number[] = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({
      type: 'longtask',
      buffered: false,
    });
    Object.assign(window, { longTasks: tasks });
  });
  await openTable(page, 'Scrolled');
  const grid = page.getByRole('grid', { name: 'Entities of Scrolled' });
  await expect(page.getByText('00000000')).toBeVisible();
  const elements = () => page.evaluate(() => document.querySelectorAll('*').length);
  const atFirst = await elements();
  await page.evaluate(() => ((window as unknown as { longTasks: number[] }).longTasks.length = 0));

  // Pages are fetched on demand while the wheel turns.
  await grid.hover();
  for (let turn = 0; turn < 60; turn++) await page.mouse.wheel(0, 600);
  await expect(page.getByText(/^1,[05]00 entities so far$/)).toBeVisible();
  await page.getByRole('button', { name: 'Count all' }).click();
  const total = ROWS.toLocaleString('en-US');
  await expect(page.getByText(`${total} entities`, { exact: true })).toBeVisible({ timeout: 30_000 + ROWS });

  await grid.press('Control+End');
  await expect(page.getByText(String(ROWS - 1).padStart(8, '0'))).toBeVisible();
  let most = await elements();
  // Anywhere: pages that were dropped are fetched again.
  for (const part of [0.5, 0.1, 0.9, 0.3]) {
    await grid.evaluate((element, at) => (element.scrollTop = at * element.scrollHeight), part);
    await expect(async () => {
      const first = await page.getByRole('row').nth(12).innerText();
      const index = Number(/(\d{8})/.exec(first)?.[1] ?? -1);
      expect(Math.abs(index / ROWS - part)).toBeLessThan(0.02);
    }).toPass({ timeout: 20_000 });
    most = Math.max(most, await elements());
  }
  await grid.press('Control+Home');
  await expect(page.getByText('00000000')).toBeVisible();
  expect(most).toBeLessThan(atFirst + 600);
  const long = await page.evaluate(() => (window as unknown as { longTasks: number[] }).longTasks);
  const report = `${total} rows: at most ${most} elements, ${long.length} tasks over 50 ms (longest ${Math.max(0, ...long)} ms)`;
  test.info().annotations.push({ type: 'figures', description: report });
  process.stdout.write(`${report}\n`);
  if (ROWS >= 1_000_000) expect(long.length).toBeLessThan(10);
});

test('a user signs in with each credential, and what it does not allow is disabled with a reason', async ({
  page,
  server,
}) => {
  await fillTable(server, 'Guarded', 100, order);
  const signOut = async () => {
    await page.getByRole('button', { name: /devstoreaccount1/ }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
  };
  const signIn = async (secret: string, account = '') => {
    await page.getByLabel(/^Account key/).fill(secret);
    await page.getByLabel('Account name').fill(account);
    await page.getByRole('button', { name: 'Sign in' }).click();
  };
  await page.goto('/#/tables/Guarded');
  await expect(page.getByText('c000').first()).toBeVisible();
  await signOut();
  await signIn(DEVELOPMENT_KEY.replace('Eby8', 'AAAA'), 'devstoreaccount1');
  await expect(page.getByRole('alert')).toContainText('The server refused these credentials');
  await signIn('nonsense;x=1');
  await expect(page.getByRole('alert')).toBeVisible();
  for (const [secret, account] of [
    [DEVELOPMENT_KEY, 'devstoreaccount1'],
    [connectionString(), ''],
    [accountSas(), 'devstoreaccount1'],
  ] as const) {
    await signIn(secret, account);
    await expect(page.getByText('c000').first()).toBeVisible();
    // Nothing of it is in the address or in storage.
    // eslint-disable-next-line no-restricted-globals -- to see that nothing is there
    const kept = await page.evaluate(() => location.href + JSON.stringify({ ...localStorage, ...sessionStorage }));
    expect(kept).not.toMatch(/sig=|Eby8|AccountKey/);
    await signOut();
  }
  await signIn(accountSas({ permissions: 'rl' }), 'devstoreaccount1');
  await expect(page.getByText('c000').first()).toBeVisible();
  const insert = page.getByRole('button', { name: 'Insert', exact: true });
  await expect(insert).toBeDisabled();
  await expect(insert).toHaveAttribute('title', /lacks a permission/);
  await page.getByRole('button', { name: 'More' }).click();
  await expect(page.getByRole('menuitem', { name: 'Delete table…' })).toBeDisabled();
  await expect(page.getByRole('menuitem', { name: /SAS/ })).toHaveAttribute('title', /needs the account key/);
  await page.keyboard.press('Escape');
  await signOut();
  // A signature for one table, as its address.
  await signIn(`${server.endpoints.table}/Guarded?${tableSas('Guarded', 'r')}`);
  await expect(page.getByText('c000').first()).toBeVisible();
  await page.goto('/#/tables');
  await expect(page.getByRole('link', { name: 'Guarded' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Create table' })).toBeDisabled();
});

for (const theme of ['light', 'dark'] as const) {
  test(`no serious findings of accessibility, ${theme}`, async ({ page, server }) => {
    await page.emulateMedia({ colorScheme: theme });
    const table = `Accessible${theme}`;
    await fillTable(server, table, 100, order);
    await page.goto('/#/tables');
    await expect(page.getByRole('link', { name: table })).toBeVisible();
    expect(await findings(page)).toEqual([]);
    await openTable(page, table, { filter: 'Quantity lt 40' });
    await expect(page.getByText('80 entities')).toBeVisible();
    await expect(page.getByText('Table scan')).toBeVisible();
    expect(await findings(page)).toEqual([]);
    for (const query of [
      'dialog=edit&entity=c000%2C000000',
      'dialog=insert',
      'dialog=columns',
      'dialog=delete',
      'dialog=import',
      'dialog=export',
      'dialog=code',
      'dialog=sas',
      'dialog=policies',
    ]) {
      await page.goto(`/#/tables/${table}?filter=Quantity+lt+40&${query}`);
      await expect(page.getByRole('dialog')).toBeVisible();
      await expect(page.getByRole('dialog').getByText('Loading…')).toBeHidden();
      expect(await findings(page), query).toEqual([]);
    }
  });
}
