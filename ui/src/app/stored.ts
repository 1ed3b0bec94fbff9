/** Settings and recent input that survive a reload, in the browser's storage. Never credentials, never data of the account. */

/** The stored value, if there is one that `check` accepts. */
export function readStored<T>(name: string, check: (value: unknown) => value is T): T | undefined {
  try {
    // eslint-disable-next-line no-restricted-globals -- the one place
    const value: unknown = JSON.parse(localStorage.getItem(PREFIX + name) ?? 'null');
    return check(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Stores a value, or removes it. A browser that refuses to store only forgets it. */
export function writeStored(name: string, value: unknown): void {
  try {
    // eslint-disable-next-line no-restricted-globals -- the one place
    const storage = localStorage;
    if (value === undefined) storage.removeItem(PREFIX + name);
    else storage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Private windows and full storage: the setting lasts until the page is closed.
  }
}

const PREFIX = 'larimar.';
