/** Light, dark, or as the system wants. */

import { readStored, writeStored } from './stored';

export type Theme = 'system' | 'light' | 'dark';
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

class ThemeState {
  choice = $state<Theme>('system');
  /** Grows when colours change, for charts that draw with resolved colours. */
  version = $state(0);

  start(): void {
    const isTheme = (value: unknown): value is Theme => THEMES.includes(value as Theme);
    this.choice = readStored('theme', isTheme) ?? 'system';
    this.#apply();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.version++);
  }

  next(): void {
    this.choice = THEMES[(THEMES.indexOf(this.choice) + 1) % THEMES.length] ?? 'system';
    writeStored('theme', this.choice === 'system' ? undefined : this.choice);
    this.#apply();
  }

  #apply(): void {
    if (this.choice === 'system') delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = this.choice;
    this.version++;
  }
}

export const theme = new ThemeState();

/** A colour of theme.css as `rgb(…)`, for canvases. */
export function resolvedColor(property: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${property})`;
  probe.hidden = true;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
