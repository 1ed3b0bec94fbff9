/** Service properties: CORS rules, logging, metrics and versions. */
import { expect, test } from './fixture';
import { call } from './seed';

test('a CORS rule is made, counts at once, and is removed', async ({ page, server }) => {
  await page.goto('/#/properties?service=queue');
  await page.getByRole('button', { name: 'Add a rule' }).click();
  const rule = page.getByRole('group', { name: 'Rule 1' });
  await expect(rule.getByRole('alert')).toContainText('at least one origin');
  await rule.getByLabel('Origins').fill('https://app.example/path');
  await expect(rule.getByRole('alert')).toContainText('without a path');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('Some fields are not right yet')).toBeVisible();
  await rule.getByLabel('Origins').fill('https://app.example');
  await rule.getByLabel('PUT').check();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('Saved the properties of the queue service.')).toBeVisible();
  const preflight = () =>
    fetch(`${server.endpoints.queue}/any`, {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example', 'access-control-request-method': 'PUT' },
    });
  expect((await preflight()).headers.get('access-control-allow-origin')).toBe('https://app.example');
  // The other services have their own.
  await page.getByRole('link', { name: 'Tables' }).last().click();
  await expect(page.getByText('There are no rules')).toBeVisible();
  await page.goBack();
  await page.getByRole('button', { name: 'Remove rule 1' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect.poll(async () => (await preflight()).status).toBe(403);
});

test('logging, metrics and the default version are saved, and the rest stays', async ({ page, server }) => {
  const query = 'restype=service&comp=properties';
  const body =
    '<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://stays.example</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders>*</ExposedHeaders><AllowedHeaders>*</AllowedHeaders></CorsRule></Cors></StorageServiceProperties>';
  await call(server, 'blob', 'PUT', '/', { query, body });
  await page.goto('/#/properties?service=blob');
  await expect(page.getByLabel('Origins')).toHaveValue('https://stays.example');
  await expect(page.getByText('not kept')).toBeVisible();
  await page.getByLabel('Writes').check();
  await page.getByLabel('Keep logs for (days)').fill('400');
  await expect(page.getByText('Days are 1 to 365')).toBeVisible();
  await page.getByLabel('Keep logs for (days)').fill('3');
  await page.getByRole('region', { name: 'Minute metrics' }).getByLabel('On', { exact: true }).check();
  await page.getByLabel('Default version').fill('2019-12-12');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('Saved the properties of the blob service.')).toBeVisible();
  const stored = await (await call(server, 'blob', 'GET', '/', { query })).text();
  expect(stored).toMatch(/<Write>true<\/Write>.*<Days>3<\/Days>.*<MinuteMetrics>.*<Enabled>true/s);
  expect(stored).toContain('<DefaultServiceVersion>2019-12-12<');
  expect(stored).toContain('https://stays.example');
  await expect(page.getByRole('button', { name: 'Save' })).toBeDisabled();
  await page.getByLabel('Writes').uncheck();
  await page.getByRole('button', { name: 'Undo changes' }).click();
  await expect(page.getByLabel('Writes')).toBeChecked();
});
