// Tests of what is sent and read: XML, JSON, metadata and metrics.
import { DOMParser } from '@xmldom/xmldom';
import { beforeAll, expect, test } from 'vitest';
import { parsePolicies, policiesToXml } from './acl';
import { blobPath, parseBlobPage } from './blobs';
import { errorOf } from './error';
import { metadataHeaders } from './metadata';
import { Metrics, quantile, rate } from './prometheus';
import { parseProperties, propertiesToXml } from './properties';
import { parseMessages } from './queues';
import { batchBody, entityPath, parseBatchResponse } from './tables';

beforeAll(() => {
  globalThis.DOMParser = DOMParser as unknown as typeof globalThis.DOMParser;
});

test('keys are quoted and encoded in paths', () => {
  expect(entityPath('T', "it's", 'a b%ü+')).toBe("/T(PartitionKey='it%27%27s',RowKey='a%20b%25%C3%BC%2B')");
  expect(() => entityPath('T', '\ud800', '')).toThrow('surrogate');
});

test('names of blobs that a browser would resolve are encoded or refused', () => {
  expect(blobPath('c', 'a/b c.txt')).toBe('/c/a/b%20c.txt');
  expect(blobPath('c', 'a/../b')).toBe('/c/a%2F..%2Fb');
  expect(() => blobPath('c', '..')).toThrow('cannot address');
});

test('a transaction is one part for each write', () => {
  const entity = { partitionKey: 'p', rowKey: 'r', properties: new Map() };
  const body = batchBody('batch_1', '/acc', 'T', [
    { kind: 'insert', entity },
    { kind: 'merge', entity: { ...entity, rowKey: 's' }, etag: 'W/"x"' },
    { kind: 'delete', partitionKey: 'p', rowKey: 't', etag: '*' },
  ]);
  expect(body.match(/^--changeset_1\r$/gm)).toHaveLength(3);
  expect(body).toContain('POST /acc/T HTTP/1.1\r\n');
  expect(body).toContain("PATCH /acc/T(PartitionKey='p',RowKey='s') HTTP/1.1\r\n");
  expect(body).toContain('if-match: W/"x"\r\n');
  expect(body.endsWith('--changeset_1--\r\n--batch_1--\r\n')).toBe(true);
});

test('the answer of a transaction has etags, or the error of the write that failed', () => {
  const head =
    '--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n--changesetresponse_2\r\n';
  const part = (status: string, rest: string) =>
    `Content-Type: application/http\r\n\r\nHTTP/1.1 ${status}\r\n${rest}\r\n`;
  const etag = `ETag: W/"datetime'2026'"\r\n\r\n`;
  const two = `${head}${part('204 No Content', etag)}--changesetresponse_2\r\n${part('204 No Content', '\r\n')}--changesetresponse_2--\r\n--batchresponse_1--`;
  expect(parseBatchResponse(two)).toEqual([`W/"datetime'2026'"`, undefined]);
  const error =
    '{"odata.error":{"code":"EntityAlreadyExists","message":{"value":"2:It exists.\\nRequestId:1\\nTime:2"}}}';
  const failed = `${head}${part('409 Conflict', `Content-Type: application/json\r\n\r\n${error}`)}--changesetresponse_2--`;
  expect(() => parseBatchResponse(failed)).toThrowError(
    expect.objectContaining({ status: 409, code: 'EntityAlreadyExists', message: 'It exists.', operation: 2 }),
  );
  expect(() => parseBatchResponse('nothing')).toThrow('no parts');
});

test('errors are read from JSON, XML and text', () => {
  const headers = new Headers({ 'x-ms-request-id': 'id-1', 'x-ms-error-code': 'FromHeader' });
  const json =
    '{"odata.error":{"code":"TableNotFound","message":{"lang":"en-US","value":"Gone.\\nRequestId:x\\nTime:y"}}}';
  expect(errorOf(404, headers, json)).toMatchObject({ code: 'TableNotFound', message: 'Gone.', requestId: 'id-1' });
  const xml = '\uFEFF<?xml version="1.0"?><Error><Code>QueueNotFound</Code><Message>No.\nRequestId:x</Message></Error>';
  expect(errorOf(404, headers, xml)).toMatchObject({ code: 'QueueNotFound', message: 'No.', isMissing: true });
  const detail =
    '<Error><Code>AuthenticationFailed</Code><Message>Failed.\nRequestId:x</Message><AuthenticationErrorDetail>expired</AuthenticationErrorDetail></Error>';
  expect(errorOf(403, headers, detail)).toMatchObject({ message: 'Failed. expired', isForbidden: true });
  expect(errorOf(403, headers, 'plain')).toMatchObject({ code: 'FromHeader', message: 'plain' });
  expect(errorOf(500, new Headers(), '')).toMatchObject({ message: 'The server answered with status 500.' });
});

test('policies, messages and lists of blobs are read as the services write them', () => {
  const policies = [{ id: 'a&b', expiry: '2026-11-17T08:00:00.0000000Z', permissions: 'r' }, { id: 'empty' }];
  expect(parsePolicies(policiesToXml(policies))).toEqual(policies);
  expect(parsePolicies('')).toEqual([]);
  const [message] = parseMessages(
    '\uFEFF<QueueMessagesList><QueueMessage><MessageId>1</MessageId><DequeueCount>3</DequeueCount><MessageText>&lt;b&gt;</MessageText></QueueMessage></QueueMessagesList>',
  );
  expect(message).toMatchObject({ id: '1', dequeueCount: 3, text: '<b>' });
  expect(message).not.toHaveProperty('popReceipt');
  const page = parseBlobPage(
    '<EnumerationResults><Blobs><BlobPrefix><Name>a/</Name></BlobPrefix><Blob><Name Encoded="true">x%00</Name><Properties><Content-Length>12</Content-Length></Properties></Blob></Blobs><NextMarker>m</NextMarker></EnumerationResults>',
  );
  expect(page).toMatchObject({ prefixes: ['a/'], blobs: [{ name: 'x\0', bytes: 12 }], next: 'm' });
});

test('service properties survive being read and written', () => {
  const properties = {
    logging: { version: '1.0', read: true, write: false, delete: false, retentionDays: 7 },
    hourMetrics: { version: '1.0', enabled: true, includeApis: true, retentionDays: undefined },
    cors: [{ origins: '*', methods: 'GET,PUT', allowedHeaders: 'x-ms-meta-*', exposedHeaders: '', maxAgeSeconds: 60 }],
    deleteRetentionDays: 3,
  };
  expect(parseProperties(propertiesToXml(properties))).toEqual(properties);
  expect(propertiesToXml({ cors: [] })).toContain('<Cors></Cors>');
});

test('metadata that no header can carry is refused', () => {
  expect(metadataHeaders(new Map([['color', 'red']]))).toEqual({ 'x-ms-meta-color': 'red' });
  expect(() => metadataHeaders(new Map([['a-b', 'x']]))).toThrow('a-b');
  expect(() => metadataHeaders(new Map([['a', 'ü']]))).toThrow('ASCII');
});

test('rates and quantiles come from two polls', () => {
  const text = (count: number) =>
    `# HELP x y\nreq_total{service="table",le="1"} ${count}\nt_bucket{le="0.1"} ${count}\nt_bucket{le="1"} ${2 * count}\nt_bucket{le="+Inf"} ${2 * count}\nname{a="q\\"\\n"} +Inf\n`;
  const [one, other] = [new Metrics(text(10), 0), new Metrics(text(30), 2000)];
  expect(rate(one, other, 'req_total', { service: 'table' })).toBe(10);
  expect(rate(other, new Metrics(text(4), 4000), 'req_total')).toBe(2);
  expect(rate(one, other, 'absent')).toBeUndefined();
  expect(quantile(one, other, 't', 0.5)).toBeCloseTo(0.1);
  expect(quantile(undefined, other, 't', 0.75)).toBeCloseTo(0.55);
  expect(one.select('name')[0]).toMatchObject({ value: Infinity, labels: new Map([['a', 'q"\n']]) });
});
