/** Downloads: small ones through an object URL, large ones written to a file as they come, so that they are never whole in memory. */

import type { Client } from '../../protocol';
import { lastPart } from './tree.svelte';

interface SaveFilePicker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<{
    createWritable: () => Promise<WritableStream<Uint8Array>>;
  }>;
}

/** Up to this size the browser holds a download in memory. */
export const MEMORY_BYTES_MAX = 64 * 1024 * 1024;
/** Without a way to write files, larger ones are refused. */
export const WITHOUT_FILES_BYTES_MAX = 512 * 1024 * 1024;

export async function download(
  client: Client,
  container: string,
  blob: string,
  bytes: number,
  options: { snapshot?: string | undefined; signal: AbortSignal; onProgress: (received: number) => void },
): Promise<void> {
  const picker = (window as SaveFilePicker).showSaveFilePicker;
  const name = fileName(blob);
  if (bytes > MEMORY_BYTES_MAX && picker) {
    // Asked first: browsers show the dialog only right after a click.
    const file = await picker.call(window, { suggestedName: name });
    const response = await client.blobs.read(container, blob, options);
    const target = await file.createWritable();
    await response.body?.pipeThrough(counted(options.onProgress)).pipeTo(target, { signal: options.signal });
    return;
  }
  if (bytes > WITHOUT_FILES_BYTES_MAX) {
    throw new Error(
      'This browser cannot write a file of this size as it comes. Use “larimar blob get”, or a signature with another tool.',
    );
  }
  const response = await client.blobs.read(container, blob, options);
  const content = await new Response(response.body?.pipeThrough(counted(options.onProgress)) ?? null).blob();
  // A type that no browser shows: it can only be stored.
  save(new Blob([content], { type: 'application/octet-stream' }), name);
}

/** The last part of a name, without characters that files cannot have. */
export function fileName(blob: string): string {
  const cleaned = lastPart(blob)
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u001f\u007f<>:"/\\|?*\u202a-\u202e\u2066-\u2069]/g, '_')
    .replace(/^\.+/, '_')
    .slice(-200);
  return cleaned || 'blob';
}

function counted(onProgress: (received: number) => void): TransformStream<Uint8Array, Uint8Array> {
  let received = 0;
  return new TransformStream({
    transform(part, controller) {
      received += part.length;
      onProgress(received);
      controller.enqueue(part);
    },
  });
}

function save(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
