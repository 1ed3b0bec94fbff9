/** The requests that the page remembers, and which of them a filter shows. */

import type { LiveRequest, RequestLine } from '../../protocol';

/** Lines that are kept; older ones are forgotten. */
export const LINES_MAX = 10_000;

/** A request, or a gap where the server left requests out. */
export type Line =
  | { readonly number: number; readonly request: RequestLine; readonly words: string; readonly lost?: undefined }
  | { readonly number: number; readonly lost: number; readonly request?: undefined };

export const STATUSES = ['all', 'ok', '4xx', '5xx'] as const;
export type StatusChoice = (typeof STATUSES)[number];

export interface Filter {
  /** `table`, `queue`, `blob`, or empty for all. */
  readonly service: string;
  readonly status: StatusChoice;
  /** Words that all have to occur in the operation, resource, status, code, client, address or request id. */
  readonly text: string;
}

/** The last lines, the oldest first. */
export class Lines {
  #lines: Line[] = [];
  #next = 0;

  get all(): readonly Line[] {
    return this.#lines;
  }

  /** The number that the next line will have: also how many there have been. */
  get next(): number {
    return this.#next;
  }

  push(batch: readonly LiveRequest[]): void {
    for (const item of batch) {
      const number = this.#next++;
      if (item.lost !== undefined) this.#lines.push({ number, lost: item.lost });
      else this.#lines.push({ number, request: item, words: wordsOf(item) });
    }
    // Cut rarely, so that a full list does not move at every line.
    if (this.#lines.length > LINES_MAX + CUT) this.#lines = this.#lines.slice(-LINES_MAX);
  }

  clear(): void {
    this.#lines = [];
  }

  /** What a filter shows of the lines before a number, the newest first. */
  shown(filter: Filter, end: number): Line[] {
    const matches = matcher(filter);
    const found: Line[] = [];
    for (let at = this.#lines.length - 1; at >= 0 && found.length < LINES_MAX; at--) {
      const line = this.#lines[at];
      if (line && line.number < end && (line.lost !== undefined || matches(line))) found.push(line);
    }
    return found;
  }
}

function matcher({ service, status, text }: Filter): (line: Line & { request: RequestLine }) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return ({ request, words: known }) =>
    (service === '' || request.service === service) &&
    hasStatus(request.status, status) &&
    words.every((word) => known.includes(word));
}

function hasStatus(status: number, choice: StatusChoice): boolean {
  if (choice === 'all') return true;
  if (choice === 'ok') return status < 400;
  return choice === '4xx' ? status >= 400 && status < 500 : status >= 500;
}

function wordsOf(line: RequestLine): string {
  const { operation, method, resource, status, code, client, user_agent, request_id, auth } = line;
  return [operation, method, resource, status, code, client, user_agent, request_id, auth]
    .filter((part) => part !== null && part !== undefined)
    .join('\n')
    .toLowerCase();
}

/** How long to wait before another attempt to connect. */
export function waitMillis(attempt: number): number {
  return Math.min(30_000, 1000 * 2 ** Math.min(attempt, 5));
}

const CUT = 1000;
