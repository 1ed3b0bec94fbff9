/** Finds what makes a page hard to use with assistive technology. */
import type { Page } from '@playwright/test';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The serious and critical findings of the page as it is now, one line each. */
export async function findings(page: Page): Promise<string[]> {
  // A theme that was changed just now is drawn first.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  // Evaluated by the browser's debugger, so the page's policy about scripts does not concern it.
  await page.evaluate(source);
  return page.evaluate(async () => {
    interface Result {
      id: string;
      impact?: string | null;
      nodes: { target: unknown[]; failureSummary?: string }[];
    }
    const { axe } = window as unknown as { axe: { run: (options: object) => Promise<{ violations: Result[] }> } };
    const { violations } = await axe.run({ resultTypes: ['violations'] });
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) =>
        nodes
          .slice(0, 3)
          .map((node) => `${id}: ${node.target.join(' ')}: ${(node.failureSummary ?? '').slice(0, 200)}`),
      );
  });
}
