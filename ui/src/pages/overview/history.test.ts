// Tests of `history.ts`.
import { expect, test } from 'vitest';
import { Metrics } from '../../protocol';
import { History, POINTS_MAX } from './history';

function metrics(atMillis: number, requests: number, errors = 0): Metrics {
  return new Metrics(
    [
      `larimar_account_requests_total{service="table",account="a",class="2xx"} ${requests}`,
      `larimar_account_requests_total{service="blob",account="a",class="5xx"} ${errors}`,
      `larimar_request_seconds_bucket{operation="get",le="0.001"} ${requests}`,
      `larimar_request_seconds_bucket{operation="get",le="+Inf"} ${requests}`,
    ].join('\n'),
    atMillis,
  );
}

test('rates are differences of polls by seconds', () => {
  const history = new History();
  history.add(metrics(0, 100), 1_000_000);
  expect(history.points).toEqual([]);
  history.add(metrics(2000, 140, 4), 1_002_000);
  expect(history.latest).toMatchObject({
    time: 1002,
    requests: { table: 20, queue: 0, blob: 2 },
    failed: 2,
    refused: 0,
    p50: 0.0005,
  });
});

test('a pause is a gap, and a restart does not give negative rates', () => {
  const history = new History();
  history.add(metrics(0, 100), 0);
  history.add(metrics(60_000, 200), 60_000);
  expect(history.latest).toMatchObject({ requests: null, p99: null });
  history.add(metrics(62_000, 10), 62_000);
  expect(history.latest?.requests?.table).toBe(5);
});

test('no requests means no latency', () => {
  const history = new History();
  history.add(metrics(0, 100), 0);
  history.add(metrics(2000, 100), 2000);
  expect(history.latest).toMatchObject({ requests: { table: 0 }, p50: null, p99: null });
});

test('the history is bounded', () => {
  const history = new History();
  for (let poll = 0; poll < POINTS_MAX + 50; poll++) history.add(metrics(poll * 2000, poll), poll * 2000);
  expect(history.points).toHaveLength(POINTS_MAX);
});
