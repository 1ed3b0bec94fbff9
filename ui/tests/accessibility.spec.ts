/** Every page in both themes, wide and narrow, with axe: no serious or critical finding, and no sideways scrolling. */
import { findings } from './axe';
import { expect, test } from './fixture';
import { makeContainer, makeQueue, makeTable, putBlob } from './seed';

const PLACES = [
  '/#/overview',
  '/#/tables',
  '/#/tables/Accessible',
  '/#/heat',
  '/#/advisor',
  '/#/designer',
  '/#/queues',
  '/#/queues?create=1',
  '/#/queues/accessible',
  '/#/queues/accessible?dialog=put',
  '/#/queues/accessible?dialog=move',
  '/#/queues/accessible?dialog=sas',
  '/#/queues/accessible?dialog=policies',
  '/#/blobs',
  '/#/blobs?create=1',
  '/#/blobs/accessible',
  '/#/blobs/accessible?blob=a.txt',
  '/#/blobs/accessible?dialog=upload',
  '/#/blobs/accessible?dialog=policies',
  '/#/properties?service=blob',
  '/#/requests',
  '/#/nowhere',
];

test.beforeAll(async ({ server }) => {
  await makeTable(server, 'Accessible', [{ PartitionKey: 'p', RowKey: 'r', Text: 'value', Number: 7, Flag: true }]);
  await makeQueue(server, 'accessible', ['{"a": 1}', 'plain']);
  await makeContainer(server, 'accessible');
  await putBlob(server, 'accessible', 'a.txt', 'text');
  await putBlob(server, 'accessible', 'directory/b.txt', 'text');
});

for (const [width, height] of [
  [1280, 800],
  [390, 844],
] as const) {
  test(`every page is accessible at ${width} pixels`, async ({ page }) => {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ reducedMotion: 'reduce' });
    const all: string[] = [];
    // Dialogs look alike in both widths.
    const places = width > 1000 ? PLACES : PLACES.filter((address) => !/dialog|create/.test(address));
    for (const address of places) {
      await page.goto(address);
      await expect(page.getByRole('main')).not.toBeEmpty();
      await expect(page.getByText('Loading…')).toHaveCount(0);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        all.push(...(await findings(page)).map((finding) => `${address} ${colorScheme}: ${finding}`));
      }
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (overflow > 0) all.push(`${address}: ${overflow} pixels too wide`);
    }
    expect(all).toEqual([]);
  });
}

test('the form to sign in is accessible', async ({ page }) => {
  await page.goto('/');
  await page.getByRole('button', { name: /devstoreaccount1/ }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await findings(page)).toEqual([]);
  }
});

test('a queue is found, opened and filled with the keyboard alone', async ({ page }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.keyboard.press('g');
  await page.keyboard.press('q');
  await expect(page.getByRole('heading', { level: 1, name: 'Queues' })).toBeVisible();
  await expect(page.getByRole('grid')).toBeVisible();
  await page.keyboard.press('/');
  await page.keyboard.type('accessible');
  await page.getByRole('grid').focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 1, name: 'accessible' })).toBeVisible();
  await page.keyboard.press('n');
  const dialog = page.getByRole('dialog');
  await expect(dialog).toBeVisible();
  // The focus stays in the dialog, however often Tab is pressed.
  for (let presses = 0; presses < 25; presses++) {
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.closest('dialog, main, nav')?.tagName ?? 'DIALOG')).toBe(
      'DIALOG',
    );
  }
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  await page.getByRole('grid').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('region', { name: 'Message', exact: true })).toContainText('plain');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('region', { name: 'Message', exact: true })).toHaveCount(0);
});
