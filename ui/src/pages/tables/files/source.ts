/** A file to import: its rows, the columns they have, and the entities they become. */

import { EDM_TYPES, parseEdm, type EdmType, type EdmValue, type Entity } from '../../../protocol';
import { keyProblem, nameProblem } from '../entity-form';
import { CsvReader } from './csv';
import { JsonReader, valuesOfJson, type RawValue } from './jsonl';

export type FileFormat = 'csv' | 'json';

export interface SourceRow {
  readonly line: number;
  readonly values: ReadonlyMap<string, RawValue>;
}

export interface RefusedRow {
  readonly line: number;
  readonly message: string;
}

export interface SourceColumn {
  readonly name: string;
  /** The types that the file names; empty if it names none. */
  readonly types: readonly EdmType[];
  /** The type that all values have, where the file names none. */
  readonly inferred: EdmType;
}

/** What is known of a file after it was read once. */
export interface Survey {
  readonly format: FileFormat;
  readonly rows: number;
  readonly columns: readonly SourceColumn[];
  readonly first: readonly SourceRow[];
  readonly refused: readonly RefusedRow[];
  readonly refusedCount: number;
}

/** Where a key comes from. */
export type KeySource =
  | { readonly from: 'column'; readonly column: string }
  | { readonly from: 'number' }
  | { readonly from: 'text'; readonly text: string };

export interface Mapping {
  readonly partitionKey: KeySource;
  readonly rowKey: KeySource;
  /** `file`: the types that the file names. `skip`: the column is not stored. */
  readonly types: ReadonlyMap<string, EdmType | 'file' | 'skip'>;
}

export function formatOf(name: string, start: string): FileFormat {
  if (/\.(jsonl?|ndjson)$/i.test(name)) return 'json';
  if (/\.(csv|tsv|txt)$/i.test(name)) return 'csv';
  return /^\uFEFF?\s*[[{]/.test(start) ? 'json' : 'csv';
}

/** The rows of a file, piece by piece, so that the page stays responsive and memory bounded. */
export async function* readRows(
  file: Blob,
  format: FileFormat,
  signal: AbortSignal,
  onread: (bytes: number) => void = () => undefined,
): AsyncGenerator<{ rows: SourceRow[]; refused: RefusedRow[] }> {
  const reader = format === 'csv' ? new CsvRows() : new JsonRows();
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let done = 0;
  for (let at = 0; at < file.size; at += PIECE_BYTES) {
    signal.throwIfAborted();
    const piece = await file.slice(at, at + PIECE_BYTES).arrayBuffer();
    done += piece.byteLength;
    let text: string;
    try {
      text = decoder.decode(piece, { stream: true });
    } catch {
      throw new Error('The file is not UTF-8. Save it with this encoding, and choose it again.');
    }
    yield reader.push(text);
    onread(done);
  }
  yield reader.end();
}

class CsvRows {
  readonly #reader = new CsvReader();
  #names: readonly string[] | undefined;
  #columns: { name: string; at: number; typeAt: number }[] = [];

  push(text: string) {
    return this.#rows(this.#reader.push(text));
  }

  end() {
    return this.#rows(this.#reader.end());
  }

  #rows(records: ReturnType<CsvReader['push']>): { rows: SourceRow[]; refused: RefusedRow[] } {
    const rows: SourceRow[] = [];
    const refused: RefusedRow[] = [];
    for (const { line, cells } of records) {
      if (!this.#names) {
        this.#header(cells.map((name) => name.trim()));
      } else if (cells.length !== this.#names.length) {
        refused.push({ line, message: `${cells.length} cells, but the first line has ${this.#names.length}.` });
      } else {
        rows.push({ line, values: this.#values(cells) });
      }
    }
    return { rows, refused };
  }

  #header(names: readonly string[]): void {
    const places = new Map(names.map((name, at) => [name, at]));
    const twice = names.find((name, at) => places.get(name) !== at);
    if (twice !== undefined) throw new Error(`Line 1: two columns have the name ${JSON.stringify(twice)}.`);
    const isType = (name: string) => name.endsWith('@type') && places.has(name.slice(0, -'@type'.length));
    this.#names = names;
    this.#columns = names.flatMap((name, at) =>
      isType(name) ? [] : [{ name, at, typeAt: places.get(`${name}@type`) ?? -1 }],
    );
  }

  #values(cells: readonly string[]): Map<string, RawValue> {
    const values = new Map<string, RawValue>();
    for (const { name, at, typeAt } of this.#columns) {
      const text = cells[at] ?? '';
      const type = cells[typeAt];
      // An empty cell is an absent property, unless its type says that it is an empty text.
      if (type) values.set(name, { text, type: type.replace('Edm.', '') as EdmType });
      else if (text !== '' || KEYS.has(name)) values.set(name, { text });
    }
    return values;
  }
}

class JsonRows {
  readonly #reader = new JsonReader();

  push(text: string) {
    return this.#rows(this.#reader.push(text));
  }

  end() {
    return this.#rows(this.#reader.end());
  }

  #rows(records: ReturnType<JsonReader['push']>): { rows: SourceRow[]; refused: RefusedRow[] } {
    const rows: SourceRow[] = [];
    const refused: RefusedRow[] = [];
    for (const { line, text } of records) {
      try {
        rows.push({ line, values: valuesOfJson(text) });
      } catch (error) {
        refused.push({ line, message: error instanceof Error ? error.message : String(error) });
      }
    }
    return { rows, refused };
  }
}

/** Reads a file once: its columns, their types, and its first rows. */
export async function survey(
  file: Blob,
  format: FileFormat,
  signal: AbortSignal,
  onread?: (bytes: number) => void,
): Promise<Survey> {
  const columns = new Map<string, { types: Set<EdmType>; open: Set<EdmType>; hasValues: boolean }>();
  const first: SourceRow[] = [];
  const refused: RefusedRow[] = [];
  let [rows, refusedCount] = [0, 0];
  for await (const piece of readRows(file, format, signal, onread)) {
    for (const row of piece.rows) {
      rows++;
      if (first.length < FIRST_ROWS) first.push(row);
      for (const [name, value] of row.values) {
        let column = columns.get(name);
        if (!column) columns.set(name, (column = { types: new Set(), open: new Set(TRIED), hasValues: false }));
        if (value.type) column.types.add(value.type);
        else if (value.text !== '') {
          column.hasValues = true;
          narrow(column.open, value.text);
        }
      }
      if (columns.size > COLUMNS_MAX) throw new Error(`Line ${row.line}: more than ${COLUMNS_MAX} different columns.`);
    }
    refusedCount += piece.refused.length;
    refused.push(...piece.refused.slice(0, Math.max(0, REFUSED_KEPT - refused.length)));
  }
  return {
    format,
    rows,
    columns: [...columns].map(([name, { types, open, hasValues }]) => ({
      name,
      types: [...types],
      inferred: (hasValues && TRIED.find((type) => open.has(type))) || 'String',
    })),
    first,
    refused,
    refusedCount,
  };
}

/** Removes the types that a text is not of, as `larimar import` does: numbers with leading zeros or a plus sign stay texts. */
function narrow(open: Set<EdmType>, text: string): void {
  for (const type of open) {
    const isNumber = type === 'Int32' || type === 'Int64' || type === 'Double';
    const fits = isNumber
      ? NUMBER.test(text) && (type !== 'Double' || text.replace(/\D/g, '').length <= 17)
      : text === text.trim();
    if (!fits || 'error' in parseEdm(type, text)) open.delete(type);
  }
}

/** The mapping that a file suggests. */
export function suggestedMapping({ columns }: Survey): Mapping {
  const names = columns.map(({ name }) => name);
  const key = (wanted: string, fallback: KeySource): KeySource =>
    names.includes(wanted) ? { from: 'column', column: wanted } : fallback;
  const [firstName] = names;
  return {
    partitionKey: key(
      'PartitionKey',
      firstName === undefined ? { from: 'number' } : { from: 'column', column: firstName },
    ),
    rowKey: key('RowKey', { from: 'number' }),
    types: new Map(
      columns
        .filter(({ name }) => !KEYS.has(name))
        .map(({ name, types, inferred }) => [name, name === 'Timestamp' ? 'skip' : types.length ? 'file' : inferred]),
    ),
  };
}

/** A mapping with another type for a column. */
export function withType(mapping: Mapping, name: string, type: EdmType | 'file' | 'skip'): Mapping {
  return { ...mapping, types: new Map(mapping.types).set(name, type) };
}

/** The entity of a row, or why there is none. */
export function entityOfRow(row: SourceRow, mapping: Mapping, number: number): Entity | { readonly error: string } {
  const partitionKey = keyOf(row, mapping.partitionKey, number);
  const rowKey = keyOf(row, mapping.rowKey, number);
  for (const [name, key] of [
    ['PartitionKey', partitionKey],
    ['RowKey', rowKey],
  ] as const) {
    if (key === undefined) return { error: `The row has no ${name}.` };
    const problem = keyProblem(key);
    if (problem) return { error: `${name}: ${problem}` };
  }
  const properties = new Map<string, EdmValue>();
  for (const [name, value] of row.values) {
    if (KEYS.has(name) || name === 'Timestamp') continue;
    const wanted = mapping.types.get(name) ?? 'file';
    if (wanted === 'skip') continue;
    const problem = nameProblem(name);
    if (problem) return { error: `${name}: ${problem}` };
    const type = wanted === 'file' ? (value.type ?? 'String') : wanted;
    if (!EDM_TYPES.includes(type)) return { error: `${name}: unknown type ${type}.` };
    const parsed = parseEdm(type, value.text);
    if ('error' in parsed) return { error: `${name}: ${parsed.error}` };
    properties.set(name, parsed);
  }
  return { partitionKey: partitionKey ?? '', rowKey: rowKey ?? '', properties };
}

function keyOf(row: SourceRow, source: KeySource, number: number): string | undefined {
  if (source.from === 'text') return source.text;
  // Filled with zeros, so that rows sort by number.
  if (source.from === 'number') return String(number).padStart(10, '0');
  return row.values.get(source.column)?.text;
}

const KEYS = new Set(['PartitionKey', 'RowKey']);
const TRIED: readonly EdmType[] = ['Boolean', 'Int32', 'Int64', 'Double', 'DateTime', 'Guid'];
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const PIECE_BYTES = 64 * 1024;
const FIRST_ROWS = 20;
const REFUSED_KEPT = 100;
const COLUMNS_MAX = 1000;
