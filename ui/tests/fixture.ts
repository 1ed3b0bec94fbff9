/**
 * What every browser test starts with: a server, and a page that fails the test if it logs an error, violates its
 * Content-Security-Policy or asks another host for anything.
 *
 * With `LARIMAR_TEST_PAGE=DIRECTORY` the page comes from that directory (a fresh `npm run build -- --outDir DIRECTORY`) under the
 * headers of the server, so that a change of the page needs no build of the server.
 */
import { expect, test as base, type Page } from '@playwright/test';
import { existsSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { Server } from './server';

export { expect };

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Lines of the browser's console that do not fail a test: the browser reports every answer of 400 and more. */
const EXPECTED_LINES = /^Failed to load resource: the server responded with a status of (4\d\d|503)/;

interface Fixtures {
  /** Problems of the page so far; empty at the end of a test. */
  problems: string[];
}

export const test = base.extend<Fixtures, { server: Server }>({
  server: [
    // eslint-disable-next-line no-empty-pattern
    async ({}, use) => {
      const server = await Server.start();
      await use(server);
      await server.stop();
    },
    { scope: 'worker' },
  ],
  baseURL: async ({ server }, use) => use(server.admin),
  problems: async ({ page, server }, use) => {
    const problems: string[] = [];
    await watch(page, server.admin, problems);
    await use(problems);
    expect(problems).toEqual([]);
  },
  // Every test watches its page, whether it names `problems` or not.
  page: async ({ page, server }, use) => {
    const directory = process.env['LARIMAR_TEST_PAGE'];
    if (directory) await servePageFrom(page, server.admin, directory);
    await use(page);
  },
});

test.beforeEach(({ problems }) => {
  expect(problems).toEqual([]);
});

/** Notes errors of the page, violations of its policy and requests to other hosts. */
async function watch(page: Page, origin: string, problems: string[]): Promise<void> {
  page.on('pageerror', (error) => problems.push(`page error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !EXPECTED_LINES.test(message.text())) problems.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith('blob:') && !url.startsWith('data:')) {
      problems.push(`request to another host: ${url}`);
    }
  });
  await page.exposeFunction('noteViolation', (text: string) => problems.push(`policy: ${text}`));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      const note = (window as unknown as { noteViolation: (text: string) => void }).noteViolation;
      note(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
    });
  });
}

async function servePageFrom(page: Page, origin: string, directory: string): Promise<void> {
  const { headers } = await fetch(`${origin}/`);
  const policy = Object.fromEntries(
    [...headers].filter(([name]) => !/^(content-length|content-encoding|content-type|etag)$/.test(name)),
  );
  await page.route(
    (url) => url.origin === origin && (url.pathname === '/' || /^\/(assets\/|favicon)/.test(url.pathname)),
    async (route) => {
      const path = new URL(route.request().url()).pathname;
      const file = join(directory, path === '/' ? 'index.html' : path);
      if (!existsSync(file)) return route.fulfill({ status: 404 });
      return route.fulfill({
        body: readFileSync(file),
        headers: { ...policy, 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' },
      });
    },
  );
}
