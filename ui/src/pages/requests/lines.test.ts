// Tests of `lines.ts`.
import { expect, test } from 'vitest';
import type { RequestLine } from '../../protocol';
import { Lines, LINES_MAX, waitMillis } from './lines';

function request(changes: Partial<RequestLine>): RequestLine {
  return {
    time: '2026-11-17T08:00:00Z',
    client: '127.0.0.1',
    service: 'table',
    operation: 'QueryEntities',
    method: 'GET',
    resource: '/Orders()',
    auth: 'sas',
    status: 200,
    code: null,
    bytes_in: 0,
    bytes_out: 10,
    request_id: 'id',
    ms: 1,
    ...changes,
  };
}

const everything = { service: '', status: 'all', text: '' } as const;

test('a filter shows requests that have all of its words, and gaps always, the newest first', () => {
  const lines = new Lines();
  lines.push([request({}), request({ service: 'blob', resource: '/box/a.txt', operation: 'GetBlob', status: 404 })]);
  lines.push([{ lost: 7 }, request({ status: 503, code: 'ServerBusy' })]);
  const shown = (filter: Partial<Parameters<Lines['shown']>[0]>) =>
    lines.shown({ ...everything, ...filter }, Infinity).map((line) => line.lost ?? line.request.status);
  expect(shown({})).toEqual([503, 7, 404, 200]);
  expect(shown({ service: 'blob' })).toEqual([7, 404]);
  expect(shown({ status: '5xx' })).toEqual([503, 7]);
  expect(shown({ status: 'ok' })).toEqual([7, 200]);
  expect(shown({ text: 'getBLOB A.txt' })).toEqual([7, 404]);
  expect(shown({ text: 'nonsense' })).toEqual([7]);
  expect(lines.shown(everything, 2).map((line) => line.number)).toEqual([1, 0]);
});

test('only the last lines are kept, however many there are', () => {
  const lines = new Lines();
  for (let batch = 0; batch < 40; batch++) lines.push(Array.from({ length: 1000 }, () => request({})));
  expect(lines.all.length).toBeLessThanOrEqual(LINES_MAX + 1000);
  expect(lines.shown(everything, Infinity)).toHaveLength(LINES_MAX);
  expect(lines.shown(everything, Infinity)[0]?.number).toBe(39_999);
});

test('attempts to connect become rarer, up to a bound', () => {
  expect([0, 1, 2, 9].map(waitMillis)).toEqual([1000, 2000, 4000, 30_000]);
});
