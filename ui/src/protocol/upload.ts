/** Uploads of block blobs: one request for a small file, blocks beside each other for a large one. */

import { toBase64 } from './crypto';
import { metadataHeaders, type Metadata } from './metadata';
import type { CallOptions, Transport } from './transport';
import { document, element } from './xml';

export interface UploadOptions extends CallOptions {
  readonly contentType?: string;
  readonly metadata?: Metadata;
  /** Refuse to replace a blob. */
  readonly onlyNew?: boolean;
  /** Called with the bytes that were sent, of all. */
  readonly onProgress?: (sent: number, total: number) => void;
}

export async function upload(transport: Transport, path: string, file: Blob, options: UploadOptions): Promise<void> {
  const stored = {
    'x-ms-blob-content-type': options.contentType || file.type || 'application/octet-stream',
    'if-none-match': options.onlyNew ? '*' : undefined,
    ...metadataHeaders(options.metadata ?? new Map()),
  };
  if (file.size <= BLOCK_BYTES) {
    await transport.send('blob', {
      method: 'PUT',
      path,
      headers: { 'x-ms-blob-type': 'BlockBlob', 'content-type': OCTETS, ...stored },
      body: file,
      signal: options.signal,
      onSent: (bytes) => options.onProgress?.(bytes, file.size),
    });
  } else {
    const ids = await putBlocks(transport, path, file, options);
    await transport.send('blob', {
      method: 'PUT',
      path,
      query: { comp: 'blocklist' },
      headers: { 'content-type': 'application/xml', ...stored },
      body: document(
        element(
          'BlockList',
          ids.map((id) => element('Latest', id)),
        ),
      ),
      signal: options.signal,
    });
  }
  options.onProgress?.(file.size, file.size);
}

/** Sends all blocks, a few at a time. The first failure aborts the others. */
async function putBlocks(transport: Transport, path: string, file: Blob, options: UploadOptions): Promise<string[]> {
  const size = Math.max(BLOCK_BYTES, Math.ceil(file.size / BLOCKS_MAX));
  const count = Math.ceil(file.size / size);
  // A prefix of its own, so that two uploads of one name do not mix their blocks.
  const prefix = crypto.randomUUID().slice(0, 8);
  const ids = Array.from({ length: count }, (_, index) => blockId(prefix, index));
  const sent = new Array<number>(count).fill(0);
  const failure = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, failure.signal]) : failure.signal;
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) {
      const at = index;
      const block = file.slice(at * size, (at + 1) * size);
      await transport.send('blob', {
        method: 'PUT',
        path,
        query: { comp: 'block', blockid: ids[at] },
        headers: { 'content-type': OCTETS },
        body: block,
        signal,
        onSent: (bytes) => {
          sent[at] = Math.min(bytes, block.size);
          options.onProgress?.(
            sent.reduce((sum, part) => sum + part, 0),
            file.size,
          );
        },
      });
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(PARALLEL, count) }, worker));
  } catch (error) {
    failure.abort();
    throw error;
  }
  return ids;
}

function blockId(prefix: string, index: number): string {
  return toBase64(new TextEncoder().encode(`${prefix}-${String(index).padStart(6, '0')}`));
}

const OCTETS = 'application/octet-stream';
const BLOCK_BYTES = 8 * 1024 * 1024;
const BLOCKS_MAX = 50_000;
const PARALLEL = 3;
