/** Recent and saved queries of tables, and the widths of columns, in the browser's storage. */

/* eslint-disable svelte/prefer-svelte-reactivity -- maps are replaced as a whole, or are not reactive */
import { readStored, writeStored } from '../../app/stored';

export interface RecentQuery {
  readonly account: string;
  readonly table: string;
  readonly filter: string;
}

export interface SavedQuery extends RecentQuery {
  readonly name: string;
  readonly select: readonly string[];
  readonly top: number;
}

class Queries {
  #recent = $state.raw<readonly RecentQuery[]>(readStored('tables.recent', isRecentList) ?? []);
  #saved = $state.raw<readonly SavedQuery[]>(readStored('tables.saved', isSavedList) ?? []);

  recent(account: string, table: string): RecentQuery[] {
    return this.#recent.filter((query) => query.account === account && query.table === table);
  }

  saved(account: string, table: string): SavedQuery[] {
    return this.#saved.filter((query) => query.account === account && query.table === table);
  }

  /** Notes a filter that was run; the newest is first, each once. */
  ran(query: RecentQuery): void {
    if (!query.filter.trim() || query.filter.length > FILTER_CHARACTERS_MAX) return;
    const others = this.#recent.filter((other) => !isSame(other, query));
    const ofTable = others.filter(({ account, table }) => account === query.account && table === query.table);
    const dropped = new Set(ofTable.slice(RECENT_MAX - 1));
    this.#setRecent([query, ...others.filter((other) => !dropped.has(other))].slice(0, RECENT_IN_ALL_MAX));
  }

  clearRecent(account: string, table: string): void {
    this.#setRecent(this.#recent.filter((query) => query.account !== account || query.table !== table));
  }

  /** Saves a query under its name; one of the same name is replaced. */
  save(query: SavedQuery): void {
    const others = this.#saved.filter(
      ({ account, table, name }) => account !== query.account || table !== query.table || name !== query.name,
    );
    this.#setSaved([...others, query].slice(-SAVED_IN_ALL_MAX));
  }

  remove(query: SavedQuery): void {
    this.#setSaved(this.#saved.filter((other) => other !== query));
  }

  #setRecent(list: readonly RecentQuery[]): void {
    this.#recent = list;
    writeStored('tables.recent', list.length ? list : undefined);
  }

  #setSaved(list: readonly SavedQuery[]): void {
    this.#saved = list;
    writeStored('tables.saved', list.length ? list : undefined);
  }
}

export const queries = new Queries();

/** Widths of columns that the user dragged, by account and table. */
export function readWidths(account: string, table: string): ReadonlyMap<string, number> {
  const all = readStored('tables.widths', isWidthList) ?? [];
  return new Map(all.find((entry) => entry[0] === account && entry[1] === table)?.[2]);
}

export function writeWidths(account: string, table: string, widths: ReadonlyMap<string, number>): void {
  const all = readStored('tables.widths', isWidthList) ?? [];
  const others = all.filter((entry) => entry[0] !== account || entry[1] !== table);
  const entry: WidthEntry = [account, table, [...widths].slice(0, WIDTHS_MAX)];
  writeStored('tables.widths', [...others.slice(-(WIDTH_TABLES_MAX - 1)), entry]);
}

type WidthEntry = [string, string, [string, number][]];

function isSame(a: RecentQuery, b: RecentQuery): boolean {
  return a.account === b.account && a.table === b.table && a.filter === b.filter;
}

function isRecentList(value: unknown): value is RecentQuery[] {
  return Array.isArray(value) && value.every((item) => hasTexts(item, ['account', 'table', 'filter']));
}

function isSavedList(value: unknown): value is SavedQuery[] {
  return (
    Array.isArray(value) &&
    value.every(
      (item: SavedQuery) =>
        hasTexts(item, ['account', 'table', 'filter', 'name']) &&
        Number.isInteger(item.top) &&
        Array.isArray(item.select) &&
        item.select.every((name) => typeof name === 'string'),
    )
  );
}

function isWidthList(value: unknown): value is WidthEntry[] {
  return (
    Array.isArray(value) &&
    value.every(
      (entry: unknown[]) =>
        Array.isArray(entry) &&
        typeof entry[0] === 'string' &&
        typeof entry[1] === 'string' &&
        Array.isArray(entry[2]) &&
        entry[2].every((pair: unknown[]) => typeof pair[0] === 'string' && typeof pair[1] === 'number'),
    )
  );
}

function hasTexts(value: unknown, names: readonly string[]): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    names.every((name) => typeof (value as Record<string, unknown>)[name] === 'string')
  );
}

const RECENT_MAX = 20;
const RECENT_IN_ALL_MAX = 200;
const SAVED_IN_ALL_MAX = 300;
const FILTER_CHARACTERS_MAX = 4000;
const WIDTHS_MAX = 200;
const WIDTH_TABLES_MAX = 50;
