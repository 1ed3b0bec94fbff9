/** Short messages at the edge of the page. */

import { errorMessage, isAbort } from '../protocol';

export interface Toast {
  readonly id: number;
  readonly kind: 'done' | 'error';
  readonly text: string;
}

class Toasts {
  items = $state.raw<readonly Toast[]>([]);
  #last = 0;

  /** Something was done. Goes away by itself. */
  done(text: string): void {
    this.#add('done', text, 5000);
  }

  /** Something failed. Stays longer; an aborted request is not an error. */
  error(error: unknown): void {
    if (!isAbort(error)) this.#add('error', errorMessage(error), 15_000);
  }

  close(id: number): void {
    this.items = this.items.filter((toast) => toast.id !== id);
  }

  #add(kind: Toast['kind'], text: string, millis: number): void {
    const id = ++this.#last;
    this.items = [...this.items.slice(-3), { id, kind, text }];
    setTimeout(() => this.close(id), millis);
  }
}

export const toasts = new Toasts();
