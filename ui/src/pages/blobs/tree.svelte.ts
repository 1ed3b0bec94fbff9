/**
 * The blobs of a container as a tree by `/`, as far as they were loaded: one array of the rows that are shown. A directory is
 * loaded when it is opened, a page at a time as its end is scrolled into view.
 */

import { isAbort, type BlobPage } from '../../protocol';

interface Place {
  /** The full name, or the full prefix with its `/`. */
  readonly name: string;
  /** How deep below the directory that is shown. */
  readonly depth: number;
}

export interface Directory extends Place {
  readonly kind: 'directory';
  readonly open: boolean;
}

export interface File extends Place {
  readonly kind: 'blob';
  readonly bytes: number;
  readonly contentType: string;
  readonly lastModified: string;
  readonly tier: string;
  readonly leased: boolean;
}

/** What is not loaded yet: `name` is the prefix that is listed. */
export interface Rest extends Place {
  readonly kind: 'rest';
  readonly marker: string;
  readonly state: 'waiting' | 'loading' | 'failed' | 'full';
  readonly error?: unknown;
}

export interface Nothing extends Place {
  readonly kind: 'nothing';
}

export type Row = Directory | File | Rest | Nothing;
/** A blob, or all below a directory. */
export type Item = Pick<Directory | File, 'kind' | 'name'>;
export type List = (prefix: string, marker: string, signal: AbortSignal) => Promise<BlobPage>;

/** Rows that are kept at most; beyond, the user has to narrow the list. */
export const ROWS_MAX = 250_000;
/** Requests at once. */
const LOADS_MAX = 3;

export class Tree {
  /** Grows when rows change. */
  version = $state(0);
  count = $state(0);
  /** Whether the first page is there. */
  ready = $state(false);
  /** Why the first page is not there. */
  error = $state.raw<unknown>();

  #rows: Row[] = [];
  readonly #controller = new AbortController();
  #loads = 0;

  constructor(
    readonly prefix: string,
    readonly list: List,
    /** Directories to open when they appear. */
    readonly opened: readonly string[] = [],
    readonly rowsMax = ROWS_MAX,
  ) {
    this.#rows = [{ kind: 'rest', name: prefix, marker: '', depth: 0, state: 'waiting' }];
    void this.#load(this.#rows[0] as Rest);
  }

  get(index: number): Row | undefined {
    return this.#rows[index];
  }

  /** Whether everything below the directory is loaded. */
  get isWhole(): boolean {
    void this.version;
    return !this.#rows.some(({ kind }) => kind === 'rest');
  }

  /** The names of the directories that are open. */
  openNames(): string[] {
    return this.#rows.flatMap((row) => (row.kind === 'directory' && row.open ? [row.name] : []));
  }

  /** Loads what is missing between two rows. */
  visible(first: number, end: number): void {
    for (let at = first; at < Math.min(end, this.#rows.length); at++) {
      const row = this.#rows[at];
      if (row?.kind === 'rest' && row.state === 'waiting') void this.#load(row);
    }
  }

  retry(row: Rest): void {
    void this.#load(row);
  }

  /** Opens or closes a directory. */
  toggle(directory: Directory): void {
    const at = this.#rows.indexOf(directory);
    if (at < 0) return;
    this.#change(directory, { ...directory, open: !directory.open });
    if (!directory.open) {
      const rest: Rest = {
        kind: 'rest',
        name: directory.name,
        marker: '',
        depth: directory.depth + 1,
        state: 'waiting',
      };
      this.#replace(at + 1, 0, [rest]);
      void this.#load(rest);
    } else {
      let end = at + 1;
      while ((this.#rows[end]?.depth ?? 0) > directory.depth) end++;
      this.#replace(at + 1, end - at - 1, []);
    }
  }

  /** Takes blobs and directories out, after they were deleted. */
  remove(items: readonly Item[]): void {
    const isGone = (row: Row) =>
      items.some(({ kind, name }) =>
        kind === 'blob' ? row.kind === 'blob' && row.name === name : row.name.startsWith(name),
      );
    this.#rows = this.#rows.filter((row) => !isGone(row) || (row.kind === 'rest' && row.name === this.prefix));
    this.#replace(0, 0, []);
  }

  stop(): void {
    this.#controller.abort();
  }

  async #load(waiting: Rest): Promise<void> {
    if (this.#loads >= LOADS_MAX) return;
    const { signal } = this.#controller;
    const rest: Rest = { ...waiting, state: 'loading' };
    this.#change(waiting, rest);
    this.#loads++;
    try {
      this.#insert(rest, await this.list(rest.name, rest.marker, signal));
    } catch (error) {
      if (isAbort(error)) return;
      this.#change(rest, { ...rest, state: 'failed', error });
      if (!this.ready) this.error = error;
    } finally {
      this.#loads--;
    }
    // One that waited while others were loading; at the latest it is loaded when it is scrolled into view.
    const next = this.#rows.find(
      (row): row is Rest => row.kind === 'rest' && row.state === 'waiting' && row.marker === '',
    );
    if (next) void this.#load(next);
  }

  #insert(rest: Rest, page: BlobPage): void {
    const at = this.#rows.indexOf(rest);
    if (at < 0) return;
    const { depth } = rest;
    const fresh = rowsOf(page, depth);
    const rows: Row[] = [];
    for (const row of fresh) {
      const isOpen = row.kind === 'directory' && this.opened.includes(row.name);
      rows.push(isOpen ? { ...row, open: true } : row);
      if (isOpen) {
        rows.push({ kind: 'rest', name: row.name, marker: '', depth: depth + 1, state: 'waiting' });
      }
    }
    if (page.next) {
      const isFull = this.#rows.length + rows.length >= this.rowsMax;
      rows.push({ kind: 'rest', name: rest.name, marker: page.next, depth, state: isFull ? 'full' : 'waiting' });
    } else if (rows.length === 0 && rest.marker === '' && depth > 0) {
      rows.push({ kind: 'nothing', name: rest.name, depth });
    }
    this.ready = true;
    this.error = undefined;
    this.#replace(at, 1, rows);
  }

  /** Rows are replaced and never changed, so that they are drawn again. */
  #change(row: Row, changed: Row): void {
    const at = this.#rows.indexOf(row);
    if (at >= 0) this.#replace(at, 1, [changed]);
  }

  #replace(at: number, removed: number, rows: readonly Row[]): void {
    this.#rows.splice(at, removed, ...rows);
    this.count = this.#rows.length;
    this.version++;
  }
}

/** The rows of a page in the order of names, as the service has it. */
function rowsOf(page: BlobPage, depth: number): (Directory | File)[] {
  const directories = page.prefixes.map((name): Directory => ({ kind: 'directory', name, depth, open: false }));
  const files = page.blobs.map((blob): File => ({
    kind: 'blob',
    name: blob.name,
    depth,
    bytes: blob.bytes,
    contentType: blob.contentType,
    lastModified: blob.lastModified,
    tier: blob.accessTier ?? '',
    leased: blob.leaseState === 'leased',
  }));
  return [...directories, ...files].sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
}

/** The last part of a name: `c` of `a/b/c`, `b/` of `a/b/`. */
export function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('/', name.length - 2) + 1);
}

/** The directories above a prefix, from the top: `a/b/` gives `a/` and `a/b/`. */
export function ancestors(prefix: string): string[] {
  const found: string[] = [];
  for (let at = prefix.indexOf('/'); at >= 0; at = prefix.indexOf('/', at + 1)) found.push(prefix.slice(0, at + 1));
  return found;
}
