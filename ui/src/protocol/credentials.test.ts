// Tests of `credentials.ts`.
import { expect, test } from 'vitest';
import { connectionString, parseCredential, sasCredential } from './credentials';

const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const ACCOUNT_SAS = 'sv=2020-12-06&ss=t&srt=sco&sp=rl&se=2999-01-01&sig=a%2Bb%3D';

test('a key, a signature and a connection string are told apart', async () => {
  expect(await parseCredential(KEY, 'myaccount')).toMatchObject({ kind: 'key', account: 'myaccount' });
  expect(await parseCredential(`?${ACCOUNT_SAS}`, 'myaccount')).toMatchObject({ kind: 'sas', account: 'myaccount' });
  const text = `DefaultEndpointsProtocol=http;AccountName=other;AccountKey=${KEY};EndpointSuffix=x`;
  expect(await parseCredential(text, '')).toMatchObject({ kind: 'key', account: 'other' });
  expect(await parseCredential('UseDevelopmentStorage=true', '')).toMatchObject({ account: 'devstoreaccount1' });
});

test('the signature keeps its plus sign, encoded or not', () => {
  expect(sasCredential(ACCOUNT_SAS, 'abc').parameters.get('sig')).toBe('a+b=');
  expect(sasCredential(ACCOUNT_SAS.replace('%2B', '+'), 'abc').parameters.get('sig')).toBe('a+b=');
});

test('addresses with a signature name the account and the resource', () => {
  const scoped = 'sv=2020-12-06&sp=r&se=2999-01-01&sig=x';
  const cases: [string, object][] = [
    [`http://127.0.0.1:10002/acc/People?${scoped}&tn=People`, { service: 'table', name: 'People' }],
    [`http://127.0.0.1:10001/acc/jobs?${scoped}`, { service: 'queue', name: 'jobs' }],
    [`http://127.0.0.1:10000/acc/c?${scoped}&sr=c`, { service: 'blob', name: 'c' }],
    [`http://127.0.0.1:10000/acc/c/a%20b/d?${scoped}&sr=b`, { service: 'blob', name: 'c', blob: 'a b/d' }],
    [`https://acc.queue.core.windows.net/jobs?${scoped}`, { service: 'queue', name: 'jobs' }],
  ];
  for (const [text, scope] of cases) expect(sasCredential(text)).toMatchObject({ account: 'acc', scope });
});

test('a connection string may have a signature and take the account from an endpoint', async () => {
  const text = `TableEndpoint=http://127.0.0.1:10002/acc;SharedAccessSignature=${ACCOUNT_SAS}`;
  expect(await connectionString(text)).toMatchObject({ kind: 'sas', account: 'acc' });
});

test('what is wrong is said', async () => {
  const cases: [string, string, string][] = [
    ['not base64!', 'abc', 'not base64'],
    [KEY, '', 'account name'],
    [KEY, 'Capitals', 'lower-case'],
    ['', 'abc', 'Enter the account key'],
    ['AccountName=abc;', '', 'neither AccountKey'],
    [`AccountKey=${KEY};`, '', 'no AccountName'],
    ['AccountName=abc;nonsense', '', 'Name=Value'],
    ['sv=2020-12-06&ss=t&sig=x', '', 'does not contain it'],
    ['sv=2020-12-06&ss=t&srt=o&se=2001-01-01&sig=x', 'abc', 'expired'],
    ['ss=t&sig=x', 'abc', 'sv'],
    ['sv=2020-12-06&sr=c&sig=x', 'abc', 'one container'],
    ['sv=2020-12-06&sp=r&sig=x', 'abc', 'one queue'],
    ['sv=2020-12-06&sv=2020-12-06&ss=t&sig=x', 'abc', 'twice'],
  ];
  for (const [text, account, message] of cases) {
    await expect(parseCredential(text, account), text).rejects.toThrow(message);
  }
});
