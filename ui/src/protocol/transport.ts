/** One request to the server: address, credentials, headers, body, errors. All other files of this module go through here. */

import type { Credential, Service } from './credentials';
import { errorOf, isAbort, ProtocolError } from './error';
import { accountSas, sasTime } from './sas';
import { authorization } from './sharedkey';

export interface RequestOptions {
  readonly method?: string;
  /** The path after the account, already encoded: `/Tables('t')`. */
  readonly path?: string;
  /** Query parameters, not encoded; `undefined` ones are left out. */
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | Uint8Array<ArrayBuffer> | Blob;
  readonly signal?: AbortSignal | undefined;
  /** `key`: the operation needs the account's key, whatever a signature allows. */
  readonly auth?: 'key';
  /** Called with the bytes of the body that were sent. */
  readonly onSent?: ((bytes: number) => void) | undefined;
}

/** What a call takes besides its own arguments. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** The versions of the protocol that the page speaks. */
export const VERSIONS: Record<Service, string> = { table: '2020-12-06', queue: '2021-12-02', blob: '2021-12-02' };

export class Transport {
  /** What to add to this machine's clock to get the server's. */
  clockOffsetMillis = 0;

  #signature: { text: Promise<string>; renewAt: number } | undefined;

  constructor(readonly credential: Credential) {}

  /** The server's time. */
  now(): Date {
    return new Date(Date.now() + this.clockOffsetMillis);
  }

  /** A request to a service, mounted at the console's own address. Throws a `ProtocolError` unless the status is 2xx. */
  async send(service: Service, options: RequestOptions): Promise<Response> {
    const { account } = this.credential;
    const servicePath = `/${account}${options.path ?? '/'}`;
    const headers = defined(options.headers ?? {});
    headers.set('x-ms-version', VERSIONS[service]);
    const query = queryPairs(options.query);
    if (options.auth === 'key') {
      if (this.credential.kind !== 'key') {
        throw new ProtocolError(
          403,
          'KeyNeeded',
          'This needs the account key: a shared access signature cannot do it.',
        );
      }
      headers.set('x-ms-date', this.now().toUTCString());
      const request = {
        method: options.method ?? 'GET',
        path: servicePath,
        query,
        headers,
        bodyBytes: bodyBytes(options.body),
      };
      headers.set('authorization', await authorization(this.credential, service, request));
    } else {
      query.push(...(await this.signature()));
    }
    return send(`/${service}${servicePath}${queryText(query)}`, headers, options);
  }

  /** A request to the admin endpoint about the account. */
  async sendAdmin(path: string, options: RequestOptions): Promise<Response> {
    const query = queryPairs({ account: this.credential.account, ...options.query });
    query.push(...(await this.signature()));
    return send(`${path}${queryText(query)}`, defined(options.headers ?? {}), options);
  }

  /** The parameters of a shared access signature: the user's, or a short-lived one made with the key. */
  async signature(): Promise<[string, string][]> {
    const { credential } = this;
    if (credential.kind === 'sas') return [...credential.parameters];
    const now = this.now().getTime();
    if (!this.#signature || now >= this.#signature.renewAt) {
      const text = accountSas(credential, {
        services: 'bqt',
        resourceTypes: 'sco',
        permissions: 'rwdxylacuptfi',
        expiry: sasTime(new Date(now + SIGNATURE_MILLIS)),
      });
      this.#signature = { text, renewAt: now + SIGNATURE_MILLIS / 2 };
    }
    return [...new URLSearchParams(await this.#signature.text)];
  }
}

/** A request without credentials to the admin endpoint. */
export async function sendOpen(path: string, options: RequestOptions = {}): Promise<Response> {
  return send(path, defined(options.headers ?? {}), options);
}

async function send(url: string, headers: Map<string, string>, options: RequestOptions): Promise<Response> {
  headers.set('x-larimar-console', '1');
  const body = typeof options.body === 'string' ? new TextEncoder().encode(options.body) : options.body;
  const init = { method: options.method ?? 'GET', headers: [...headers] as [string, string][], body: body ?? null };
  let response: Response;
  try {
    response = options.onSent
      ? await sendWithProgress(url, init, options.onSent, options.signal)
      : await fetch(url, {
          ...init,
          signal: options.signal ?? null,
          cache: 'no-store',
          credentials: 'omit',
          redirect: 'error',
          referrerPolicy: 'no-referrer',
        });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ProtocolError(0, '', 'The server did not answer. Is it running?');
  }
  if (!response.ok) throw errorOf(response.status, response.headers, await response.text());
  return response;
}

/** A request whose upload reports progress, which `fetch` cannot. */
function sendWithProgress(
  url: string,
  init: { method: string; headers: [string, string][]; body: Uint8Array<ArrayBuffer> | Blob | null },
  onSent: (bytes: number) => void,
  signal: AbortSignal | undefined,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const aborted = () => new DOMException('The request was aborted.', 'AbortError');
    if (signal?.aborted) {
      reject(aborted());
      return;
    }
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    signal?.addEventListener('abort', abort, { once: true });
    request.open(init.method, url);
    for (const [name, value] of init.headers) request.setRequestHeader(name, value);
    request.responseType = 'text';
    request.upload.onprogress = (event) => onSent(event.loaded);
    request.onabort = () => reject(aborted());
    request.onerror = () => reject(new TypeError('network error'));
    request.onload = () => resolve(responseOf(request));
    request.onloadend = () => signal?.removeEventListener('abort', abort);
    request.send(init.body);
  });
}

function responseOf(request: XMLHttpRequest): Response {
  const headers = new Headers();
  for (const line of request.getAllResponseHeaders().trim().split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const { status } = request;
  const body = status === 204 || status === 304 ? null : request.responseText;
  return new Response(body, { status, headers });
}

function queryPairs(query: RequestOptions['query']): [string, string][] {
  return Object.entries(query ?? {}).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
}

function queryText(query: readonly (readonly [string, string])[]): string {
  const text = query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&');
  return text ? `?${text}` : '';
}

function defined(headers: Readonly<Record<string, string | undefined>>): Map<string, string> {
  const entries = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return new Map(entries.map(([name, value]) => [name.toLowerCase(), value]));
}

function bodyBytes(body: RequestOptions['body']): number {
  if (body === undefined) return 0;
  if (typeof body === 'string') return new TextEncoder().encode(body).length;
  return body instanceof Blob ? body.size : body.length;
}

/** How long a signature that the page makes for itself is valid. It is renewed after half of that. */
const SIGNATURE_MILLIS = 15 * 60 * 1000;
