// Tests of the advisor in a browser.
import { seriousFindings } from './themes';
import { expect, test } from './fixture';
import { accountSas } from './seed';
import { makeScans, signInWith } from './traffic';

test('a finding appears with its evidence, cost and code', async ({ page, server }) => {
  await makeScans(server, 'Scanned');
  await page.goto('/#/advisor?table=Scanned');
  const finding = page.getByRole('article', { name: 'Table scan in Scanned' });
  await expect(finding).toContainText('warning');
  await expect(finding).toContainText('Email eq ?');
  await expect(finding).toContainText('times fewer rows');
  await expect(finding).toContainText('docs/advisor.md#table-scan');
  await finding.getByText('Code of the pattern').click();
  await expect(finding.getByRole('tabpanel')).toContainText('InterPartitionIndex');
  await finding.getByRole('tab', { name: 'Rust' }).press('ArrowRight');
  await expect(finding.getByRole('tabpanel')).toContainText('query_entities');
  expect(await seriousFindings(page)).toEqual([]);
  await page.getByText('Week', { exact: true }).click();
  await expect(page).toHaveURL(/span=week/);
  await expect(finding).toBeVisible();
});

test('a finding is dismissed with a reason and shown again', async ({ page, server }) => {
  await makeScans(server, 'Accepted');
  await page.goto('/#/advisor?table=Accepted');
  const finding = page.getByRole('article', { name: 'Table scan in Accepted' });
  await finding.getByRole('button', { name: /Dismiss/ }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason').fill('<b>the monthly report</b>');
  await dialog.getByRole('button', { name: 'Dismiss' }).click();
  await expect(finding).toHaveCount(0);
  await expect(page.getByText('All findings are dismissed')).toBeVisible();
  await page.getByLabel(/Show dismissed/).check();
  await expect(finding).toContainText('<b>the monthly report</b>');
  await page.reload();
  await finding.getByRole('button', { name: /Undo/ }).click();
  await expect(finding.getByRole('button', { name: /Dismiss/ })).toBeVisible();
});

test('without findings the page says what they need', async ({ page }) => {
  await page.goto('/#/advisor?table=Nothing');
  await expect(page.getByText('Nothing to improve')).toBeVisible();
  await expect(page.getByRole('region', { name: 'What is checked' })).toContainText('10 pages of queries');
});

test('a signature that only reads may not dismiss, and one for queues sees an explanation', async ({
  page,
  server,
}) => {
  await makeScans(server, 'Scanned');
  await page.goto('/#/advisor?table=Scanned');
  await signInWith(page, accountSas({ permissions: 'rl' }));
  const button = page.getByRole('article', { name: 'Table scan in Scanned' }).getByRole('button', { name: /Dismiss/ });
  await expect(button).toBeDisabled();
  await signInWith(page, accountSas({ services: 'q' }));
  await expect(page.getByText('The advisor needs a credential for the whole account')).toBeVisible();
});
