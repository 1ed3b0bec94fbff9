/**
 * The one module that speaks the protocol. Pages import from here only.
 *
 * `Client` has the three services and the admin endpoint for one credential.
 */

import { Admin } from './admin';
import { Blobs } from './blobs';
import type { Credential, Service } from './credentials';
import { ProtocolError } from './error';
import { refusal, type Action } from './permits';
import { getProperties, setProperties, type ServiceProperties } from './properties';
import { Queues } from './queues';
import { Tables } from './tables';
import { Transport, type CallOptions } from './transport';

export class Client {
  readonly transport: Transport;
  readonly tables: Tables;
  readonly queues: Queues;
  readonly blobs: Blobs;
  readonly admin: Admin;

  constructor(
    readonly credential: Credential,
    clockOffsetMillis = 0,
  ) {
    this.transport = new Transport(credential);
    this.transport.clockOffsetMillis = clockOffsetMillis;
    this.tables = new Tables(this.transport);
    this.queues = new Queues(this.transport);
    this.blobs = new Blobs(this.transport);
    this.admin = new Admin(this.transport);
  }

  get account(): string {
    return this.credential.account;
  }

  /** Why the credential does not allow an action; `undefined` if it does. */
  refusal(action: Action, service?: Service): string | undefined {
    return refusal(this.credential, action, service);
  }

  properties(service: Service, options?: CallOptions): Promise<ServiceProperties> {
    return getProperties(this.transport, service, options);
  }

  setProperties(service: Service, properties: ServiceProperties, options?: CallOptions): Promise<void> {
    return setProperties(this.transport, service, properties, options);
  }

  /** Checks the credential with a cheap request. Throws the server's refusal. */
  async check(options: CallOptions = {}): Promise<void> {
    const { credential } = this;
    if (credential.kind === 'key') {
      await this.tables.list(options);
      return;
    }
    const { scope, parameters } = credential;
    if (!scope) {
      const services: [string, Service][] = [
        ['t', 'table'],
        ['q', 'queue'],
        ['b', 'blob'],
      ];
      const service = services.find(([letter]) => parameters.get('ss')?.includes(letter))?.[1] ?? 'table';
      await this.#probe(() => this.properties(service, options));
    } else if (scope.service === 'table') {
      await this.#probe(() => this.tables.query(scope.name, { ...options, top: 1 }));
    } else if (scope.service === 'queue') {
      await this.#probe(() => this.queues.peek(scope.name, 1, options));
    } else {
      const { blob } = scope;
      await this.#probe(() =>
        blob === undefined
          ? this.blobs.list(scope.name, { ...options, max: 1 })
          : this.blobs.properties(scope.name, blob, options),
      );
    }
  }

  /** Runs a request that the signature may not allow: a signature that is valid and allows something else passes. */
  async #probe(request: () => Promise<unknown>): Promise<void> {
    try {
      await request();
    } catch (error) {
      if (!(error instanceof ProtocolError) || !PASSED.has(error.code)) throw error;
    }
  }
}

/** Refusals that only a valid signature gets. */
const PASSED = new Set([
  'AuthorizationPermissionMismatch',
  'AuthorizationResourceTypeMismatch',
  'AuthorizationServiceMismatch',
  'AuthorizationFailure',
]);

export { POLICIES_MAX, type StoredPolicy } from './acl';
export { Admin, metrics, readiness, serverInfo, type ServerInfo } from './admin';
export {
  blobPath,
  Blobs,
  type Blob,
  type BlobHeaders,
  type BlobPage,
  type BlobProperties,
  type Container,
} from './blobs';
export {
  connectionString,
  CredentialError,
  keyCredential,
  parseCredential,
  sasCredential,
  SERVICES,
  WELL_KNOWN_ACCOUNT,
  WELL_KNOWN_KEY,
  wellKnownCredential,
  type Credential,
  type KeyCredential,
  type SasCredential,
  type SasScope,
  type Service,
} from './credentials';
export { canSign, fromBase64, toBase64 } from './crypto';
export {
  doubleText,
  EDM_TYPES,
  edmText,
  entityOfJson,
  entityToJson,
  filterLiteral,
  parseEdm,
  quoted,
  type EdmType,
  type EdmValue,
  type Entity,
} from './edm';
export { errorMessage, isAbort, ProtocolError } from './error';
export { NumberText, parseJson, type Json } from './json';
export type { Metadata } from './metadata';
export type { Action } from './permits';
export { Metrics, quantile, rate, type Sample } from './prometheus';
export {
  CORS_RULES_MAX,
  type CorsRule,
  type Logging,
  type MetricsSettings,
  type ServiceProperties,
} from './properties';
export { MESSAGES_MAX, type Message, type Queue, type QueueProperties, type Receipt } from './queues';
export type * from './reports';
export * from './sas';
export {
  entityPath,
  PAGE_ROWS_MAX,
  Tables,
  TRANSACTION_WRITES_MAX,
  type Continuation,
  type EntityPage,
  type Explanation,
  type QueryOptions,
  type Write,
} from './tables';
export type { CallOptions } from './transport';
export type { UploadOptions } from './upload';
