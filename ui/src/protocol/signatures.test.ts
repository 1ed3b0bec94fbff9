// Tests of signatures against those that `fixtures/signatures.py` makes.
import { expect, test } from 'vitest';
import { keyCredential } from './credentials';
import expected from './fixtures/signatures.json';
import { accountSas, blobSas, orderPermissions, queueSas, sasTime, tableSas } from './sas';
import { authorization, type SignedRequest } from './sharedkey';

const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const credential = await keyCredential('devstoreaccount1', KEY);
const expiry = '2026-11-17T08:15:00Z';
const sig = (query: string) => new URLSearchParams(query).get('sig');

test('the signature of an account is that of an independent implementation', async () => {
  const own = { services: 'bqt', resourceTypes: 'sco', permissions: 'rwdxylacuptfi', expiry };
  expect(sig(await accountSas(credential, own))).toBe(expected.accountSas);
  const restricted = await accountSas(credential, {
    services: 't',
    resourceTypes: 'o',
    permissions: 'rl',
    start: '2026-11-17T07:00:00Z',
    expiry,
    ip: '10.0.0.1-10.0.0.9',
    protocol: 'https',
  });
  expect(sig(restricted)).toBe(expected.accountSasRestricted);
  expect(new URLSearchParams(restricted).get('sip')).toBe('10.0.0.1-10.0.0.9');
});

test('signatures of tables have the range of keys, and the name in lower case', async () => {
  const query = await tableSas(credential, 'People', {
    permissions: 'raud',
    expiry,
    startPartition: "a'b",
    startRow: 'é',
    endPartition: 'c d',
    endRow: 'z',
  });
  expect(sig(query)).toBe(expected.tableSas);
  expect(new URLSearchParams(query).get('tn')).toBe('People');
  expect(sig(await tableSas(credential, 'People', { policy: 'read only' }))).toBe(expected.tableSasOfPolicy);
});

test('signatures of queues, containers and blobs are those of an independent implementation', async () => {
  const queue = await queueSas(credential, 'jobs', { permissions: 'raup', expiry, protocol: 'https,http' });
  expect(sig(queue)).toBe(expected.queueSas);
  expect(sig(await blobSas(credential, 'photos', undefined, { permissions: 'rl', expiry }))).toBe(
    expected.containerSas,
  );
  const blob = await blobSas(credential, 'photos', 'a b/ü.png', {
    permissions: 'r',
    expiry,
    cacheControl: 'no-cache',
    contentDisposition: 'inline; filename=x',
    contentType: 'image/png',
  });
  expect(sig(blob)).toBe(expected.blobSas);
});

test('signatures without permissions and policy, and row keys without partition keys, are refused', async () => {
  await expect(tableSas(credential, 't', { expiry })).rejects.toThrow('permissions');
  await expect(tableSas(credential, 't', { permissions: 'r', expiry, endRow: 'x' })).rejects.toThrow('PartitionKey');
});

test('shared key signatures are for the path of the service', async () => {
  const date: [string, string] = ['x-ms-date', 'Tue, 17 Nov 2026 08:00:00 GMT'];
  const xml: [string, string] = ['content-type', 'application/xml'];
  const version: [string, string] = ['x-ms-version', '2021-12-02'];
  const request = (
    method: string,
    path: string,
    query: [string, string][],
    headers: [string, string][],
    bodyBytes = 0,
  ) =>
    ({ method, path: `/devstoreaccount1${path}`, query, headers: new Map(headers), bodyBytes }) satisfies SignedRequest;
  const header = (signature: string) => `SharedKey devstoreaccount1:${signature}`;
  const acl: [string, string] = ['comp', 'acl'];
  expect(await authorization(credential, 'table', request('GET', '/people', [acl], [date]))).toBe(
    header(expected.tableAcl),
  );
  expect(await authorization(credential, 'table', request('PUT', '/people', [acl], [date, xml], 17))).toBe(
    header(expected.tableSetAcl),
  );
  expect(await authorization(credential, 'queue', request('PUT', '/jobs', [acl], [version, date, xml], 17))).toBe(
    header(expected.queueSetAcl),
  );
  const container: [string, string][] = [['restype', 'container'], acl];
  expect(await authorization(credential, 'blob', request('GET', '/photos', container, [date, version]))).toBe(
    header(expected.containerAcl),
  );
});

test('permissions are put in the order of the service and times lose their fractions', () => {
  expect(orderPermissions('table', 'dur')).toBe('rud');
  expect(orderPermissions('account', ['l', 'r', 'r', '?'])).toBe('rl');
  expect(sasTime(new Date(Date.UTC(2026, 10, 17, 8, 15, 0, 999)))).toBe(expiry);
});
