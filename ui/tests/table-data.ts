/** Entities for tests, in transactions over connections that stay open. */
import { createHmac, randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { accountSas, atOnce, call } from './seed';
import { DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, type Server } from './server';

export type Entity = { PartitionKey: string; RowKey: string } & Record<string, unknown>;

const JSON_TYPE = 'application/json;odata=minimalmetadata';
const agent = new Agent({ keepAlive: true, maxSockets: 8 });

export async function createTable(server: Server, table: string): Promise<void> {
  await call(server, 'table', 'POST', '/Tables', {
    headers: { 'content-type': 'application/json', accept: JSON_TYPE, prefer: 'return-no-content' },
    body: JSON.stringify({ TableName: table }),
    allowed: [409],
  });
}

/** Creates a table with so many entities; those of one hundred have to be of one partition. */
export async function fillTable(
  server: Server,
  table: string,
  count: number,
  make: (index: number) => Entity,
): Promise<void> {
  await createTable(server, table);
  const starts = Array.from({ length: Math.ceil(count / 100) }, (_, at) => at * 100);
  const sas = accountSas();
  await atOnce(starts, 8, async (start) => {
    const entities = Array.from({ length: Math.min(100, count - start) }, (_, at) => make(start + at));
    await insertTogether(server, table, entities, sas);
  });
}

async function insertTogether(server: Server, table: string, entities: readonly Entity[], sas: string): Promise<void> {
  const [batch, changes] = [`batch_${randomUUID()}`, `changeset_${randomUUID()}`];
  const parts = entities.map((entity) =>
    [
      `--${changes}`,
      'Content-Type: application/http',
      'Content-Transfer-Encoding: binary',
      '',
      `POST ${server.endpoints.table}/${table} HTTP/1.1`,
      'Content-Type: application/json',
      `Accept: ${JSON_TYPE}`,
      'Prefer: return-no-content',
      '',
      JSON.stringify(entity),
    ].join('\r\n'),
  );
  const head = [`--${batch}`, `Content-Type: multipart/mixed; boundary=${changes}`, ''];
  const body = [...head, ...parts, `--${changes}--`, `--${batch}--`, ''].join('\r\n');
  const { status, text } = await post(`${server.endpoints.table}/$batch?${sas}`, body, batch);
  if (status !== 202 || /HTTP\/1\.1 [45]/.test(text)) throw new Error(`${status} ${text.slice(0, 500)}`);
}

/** `fetch` opens too many connections for this. */
function post(address: string, body: string, batch: string): Promise<{ status: number; text: string }> {
  const headers = {
    'content-type': `multipart/mixed; boundary=${batch}`,
    'content-length': Buffer.byteLength(body),
    'x-ms-version': '2020-12-06',
  };
  return new Promise((resolve, reject) => {
    const sent = request(address, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.on('data', (piece: Buffer) => (text += piece.toString()));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** All entities of a table or filter, as the service writes them, without their times and etags. */
export async function entitiesOf(server: Server, table: string, filter = ''): Promise<Entity[]> {
  const found: Entity[] = [];
  let next = '';
  do {
    const query = [filter && `$filter=${encodeURIComponent(filter)}`, next].filter(Boolean).join('&');
    const response = await call(server, 'table', 'GET', `/${table}()`, { query, headers: { accept: JSON_TYPE } });
    const { value } = (await response.json()) as { value: Entity[] };
    found.push(...value.map((entity) => without(entity, ['Timestamp', 'odata.etag'])));
    const [partition, row] = ['NextPartitionKey', 'NextRowKey'].map((name) =>
      response.headers.get(`x-ms-continuation-${name}`),
    );
    next = partition
      ? `NextPartitionKey=${encodeURIComponent(partition)}${row ? `&NextRowKey=${encodeURIComponent(row)}` : ''}`
      : '';
  } while (next);
  return found;
}

function without(entity: Entity, names: readonly string[]): Entity {
  return Object.fromEntries(Object.entries(entity).filter(([name]) => !names.includes(name))) as Entity;
}

/** Merges properties into an entity, whatever its etag is. */
export async function mergeEntity(server: Server, table: string, entity: Entity): Promise<void> {
  const path = `/${table}(PartitionKey='${entity.PartitionKey}',RowKey='${entity.RowKey}')`;
  await call(server, 'table', 'MERGE', path, {
    headers: { 'content-type': 'application/json', accept: JSON_TYPE, 'if-match': '*' },
    body: JSON.stringify(entity),
  });
}

/** A connection string with a key, as people copy it. */
export function connectionString(): string {
  return `DefaultEndpointsProtocol=http;AccountName=${DEVELOPMENT_ACCOUNT};AccountKey=${DEVELOPMENT_KEY};`;
}

/** A signature for one table. */
export function tableSas(table: string, permissions: string): string {
  const expiry = new Date(Date.now() + 3_600_000).toISOString().slice(0, 19) + 'Z';
  const resource = `/table/${DEVELOPMENT_ACCOUNT}/${table.toLowerCase()}`;
  const text = [permissions, '', expiry, resource, '', '', '', '2020-12-06', '', '', '', ''].join('\n');
  const sig = createHmac('sha256', Buffer.from(DEVELOPMENT_KEY, 'base64')).update(text).digest('base64');
  return new URLSearchParams({ sv: '2020-12-06', tn: table, sp: permissions, se: expiry, sig }).toString();
}
