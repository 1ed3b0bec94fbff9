/** Metadata of queues, containers and blobs: names and values in headers `x-ms-meta-…`. */

import { children } from './xml';

export type Metadata = ReadonlyMap<string, string>;

export function metadataOf(headers: Headers): Map<string, string> {
  const metadata = new Map<string, string>();
  for (const [name, value] of headers) {
    if (name.startsWith(PREFIX)) metadata.set(name.slice(PREFIX.length), value);
  }
  return metadata;
}

export function metadataOfXml(element: Element | undefined): Map<string, string> {
  return new Map(children(element).map((entry) => [entry.localName, entry.textContent ?? '']));
}

/** The headers of metadata. Throws if a name or value cannot be sent in a header. */
export function metadataHeaders(metadata: Metadata): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of metadata) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw new Error(`“${name}” is not a name of metadata: letters, digits and _, and no digit first.`);
    }
    if (!/^[\x20-\x7e]*$/.test(value)) {
      throw new Error(`The value of ${name} has characters that metadata cannot have: only printable ASCII.`);
    }
    headers[`${PREFIX}${name}`] = value;
  }
  return headers;
}

const PREFIX = 'x-ms-meta-';
