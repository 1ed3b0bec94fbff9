/**
 * The rows of a query by index. Pages are fetched when they come into view; of pages that were left only the token stays, and
 * they are fetched again. So a million rows take as much memory as a few thousand.
 */

/* eslint-disable svelte/prefer-svelte-reactivity -- maps are replaced as a whole, or are not reactive */
import {
  isAbort,
  type Continuation,
  type Entity,
  type Explanation,
  type QueryOptions,
  type Tables,
} from '../../protocol';
import { addCost, NO_COST, type Cost } from './plan';

export interface Query {
  readonly table: string;
  readonly filter: string;
  /** Empty: all properties. */
  readonly select: readonly string[];
  /** At most so many rows in all; 0: no limit. */
  readonly top: number;
}

/** Where a page begins, how many rows it had, and the rows while they are kept. */
interface PageSlot {
  start: number;
  count: number;
  readonly next: Continuation | undefined;
  rows: readonly Entity[] | undefined;
  /** For the choice of pages to drop. */
  usedAt: number;
}

export class Rows {
  /** Rows that are known so far. */
  count = $state(0);
  /** Whether `count` is all. */
  done = $state(false);
  loading = $state(false);
  error = $state.raw<unknown>();
  cost = $state.raw<Cost>(NO_COST);
  plan = $state.raw<Explanation>();
  /** Changes when rows arrive. */
  version = $state(0);
  /** Whether all rows are being walked through. */
  walking = $state(false);
  /** Properties seen, in the order in which they came, with their types. */
  columns = $state.raw<ReadonlyMap<string, readonly string[]>>(new Map());

  readonly #pages: PageSlot[] = [];
  readonly #controller = new AbortController();
  readonly #fetching = new Set<number>();
  #next: Continuation | undefined;
  #clock = 0;
  #isAppending = false;
  #wanted: readonly [number, number] = [0, 0];

  constructor(
    readonly tables: Tables,
    readonly query: Query,
  ) {}

  /** Aborts what is on its way. The rows are not used after this. */
  close(): void {
    this.#controller.abort();
  }

  /** The row at an index; `undefined` if it is not here. `onvisible` fetches it. */
  get(index: number): Entity | undefined {
    void this.version;
    const page = this.#pages[this.#pageOf(index)];
    return page?.rows?.[index - page.start];
  }

  /** How many page tokens and rows are in memory, for tests. */
  get kept(): { pages: number; rows: number } {
    const rows = this.#pages.reduce((sum, page) => sum + (page.rows?.length ?? 0), 0);
    return { pages: this.#pages.length, rows };
  }

  /** Fetches what is missing among these rows, and the page after the last one if they are near the end. */
  show(first: number, end: number): void {
    this.#wanted = [first, end];
    this.#fill();
  }

  /** Fetches the first page, or the next one after an error. */
  start(): void {
    this.error = undefined;
    if (this.#pages.length === 0) void this.#append();
    else this.#fill();
  }

  /** Goes through all pages, to know how many rows there are. */
  async walk(): Promise<void> {
    this.walking = true;
    while (!this.done && this.walking && !this.error) await this.#append();
    this.walking = false;
  }

  stopWalking(): void {
    this.walking = false;
  }

  /** Shows an entity as it is now. */
  put(entity: Entity): void {
    const [page, at] = this.#find(entity.partitionKey, entity.rowKey);
    if (!page?.rows) return;
    page.rows = page.rows.with(at, entity);
    this.#learn([entity]);
    this.version++;
  }

  /** Forgets an entity that was deleted. */
  remove(partitionKey: string, rowKey: string): void {
    const [page, at] = this.#find(partitionKey, rowKey);
    if (!page?.rows) return;
    page.rows = page.rows.toSpliced(at, 1);
    page.count--;
    for (const later of this.#pages.slice(this.#pages.indexOf(page) + 1)) later.start--;
    this.count--;
    this.version++;
  }

  #find(partitionKey: string, rowKey: string): [PageSlot | undefined, number] {
    for (const page of this.#pages) {
      const at = page.rows?.findIndex((row) => row.rowKey === rowKey && row.partitionKey === partitionKey) ?? -1;
      if (at >= 0) return [page, at];
    }
    return [undefined, -1];
  }

  #fill(): void {
    const [first, end] = this.#wanted;
    if (this.error) return;
    for (let at = this.#pageOf(first); at >= 0 && at < this.#pages.length; at++) {
      const page = this.#pages[at];
      if (!page || page.start >= end) break;
      page.usedAt = ++this.#clock;
      if (!page.rows) void this.#refetch(at, page);
    }
    if (!this.done && !this.walking && end + AHEAD_ROWS >= this.count) void this.#append();
  }

  /** Fetches the page after the last one. */
  async #append(): Promise<void> {
    if (this.#isAppending || this.done || this.#controller.signal.aborted) return;
    this.#isAppending = true;
    this.loading = true;
    try {
      const left = this.query.top ? this.query.top - this.count : PAGE_ROWS;
      const from = this.#next;
      const page = await this.#fetch(from, Math.min(left, PAGE_ROWS), 'run');
      this.cost = addCost(this.cost, page.explanation);
      this.plan ??= page.explanation;
      this.#next = page.next;
      const { entities } = page;
      if (entities.length > 0) {
        const slot = { start: this.count, count: entities.length, next: from, rows: entities, usedAt: ++this.#clock };
        this.#pages.push(slot);
        this.#learn(entities);
        this.count += entities.length;
        this.#dropPages();
      }
      this.done = !page.next || (this.query.top > 0 && this.count >= this.query.top);
      this.version++;
    } catch (error) {
      if (!isAbort(error)) this.error = error;
    } finally {
      this.#isAppending = false;
      this.loading = false;
    }
    // An empty page may be followed by others.
    if (!this.walking) this.#fill();
  }

  /** Fetches the rows of a page again. They may have become fewer; those that were added wait for the next run. */
  async #refetch(at: number, page: PageSlot): Promise<void> {
    if (this.#fetching.has(at) || this.#fetching.size >= FETCHES_MAX) return;
    this.#fetching.add(at);
    try {
      const rows: Entity[] = [];
      let from = page.next;
      do {
        const got = await this.#fetch(from, page.count - rows.length, undefined);
        rows.push(...got.entities);
        from = got.next;
      } while (from && rows.length < page.count && this.#isWanted(page));
      if (rows.length >= page.count || !from) page.rows = rows;
      page.usedAt = ++this.#clock;
      this.#dropPages();
      this.version++;
    } catch (error) {
      if (!isAbort(error)) this.error = error;
    } finally {
      this.#fetching.delete(at);
    }
    this.#fill();
  }

  #isWanted(page: PageSlot): boolean {
    const [first, end] = this.#wanted;
    return page.start < end && page.start + page.count > first;
  }

  #fetch(next: Continuation | undefined, top: number, explain: 'run' | undefined) {
    const { table, filter, select } = this.query;
    const options: QueryOptions = { filter, select, top, next, explain, signal: this.#controller.signal };
    return this.tables.query(table, options);
  }

  #dropPages(): void {
    const kept = this.#pages.filter((page) => page.rows);
    if (kept.length <= PAGES_KEPT) return;
    kept.sort((a, b) => a.usedAt - b.usedAt);
    const wanted = this.walking ? new Set(kept.filter((page) => this.#isWanted(page))) : new Set<PageSlot>();
    for (const page of kept.slice(0, kept.length - PAGES_KEPT)) if (!wanted.has(page)) page.rows = undefined;
  }

  /** The page of an index: the last one that begins at or before it. -1 if there are none. */
  #pageOf(index: number): number {
    let [low, high] = [0, this.#pages.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#pages[middle]?.start ?? 0) <= index) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  #learn(entities: readonly Entity[]): void {
    const known = this.columns;
    let changed: Map<string, readonly string[]> | undefined;
    for (const { properties } of entities) {
      for (const [name, { type }] of properties) {
        const types = (changed ?? known).get(name);
        if (types?.includes(type) || (!types && (changed ?? known).size >= COLUMNS_MAX)) continue;
        changed ??= new Map(known);
        changed.set(name, [...(types ?? []), type]);
      }
    }
    if (changed) this.columns = changed;
  }
}

/** Rows of one request: few enough that reading them is not felt while scrolling. */
export const PAGE_ROWS = 500;
/** Pages whose rows stay in memory. */
const PAGES_KEPT = 12;
/** The next page is fetched when so few rows are left below the view. */
const AHEAD_ROWS = 200;
const FETCHES_MAX = 2;
/** Entities may have any properties; a grid of more columns helps nobody. */
const COLUMNS_MAX = 1000;
