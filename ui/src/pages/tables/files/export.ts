/** The rows of a query as a file: CSV or JSON lines. */

import type { Tables } from '../../../protocol';
import { CsvWriter } from './csv';
import { entityJson } from './jsonl';

export interface ExportOptions {
  readonly format: 'csv' | 'jsonl';
  readonly types: boolean;
  readonly formulaSafe: boolean;
}

export interface ExportQuery {
  readonly table: string;
  readonly filter: string;
  readonly select: readonly string[];
  readonly top: number;
}

/** Where the text of the file goes. */
export interface Sink {
  write(text: string): Promise<void> | void;
}

/** Writes the rows of a query to a sink. Returns how many there were. */
export async function exportRows(
  tables: Tables,
  query: ExportQuery,
  options: ExportOptions,
  sink: Sink,
  signal: AbortSignal,
  onprogress: (rows: number) => void,
): Promise<number> {
  const output = options.format === 'csv' ? new CsvOutput(options) : new LinesOutput();
  const { table, filter, top } = query;
  const select = query.select.length ? [...new Set(['PartitionKey', 'RowKey', ...query.select])] : [];
  let [rows, next] = [0, undefined as Awaited<ReturnType<Tables['query']>>['next']];
  do {
    const left = top ? Math.min(1000, top - rows) : undefined;
    const page = await tables.query(table, { filter, select, top: left, next, signal });
    const text = output.page(page.entities);
    if (text) await sink.write(text);
    rows += page.entities.length;
    next = page.next;
    onprogress(rows);
  } while (next && (!top || rows < top));
  await output.end(sink);
  return rows;
}

type Entities = Awaited<ReturnType<Tables['query']>>['entities'];

class LinesOutput {
  page(entities: Entities): string {
    return entities.map((entity) => `${entityJson(entity)}\n`).join('');
  }

  end(): void {
    // Every line is written already.
  }
}

/**
 * All columns are known only at the end, so pages wait until then: as blobs, which browsers move to disk when there are many.
 */
class CsvOutput {
  readonly #writer: CsvWriter;
  readonly #pages: { rows: Blob; columns: number[] }[] = [];

  constructor(options: ExportOptions) {
    this.#writer = new CsvWriter(options);
  }

  page(entities: Entities): string {
    const rows = entities.map((entity) => this.#writer.row(entity));
    const text = JSON.stringify(rows.map((row) => row.text));
    this.#pages.push({ rows: new Blob([text]), columns: rows.map((row) => row.columns) });
    return '';
  }

  async end(sink: Sink): Promise<void> {
    await sink.write(`${this.#writer.header}\r\n`);
    for (const { rows, columns } of this.#pages) {
      const texts = JSON.parse(await rows.text()) as string[];
      await sink.write(texts.map((text, at) => `${text}${this.#writer.padding(columns[at] ?? 0)}\r\n`).join(''));
    }
  }
}
