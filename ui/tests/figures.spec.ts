/**
 * Figures of the console, printed and not judged, since other work on a machine changes them. Only with a variable:
 *
 *     LARIMAR_FIGURES=1 npx playwright test tests/figures.spec.ts
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect, test } from './fixture';
import { call, makeContainer } from './seed';

test.skip(!process.env['LARIMAR_FIGURES'], 'LARIMAR_FIGURES is not set');

/** Where the built page is. */
const PAGE = resolve(process.env['LARIMAR_TEST_PAGE'] ?? '../crates/server/console');
const BLOBS = Number(process.env['LARIMAR_FIGURES_BLOBS'] ?? 100_000);

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
  // Lists as the service writes them; making the blobs would take longer than everything else.
  await page.route(/\/figures\?.*comp=list/, (route) => {
    const { searchParams } = new URL(route.request().url());
    const [first, most] = [Number(searchParams.get('marker') ?? 0), Number(searchParams.get('maxresults'))];
    return route.fulfill({ contentType: 'application/xml', body: blobList(first, Math.min(first + most, BLOBS)) });
  });
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
  let rows = 0;
  for (let turns = 0; rows < BLOBS && turns < BLOBS / 50; turns++) {
    for (let step = 0; step < 10; step++) await page.mouse.wheel(0, 1600);
    rows = Number(await grid.getAttribute('aria-rowcount')) - 1;
    nodes = Math.max(nodes, await page.locator('*').count());
  }
  expect(rows).toBeGreaterThanOrEqual(BLOBS);
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

function blobList(first: number, end: number): string {
  const blobs = Array.from({ length: end - first }, (_, at) => {
    const name = `d/${String(first + at).padStart(6, '0')}.txt`;
    return `<Blob><Name>${name}</Name><Properties><Creation-Time>Tue, 17 Nov 2026 08:00:00 GMT</Creation-Time><Last-Modified>Tue, 17 Nov 2026 08:00:00 GMT</Last-Modified><Etag>0x8DF446D966D268D</Etag><Content-Length>${at}</Content-Length><Content-Type>text/plain</Content-Type><Content-Encoding/><Content-Language/><Content-MD5>Lz/KpzNxJFIEKCTtXzzdOw==</Content-MD5><Cache-Control/><Content-Disposition/><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState></Properties></Blob>`;
  });
  const next = end < BLOBS ? end : '';
  return `<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>${blobs.join('')}</Blobs><NextMarker>${next}</NextMarker></EnumerationResults>`;
}

function kb(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
