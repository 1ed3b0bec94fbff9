/** What a user signs in with: an account key, a shared access signature or a connection string. */

import { fromBase64, importKey } from './crypto';

export type Service = 'table' | 'queue' | 'blob';
export const SERVICES: readonly Service[] = ['table', 'queue', 'blob'];

/** An account's key. The key itself cannot be read back. */
export interface KeyCredential {
  readonly kind: 'key';
  readonly account: string;
  readonly key: CryptoKey;
}

/** A shared access signature, used as it is. */
export interface SasCredential {
  readonly kind: 'sas';
  readonly account: string;
  /** The query parameters, decoded. */
  readonly parameters: ReadonlyMap<string, string>;
  /** The resource that a signature for one queue, container or blob is for, if the user named it. */
  readonly scope?: SasScope;
}

export interface SasScope {
  readonly service: Service;
  /** The name of the table, queue or container. */
  readonly name: string;
  readonly blob?: string;
}

export type Credential = KeyCredential | SasCredential;

/** Input that is not a credential; the message says what was expected. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError';
}

export const WELL_KNOWN_ACCOUNT = 'devstoreaccount1';
/** The public key of emulators, the same everywhere. Servers accept it only from their own machine. */
export const WELL_KNOWN_KEY =
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

export async function wellKnownCredential(account: string): Promise<KeyCredential> {
  return keyCredential(account, WELL_KNOWN_KEY);
}

/** A credential from a name and a key. */
export async function keyCredential(account: string, key: string): Promise<KeyCredential> {
  const name = checkAccount(account);
  const trimmed = key.trim();
  if (!trimmed) throw new CredentialError('Enter the account key.');
  let length: number;
  try {
    length = fromBase64(trimmed).length;
  } catch {
    throw new CredentialError('The account key is not base64. Copy it whole, with the “=” at its end.');
  }
  if (length === 0) throw new CredentialError('The account key is empty.');
  return { kind: 'key', account: name, key: await importKey(trimmed) };
}

/**
 * A credential from a shared access signature: the query (`sv=…&sig=…`, with or without `?`), or the whole address of the
 * account, table, queue, container or blob with it. The account is needed if the text has no address.
 */
export function sasCredential(text: string, account?: string): SasCredential {
  const trimmed = text.trim();
  if (!trimmed) throw new CredentialError('Enter a shared access signature.');
  if (/^https?:\/\//i.test(trimmed)) {
    const address = parseAddress(trimmed);
    return makeSas(address.query, account?.trim() || address.account, address.path, address.service);
  }
  return makeSas(trimmed.replace(/^\?/, ''), account ?? '');
}

/** A credential from a connection string. */
export async function connectionString(text: string): Promise<Credential> {
  const fields = parseFields(text);
  if (fields.get('usedevelopmentstorage')?.toLowerCase() === 'true') return wellKnownCredential(WELL_KNOWN_ACCOUNT);
  const endpoint = fields.get('tableendpoint') ?? fields.get('queueendpoint') ?? fields.get('blobendpoint');
  const account = fields.get('accountname') ?? (endpoint ? parseAddress(endpoint).account : undefined);
  const key = fields.get('accountkey');
  const signature = fields.get('sharedaccesssignature');
  if (key !== undefined) {
    if (!account) throw new CredentialError('The connection string has AccountKey but no AccountName.');
    return keyCredential(account, key);
  }
  if (signature !== undefined) {
    if (!account) {
      throw new CredentialError('The connection string has no AccountName and no endpoint to take the account from.');
    }
    return makeSas(signature.replace(/^\?/, ''), account);
  }
  throw new CredentialError('The connection string has neither AccountKey nor SharedAccessSignature.');
}

/** Any of the three forms, told apart by how the text looks; a key alone needs the account. */
export async function parseCredential(text: string, account: string): Promise<Credential> {
  const trimmed = text.trim();
  if (/^\s*[A-Za-z]+=[^;]*;/.test(trimmed) || /^UseDevelopmentStorage=/i.test(trimmed))
    return connectionString(trimmed);
  if (/^https?:\/\//i.test(trimmed) || /(^|[?&])sig=/.test(trimmed)) return sasCredential(trimmed, account);
  return keyCredential(account, trimmed);
}

function parseFields(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const part of text.split(/[;\n]/)) {
    const field = part.trim();
    if (!field) continue;
    const equals = field.indexOf('=');
    if (equals <= 0) throw new CredentialError('A connection string is a list of Name=Value, separated by “;”.');
    fields.set(field.slice(0, equals).trim().toLowerCase(), field.slice(equals + 1).trim());
  }
  if (fields.size === 0) throw new CredentialError('Enter a connection string.');
  return fields;
}

interface Address {
  account: string;
  service?: Service;
  path: string[];
  query: string;
}

/** The parts of an address, path style (`http://127.0.0.1:10002/account/…`) or host style (`account.table.…`). */
function parseAddress(text: string): Address {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new CredentialError(`“${text.slice(0, 80)}” is not an address.`);
  }
  const segments = url.pathname.split('/').filter(Boolean).map(decodePart);
  const labels = url.hostname.split('.');
  const service = SERVICES.find((name) => labels[1] === name) ?? serviceOfPort(url.port);
  const hostStyle = labels.length > 2 && SERVICES.some((name) => labels[1] === name);
  const account = (hostStyle ? labels[0] : segments.shift()) ?? '';
  return { account, path: segments, query: url.search.slice(1), ...(service ? { service } : {}) };
}

function serviceOfPort(port: string): Service | undefined {
  return ({ '10000': 'blob', '10001': 'queue', '10002': 'table' } as const)[port];
}

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function makeSas(query: string, account: string, path: string[] = [], service?: Service): SasCredential {
  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query.replaceAll('+', '%2B'))) {
    if (!SAS_PARAMETERS.has(name)) continue;
    if (parameters.has(name)) throw new CredentialError(`The signature has the parameter ${name} twice.`);
    parameters.set(name, value);
  }
  if (!parameters.get('sig')) throw new CredentialError('A shared access signature has a parameter “sig”.');
  if (!parameters.get('sv')) throw new CredentialError('A shared access signature has a parameter “sv”.');
  const expiry = Date.parse(parameters.get('se') ?? '');
  if (expiry < Date.now()) throw new CredentialError(`The signature expired at ${parameters.get('se')}.`);
  const name = checkAccount(account, 'Enter the account name: a shared access signature does not contain it.');
  const scope = scopeOf(parameters, path, service);
  return { kind: 'sas', account: name, parameters, ...(scope ? { scope } : {}) };
}

function scopeOf(
  parameters: ReadonlyMap<string, string>,
  path: string[],
  service: Service | undefined,
): SasScope | undefined {
  if (parameters.has('ss')) return undefined;
  const table = parameters.get('tn');
  if (table) return { service: 'table', name: table };
  const resource = parameters.get('sr');
  const scoped = resource ? 'blob' : (service ?? 'queue');
  const [name, ...rest] = path;
  if (!name) {
    throw new CredentialError(
      resource
        ? 'This signature is for one container or blob. Enter its whole address, so that the console knows which one.'
        : 'This signature is for one queue. Enter its whole address, so that the console knows which one.',
    );
  }
  const isBlob = resource !== undefined && resource !== 'c' && rest.length > 0;
  return { service: scoped, name, ...(isBlob ? { blob: rest.join('/') } : {}) };
}

function checkAccount(account: string, missing = 'Enter the account name.'): string {
  const name = account.trim();
  if (!name) throw new CredentialError(missing);
  if (!/^[a-z0-9]{3,24}$/.test(name)) {
    throw new CredentialError('An account name has 3 to 24 lower-case letters and digits.');
  }
  return name;
}

const SAS_PARAMETERS = new Set(
  'sv ss srt sp st se sip spr ses sig si tn spk srk epk erk sr sdd snapshot rscc rscd rsce rscl rsct api-version skoid sktid skt ske sks skv'.split(
    ' ',
  ),
);
