/** Uploads that run or wait. They go on while other pages are open, and end when the account is signed out. */

import { session } from '../../app/session.svelte';
import { errorMessage, isAbort, ProtocolError, type Client } from '../../protocol';

/** Files at once; each sends a few blocks at once. */
const AT_ONCE = 2;
/** Uploads that are listed at most; older ones that ended are forgotten. */
const LISTED_MAX = 500;

export type UploadState = 'waiting' | 'running' | 'done' | 'failed' | 'exists' | 'cancelled';

export class Upload {
  sent = $state(0);
  state = $state<UploadState>('waiting');
  problem = $state('');
  controller = new AbortController();

  constructor(
    readonly id: number,
    readonly client: Client,
    readonly container: string,
    readonly name: string,
    readonly file: File,
    public replace: boolean,
  ) {}

  get bytes(): number {
    return this.file.size;
  }

  get isActive(): boolean {
    return this.state === 'waiting' || this.state === 'running';
  }
}

class Uploads {
  items = $state.raw<readonly Upload[]>([]);
  /** Grows when one ended, for pages that show what is there. */
  finished = $state(0);
  #last = 0;

  get active(): number {
    return this.items.filter(({ isActive }) => isActive).length;
  }

  add(client: Client, container: string, files: readonly { name: string; file: File }[], replace: boolean): void {
    const fresh = files.map(({ name, file }) => new Upload(++this.#last, client, container, name, file, replace));
    const ended = this.items.filter(({ isActive }) => !isActive).slice(-LISTED_MAX);
    this.items = [...ended, ...this.items.filter(({ isActive }) => isActive), ...fresh];
    this.#next();
  }

  cancel(upload: Upload): void {
    upload.controller.abort();
    if (upload.state === 'waiting') upload.state = 'cancelled';
  }

  cancelAll(): void {
    for (const upload of this.items) if (upload.isActive) this.cancel(upload);
  }

  /** Tries one again that failed or was there already. */
  retry(upload: Upload, replace: boolean): void {
    upload.controller = new AbortController();
    upload.replace = replace;
    upload.state = 'waiting';
    upload.problem = '';
    upload.sent = 0;
    this.#next();
  }

  clear(): void {
    this.items = this.items.filter(({ isActive }) => isActive);
  }

  #next(): void {
    let running = this.items.filter(({ state }) => state === 'running').length;
    for (const upload of this.items) {
      if (running >= AT_ONCE) break;
      if (upload.state !== 'waiting') continue;
      running++;
      void this.#run(upload);
    }
    window.onbeforeunload = this.active > 0 ? (event) => event.preventDefault() : null;
  }

  async #run(upload: Upload): Promise<void> {
    const { client, container, name, file, replace } = upload;
    const { signal } = upload.controller;
    upload.state = 'running';
    // Signing out ends it: the credential is forgotten then.
    const stop = $effect.root(() => {
      $effect(() => {
        if (!session.clients.includes(client)) upload.controller.abort();
      });
    });
    try {
      if (!replace && (await exists(client, container, name, signal)))
        throw new ProtocolError(409, 'BlobAlreadyExists', '');
      await client.blobs.upload(container, name, file, {
        signal,
        onlyNew: !replace,
        onProgress: (sent) => (upload.sent = sent),
      });
      upload.state = 'done';
    } catch (error) {
      if (isAbort(error)) upload.state = 'cancelled';
      else if (error instanceof ProtocolError && error.code === 'BlobAlreadyExists') upload.state = 'exists';
      else [upload.state, upload.problem] = ['failed', explain(error)];
    } finally {
      stop();
    }
    this.finished++;
    this.#next();
  }
}

/** Whether a blob is there, before a large file is sent for nothing. The server decides when it is stored. */
async function exists(client: Client, container: string, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    await client.blobs.properties(container, name, { signal });
    return true;
  } catch (error) {
    if (isAbort(error)) throw error;
    return false;
  }
}

function explain(error: unknown): string {
  if (error instanceof DOMException) return 'The browser could not read the file. Was it changed or moved?';
  return errorMessage(error);
}

export const uploads = new Uploads();
