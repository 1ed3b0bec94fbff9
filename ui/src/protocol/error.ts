/** The one error class of the protocol module, and how it is made from an answer. */

import { childText, parseXml } from './xml';

/** A request that failed: refused by the server (`status` 400 to 599) or without an answer (`status` 0). */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';

  constructor(
    /** The HTTP status; 0 if there was no answer. */
    readonly status: number,
    /** The service's code, such as `EntityAlreadyExists`. */
    readonly code: string,
    message: string,
    /** `x-ms-request-id`, for the server's log. */
    readonly requestId?: string,
    /** The index of the operation that failed, in a transaction. */
    readonly operation?: number,
  ) {
    super(message);
  }

  /** Whether the credential does not allow the request. */
  get isForbidden(): boolean {
    return this.status === 401 || this.status === 403;
  }

  /** Whether what the request names does not exist. */
  get isMissing(): boolean {
    return this.status === 404;
  }

  /** Whether an etag did not match: somebody changed the resource since it was read. */
  get isConflict(): boolean {
    return this.status === 412;
  }
}

/** Whether an error only says that the caller aborted the request. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** What to show to a user for any thrown value. */
export function errorMessage(error: unknown): string {
  if (error instanceof ProtocolError) {
    return error.code && error.status ? `${error.message} (${error.status} ${error.code})` : error.message;
  }
  return error instanceof Error ? error.message : String(error);
}

/** The error that an answer's status, headers and body describe. */
export function errorOf(status: number, headers: Headers, body: string): ProtocolError {
  const requestId = headers.get('x-ms-request-id') ?? undefined;
  const { code, message } = parseErrorBody(body);
  return new ProtocolError(
    status,
    code ?? headers.get('x-ms-error-code') ?? '',
    withoutTrailer(message) || `The server answered with status ${status}.`,
    requestId,
  );
}

/** Code and message of an error body: OData JSON, the services' XML, or plain text. */
export function parseErrorBody(body: string): { code?: string; message: string } {
  const text = body.replace(/^\uFEFF/, '').trim();
  if (text.startsWith('{')) {
    try {
      return parseJsonError(JSON.parse(text) as unknown);
    } catch {
      return { message: excerpt(text) };
    }
  }
  if (text.startsWith('<')) {
    try {
      const root = parseXml(text);
      const code = childText(root, 'Code') ?? childText(root, 'code');
      const message = childText(root, 'Message') ?? childText(root, 'message') ?? '';
      const detail = childText(root, 'AuthenticationErrorDetail') ?? childText(root, 'Reason');
      const shown = detail ? `${withoutTrailer(message)} ${detail}` : message;
      return code === undefined ? { message: shown } : { code, message: shown };
    } catch {
      return { message: '' };
    }
  }
  return { message: excerpt(text) };
}

function parseJsonError(value: unknown): { code?: string; message: string } {
  const error = member(value, 'odata.error') ?? member(value, 'error') ?? value;
  const code = member(error, 'code');
  const message = member(error, 'message');
  const text = typeof message === 'string' ? message : member(message, 'value');
  const line = member(value, 'line');
  const plain = typeof error === 'string' ? error + (typeof line === 'number' ? ` (line ${line})` : '') : '';
  const shown = typeof text === 'string' ? text : plain;
  return typeof code === 'string' ? { code, message: shown } : { message: shown };
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** A message without the lines `RequestId:…` and `Time:…` that the services append. */
function withoutTrailer(message: string): string {
  return message.replace(/\s*\n?RequestId:[\s\S]*$/, '').trim();
}

function excerpt(text: string): string {
  return text.length > 500 ? `${text.slice(0, 500)}…` : text;
}
