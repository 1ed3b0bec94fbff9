/** Something that is loaded: its data, its error, and whether it is on its way. */

import { untrack } from 'svelte';
import { isAbort } from '../protocol';

export class Resource<T> {
  /** What was loaded last; it stays while it is loaded again. */
  data = $state.raw<T>();
  error = $state.raw<unknown>();
  loading = $state(true);
  version = $state(0);

  reload(): void {
    this.version++;
  }
}

/**
 * Loads now, and again whenever something reactive changes that `load` reads before its first `await`. The load before is
 * aborted, as the last one is when the component goes away. Call it while a component is being made.
 */
export function resource<T>(load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const result = new Resource<T>();
  $effect(() => {
    void result.version;
    const controller = new AbortController();
    const { signal } = controller;
    untrack(() => (result.loading = true));
    load(signal).then(
      (data) => {
        if (signal.aborted) return;
        result.data = data;
        result.error = undefined;
        result.loading = false;
      },
      (error: unknown) => {
        if (signal.aborted || isAbort(error)) return;
        result.error = error;
        result.loading = false;
      },
    );
    return () => controller.abort();
  });
  return result;
}

/** Calls a function now and every so often while the component exists and the tab is visible. */
export function every(millis: number, run: () => void): void {
  $effect(() => {
    untrack(run);
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') run();
    }, millis);
    return () => clearInterval(timer);
  });
}
