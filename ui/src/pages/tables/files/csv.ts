/**
 * CSV as `larimar export` and Azure Storage Explorer write it: `PartitionKey,RowKey,Timestamp`, then each property with its type
 * (`Age,Age@type`). An empty cell with a type is an empty text, one without a type an absent property.
 */

import { edmText, type EdmValue, type Entity } from '../../../protocol';

export interface CsvRecord {
  /** The line it begins in, from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

/** Reads CSV piece by piece. */
export class CsvReader {
  #cells: string[] = [];
  #cell = '';
  #line = 1;
  #recordLine = 1;
  #isQuoted = false;
  /** A quote was seen in a quoted cell: the end of it, or the first of two. */
  #maybeEnd = false;
  #afterReturn = false;
  #isStart = true;
  #recordLength = 0;

  /** The records that end in this piece. Throws if a record is too long, as after a quote that is not closed. */
  push(piece: string): CsvRecord[] {
    const records: CsvRecord[] = [];
    let at = this.#isStart && piece.startsWith('\uFEFF') ? 1 : 0;
    if (piece.length) this.#isStart = false;
    while (at < piece.length) {
      const code = piece.charCodeAt(at);
      if (this.#afterReturn) {
        this.#afterReturn = false;
        if (code === LF) {
          at++;
          continue;
        }
      }
      if (this.#isQuoted && !this.#maybeEnd) {
        at = this.#quoted(piece, at);
        continue;
      }
      if (this.#maybeEnd) {
        this.#maybeEnd = false;
        if (code === QUOTE) {
          this.#cell += '"';
          at++;
          continue;
        }
        this.#isQuoted = false;
      }
      if (code === QUOTE && this.#cell === '') {
        this.#isQuoted = true;
        at++;
      } else if (code === COMMA) {
        this.#endCell();
        at++;
      } else if (code === LF || code === CR) {
        this.#afterReturn = code === CR;
        this.#endRecord(records);
        this.#line++;
        this.#recordLine = this.#line;
        at++;
      } else {
        at = this.#plain(piece, at);
      }
    }
    return records;
  }

  end(): CsvRecord[] {
    const records: CsvRecord[] = [];
    if (this.#isQuoted && !this.#maybeEnd) {
      throw new Error(`Line ${this.#recordLine}: a quote is not closed.`);
    }
    this.#endRecord(records);
    return records;
  }

  /** Takes the text up to the next quote. */
  #quoted(piece: string, from: number): number {
    const quote = piece.indexOf('"', from);
    const to = quote < 0 ? piece.length : quote;
    const text = piece.slice(from, to);
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.#line++;
    this.#take(text);
    if (quote < 0) return to;
    this.#maybeEnd = true;
    return quote + 1;
  }

  #plain(piece: string, from: number): number {
    PLAIN.lastIndex = from;
    const text = PLAIN.exec(piece)?.[0] ?? piece.charAt(from);
    this.#take(text);
    return from + text.length;
  }

  #take(text: string): void {
    this.#cell += text;
    this.#recordLength += text.length;
    if (this.#recordLength > RECORD_CHARACTERS_MAX) {
      throw new Error(`Line ${this.#recordLine}: a row of more than 16 MiB. Perhaps a quote is not closed.`);
    }
  }

  #endCell(): void {
    this.#cells.push(this.#cell);
    this.#cell = '';
    if (this.#cells.length > CELLS_MAX) throw new Error(`Line ${this.#recordLine}: more than ${CELLS_MAX} columns.`);
  }

  #endRecord(records: CsvRecord[]): void {
    const isBlank = this.#cells.length === 0 && this.#cell === '' && !this.#maybeEnd;
    if (!isBlank) {
      this.#endCell();
      records.push({ line: this.#recordLine, cells: this.#cells });
    }
    this.#cells = [];
    this.#recordLength = 0;
    this.#maybeEnd = false;
    this.#isQuoted = false;
  }
}

/** The rows of an export, whose columns are known only at its end. */
export class CsvWriter {
  readonly #columns = new Map<string, number>();

  constructor(readonly options: { readonly types: boolean; readonly formulaSafe: boolean }) {}

  /** A row without its line end, and how many properties were known when it was made. */
  row({ partitionKey, rowKey, timestamp, properties }: Entity): { text: string; columns: number } {
    for (const name of properties.keys()) if (!this.#columns.has(name)) this.#columns.set(name, this.#columns.size);
    const cells = [this.#text(partitionKey), this.#text(rowKey), timestamp ?? ''].map(quote);
    for (const name of this.#columns.keys()) {
      const value = properties.get(name);
      cells.push(value ? quote(this.#value(value)) : '');
      if (this.options.types) cells.push(value ? `Edm.${value.type}` : '');
    }
    return { text: cells.join(','), columns: this.#columns.size };
  }

  get header(): string {
    const names = [...this.#columns.keys()].flatMap((name) => (this.options.types ? [name, `${name}@type`] : [name]));
    return ['PartitionKey', 'RowKey', 'Timestamp', ...names].map(quote).join(',');
  }

  /** What a row lacks that was made when fewer properties were known. */
  padding(columns: number): string {
    return ','.repeat((this.#columns.size - columns) * (this.options.types ? 2 : 1));
  }

  #value(value: EdmValue): string {
    const text = edmText(value);
    return value.type === 'String' || value.type === 'Binary' ? this.#text(text) : text;
  }

  #text(text: string): string {
    return this.options.formulaSafe && /^[=+\-@'\t\r]/.test(text) ? `'${text}` : text;
  }
}

function quote(cell: string): string {
  return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

const [LF, CR, COMMA, QUOTE] = [0x0a, 0x0d, 0x2c, 0x22];
const PLAIN = /[^,\r\n"]+|"/y;
const RECORD_CHARACTERS_MAX = 16 * 1024 * 1024;
const CELLS_MAX = 4096;
