/** The Table service: tables, entities, queries, transactions, stored access policies. */

import { parsePolicies, policiesToXml, type StoredPolicy } from './acl';
import { entityOfJson, entityToJson, type Entity } from './edm';
import { parseErrorBody, ProtocolError } from './error';
import { parseJson, type Json } from './json';
import type { CallOptions, RequestOptions, Transport } from './transport';

/** Where the next page of a query begins. */
export interface Continuation {
  readonly partitionKey: string;
  readonly rowKey?: string;
}

/** How the server answered a query (`x-larimar-explain`). */
export interface Explanation {
  /** The kind of the plan, such as `partition-scan`, and the key ranges. */
  readonly plan: string;
  /** The first word of the plan: `nothing`, `point`, `points`, `row-range`, `row-ranges`, `partition-scan`, `partition-range`, `table-scan`. */
  readonly kind: string;
  /** What of the filter is checked for each row. */
  readonly filter?: string;
  readonly rowsRead: number;
  readonly rowsReturned: number;
  readonly micros: number;
}

export interface QueryOptions extends CallOptions {
  readonly filter?: string | undefined;
  readonly select?: readonly string[] | undefined;
  /** At most so many rows in this page, up to 1,000. */
  readonly top?: number | undefined;
  readonly next?: Continuation | undefined;
  /** `plan` asks for the plan alone; the page is then empty. A server in strict mode ignores it. */
  readonly explain?: 'run' | 'plan' | undefined;
}

export interface EntityPage {
  readonly entities: Entity[];
  readonly next?: Continuation;
  readonly explanation?: Explanation;
}

/** One write, alone or in a transaction. Without an etag an update also inserts; `*` is any version. */
export type Write =
  | { readonly kind: 'insert'; readonly entity: Entity }
  | { readonly kind: 'merge' | 'replace'; readonly entity: Entity; readonly etag?: string }
  | { readonly kind: 'delete'; readonly partitionKey: string; readonly rowKey: string; readonly etag: string };

/** Writes of one transaction: at most so many, of one partition, each row once. */
export const TRANSACTION_WRITES_MAX = 100;
/** Rows of one page. */
export const PAGE_ROWS_MAX = 1000;

export class Tables {
  constructor(readonly transport: Transport) {}

  /** A page of tables in the order of their names. */
  async list(
    options: CallOptions & { prefix?: string; next?: string } = {},
  ): Promise<{ names: string[]; next?: string }> {
    const { credential } = this.transport;
    // A signature for one table cannot list, but names its table.
    if (credential.kind === 'sas' && credential.scope?.service === 'table') return { names: [credential.scope.name] };
    const { prefix } = options;
    const response = await this.#json({
      path: '/Tables',
      query: {
        $filter: prefix ? `TableName ge '${prefix}' and TableName lt '${prefix}~'` : undefined,
        NextTableName: options.next,
      },
      signal: options.signal,
    });
    const body = (await response.json()) as { value: { TableName: string }[] };
    const next = response.headers.get('x-ms-continuation-NextTableName');
    return { names: body.value.map((table) => table.TableName), ...(next ? { next } : {}) };
  }

  /** All tables, page by page. */
  async *all(options: CallOptions = {}): AsyncGenerator<string[]> {
    let next: string | undefined;
    do {
      const page = await this.list({ ...options, ...(next === undefined ? {} : { next }) });
      yield page.names;
      next = page.next;
    } while (next !== undefined);
  }

  async create(table: string, options: CallOptions = {}): Promise<void> {
    await this.#json({
      method: 'POST',
      path: '/Tables',
      headers: { 'content-type': JSON_TYPE, prefer: 'return-no-content' },
      body: JSON.stringify({ TableName: table }),
      signal: options.signal,
    });
  }

  async delete(table: string, options: CallOptions = {}): Promise<void> {
    await this.#json({ method: 'DELETE', path: `/Tables(${keyLiteral(table)})`, signal: options.signal });
  }

  /** A page of a query. An empty page may have a continuation. */
  async query(table: string, options: QueryOptions = {}): Promise<EntityPage> {
    const explain = options.explain && { run: 'true', plan: 'plan' }[options.explain];
    const response = await this.#json({
      path: `/${table}()`,
      query: {
        $filter: options.filter?.trim() || undefined,
        $select: options.select?.length ? options.select.join(',') : undefined,
        $top: options.top,
        NextPartitionKey: options.next?.partitionKey,
        NextRowKey: options.next?.rowKey,
      },
      headers: { 'x-larimar-explain': explain },
      signal: options.signal,
    });
    const body = parseJson(await response.text());
    const value = body instanceof Map ? body.get('value') : undefined;
    if (!Array.isArray(value)) throw new ProtocolError(0, '', 'The answer of the query has no rows.');
    const next = continuation(response.headers);
    const explanation = explanationOf(response.headers);
    return {
      entities: value.map((json) => entityOfJson(json as Map<string, Json>)),
      ...(next ? { next } : {}),
      ...(explanation ? { explanation } : {}),
    };
  }

  /** The pages of a query. */
  async *pages(table: string, options: QueryOptions = {}): AsyncGenerator<EntityPage> {
    let next = options.next;
    do {
      const page = await this.query(table, { ...options, next });
      yield page;
      next = page.next;
    } while (next);
  }

  async get(table: string, partitionKey: string, rowKey: string, options: CallOptions = {}): Promise<Entity> {
    const response = await this.#json({ path: entityPath(table, partitionKey, rowKey), signal: options.signal });
    return entityOfJson(parseJson(await response.text()) as Map<string, Json>);
  }

  /** Runs one write. Returns the new etag, except of a delete. */
  async write(table: string, write: Write, options: CallOptions = {}): Promise<string | undefined> {
    const { method, path, headers, body } = requestOfWrite(table, write);
    const response = await this.#json({
      method,
      path,
      headers,
      ...(body === undefined ? {} : { body }),
      signal: options.signal,
    });
    return response.headers.get('etag') ?? undefined;
  }

  /** Runs up to 100 writes of one partition as one transaction. Returns their new etags in order. */
  async transaction(
    table: string,
    writes: readonly Write[],
    options: CallOptions = {},
  ): Promise<(string | undefined)[]> {
    if (writes.length === 0) return [];
    const batch = `batch_${crypto.randomUUID()}`;
    const response = await this.#json({
      method: 'POST',
      path: '/$batch',
      headers: { 'content-type': `multipart/mixed; boundary=${batch}` },
      body: batchBody(batch, `/${this.transport.credential.account}`, table, writes),
      signal: options.signal,
    });
    return parseBatchResponse(await response.text(), response.headers.get('x-ms-request-id') ?? undefined);
  }

  /** The stored access policies. Needs the key. */
  async policies(table: string, options: CallOptions = {}): Promise<StoredPolicy[]> {
    const response = await this.transport.send('table', {
      path: `/${table}`,
      query: { comp: 'acl' },
      auth: 'key',
      signal: options.signal,
    });
    return parsePolicies(await response.text());
  }

  async setPolicies(table: string, policies: readonly StoredPolicy[], options: CallOptions = {}): Promise<void> {
    await this.transport.send('table', {
      method: 'PUT',
      path: `/${table}`,
      query: { comp: 'acl' },
      headers: { 'content-type': 'application/xml' },
      body: policiesToXml(policies),
      auth: 'key',
      signal: options.signal,
    });
  }

  #json(options: RequestOptions): Promise<Response> {
    return this.transport.send('table', {
      ...options,
      headers: { accept: JSON_TYPE, dataserviceversion: '3.0', maxdataserviceversion: '3.0', ...options.headers },
    });
  }
}

/** The path of an entity. */
export function entityPath(table: string, partitionKey: string, rowKey: string): string {
  return `/${table}(PartitionKey=${keyLiteral(partitionKey)},RowKey=${keyLiteral(rowKey)})`;
}

function keyLiteral(key: string): string {
  try {
    return `'${encodeURIComponent(key.replaceAll("'", "''")).replaceAll("'", '%27')}'`;
  } catch {
    throw new ProtocolError(0, 'InvalidInput', 'A key with half of a surrogate pair cannot be sent.');
  }
}

interface WriteRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string;
}

function requestOfWrite(table: string, write: Write): WriteRequest {
  if (write.kind === 'delete') {
    const path = entityPath(table, write.partitionKey, write.rowKey);
    return { method: 'DELETE', path, headers: { 'if-match': write.etag } };
  }
  const body = entityToJson(write.entity);
  const headers: Record<string, string> = { 'content-type': JSON_TYPE };
  if (write.kind === 'insert') {
    return { method: 'POST', path: `/${table}`, headers: { ...headers, prefer: 'return-no-content' }, body };
  }
  if (write.etag !== undefined) headers['if-match'] = write.etag;
  const path = entityPath(table, write.entity.partitionKey, write.entity.rowKey);
  return { method: write.kind === 'merge' ? 'PATCH' : 'PUT', path, headers, body };
}

/** The body of a transaction. Inner addresses are paths of the service's own port. */
export function batchBody(batch: string, base: string, table: string, writes: readonly Write[]): string {
  const changes = `changeset_${batch.slice('batch_'.length)}`;
  const parts = writes.map((write) => {
    const { method, path, headers, body } = requestOfWrite(table, write);
    const lines = [
      `--${changes}`,
      'Content-Type: application/http',
      'Content-Transfer-Encoding: binary',
      '',
      `${method} ${base}${path} HTTP/1.1`,
      `Accept: ${JSON_TYPE}`,
      'DataServiceVersion: 3.0',
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      '',
      body ?? '',
    ];
    return lines.join('\r\n');
  });
  const head = [`--${batch}`, `Content-Type: multipart/mixed; boundary=${changes}`, ''];
  return [...head, ...parts, `--${changes}--`, `--${batch}--`, ''].join('\r\n');
}

/** The etags of a transaction's writes. Throws the error of the write that failed, with its index. */
export function parseBatchResponse(text: string, requestId?: string): (string | undefined)[] {
  const boundary = /boundary="?(changesetresponse_[^"\s;]+)/.exec(text)?.[1];
  if (!boundary) throw new ProtocolError(0, '', 'The answer of the transaction has no parts.');
  const etags: (string | undefined)[] = [];
  for (const part of text.split(`--${boundary}`).slice(1)) {
    const status = Number(/HTTP\/1\.1 (\d{3})/.exec(part)?.[1] ?? 0);
    if (status === 0) continue;
    if (status >= 400) {
      const { code = '', message } = parseErrorBody(part.slice(part.indexOf('{')));
      const [, index, rest] = /^(\d+):([\s\S]*)$/.exec(message) ?? [undefined, undefined, message];
      const shown = (rest ?? '').replace(/\s*\n?RequestId:[\s\S]*$/, '').trim();
      throw new ProtocolError(status, code, shown, requestId, index === undefined ? 0 : Number(index));
    }
    etags.push(/^ETag: ?(.*?)\r?$/im.exec(part)?.[1]);
  }
  return etags;
}

function continuation(headers: Headers): Continuation | undefined {
  const partitionKey = headers.get('x-ms-continuation-NextPartitionKey');
  const rowKey = headers.get('x-ms-continuation-NextRowKey');
  if (partitionKey === null) return undefined;
  return { partitionKey, ...(rowKey ? { rowKey } : {}) };
}

function explanationOf(headers: Headers): Explanation | undefined {
  const plan = decoded(headers.get('x-larimar-plan'));
  if (plan === undefined) return undefined;
  const filter = decoded(headers.get('x-larimar-filter'));
  const number = (name: string) => Number(headers.get(name) ?? 0);
  return {
    plan,
    kind: plan.split(' ', 1)[0] ?? plan,
    ...(filter === undefined ? {} : { filter }),
    rowsRead: number('x-larimar-rows-read'),
    rowsReturned: number('x-larimar-rows-returned'),
    micros: number('x-larimar-time-us'),
  };
}

function decoded(value: string | null): string | undefined {
  if (value === null) return undefined;
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

const JSON_TYPE = 'application/json;odata=minimalmetadata';
