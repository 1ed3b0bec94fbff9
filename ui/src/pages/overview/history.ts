/** Rates over time, from polls of `/metrics`. Kept while the tab is open, bounded. */

import { quantile, rate, type Metrics, type Service } from '../../protocol';

/** One moment: everything a second since the poll before. `null`: unknown. */
export interface Point {
  /** Seconds since 1970. */
  readonly time: number;
  readonly requests: Readonly<Record<Service, number>> | null;
  /** Answers of 4xx and 5xx. */
  readonly refused: number | null;
  readonly failed: number | null;
  /** Seconds. */
  readonly p50: number | null;
  readonly p99: number | null;
  readonly received: number | null;
  readonly sent: number | null;
}

export const POINTS_MAX = 600;

export class History {
  points: readonly Point[] = [];
  #before: Metrics | undefined;

  get latest(): Point | undefined {
    return this.points.at(-1);
  }

  /** Adds a poll. The first one, and one after a long pause, only begin a span. */
  add(metrics: Metrics, nowMillis: number): void {
    const before = this.#before;
    this.#before = metrics;
    if (!before) return;
    const gap = metrics.atMillis - before.atMillis;
    if (gap <= 0) return;
    const time = nowMillis / 1000;
    const point = gap > GAP_MILLIS_MAX ? emptyPoint(time) : pointOf(before, metrics, time);
    this.points = [...this.points.slice(1 - POINTS_MAX), point];
  }
}

function pointOf(before: Metrics, after: Metrics, time: number): Point {
  const of = (name: string, labels: Readonly<Record<string, string>> = {}) => rate(before, after, name, labels) ?? 0;
  const requests = (service: Service) => of('larimar_account_requests_total', { service });
  const latency = (part: number) => quantile(before, after, 'larimar_request_seconds', part) ?? null;
  return {
    time,
    requests: { table: requests('table'), queue: requests('queue'), blob: requests('blob') },
    refused: of('larimar_account_requests_total', { class: '4xx' }),
    failed: of('larimar_account_requests_total', { class: '5xx' }),
    p50: latency(0.5),
    p99: latency(0.99),
    received: of('larimar_account_received_bytes_total'),
    sent: of('larimar_account_sent_bytes_total'),
  };
}

function emptyPoint(time: number): Point {
  return { time, requests: null, refused: null, failed: null, p50: null, p99: null, received: null, sent: null };
}

/** Beyond this, a rate would be an average over a pause: the tab was hidden, or another page was shown. */
const GAP_MILLIS_MAX = 15_000;
