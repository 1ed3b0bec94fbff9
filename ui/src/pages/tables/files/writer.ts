/**
 * Many writes in transactions of up to 100 entities of one partition, several at a time. A write that is refused is reported
 * and left out, and the rest of its transaction is written.
 */

import {
  entityToJson,
  errorMessage,
  ProtocolError,
  TRANSACTION_WRITES_MAX,
  type Tables,
  type Write,
} from '../../../protocol';

export interface Refusal {
  /** The line of a file, if the write came from one. */
  readonly line: number;
  readonly message: string;
}

interface Item {
  readonly write: Write;
  readonly line: number;
  readonly bytes: number;
}

interface Batch {
  items: Item[];
  bytes: number;
  rows: Set<string>;
}

export class TransactionWriter {
  written = 0;
  /** Writes that were refused, and the first of them. */
  refused = 0;
  readonly refusals: Refusal[] = [];

  readonly #waiting = new Map<string, Batch>();
  readonly #running = new Set<Promise<void>>();
  /** Rows of a partition that are being written: another write of the same row has to wait for them. */
  readonly #busy = new Map<string, number>();
  #waitingCount = 0;
  #fatal: unknown;

  constructor(
    readonly tables: Tables,
    readonly table: string,
    readonly signal: AbortSignal,
    readonly onprogress: () => void = () => undefined,
    /** Whether a refused write is none to report: it was already done, or somebody changed the row. */
    readonly isHarmless: (error: ProtocolError) => boolean = () => false,
  ) {}

  /** Takes a write. Waits while many are under way. Throws what ends all of them. */
  async add(write: Write, line = 0): Promise<void> {
    const [partition, row] = keysOf(write);
    const rowKey = JSON.stringify([partition, row]);
    const bytes = 600 + (write.kind === 'delete' ? 0 : entityToJson(write.entity).length * 2);
    let batch = this.#waiting.get(partition);
    if (batch && (batch.rows.has(row) || batch.bytes + bytes > BATCH_BYTES_MAX)) {
      await this.#send(partition, batch);
      batch = undefined;
    }
    while (this.#busy.has(rowKey)) await Promise.race(this.#running);
    this.#check();
    if (!batch) this.#waiting.set(partition, (batch = { items: [], bytes: 0, rows: new Set() }));
    batch.items.push({ write, line, bytes });
    batch.bytes += bytes;
    batch.rows.add(row);
    this.#waitingCount++;
    if (batch.items.length >= TRANSACTION_WRITES_MAX) await this.#send(partition, batch);
    else if (this.#waitingCount >= WAITING_MAX) await this.#sendLargest();
  }

  refuse(line: number, message: string): void {
    this.refused++;
    if (this.refusals.length < REFUSALS_KEPT) this.refusals.push({ line, message });
    if (this.refused > REFUSALS_MAX) this.#fatal ??= new Error(`Stopped: more than ${REFUSALS_MAX} rows were refused.`);
  }

  /** Writes what is left. */
  async finish(): Promise<void> {
    for (const [partition, batch] of [...this.#waiting]) await this.#send(partition, batch);
    await Promise.all(this.#running);
    this.#check();
  }

  /** Waits until nothing is under way, after an error or a cancel. */
  async settle(): Promise<void> {
    await Promise.all(this.#running);
  }

  #check(): void {
    if (this.#fatal !== undefined) throw this.#fatal;
    this.signal.throwIfAborted();
  }

  async #sendLargest(): Promise<void> {
    let largest: [string, Batch] | undefined;
    for (const entry of this.#waiting) {
      if (!largest || entry[1].items.length > largest[1].items.length) largest = entry;
    }
    if (largest) await this.#send(...largest);
  }

  async #send(partition: string, batch: Batch): Promise<void> {
    this.#waiting.delete(partition);
    this.#waitingCount -= batch.items.length;
    while (this.#running.size >= RUNNING_MAX) await Promise.race(this.#running);
    this.#check();
    const keys = [...batch.rows].map((row) => JSON.stringify([partition, row]));
    for (const key of keys) this.#busy.set(key, 1);
    const run = this.#run(batch.items).then(() => {
      for (const key of keys) this.#busy.delete(key);
      this.#running.delete(run);
    });
    this.#running.add(run);
  }

  /** Writes a transaction; without those that are refused. Never rejects. */
  async #run(all: Item[]): Promise<void> {
    let items = all;
    let attempts = 0;
    while (items.length > 0 && this.#fatal === undefined && !this.signal.aborted) {
      try {
        await this.tables.transaction(
          this.table,
          items.map(({ write }) => write),
          { signal: this.signal },
        );
        this.written += items.length;
        items = [];
      } catch (error) {
        const isBusy = error instanceof ProtocolError && (error.status === 503 || error.status === 500);
        if (isBusy && ++attempts <= ATTEMPTS_MAX) {
          await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** attempts));
          continue;
        }
        items = this.#without(items, error);
      }
      this.onprogress();
    }
  }

  /** The writes without the one that was refused; none if the error ends everything. */
  #without(items: Item[], error: unknown): Item[] {
    if (
      !(error instanceof ProtocolError) ||
      error.operation === undefined ||
      FATAL.has(error.code) ||
      error.isForbidden
    ) {
      this.#fatal ??= error;
      return [];
    }
    const item = items[error.operation];
    if (!item) {
      this.#fatal ??= error;
      return [];
    }
    if (!this.isHarmless(error)) this.refuse(item.line, errorMessage(error));
    return items.filter((other) => other !== item);
  }
}

function keysOf(write: Write): [string, string] {
  return write.kind === 'delete'
    ? [write.partitionKey, write.rowKey]
    : [write.entity.partitionKey, write.entity.rowKey];
}

const FATAL = new Set([
  'TableNotFound',
  'TableBeingDeleted',
  'AuthorizationFailure',
  'AuthorizationPermissionMismatch',
]);
/** Transactions at a time. */
const RUNNING_MAX = 4;
/** Writes that wait for others of their partition. */
const WAITING_MAX = 5000;
/** A transaction has at most 4 MiB. */
const BATCH_BYTES_MAX = 3_500_000;
const REFUSALS_KEPT = 200;
/** Each refused row costs a request, so a file that does not fit the table at all should not go on for hours. */
const REFUSALS_MAX = 2000;
const ATTEMPTS_MAX = 5;
