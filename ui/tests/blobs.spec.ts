/** Blobs: containers, uploads, downloads, previews, properties, and directories of many blobs. */
import { createHash, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from './fixture';
import { atOnce, call, makeContainer, putBlob } from './seed';

const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);

test('a container is made, files are uploaded to it, downloaded and deleted', async ({ page, server }, info) => {
  await page.goto('/#/blobs');
  await page.getByRole('button', { name: 'New container' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: /^Name/ }).fill('pictures');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await expect(page.getByText('The container is empty')).toBeVisible();

  // Three blocks and a file of one request.
  const large = randomBytes(17 * 1024 * 1024);
  const [largeFile, noteFile] = [info.outputPath('large.bin'), info.outputPath('note.txt')];
  await writeFile(largeFile, large);
  await writeFile(noteFile, '<b>hello</b>');
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await dialog.getByLabel('Files').setInputFiles([largeFile, noteFile]);
  await dialog.getByLabel('Below').fill('2026/a');
  await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
  await page.getByRole('link', { name: '2026/' }).click();
  await page.getByRole('link', { name: 'a/', exact: true }).click();
  await expect(page.getByRole('row', { name: /note\.txt/ })).toBeVisible();
  const stored = await call(server, 'blob', 'GET', '/pictures/2026/a/large.bin');
  expect(hash(Buffer.from(await stored.arrayBuffer()))).toBe(hash(large));

  await page.getByRole('row', { name: /large\.bin/ }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  expect((await download).suggestedFilename()).toBe('large.bin');
  expect(hash(await readFile(await (await download).path()))).toBe(hash(large));
  await expect(page).toHaveURL(/prefix=2026%2Fa%2F/);

  // One that is there is not replaced unless the user says so.
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await dialog
    .getByLabel('Files')
    .setInputFiles([{ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('new') }]);
  await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
  const list = page.getByRole('region', { name: 'Uploads' });
  await expect(list.getByText('is there already')).toBeVisible();
  expect(await (await call(server, 'blob', 'GET', '/pictures/2026/a/note.txt')).text()).toBe('<b>hello</b>');
  await list.getByRole('button', { name: 'Replace it' }).click();
  await expect.poll(async () => (await call(server, 'blob', 'GET', '/pictures/2026/a/note.txt')).text()).toBe('new');
  await list.getByRole('button', { name: 'Close the list of uploads' }).click();

  // A directory is deleted with all that is below it.
  await page.getByRole('navigation', { name: 'Where you are' }).getByRole('link', { name: 'pictures' }).click();
  await page.getByLabel('Choose 2026/').check();
  await page.getByRole('button', { name: 'Delete 1…' }).click();
  await dialog.getByRole('textbox').fill('pictures');
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(page.getByText('Deleted 2 blobs.')).toBeVisible();
  await expect(page.getByText('The container is empty')).toBeVisible();
});

test('an upload is cancelled', async ({ page, server }, info) => {
  await makeContainer(server, 'slow');
  // The first block never ends.
  await page.route(/comp=block&/, () => undefined);
  await page.goto('/#/blobs/slow?dialog=upload');
  const dialog = page.getByRole('dialog');
  const file = info.outputPath('x.bin');
  await writeFile(file, Buffer.alloc(9 * 1024 * 1024));
  await dialog.getByLabel('Files').setInputFiles(file);
  await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
  const list = page.getByRole('region', { name: 'Uploads' });
  await list.getByRole('button', { name: 'Cancel', exact: true }).click();
  await expect(list.getByText('cancelled')).toBeVisible();
  await expect(page.getByText('The container is empty')).toBeVisible();
});

test('a blob has properties, metadata, tags, snapshots and a tier', async ({ page, server }) => {
  await makeContainer(server, 'detail');
  await putBlob(server, 'detail', 'report.txt', 'first', 'text/plain', {
    'x-ms-blob-content-disposition': 'inline; filename=r.txt',
    'x-ms-blob-cache-control': 'max-age=7',
    'x-ms-meta-team': 'blue',
  });
  await page.goto('/#/blobs/detail?blob=report.txt');
  const panel = page.getByRole('region', { name: 'report.txt' });
  await expect(panel.getByRole('region', { name: 'Preview' })).toHaveText('first');
  await expect(panel.getByText('inline; filename=r.txt')).toBeVisible();
  await expect(panel.getByText('max-age=7')).toBeVisible();
  await expect(panel.getByText('blue')).toBeVisible();

  const dialog = page.getByRole('dialog');
  await panel.getByRole('button', { name: 'Edit the metadata' }).click();
  await dialog.getByLabel('Value 1').fill('red');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(panel.getByText('red')).toBeVisible();
  await panel.getByRole('button', { name: 'Edit the tags' }).click();
  await dialog.getByRole('button', { name: 'Add' }).click();
  await dialog.getByLabel('Name 1').fill('state');
  await dialog.getByLabel('Value 1').fill('draft');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(panel.getByText('draft')).toBeVisible();

  await panel.getByText('More').click();
  await panel.getByRole('button', { name: 'Make a snapshot' }).click();
  await expect(panel.getByRole('button', { name: /Delete the snapshot/ })).toBeVisible();
  await putBlob(server, 'detail', 'report.txt', 'second');
  await panel.getByRole('button', { name: /^\d{4}-/ }).click();
  await expect(panel.getByText('As it was at')).toBeVisible();
  await expect(panel.getByRole('region', { name: 'Preview' })).toHaveText('first');
  await panel.getByRole('button', { name: 'Show the blob as it is' }).click();
  await expect(panel.getByRole('region', { name: 'Preview' })).toHaveText('second');

  await panel.getByText('More').click();
  await panel.getByRole('button', { name: 'Move to tier Cool' }).click();
  await expect(panel.getByText('Cool', { exact: true })).toBeVisible();
  await panel.getByText('More').click();
  await panel.getByRole('button', { name: 'Type and headers' }).click();
  await dialog.getByLabel('Content-Type').fill('text/markdown');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(panel.getByText('text/markdown')).toBeVisible();

  await page.keyboard.press('Escape');
  await expect(panel).toHaveCount(0);
  await expect(page).not.toHaveURL(/blob=/);
});

test('text, pictures and other bytes have previews', async ({ page, server }) => {
  await makeContainer(server, 'previews');
  await putBlob(server, 'previews', 'long.txt', 'x'.repeat(100_000));
  await putBlob(server, 'previews', 'pixel.dat', PIXEL, 'application/octet-stream');
  await putBlob(server, 'previews', 'bytes.bin', new Uint8Array([0, 1, 2, 255]), 'application/octet-stream');
  await putBlob(server, 'previews', 'empty', '');
  await page.goto('/#/blobs/previews?blob=long.txt');
  await expect(page.getByText('The first 64 KiB of 97.7 KiB.')).toBeVisible();
  await page.getByRole('row', { name: /pixel\.dat/ }).click();
  const picture = page.getByRole('img', { name: 'Preview of pixel.dat' });
  await expect(picture).toBeVisible();
  expect(await picture.getAttribute('src')).toMatch(/^blob:/);
  await page.getByRole('row', { name: /bytes\.bin/ }).click();
  await expect(page.getByRole('region', { name: 'Preview' })).toContainText('00 01 02 ff');
  await page.getByRole('row', { name: /empty/ }).click();
  await expect(page.getByText('The blob is empty.')).toBeVisible();
});

test('a directory of many blobs is read as it is scrolled, and links keep what is open', async ({ page, server }) => {
  await makeContainer(server, 'many');
  const names = Array.from({ length: 300 }, (_, at) => `deep/er/${String(at).padStart(5, '0')}`);
  await atOnce([...names, 'top.txt'], 16, (name) => putBlob(server, 'many', name, 'x'));
  await page.goto('/#/blobs/many');
  await page.getByRole('button', { name: 'Open deep/', exact: true }).click();
  await page.getByRole('button', { name: 'Open deep/er/' }).click();
  const grid = page.getByRole('grid');
  await expect(grid).toHaveAttribute('aria-rowcount', String(1 + 3 + 250 + 1));
  await page.reload();
  await expect(grid).toHaveAttribute('aria-rowcount', String(1 + 3 + 250 + 1));
  await grid.focus();
  await page.keyboard.press('Control+End');
  await expect(grid).toHaveAttribute('aria-rowcount', String(1 + 3 + 300));
  expect(await page.locator('*').count()).toBeLessThan(1500);
  await page.getByRole('searchbox').fill('deep/er/0029');
  await expect(grid).toHaveAttribute('aria-rowcount', '11');
  await grid.focus();
  await page.keyboard.press('Control+Home');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('region', { name: 'deep/er/00290' })).toBeVisible();
  await page.goBack();
  await expect(page.getByRole('region', { name: 'deep/er/00290' })).toHaveCount(0);
});

test('a signature of a blob works outside, and public access is set', async ({ page, server }) => {
  await makeContainer(server, 'given');
  await putBlob(server, 'given', 'a b/ü&?.txt', 'for you');
  await page.goto(`/#/blobs/given?blob=${encodeURIComponent('a b/ü&?.txt')}`);
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Signature' }).click();
  await dialog.getByRole('button', { name: 'Make signature' }).click();
  const sas = await dialog.getByLabel('Signature', { exact: true }).inputValue();
  const path = '/given/a%20b/%C3%BC%26%3F.txt';
  expect(await (await call(server, 'blob', 'GET', path, { sas })).text()).toBe('for you');
  expect((await call(server, 'blob', 'DELETE', path, { sas, allowed: [403] })).status).toBe(403);
  expect(await dialog.getByLabel('Address with it').inputValue()).toContain(`/devstoreaccount1${path}?`);
  await dialog.getByRole('button', { name: 'Close' }).last().click();

  expect((await fetch(`${server.endpoints.blob}${path}`)).status).toBe(404);
  await page.getByText('More').first().click();
  await page.getByRole('button', { name: 'Public access and policies' }).click();
  await dialog.getByLabel('Public access').selectOption('blob');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('public', { exact: true })).toBeVisible();
  expect(await (await fetch(`${server.endpoints.blob}${path}`)).text()).toBe('for you');
});

test('an error in the middle of a directory can be tried again', async ({ page, server }) => {
  await makeContainer(server, 'broken');
  await putBlob(server, 'broken', 'd/file.txt', 'x');
  await page.goto('/#/blobs/broken');
  let fails = true;
  await page.route(/prefix=d/, (route) => (fails ? route.fulfill({ status: 503, body: 'busy' }) : route.fallback()));
  await page.getByRole('button', { name: 'Open d/' }).click();
  await expect(page.getByRole('button', { name: /Try again/ })).toBeVisible();
  fails = false;
  await page.getByRole('button', { name: /Try again/ }).click();
  await expect(page.getByRole('row', { name: /file\.txt/ })).toBeVisible();
});

function hash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
