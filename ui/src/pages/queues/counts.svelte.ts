/** The approximate numbers of messages of the queues that are visible: asked for a few at a time, as they are scrolled into view. */

import { SvelteMap } from 'svelte/reactivity';
import { isAbort, type Client } from '../../protocol';

/** How many queues are asked at once. */
const AT_ONCE = 4;

export class Counts {
  readonly #known = new SvelteMap<string, number | 'unknown'>();
  readonly #controller = new AbortController();
  #wanted: string[] = [];
  #running = 0;

  constructor(readonly client: Client) {}

  get(queue: string): number | 'unknown' | undefined {
    return this.#known.get(queue);
  }

  /** These are visible now; others need not be asked any more. */
  want(queues: readonly string[]): void {
    this.#wanted = queues.filter((queue) => !this.#known.has(queue));
    while (this.#running < AT_ONCE && this.#wanted.length > 0) void this.#run();
  }

  forget(): void {
    this.#known.clear();
  }

  stop(): void {
    this.#wanted = [];
    this.#controller.abort();
  }

  async #run(): Promise<void> {
    this.#running++;
    const { signal } = this.#controller;
    for (let queue = this.#wanted.shift(); queue !== undefined && !signal.aborted; queue = this.#wanted.shift()) {
      if (this.#known.has(queue)) continue;
      try {
        const { approximateMessages } = await this.client.queues.properties(queue, { signal });
        this.#known.set(queue, approximateMessages);
      } catch (error) {
        if (isAbort(error)) break;
        // Deleted meanwhile, or not allowed: the number is not known.
        this.#known.set(queue, 'unknown');
      }
    }
    this.#running--;
  }
}
