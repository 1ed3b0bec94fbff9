// Tests of the heat map in a browser.
import { seriousFindings } from './themes';
import { expect, test } from './fixture';
import { accountSas } from './seed';
import { makeHotPartition, query, signInWith } from './traffic';

test('a hot partition is on the heat map, and a click opens it in Tables', async ({ page, server }) => {
  await makeHotPartition(server, 'Readings', "it's hot");
  await page.goto('/#/heat/Readings');
  const map = page.getByRole('application', { name: /Heat map of Readings/ });
  await expect(map).toBeVisible();
  const partitions = page.getByRole('region', { name: 'Busiest partitions' });
  await expect(partitions.getByRole('row').nth(1)).toContainText("it's hot");
  await expect(partitions.getByRole('row').nth(1)).toContainText('300');

  // The warmest pixels are those of the hot partition: the map shows them.
  const box = await map.boundingBox();
  if (!box) throw new Error('the map has no size');
  const hottest = await map.locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
    const context = canvas.getContext('2d');
    if (!context) throw new Error('no context');
    const { width, height } = canvas;
    const { data } = context.getImageData(0, 0, width, height);
    // The light theme is darker where it is hotter; labels are on the left, times at the bottom.
    let [best, x, y] = [Infinity, 0, 0];
    for (let at = 0; at < data.length; at += 4) {
      const [column, row] = [(at / 4) % width, Math.floor(at / 4 / width)];
      if (column < width * 0.3 || row > height - 30 * devicePixelRatio) continue;
      const light = (data[at] ?? 0) + (data[at + 1] ?? 0) + (data[at + 2] ?? 0);
      if (light < best) [best, x, y] = [light, column, row];
    }
    return { x: x / devicePixelRatio, y: y / devicePixelRatio, light: best };
  });
  expect(hottest.light).toBeLessThan(200);
  expect(await seriousFindings(page)).toEqual([]);
  await map.hover({ position: { x: hottest.x + 2, y: hottest.y + 2 } });
  await expect(map.getByText(/Click opens partition it's hot/)).toBeVisible();
  await map.click({ position: { x: hottest.x + 2, y: hottest.y + 2 } });
  await expect(page).toHaveURL(/#\/tables\/Readings\?filter=/);
  expect(decodeURIComponent(new URL(page.url()).hash).replaceAll('+', ' ')).toContain("PartitionKey eq 'it''s hot'");
  await page.goBack();
  await expect(map).toBeVisible();
});

test('the map is used with the keyboard, and spans and kinds are links', async ({ page, server }) => {
  await makeHotPartition(server, 'Keys', 'hot');
  await page.goto('/#/heat/Keys?span=day&show=writes');
  await expect(page.getByRole('radio', { name: 'Day' })).toBeChecked();
  await expect(page.getByRole('radio', { name: 'Writes' })).toBeChecked();
  await page.getByText('Hour', { exact: true }).click();
  await page.getByText('Both', { exact: true }).click();
  await expect(page).toHaveURL(/#\/heat\/Keys$/);
  const map = page.getByRole('application', { name: /Heat map of Keys/ });
  await map.focus();
  await page.keyboard.press('ArrowDown');
  await expect(map.getByText(/reads, \d+ writes/).first()).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/#\/tables\/Keys/);
});

test('queries have their plan and a link to the filter', async ({ page, server }) => {
  await makeHotPartition(server, 'Shapes', 'hot');
  await query(server, 'Shapes', "Name eq 'x'");
  await page.goto('/#/heat/Shapes');
  const queries = page.getByRole('region', { name: 'Queries' });
  await expect(queries.getByRole('row', { name: /Name eq/ })).toContainText('table-scan');
  await queries.getByRole('link', { name: 'Name eq ?' }).click();
  await expect(page).toHaveURL(/#\/tables\/Shapes\?filter=Name/);
});

test('a table without requests, and a signature without permission, are explained', async ({ page }) => {
  await page.goto('/#/heat/Nothing');
  await expect(page.getByText('No requests to Nothing in the last hour')).toBeVisible();
  await signInWith(page, accountSas({ permissions: 'r' }));
  await expect(page.getByText('Heat needs a credential for the whole account')).toBeVisible();
  await expect(page.getByText(/lacks a permission/)).toBeVisible();
});
