/**
 * Figures of the console, printed and not judged, since other work on a machine changes them. Only with a variable:
 *
 *     LARIMAR_FIGURES=1 npx playwright test tests/figures.spec.ts
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect, test } from './fixture';
import { atOnce, call, makeContainer, putBlob } from './seed';

test.skip(!process.env['LARIMAR_FIGURES'], 'LARIMAR_FIGURES is not set');

/** Where the built page is. */
const PAGE = resolve(process.env['LARIMAR_TEST_PAGE'] ?? '../crates/server/console');
const BLOBS = Number(process.env['LARIMAR_FIGURES_BLOBS'] ?? 10_000);

test('size of the page', () => {
  const files = readdirSync(PAGE, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(html|js|css|svg)$/.test(name),
  );
  const sum = { plain: 0, gzip: 0, brotli: 0 };
  for (const name of files) {
    const path = join(PAGE, name);
    if (!statSync(path).isFile()) continue;
    const content = readFileSync(path);
    sum.plain += content.length;
    sum.gzip += gzipSync(content, { level: 9 }).length;
    sum.brotli += brotliCompressSync(content).length;
  }
  print(`page: ${files.length} files, ${kb(sum.plain)} plain, ${kb(sum.gzip)} gzip, ${kb(sum.brotli)} brotli`);
  expect(sum.gzip).toBeLessThan(600_000);
});

test('time to first paint', async ({ page }) => {
  const times: number[] = [];
  for (let run = 0; run < 5; run++) {
    await page.goto('about:blank');
    await page.goto('/#/queues');
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    times.push(
      await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN),
    );
  }
  print(`first contentful paint: ${times.map((time) => `${Math.round(time)} ms`).join(', ')}`);
});

test('scrolling a directory of many blobs', async ({ page, server }) => {
  test.setTimeout(900_000);
  await makeContainer(server, 'figures');
  const names = Array.from({ length: BLOBS }, (_, at) => `d/${String(at).padStart(6, '0')}.txt`);
  await atOnce(names, 16, (name) => putBlob(server, 'figures', name, 'x'));
  await page.goto('/#/blobs/figures?prefix=d%2F');
  const grid = page.getByRole('grid');
  await expect(grid).toBeVisible();
  await page.evaluate(() => {
    const tasks: number[] = [];
    Object.assign(window, { tasks });
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({
      type: 'longtask',
    });
  });
  await grid.hover();
  let nodes = 0;
  for (let before = -1, rows = 0; rows < BLOBS && rows !== before;) {
    before = rows;
    for (let step = 0; step < 40; step++) await page.mouse.wheel(0, 1500);
    await expect.poll(async () => Number(await grid.getAttribute('aria-rowcount'))).toBeGreaterThan(before);
    rows = Number(await grid.getAttribute('aria-rowcount')) - 1;
    nodes = Math.max(nodes, await page.locator('*').count());
  }
  const tasks = await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks);
  const memory = await page.evaluate(
    () => (performance as unknown as { memory?: { usedJSHeapSize: number } }).memory?.usedJSHeapSize ?? 0,
  );
  const longest = Math.round(Math.max(0, ...tasks));
  print(
    `${BLOBS} blobs scrolled: at most ${nodes} nodes, ${tasks.length} tasks over 50 ms (longest ${longest} ms), heap ${kb(memory)}`,
  );
  expect(nodes).toBeLessThan(1500);
  await call(server, 'blob', 'DELETE', '/figures', { query: 'restype=container' });
});

function kb(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
