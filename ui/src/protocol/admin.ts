/** The admin endpoint: what the server says about itself, insights, advice, the designer, live requests. */

import { ProtocolError } from './error';
import { Metrics } from './prometheus';
import type { Service } from './credentials';
import type {
  Advice,
  DesignExample,
  DesignRequest,
  DesignTrial,
  InsightsReport,
  LiveRequest,
  Proposal,
} from './reports';
import { sendOpen, type CallOptions, type Transport } from './transport';

/** `/console.json`: what the page needs to know before anybody signs in. */
export interface ServerInfo {
  readonly version: string;
  readonly services: readonly Service[];
  readonly engine: 'embedded' | 'memory' | 'postgresql';
  /** Strict mode: the server ignores what the original service does not have, such as `x-larimar-explain`. */
  readonly strict: boolean;
  readonly insights: boolean;
  readonly secure: boolean;
  /** The account to sign in with automatically, on a development server on this machine. */
  readonly development?: { readonly account: string };
}

/** What the server is, and how far this machine's clock is behind the server's. */
export async function serverInfo(options: CallOptions = {}): Promise<{ info: ServerInfo; clockOffsetMillis: number }> {
  const response = await sendOpen('/console.json', { signal: options.signal });
  const info = (await response.json()) as ServerInfo;
  const date = Date.parse(response.headers.get('date') ?? '');
  const offset = Number.isNaN(date) ? 0 : date - Date.now();
  // The header has no fractions of a second, and the answer took a while.
  return { info, clockOffsetMillis: Math.abs(offset) < 5000 ? 0 : offset };
}

export async function metrics(options: CallOptions = {}): Promise<Metrics> {
  const response = await sendOpen('/metrics', { signal: options.signal });
  return new Metrics(await response.text(), performance.now());
}

/** Whether all requests are served, and what the server says about it: the reason, a line about the archive. */
export async function readiness(options: CallOptions = {}): Promise<{ ready: boolean; lines: string[] }> {
  const linesOf = (text: string) => text.split('\n').filter((line) => line.trim() && line.trim() !== 'ready');
  try {
    const response = await sendOpen('/ready', { signal: options.signal });
    return { ready: true, lines: linesOf(await response.text()) };
  } catch (error) {
    if (error instanceof ProtocolError && error.status === 503) return { ready: false, lines: linesOf(error.message) };
    throw error;
  }
}

export class Admin {
  constructor(readonly transport: Transport) {}

  metrics(options: CallOptions = {}): Promise<Metrics> {
    return metrics(options);
  }

  /** The traffic of the account's tables; of one table also its heat over time. `since` is an ISO time. */
  async insights(options: CallOptions & { table?: string; since?: string } = {}): Promise<InsightsReport> {
    const { table, since, signal } = options;
    const response = await this.transport.sendAdmin('/insights', { query: { table, since }, signal });
    return (await response.json()) as InsightsReport;
  }

  /** Removes everything that is stored about the account's traffic. */
  async eraseInsights(options: CallOptions = {}): Promise<void> {
    await this.transport.sendAdmin('/insights', { method: 'DELETE', signal: options.signal });
  }

  async advice(options: CallOptions & { table?: string; since?: string; everyScan?: boolean } = {}): Promise<Advice> {
    const { table, since, everyScan, signal } = options;
    const query = { table, since, scans: everyScan ? 'every' : undefined };
    const response = await this.transport.sendAdmin('/advice', { query, signal });
    return (await response.json()) as Advice;
  }

  /** Dismisses findings of a kind, of one table or of all. */
  async dismiss(
    finding: string,
    table: string | undefined,
    options: CallOptions & { reason?: string } = {},
  ): Promise<void> {
    const query = { finding, table, reason: options.reason || undefined };
    await this.transport.sendAdmin('/advice/dismissals', { method: 'PUT', query, signal: options.signal });
  }

  async restore(finding: string, table: string | undefined, options: CallOptions = {}): Promise<void> {
    const query = { finding, table };
    await this.transport.sendAdmin('/advice/dismissals', { method: 'DELETE', query, signal: options.signal });
  }

  /** Designs for a description: what `larimar design --json` prints. */
  async design(request: DesignRequest, options: CallOptions = {}): Promise<Proposal> {
    return this.#post<Proposal>('/design', request, options);
  }

  /** The description of an example, in TOML with comments. */
  async designExample(name: string, options: CallOptions = {}): Promise<string> {
    const answer = await this.#post<string | Readonly<Record<string, unknown>>>('/design', { example: name }, options);
    const text = typeof answer === 'string' ? answer : (answer['toml'] ?? answer['description'] ?? answer['text']);
    return typeof text === 'string' ? text : '';
  }

  async designExamples(options: CallOptions = {}): Promise<DesignExample[]> {
    const answer = await this.#post<DesignExample[] | { examples: DesignExample[] }>(
      '/design',
      { examples: true },
      options,
    );
    return Array.isArray(answer) ? answer : answer.examples;
  }

  /** Rows and queries to try a design with. */
  async designTrial(
    request: { toml: string; design: number; entities: number },
    options: CallOptions = {},
  ): Promise<DesignTrial> {
    return this.#post<DesignTrial>('/design/trial', request, options);
  }

  /**
   * Requests of the account as they happen, until the signal aborts or the server ends the stream (after ten minutes: call
   * again). Each batch has what arrived together; it is empty when the stream begins and while nothing happens.
   */
  async *requests(options: CallOptions = {}): AsyncGenerator<LiveRequest[]> {
    const response = await this.transport.sendAdmin('/requests', { signal: options.signal });
    if (!response.body) return;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        const lines = (rest + value).split('\n');
        rest = lines.pop() ?? '';
        const batch = lines.filter((line) => line.trim()).map((line) => JSON.parse(line) as LiveRequest);
        yield batch;
      }
    } finally {
      await reader.cancel().catch(() => undefined);
    }
  }

  async #post<T>(path: string, body: unknown, options: CallOptions): Promise<T> {
    const response = await this.transport.sendAdmin(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: options.signal,
    });
    return (await response.json()) as T;
  }
}
