/** Sign-in with every credential: what is wrong with one, what it does not allow, and that it stays in memory. */
import type { Page, Request } from '@playwright/test';
import { createHmac } from 'node:crypto';
import { expect, test } from './fixture';
import { accountSas, makeContainer, makeQueue, makeTable, putBlob } from './seed';
import { DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY } from './server';

test.beforeAll(async ({ server }) => {
  await makeTable(server, 'SignInTable', [{ PartitionKey: 'p', RowKey: 'r', Value: 'seen' }]);
  await makeQueue(server, 'signin-queue', ['a message']);
  await makeContainer(server, 'signin-container');
  await putBlob(server, 'signin-container', 'blob.txt', 'blob content');
});

const KEY_STRING = `DefaultEndpointsProtocol=http;AccountName=${DEVELOPMENT_ACCOUNT};AccountKey=${DEVELOPMENT_KEY};`;
const FORMS: readonly (readonly [string, () => [secret: string, account: string]])[] = [
  ['an account key', () => [DEVELOPMENT_KEY, DEVELOPMENT_ACCOUNT]],
  ['a connection string with a key', () => [KEY_STRING, '']],
  ['a connection string for development', () => ['UseDevelopmentStorage=true', '']],
  ['an account signature', () => [`?${accountSas()}`, DEVELOPMENT_ACCOUNT]],
  [
    'a connection string with a signature',
    () => [`TableEndpoint=http://127.0.0.1:10002/${DEVELOPMENT_ACCOUNT};SharedAccessSignature=${accountSas()}`, ''],
  ],
];

for (const [name, credential] of FORMS) {
  test(`${name} signs in and is found nowhere else`, async ({ page, context }) => {
    const sent = recordRequests(page);
    await signOut(page);
    await signIn(page, ...credential());
    await visit(page);
    // The key is in the memory of the page alone. A signature is sent, that is its purpose, but only to the server.
    await expectNoTrace(page, await context.cookies(), [DEVELOPMENT_KEY, encodeURIComponent(DEVELOPMENT_KEY)]);
    for (const text of sent()) {
      expect(text).not.toContain(DEVELOPMENT_KEY);
      expect(text).not.toContain(encodeURIComponent(DEVELOPMENT_KEY));
      expect(text).not.toContain('AccountKey');
    }
    expect(page.url()).not.toMatch(/sig(=|%3D)/);
    expect(await storage(page)).not.toMatch(/sig(=|%3D)|sv=/);
    // A reload forgets it.
    await page.reload();
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  });
}

test('signatures that the page makes are short-lived', async ({ page }) => {
  const sent = recordRequests(page);
  await page.goto('/#/queues');
  await expect(page.getByRole('link', { name: 'signin-queue' })).toBeVisible();
  const expiries = sent()
    .flatMap((text) => [...text.matchAll(/[?&]se=([^&\s]+)/g)])
    .map((match) => Date.parse(decodeURIComponent(match[1] ?? '')));
  expect(expiries.length).toBeGreaterThan(0);
  for (const expiry of expiries) expect(expiry - Date.now()).toBeLessThan(16 * 60_000);
});

test('what is wrong with a credential is said', async ({ page }) => {
  await signOut(page);
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [Buffer.alloc(64, 7).toString('base64'), DEVELOPMENT_ACCOUNT, /refused these credentials/],
    ['not base64!', DEVELOPMENT_ACCOUNT, /not base64/],
    [DEVELOPMENT_KEY, '', /Enter the account name/],
    [DEVELOPMENT_KEY, 'Not-An-Account', /3 to 24 lower-case/],
    [accountSas({ expiry: '2020-01-01T00:00:00Z' }), DEVELOPMENT_ACCOUNT, /expired at 2020-01-01/],
    [accountSas().replace(/sig=[^&]*/, 'sig=AAAA'), DEVELOPMENT_ACCOUNT, /refused these credentials/],
    [accountSas().replace(/sv=[^&]*&/, ''), DEVELOPMENT_ACCOUNT, /parameter “sv”/],
    ['AccountName=x', '', /./],
    ['AccountName=abc;Other=1;', '', /neither AccountKey nor SharedAccessSignature/],
    [queueSas('signin-queue', 'r'), DEVELOPMENT_ACCOUNT, /Enter its whole address/],
  ];
  for (const [secret, account, message] of cases) {
    await signIn(page, secret, account);
    await expect(page.getByRole('alert')).toContainText(message);
  }
  // An account that does not exist.
  await signIn(page, DEVELOPMENT_KEY, 'nobody');
  await expect(page.getByRole('alert')).toContainText(/refused|no account/);
});

test('forbidden actions of a read-only signature are explained', async ({ page }) => {
  await signOut(page);
  await signIn(page, accountSas({ permissions: 'rl' }), DEVELOPMENT_ACCOUNT);
  const places: readonly (readonly [string, string])[] = [
    ['/#/queues', 'New queue'],
    ['/#/queues/signin-queue', 'Put message'],
    ['/#/queues/signin-queue', 'Take…'],
    ['/#/blobs', 'New container'],
    ['/#/blobs/signin-container', 'Upload'],
  ];
  for (const [address, button] of places) {
    await go(page, address);
    await expect(page.getByRole('button', { name: button, exact: true })).toBeDisabled();
    await expect(page.getByRole('button', { name: button, exact: true })).toHaveAttribute(
      'title',
      /lacks a permission/,
    );
  }
  await expect(page.getByRole('row', { name: /blob\.txt/ })).toBeVisible();
  await go(page, '/#/queues/signin-queue?dialog=sas');
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('needs the account key');
  await go(page, '/#/queues/signin-queue?dialog=policies');
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('needs the account key');
  await go(page, '/#/properties');
  await expect(page.getByText(/can be read but not changed here/)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Save' })).toBeDisabled();
});

test('a signature for other services or types explains what is missing', async ({ page }) => {
  await signOut(page);
  await signIn(page, accountSas({ services: 't', types: 'co', permissions: 'rl' }), DEVELOPMENT_ACCOUNT);
  await go(page, '/#/properties');
  await expect(page.getByText(/srt without s/)).toBeVisible();
  await go(page, '/#/queues');
  await expect(page.getByText('The queues cannot be listed')).toBeVisible();
  await expect(page.getByText(/ss without q/)).toBeVisible();
});

test('a signature that may not list opens what the user names', async ({ page }) => {
  await signOut(page);
  await signIn(page, accountSas({ permissions: 'r' }), DEVELOPMENT_ACCOUNT);
  await go(page, '/#/queues');
  await page.getByLabel('Name of a queue').fill('signin-queue');
  await page.getByRole('button', { name: 'Open' }).click();
  await expect(page.getByRole('row', { name: /a message/ })).toBeVisible();
  await go(page, '/#/blobs');
  await page.getByLabel('Name of a container').fill('signin-container');
  await page.getByRole('button', { name: 'Open' }).click();
  await expect(page.getByText('The blobs cannot be listed')).toBeVisible();
  await go(page, '/#/blobs/signin-container?blob=blob.txt');
  await expect(page.getByText('blob content', { exact: true })).toBeVisible();
});

test('a signature for one queue shows this queue', async ({ page, server }) => {
  await signOut(page);
  await signIn(page, `${server.endpoints.queue}/signin-queue?${queueSas('signin-queue', 'r')}`, '');
  await go(page, '/#/queues');
  await page.getByRole('link', { name: 'signin-queue' }).click();
  await expect(page.getByRole('row', { name: /a message/ })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Put message' })).toBeDisabled();
});

test('without HTTPS or localhost the page says what to do, and a signature still works', async ({ page }) => {
  // What browsers do in such a place.
  await page.addInitScript(() => Object.defineProperty(crypto, 'subtle', { value: undefined }));
  await page.goto('/');
  await expect(page.getByRole('alert')).toContainText('only on HTTPS and on localhost');
  await signIn(page, DEVELOPMENT_KEY, DEVELOPMENT_ACCOUNT);
  await expect(page.getByText('cannot sign with a key here')).toBeVisible();
  await signIn(page, accountSas(), DEVELOPMENT_ACCOUNT);
  await go(page, '/#/queues');
  await expect(page.getByRole('link', { name: 'signin-queue' })).toBeVisible();
});

/** Opens the page and forgets the development account, which signs in by itself. */
async function signOut(page: Page): Promise<void> {
  await page.goto('/');
  await page.getByRole('button', { name: new RegExp(DEVELOPMENT_ACCOUNT) }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
}

async function signIn(page: Page, secret: string, account: string): Promise<void> {
  await page.getByLabel(/^Account key, shared access signature/).fill(secret);
  await page.getByLabel(/^Account name/).fill(account);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await expect(page.getByRole('button', { name: 'Signing in…' })).toHaveCount(0);
}

/** Goes to another route without a reload, which would forget the credential. */
async function go(page: Page, address: string): Promise<void> {
  await page.evaluate((hash) => (location.hash = hash), address.slice(1));
}

async function visit(page: Page): Promise<void> {
  for (const [address, seen] of [
    ['/#/tables/SignInTable', 'seen'],
    ['/#/queues/signin-queue', 'a message'],
    ['/#/blobs/signin-container?blob=blob.txt', 'blob content'],
  ] as const) {
    await go(page, address);
    await expect(page.getByText(seen, { exact: true }).first()).toBeVisible();
  }
}

/** Everything that the page sends: addresses, headers and bodies. */
function recordRequests(page: Page): () => string[] {
  const requests: Request[] = [];
  page.on('request', (request) => requests.push(request));
  return () =>
    requests.map((request) => [request.url(), JSON.stringify(request.headers()), request.postData() ?? ''].join(' '));
}

function storage(page: Page): Promise<string> {
  // eslint-disable-next-line no-restricted-globals -- to see that nothing is in it
  return page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
}

async function expectNoTrace(page: Page, cookies: unknown[], secrets: string[]): Promise<void> {
  expect(cookies).toEqual([]);
  const kept = await storage(page);
  const markup = await page.content();
  for (const secret of secrets) {
    expect(kept).not.toContain(secret);
    expect(page.url()).not.toContain(secret);
    expect(markup).not.toContain(secret);
  }
}

function queueSas(queue: string, permissions: string): string {
  const [version, expiry] = ['2020-12-06', new Date(Date.now() + 3_600_000).toISOString().slice(0, 19) + 'Z'];
  const text = [permissions, '', expiry, `/queue/${DEVELOPMENT_ACCOUNT}/${queue}`, '', '', '', version].join('\n');
  const sig = createHmac('sha256', Buffer.from(DEVELOPMENT_KEY, 'base64')).update(text).digest('base64');
  return new URLSearchParams({ sv: version, sp: permissions, se: expiry, sig }).toString();
}
