/**
 * Shared access signatures: made for users in forms, and the short-lived ones that this page's own requests use.
 *
 * All functions take texts as they will be in the address: what is signed is exactly what is sent.
 */

import type { KeyCredential, Service } from './credentials';
import { sign } from './crypto';

/** The version of all signatures that this page makes. */
export const SAS_VERSION = '2020-12-06';

/** What every signature may have. Empty and missing members are left out. */
export interface SasOptions {
  readonly permissions?: string;
  /** `2026-11-17T08:00:00Z`. */
  readonly start?: string;
  readonly expiry?: string;
  /** The name of a stored access policy; what the policy has must not be given here. */
  readonly policy?: string;
  /** An address, or a range `10.0.0.1-10.0.0.9`. */
  readonly ip?: string;
  readonly protocol?: 'https' | 'https,http';
}

export interface TableSasOptions extends SasOptions {
  readonly startPartition?: string;
  readonly startRow?: string;
  readonly endPartition?: string;
  readonly endRow?: string;
}

export interface BlobSasOptions extends SasOptions {
  readonly cacheControl?: string;
  readonly contentDisposition?: string;
  readonly contentEncoding?: string;
  readonly contentLanguage?: string;
  readonly contentType?: string;
}

export interface AccountSasOptions extends Omit<SasOptions, 'policy'> {
  /** Any of `b`, `q`, `t`. */
  readonly services: string;
  /** Any of `s`, `c`, `o`. */
  readonly resourceTypes: string;
}

/** The letters of permissions in the order that the services want. */
export const PERMISSION_ORDER = {
  account: 'rwdxylacuptfi',
  table: 'raud',
  queue: 'raup',
  blob: 'racwdxyltmeopi',
  container: 'racwdxyltfmeopi',
} as const;

/** Chosen letters in order, each once. */
export function orderPermissions(kind: keyof typeof PERMISSION_ORDER, letters: Iterable<string>): string {
  const chosen = new Set(letters);
  return [...PERMISSION_ORDER[kind]].filter((letter) => chosen.has(letter)).join('');
}

/** A time as signatures have it: to the second, in UTC. */
export function sasTime(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}

/** A signature for a table or a range of its keys, as a query string without `?`. */
export async function tableSas(credential: KeyCredential, table: string, options: TableSasOptions): Promise<string> {
  checkService(options);
  if (options.startRow && !options.startPartition) {
    throw new Error('A first RowKey needs a first PartitionKey.');
  }
  if (options.endRow && !options.endPartition) {
    throw new Error('A last RowKey needs a last PartitionKey.');
  }
  const text = [
    ...commonLines(options, `/table/${credential.account}/${table.toLowerCase()}`),
    options.startPartition ?? '',
    options.startRow ?? '',
    options.endPartition ?? '',
    options.endRow ?? '',
  ].join('\n');
  return query([
    ['tn', table],
    ...commonParameters(options),
    ['spk', options.startPartition],
    ['srk', options.startRow],
    ['epk', options.endPartition],
    ['erk', options.endRow],
    ['sig', await sign(credential.key, text)],
  ]);
}

/** A signature for a queue. */
export async function queueSas(credential: KeyCredential, queue: string, options: SasOptions): Promise<string> {
  checkService(options);
  const text = commonLines(options, `/queue/${credential.account}/${queue}`).join('\n');
  return query([...commonParameters(options), ['sig', await sign(credential.key, text)]]);
}

/** A signature for a container and its blobs, or for one blob. */
export async function blobSas(
  credential: KeyCredential,
  container: string,
  blob: string | undefined,
  options: BlobSasOptions,
): Promise<string> {
  checkService(options);
  const resource = blob === undefined ? 'c' : 'b';
  const path = blob === undefined ? container : `${container}/${blob}`;
  const overrides = [
    options.cacheControl,
    options.contentDisposition,
    options.contentEncoding,
    options.contentLanguage,
    options.contentType,
  ];
  const text = [
    ...commonLines(options, `/blob/${credential.account}/${path}`),
    resource,
    '', // the time of a snapshot
    '', // the encryption scope
    ...overrides.map((value) => value ?? ''),
  ].join('\n');
  const names = ['rscc', 'rscd', 'rsce', 'rscl', 'rsct'];
  return query([
    ['sr', resource],
    ...commonParameters(options),
    ...names.map((name, index): Parameter => [name, overrides[index]]),
    ['sig', await sign(credential.key, text)],
  ]);
}

/** A signature for the whole account. */
export async function accountSas(credential: KeyCredential, options: AccountSasOptions): Promise<string> {
  const { permissions, services, resourceTypes, expiry } = options;
  if (!permissions || !services || !resourceTypes || !expiry) {
    throw new Error('A signature of an account needs services, resource types, permissions and an expiry time.');
  }
  const text = [
    credential.account,
    permissions,
    services,
    resourceTypes,
    options.start ?? '',
    expiry,
    options.ip ?? '',
    options.protocol ?? '',
    SAS_VERSION,
    '', // the encryption scope
    '', // the text ends with a line feed
  ].join('\n');
  return query([
    ['sv', SAS_VERSION],
    ['ss', services],
    ['srt', resourceTypes],
    ['sp', permissions],
    ['st', options.start],
    ['se', expiry],
    ['sip', options.ip],
    ['spr', options.protocol],
    ['sig', await sign(credential.key, text)],
  ]);
}

/** Where a signature is used: the address on the service's own port. */
export function sasAddress(endpoint: string, account: string, path: string, signature: string): string {
  return `${endpoint.replace(/\/$/, '')}/${account}${path}?${signature}`;
}

/** The default ports of the services, for addresses that users copy. */
export const SERVICE_PORTS: Record<Service, number> = { blob: 10000, queue: 10001, table: 10002 };

function checkService(options: SasOptions): void {
  if (options.policy) return;
  if (!options.permissions || !options.expiry) {
    throw new Error('Without a stored access policy, a signature needs permissions and an expiry time.');
  }
}

function commonLines(options: SasOptions, resource: string): string[] {
  return [
    options.permissions ?? '',
    options.start ?? '',
    options.expiry ?? '',
    resource,
    options.policy ?? '',
    options.ip ?? '',
    options.protocol ?? '',
    SAS_VERSION,
  ];
}

type Parameter = readonly [string, string | undefined];

function commonParameters(options: SasOptions): Parameter[] {
  return [
    ['sv', SAS_VERSION],
    ['si', options.policy],
    ['sp', options.permissions],
    ['st', options.start],
    ['se', options.expiry],
    ['sip', options.ip],
    ['spr', options.protocol],
  ];
}

function query(parameters: Parameter[]): string {
  return parameters
    .filter(([, value]) => value)
    .map(([name, value]) => `${name}=${encodeURIComponent(value ?? '')}`)
    .join('&');
}
