/** How a message's text is shown: as it is, decoded from base64, or as JSON. */

import { fromBase64, toBase64 } from '../../protocol';

export const VIEWS = ['auto', 'stored', 'base64', 'json'] as const;
export type View = (typeof VIEWS)[number];

export const VIEW_NAMES: Record<View, string> = {
  auto: 'Automatic',
  stored: 'As stored',
  base64: 'Decoded from base64',
  json: 'JSON',
};

export interface Shown {
  readonly text: string;
  /** What was done to show it. */
  readonly steps: readonly ('base64' | 'json')[];
  /** Why it cannot be shown as the user wants; `text` is then as stored. */
  readonly problem?: string;
}

export function show(stored: string, view: View): Shown {
  if (view === 'stored') return { text: stored, steps: [] };
  if (view === 'base64') {
    const decoded = decodeBase64(stored);
    return decoded === undefined
      ? { text: stored, steps: [], problem: 'The text is not UTF-8 in base64.' }
      : { text: decoded, steps: ['base64'] };
  }
  const plain = json(stored);
  if (plain !== undefined) return { text: plain, steps: ['json'] };
  const decoded = decodeBase64(stored);
  const inner = decoded === undefined ? undefined : json(decoded);
  if (inner !== undefined) return { text: inner, steps: ['base64', 'json'] };
  if (view === 'json') return { text: stored, steps: [], problem: 'The text is not JSON.' };
  if (decoded !== undefined && looksEncoded(stored, decoded)) return { text: decoded, steps: ['base64'] };
  return { text: stored, steps: [] };
}

/** One line for lists. */
export function firstLine(stored: string): string {
  const decoded = decodeBase64(stored);
  const text = decoded !== undefined && looksEncoded(stored, decoded) ? decoded : stored;
  return text.slice(0, LINE_CHARACTERS).replace(/\s+/g, ' ');
}

/** Text in UTF-8 as base64, as consumers such as Azure Functions expect it. */
export function encodeBase64(text: string): string {
  return toBase64(new TextEncoder().encode(text));
}

/** The bytes that a message has in the service; at most 64 KiB. */
export function utf8Bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** What XML, and so a message, cannot hold. */
const NOT_XML =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** Why a text cannot be put; `undefined` if it can. */
export function problemOf(text: string): string | undefined {
  if (utf8Bytes(text) > TEXT_BYTES_MAX)
    return 'A message has at most 64 KiB. Put the data into a blob and its name into the message.';
  if (NOT_XML.test(text)) return 'The text has control characters that a message cannot have. Encode it in base64.';
  return undefined;
}

function decodeBase64(text: string): string | undefined {
  if (text.length < 4 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length % 4 !== 0) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(fromBase64(text));
  } catch {
    return undefined;
  }
}

/** Short words such as `test` are valid base64 too: only what decodes to readable text counts. */
function looksEncoded(stored: string, decoded: string): boolean {
  return (
    // eslint-disable-next-line no-control-regex
    stored.length >= 8 && !/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/.test(decoded) && /[ -~]{3}/.test(decoded)
  );
}

function json(text: string): string | undefined {
  // Numbers and words alone are JSON, but not what anybody means by it.
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return undefined;
  }
}

const LINE_CHARACTERS = 300;
export const TEXT_BYTES_MAX = 65_536;
