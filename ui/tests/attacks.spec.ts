/** What others may try: those who can write data, other web pages, and who puts markup where names and values are. */
import type { Page } from '@playwright/test';
import { createServer, type Server as WebServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHmac } from 'node:crypto';
import { expect, test } from './fixture';
import { accountSas, call, makeContainer, makeQueue, makeTable, putBlob } from './seed';
import { DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY } from './server';

const MARKUP = '<img src=x onerror="window.attacked=1"><script>window.attacked=1</script>';
const PAGE = `<!doctype html><title>evil</title><script>
  document.title = 'ran';
  try { opener && (opener.attacked = 1); parent.attacked = 1; } catch (e) {}
  fetch('/console.json', { headers: { 'x-larimar-console': '1' } }).then((r) => r.ok && (document.title = 'reached'));
</script>`;
const DANGEROUS: readonly (readonly [string, string, string])[] = [
  ['page.html', 'text/html', PAGE],
  [
    'drawing.svg',
    'image/svg+xml',
    `<svg xmlns="http://www.w3.org/2000/svg" onload="window.attacked=1"><script>window.attacked=1</script></svg>`,
  ],
  [
    'page.xhtml',
    'application/xhtml+xml',
    `<html xmlns="http://www.w3.org/1999/xhtml"><body onload="window.attacked=1"><script>window.attacked=1</script></body></html>`,
  ],
  ['script.js', 'text/javascript', 'window.attacked = 1'],
  ['style.css', 'text/css', 'body { display: none }'],
];

test.beforeAll(async ({ server }) => {
  await makeContainer(server, 'evil');
  for (const [name, type, body] of DANGEROUS) await putBlob(server, 'evil', name, body, type);
});

test('an uploaded page that is opened from the origin of the console does not run', async ({ page, server }) => {
  await page.goto('/#/blobs/evil');
  await expect(page.getByRole('row', { name: /page\.html/ })).toBeVisible();
  for (const [name] of DANGEROUS) {
    const address = `${server.admin}/blob/${DEVELOPMENT_ACCOUNT}/evil/${name}?${accountSas()}`;
    // The signed-in page itself opens it: a link that somebody clicks.
    const popup = page.waitForEvent('popup');
    await page.evaluate((url) => void window.open(url), address);
    const opened = await popup;
    await opened.waitForLoadState();
    expect(await opened.title()).not.toMatch(/ran|reached|evil/);
    expect(await opened.evaluate(() => 'attacked' in window)).toBe(false);
    await opened.close();
    expect(await attacked(page)).toBe(false);
  }
  const answer = await fetch(`${server.admin}/blob/${DEVELOPMENT_ACCOUNT}/evil/page.html?${accountSas()}`);
  expect(answer.status).toBe(403);
});

test('even with the header of the console a blob is a file and not a page', async ({ browser, server }) => {
  const context = await browser.newContext({ extraHTTPHeaders: { 'x-larimar-console': '1' } });
  const page = await context.newPage();
  for (const [name] of DANGEROUS) {
    for (const sas of [accountSas(), overridingSas(name)]) {
      const address = `${server.admin}/blob/${DEVELOPMENT_ACCOUNT}/evil/${name}?${sas}`;
      const download = page.waitForEvent('download');
      await page.goto(address).catch(() => undefined);
      await (await download).cancel();
      expect(page.url()).toBe('about:blank');
      const { headers, status } = await fetch(address, { headers: { 'x-larimar-console': '1' } });
      expect(status).toBe(200);
      expect(headers.get('content-disposition')).toBe('attachment');
      expect(headers.get('content-security-policy')).toContain('sandbox');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    }
  }
  await context.close();
});

test('blobs with dangerous types are shown as text', async ({ page }) => {
  for (const [name, type, body] of DANGEROUS) {
    await page.goto(`/#/blobs/evil?blob=${name}`);
    const panel = page.getByRole('region', { name, exact: true });
    await expect(panel.getByRole('region', { name: 'Preview' })).toContainText(body.slice(0, 30));
    await expect(panel.getByText(type, { exact: true })).toBeVisible();
    expect(await page.locator('iframe, object, embed, main img').count()).toBe(0);
    expect(await attacked(page)).toBe(false);
  }
  // And a download has a type that no browser shows.
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  expect((await download).suggestedFilename()).toBe('style.css');
  expect((await download).url()).toMatch(/^blob:/);
});

test('names and values that are markup are text on every page', async ({ page, server }) => {
  const name = `${MARKUP}.txt`;
  await makeTable(server, 'Markup', [{ PartitionKey: 'markup', RowKey: 'r', Text: MARKUP }]);
  await makeQueue(server, 'markup', [MARKUP]);
  await makeContainer(server, 'markup');
  const stored = {
    'x-ms-meta-note': MARKUP,
    'x-ms-blob-content-disposition': MARKUP,
    'x-ms-blob-content-language': MARKUP,
  };
  await putBlob(server, 'markup', name, MARKUP, 'text/html;<b>', stored);
  await putBlob(server, 'markup', `<b>directory</b>/${name}`, 'x');
  const blob = encodeURIComponent(name);
  const places = [
    ['/#/tables/Markup', 'onerror'],
    [`/#/tables/Markup?filter=${encodeURIComponent(MARKUP)}`, 'onerror'],
    ['/#/queues/markup', 'onerror'],
    ['/#/blobs/markup', 'onerror'],
    [`/#/blobs/markup?blob=${blob}`, 'onerror'],
    [`/#/blobs/markup?prefix=${encodeURIComponent('<b>directory</b>/')}`, 'onerror'],
    [`/#/blobs/${encodeURIComponent(MARKUP)}`, 'onerror'],
    [`/#/queues/${encodeURIComponent(MARKUP)}`, 'onerror'],
    [`/#/${encodeURIComponent(MARKUP)}`, 'no such page'],
  ] as const;
  for (const [address, seen] of places) {
    await page.goto(address);
    await expect(page.getByText(seen).filter({ visible: true }).first()).toBeVisible();
    expect(await page.locator('img[src=x], main script, main b').count(), address).toBe(0);
    expect(await attacked(page), address).toBe(false);
  }
  // In questions and messages as well.
  await page.goto(`/#/blobs/markup?blob=${blob}`);
  const panel = page.getByRole('region', { name });
  await panel.getByText('More').click();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await expect(page.getByRole('dialog')).toContainText(MARKUP);
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(page.getByText('Deleted 1 blob.')).toBeVisible();
  expect(await attacked(page)).toBe(false);
});

test('another web page gets nothing and changes nothing', async ({ browser, server }) => {
  await makeTable(server, 'Precious', [{ PartitionKey: 'p', RowKey: 'r', Secret: 'treasure' }]);
  const stranger = await serve();
  const context = await browser.newContext();
  const page = await context.newPage();
  try {
    await page.goto(`http://127.0.0.1:${(stranger.address() as AddressInfo).port}/`);
    // The worst case: the other page even knows a signature that allows everything.
    const result = await page.evaluate(tryEverything, {
      origin: server.admin,
      account: DEVELOPMENT_ACCOUNT,
      sas: accountSas(),
    });
    for (const [attempt, got] of Object.entries(result)) expect(`${attempt}: ${got}`).toBe(`${attempt}: nothing`);
  } finally {
    await context.close();
    stranger.close();
  }
  const kept = await call(server, 'table', 'GET', "/Precious(PartitionKey='p',RowKey='r')", {
    headers: { accept: 'application/json' },
  });
  expect(await kept.text()).toContain('treasure');
  expect((await call(server, 'blob', 'GET', '/evil/page.html')).status).toBe(200);
});

/** Runs in the other web page. Each attempt ends with `nothing`, or with what it got. */
async function tryEverything({ origin, account, sas }: { origin: string; account: string; sas: string }) {
  const results: Record<string, string> = {};
  const entity = `${origin}/table/${account}/Precious(PartitionKey='p',RowKey='r')?${sas}`;
  const blob = `${origin}/blob/${account}/evil/page.html?${sas}`;
  const text = async (name: string, request: () => Promise<Response>) => {
    try {
      const response = await request();
      results[name] =
        response.type === 'opaque' ? 'nothing' : `${response.status} ${(await response.text()).slice(0, 80)}`;
    } catch {
      results[name] = 'nothing';
    }
  };
  const header = { 'x-larimar-console': '1' };
  for (const path of ['/', '/console.json', `/insights?account=${account}&${sas}`, '/metrics']) {
    await text(`fetch ${path.slice(0, 12)}`, () => fetch(origin + path, { headers: header }));
    await text(`plain fetch ${path.slice(0, 12)}`, () => fetch(origin + path));
  }
  await text('fetch entity', () => fetch(entity, { headers: header }));
  await text('fetch entity with key header', () =>
    fetch(entity, { headers: { ...header, authorization: 'SharedKey a:b' } }),
  );
  await text('delete entity', () => fetch(entity, { method: 'DELETE', headers: { ...header, 'if-match': '*' } }));
  await text('delete blob', () => fetch(blob, { method: 'DELETE', headers: header }));
  await text('opaque', () => fetch(blob, { mode: 'no-cors', credentials: 'include' }));
  await text('opaque post', () => fetch(`${origin}/design`, { method: 'POST', mode: 'no-cors', body: '{}' }));

  const loaded = (element: HTMLElement & { src?: string; href?: string }, set: () => void) =>
    new Promise<string>((done) => {
      element.onload = () => done('loaded');
      element.onerror = () => done('nothing');
      setTimeout(() => done('nothing'), 4000);
      set();
      document.body.append(element);
    });
  const image = new Image();
  results['img'] = await loaded(image, () => (image.src = blob));
  const favicon = new Image();
  results['img of the page'] = await loaded(favicon, () => (favicon.src = `${origin}/favicon.svg`));
  const script = document.createElement('script');
  results['script'] = await loaded(script, () => (script.src = `${origin}/blob/${account}/evil/script.js?${sas}`));
  const style = document.createElement('link');
  style.rel = 'stylesheet';
  results['style'] = await loaded(style, () => (style.href = `${origin}/blob/${account}/evil/style.css?${sas}`));
  if ('attacked' in window) results['script'] = 'ran';

  // A frame fires `load` for an error page too: what counts is what can be read of it.
  const read = (target: Window | null) => {
    try {
      return target?.document.title ? `read ${target.document.title}` : 'nothing';
    } catch {
      return 'nothing';
    }
  };
  /** Until the window has gone to the other origin, it is still ours to read. */
  const isOurs = (target: Window | null) => {
    try {
      return !target?.closed && target?.location.href === 'about:blank';
    } catch {
      return false;
    }
  };
  for (const address of [`${origin}/`, blob]) {
    const frame = document.createElement('iframe');
    await loaded(frame, () => (frame.src = address));
    results[`iframe ${address.slice(origin.length, origin.length + 6)}`] = read(frame.contentWindow);
    frame.remove();
    const opened = window.open(address);
    for (let tries = 0; tries < 200 && isOurs(opened); tries++) await new Promise((done) => setTimeout(done, 20));
    results[`window ${address.slice(origin.length, origin.length + 6)}`] = read(opened);
    opened?.close();
  }

  const sink = document.createElement('iframe');
  sink.name = 'sink';
  document.body.append(sink);
  for (const action of [entity, blob, `${origin}/reset`, `${origin}/table/${account}/Tables?${sas}`]) {
    const form = document.createElement('form');
    form.method = 'post';
    form.enctype = 'text/plain';
    form.target = 'sink';
    form.action = action;
    document.body.append(form);
    const sent = new Promise((done) => (sink.onload = done));
    form.submit();
    await Promise.race([sent, new Promise((done) => setTimeout(done, 2000))]);
    results[`form ${action.slice(origin.length, origin.length + 24)}`] = read(sink.contentWindow);
  }
  return results;
}

/** Another web page: an empty document of another origin. */
async function serve(): Promise<WebServer> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>stranger</title><body></body>');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

/** A signature that asks the service to answer as a page. */
function overridingSas(name: string): string {
  const [version, expiry] = ['2020-12-06', new Date(Date.now() + 3_600_000).toISOString().slice(0, 19) + 'Z'];
  const [disposition, type, cache] = ['inline', 'text/html', 'public, max-age=3600'];
  const resource = `/blob/${DEVELOPMENT_ACCOUNT}/evil/${name}`;
  const text = ['r', '', expiry, resource, '', '', '', version, 'b', '', '', cache, disposition, '', '', type].join(
    '\n',
  );
  const sig = createHmac('sha256', Buffer.from(DEVELOPMENT_KEY, 'base64')).update(text).digest('base64');
  const query = { sv: version, sr: 'b', sp: 'r', se: expiry, rscc: cache, rscd: disposition, rsct: type, sig };
  return new URLSearchParams(query).toString();
}

function attacked(page: Page): Promise<boolean> {
  return page.evaluate(() => 'attacked' in window);
}
