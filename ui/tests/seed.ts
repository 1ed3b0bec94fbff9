/** Data for tests, made from Node through the services' own ports, with signatures of the development account. */
import { createHmac } from 'node:crypto';
import { DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, type Server } from './server';

type ServiceName = 'blob' | 'queue' | 'table';

export interface SasOptions {
  services?: string;
  types?: string;
  permissions?: string;
  expiry?: string;
  account?: string;
  key?: string;
}

/** A signature for the account, as a query string. */
export function accountSas(options: SasOptions = {}): string {
  const {
    services = 'bqt',
    types = 'sco',
    permissions = 'rwdxylacuptfi',
    expiry = new Date(Date.now() + 3_600_000).toISOString().slice(0, 19) + 'Z',
    account = DEVELOPMENT_ACCOUNT,
    key = DEVELOPMENT_KEY,
  } = options;
  const version = '2020-12-06';
  const text = [account, permissions, services, types, '', expiry, '', 'https,http', version, '', ''].join('\n');
  const signature = createHmac('sha256', Buffer.from(key, 'base64')).update(text).digest('base64');
  const query = {
    sv: version,
    ss: services,
    srt: types,
    sp: permissions,
    se: expiry,
    spr: 'https,http',
    sig: signature,
  };
  return new URLSearchParams(query).toString();
}

/** A request to a service's own port. Throws unless the status is 2xx or one of `allowed`. */
export async function call(
  server: Server,
  service: ServiceName,
  method: string,
  path: string,
  options: {
    query?: string;
    headers?: Record<string, string>;
    body?: string | Uint8Array<ArrayBuffer>;
    allowed?: number[];
    sas?: string;
  } = {},
): Promise<Response> {
  const query = [options.query, options.sas ?? accountSas()].filter(Boolean).join('&');
  const response = await fetch(`${server.endpoints[service]}${path}?${query}`, {
    method,
    headers: { 'x-ms-version': '2021-12-02', ...options.headers },
    body: options.body ?? null,
  });
  if (!response.ok && !options.allowed?.includes(response.status)) {
    throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  }
  return response;
}

/** Runs tasks, so many at once. */
export async function atOnce<T>(items: readonly T[], width: number, run: (item: T) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < items.length; at = next++) await run(items[at] as T);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

export async function makeQueue(server: Server, queue: string, messages: readonly string[] = []): Promise<void> {
  await call(server, 'queue', 'PUT', `/${queue}`, { allowed: [409] });
  for (const text of messages) await putMessage(server, queue, text);
}

export async function putMessage(server: Server, queue: string, text: string): Promise<void> {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const body = `<QueueMessage><MessageText>${escaped}</MessageText></QueueMessage>`;
  await call(server, 'queue', 'POST', `/${queue}/messages`, { body });
}

export async function makeContainer(server: Server, container: string): Promise<void> {
  await call(server, 'blob', 'PUT', `/${container}`, { query: 'restype=container', allowed: [409] });
}

export async function putBlob(
  server: Server,
  container: string,
  name: string,
  body: string | Uint8Array<ArrayBuffer>,
  contentType = 'text/plain',
  headers: Record<string, string> = {},
): Promise<void> {
  const path = `/${container}/${name.split('/').map(encodeURIComponent).join('/')}`;
  await call(server, 'blob', 'PUT', path, {
    headers: { 'x-ms-blob-type': 'BlockBlob', 'content-type': contentType, ...headers },
    body,
  });
}

export async function makeTable(server: Server, table: string, entities: readonly object[] = []): Promise<void> {
  const headers = { 'content-type': 'application/json', accept: 'application/json;odata=nometadata' };
  await call(server, 'table', 'POST', '/Tables', {
    headers,
    body: JSON.stringify({ TableName: table }),
    allowed: [409],
  });
  await atOnce(entities, 8, (entity) =>
    call(server, 'table', 'POST', `/${table}`, { headers, body: JSON.stringify(entity), allowed: [409] }),
  );
}

/** Deletes everything that the account has. */
export async function deleteQueue(server: Server, queue: string): Promise<void> {
  await call(server, 'queue', 'DELETE', `/${queue}`, { allowed: [404] });
}
