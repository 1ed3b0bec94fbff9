/** `Authorization: SharedKey`, for the few operations that a shared access signature cannot do. */

import type { KeyCredential, Service } from './credentials';
import { sign } from './crypto';

/** The parts of a request that are signed. */
export interface SignedRequest {
  readonly method: string;
  /** The path on the service's own port, as it is sent: `/account/table`. */
  readonly path: string;
  readonly query: readonly (readonly [string, string])[];
  /** All headers that are sent, with `x-ms-date`; names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly bodyBytes: number;
}

/** The value of the header `Authorization`. */
export async function authorization(
  credential: KeyCredential,
  service: Service,
  request: SignedRequest,
): Promise<string> {
  const text =
    service === 'table'
      ? tableStringToSign(credential.account, request)
      : blobStringToSign(credential.account, request);
  return `SharedKey ${credential.account}:${await sign(credential.key, text)}`;
}

/** The text to sign of the Table service. */
export function tableStringToSign(account: string, request: SignedRequest): string {
  const header = (name: string) => request.headers.get(name) ?? '';
  const comp = request.query.find(([name]) => name === 'comp');
  const resource = `/${account}${request.path}${comp ? `?comp=${comp[1]}` : ''}`;
  return [request.method, header('content-md5'), header('content-type'), header('x-ms-date'), resource].join('\n');
}

/** The text to sign of the Blob and Queue services, and of the admin endpoint. */
export function blobStringToSign(account: string, request: SignedRequest): string {
  const header = (name: string) => request.headers.get(name) ?? '';
  return [
    request.method,
    header('content-encoding'),
    header('content-language'),
    request.bodyBytes === 0 ? '' : String(request.bodyBytes),
    header('content-md5'),
    header('content-type'),
    '', // Date: `x-ms-date` is always sent instead.
    header('if-modified-since'),
    header('if-match'),
    header('if-none-match'),
    header('if-unmodified-since'),
    header('range'),
    ...canonicalHeaders(request.headers),
    canonicalResource(account, request),
  ].join('\n');
}

function canonicalHeaders(headers: ReadonlyMap<string, string>): string[] {
  return [...headers]
    .filter(([name]) => name.startsWith('x-ms-'))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name}:${value.trim().replaceAll(/\s+/g, ' ')}`);
}

function canonicalResource(account: string, request: SignedRequest): string {
  const values = new Map<string, string[]>();
  for (const [name, value] of request.query) {
    const lower = name.toLowerCase();
    values.set(lower, [...(values.get(lower) ?? []), value]);
  }
  const lines = [...values]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, all]) => `\n${name}:${all.sort().join(',')}`);
  return `/${account}${request.path}${lines.join('')}`;
}
