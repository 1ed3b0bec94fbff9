/** Accessibility in both themes. */
import type { Page } from '@playwright/test';
import { findings } from './axe';

/** The serious and critical findings of the page as it is now, in the light and in the dark theme. */
export async function seriousFindings(page: Page): Promise<string[]> {
  const all: string[] = [];
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    all.push(...(await findings(page)).map((finding) => `${colorScheme}: ${finding}`));
  }
  return all;
}
