/** Keyboard shortcuts. `?` lists them. */

import { untrack } from 'svelte';

export interface Shortcut {
  /** One key such as `r`, or two in a row such as `g t`. */
  readonly keys: string;
  readonly label: string;
  readonly run: () => void;
}

class Keys {
  shortcuts = $state.raw<readonly Shortcut[]>([]);
  helpOpen = $state(false);
  #before = '';
  #beforeAt = 0;

  start(): void {
    addEventListener('keydown', (event) => this.#pressed(event));
  }

  #pressed(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event)) return;
    if (document.querySelector('dialog[open]')) return;
    const two = event.timeStamp - this.#beforeAt < 1000 ? `${this.#before} ${event.key}` : '';
    const found =
      this.shortcuts.findLast(({ keys }) => keys === two) ?? this.shortcuts.findLast(({ keys }) => keys === event.key);
    [this.#before, this.#beforeAt] = [event.key, event.timeStamp];
    if (!found) return;
    event.preventDefault();
    found.run();
  }
}

export const keys = new Keys();

/** Shortcuts that work while the component exists. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  $effect(() => {
    keys.shortcuts = [...untrack(() => keys.shortcuts), ...shortcuts];
    return () => (keys.shortcuts = keys.shortcuts.filter((shortcut) => !shortcuts.includes(shortcut)));
  });
}

/** Moves the focus to the page's search field: the first visible element with `data-search`. */
export function focusSearch(): void {
  const fields = document.querySelectorAll<HTMLElement>('[data-search]');
  [...fields].find((field) => field.offsetParent !== null)?.focus();
}

function isTyping(event: KeyboardEvent): boolean {
  const [target] = event.composedPath();
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  );
}
