/** Follows the live requests of an account: connects, connects again, and keeps the last lines. */

import { isAbort, ProtocolError, type Client } from '../../protocol';
import { Lines, waitMillis } from './lines';

export type Connection =
  | { readonly state: 'connecting' }
  | { readonly state: 'open' }
  | { readonly state: 'waiting'; readonly until: number; readonly error: unknown }
  | { readonly state: 'refused'; readonly error: unknown };

export class Follower {
  connection = $state.raw<Connection>({ state: 'connecting' });
  /** Grows when there are new lines, a few times a second at most. */
  version = $state(0);
  readonly lines = new Lines();
  #wake: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Follows until the signal aborts or the server refuses. */
  async run(client: Client, signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => {
      clearTimeout(this.#timer);
      this.#wake?.();
    });
    let attempt = 0;
    while (!signal.aborted) {
      this.connection = { state: 'connecting' };
      try {
        for await (const batch of client.admin.requests({ signal })) {
          attempt = 0;
          if (this.connection.state !== 'open') this.connection = { state: 'open' };
          if (batch.length) this.#add(batch);
        }
        // The server ends the stream after ten minutes, or because it shuts down.
        if (attempt++ > 0) await this.#wait(attempt, new ProtocolError(0, '', 'The server ended the stream.'));
      } catch (error) {
        if (isAbort(error) || signal.aborted) return;
        if (isFinal(error)) {
          this.connection = { state: 'refused', error };
          return;
        }
        await this.#wait(attempt++, error);
      }
    }
  }

  /** Connects at once instead of waiting. */
  connectNow(): void {
    this.#wake?.();
  }

  clear(): void {
    this.lines.clear();
    this.version++;
  }

  #add(batch: Parameters<Lines['push']>[0]): void {
    this.lines.push(batch);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.version++;
    }, DRAW_MILLIS);
  }

  #wait(attempt: number, error: unknown): Promise<void> {
    const millis = waitMillis(attempt);
    this.connection = { state: 'waiting', until: Date.now() + millis, error };
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, millis);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Whether trying again is pointless. */
function isFinal(error: unknown): boolean {
  return error instanceof ProtocolError && error.status >= 400 && error.status < 500 && error.status !== 429;
}

const DRAW_MILLIS = 200;
