// Tests of the frame around the pages in a browser.
import { expect, test } from './fixture';

test('a development server signs in by itself and shows every page', async ({ page }) => {
  await page.goto('/');
  const pages = page.getByRole('navigation').getByRole('link');
  await expect(pages.first()).toBeVisible();
  for (const name of await pages.allInnerTexts()) {
    await page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  }
});
