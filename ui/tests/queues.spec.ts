/** Queues: messages looked at, put, taken, changed and moved; metadata, policies and signatures. */
import { expect, test } from './fixture';
import { atOnce, call, makeQueue, putMessage } from './seed';

test('a queue is made, filled, looked at and deleted', async ({ page }) => {
  await page.goto('/#/queues');
  await page.getByRole('button', { name: 'New queue' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('Not A Name');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await expect(dialog.getByRole('alert')).toContainText('lower-case letters');
  await dialog.getByLabel('Name').fill('letters');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'letters' })).toBeVisible();
  await expect(page.getByText('The queue is empty.')).toBeVisible();

  await page.getByRole('button', { name: 'Put message' }).click();
  await dialog.getByLabel('Text').fill('{"order": 7, "note": "<b>bold</b>"}');
  await dialog.getByLabel(/Encode in base64/).check();
  await dialog.getByRole('button', { name: 'Put message' }).click();
  const row = page.getByRole('row', { name: /"order": 7/ });
  await row.click();
  const panel = page.getByRole('region', { name: 'Message', exact: true });
  await expect(panel.getByText('from base64', { exact: true })).toBeVisible();
  await expect(panel.getByRole('region', { name: 'Text of the message' })).toContainText('"note": "<b>bold</b>"');
  await panel.getByLabel('Show the text').selectOption('As stored');
  await expect(page).toHaveURL(/view=stored/);
  await expect(panel.getByRole('region', { name: 'Text of the message' })).toContainText('eyJvcmRlciI6');

  await page.getByText('More').click();
  await page.getByRole('button', { name: 'Delete queue…' }).click();
  await dialog.getByRole('textbox').fill('letters');
  await dialog.getByRole('button', { name: 'Delete queue' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Queues' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'letters' })).toHaveCount(0);
});

test('a message is taken, changed, given back and deleted', async ({ page, server }) => {
  await makeQueue(server, 'taking', ['first', 'second']);
  await page.goto('/#/queues/taking');
  await expect(page.getByRole('row', { name: /first/ })).toBeVisible();
  await page.getByRole('button', { name: 'Take…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Take' }).click();
  const panel = page.getByRole('region', { name: 'Message, taken here' });
  await expect(panel.getByText(/Hidden from others/)).toBeVisible();
  await expect(page.getByRole('row', { name: /taken first 1/ })).toBeVisible();
  // Others do not see it now.
  expect(await peek(server, 'taking')).toEqual(['second']);

  await panel.getByRole('textbox', { name: 'Text' }).fill('changed');
  await panel.getByRole('button', { name: 'Update' }).click();
  await expect(page.getByText('Changed the message.')).toBeVisible();
  await panel.getByRole('button', { name: 'Give back' }).click();
  await expect(page.getByRole('row', { name: /^changed/ })).toBeVisible();
  expect((await peek(server, 'taking')).sort()).toEqual(['changed', 'second']);

  await page.getByRole('button', { name: 'Take…' }).click();
  await page
    .getByRole('dialog')
    .getByLabel(/How many/)
    .fill('2');
  await page.getByRole('dialog').getByRole('button', { name: 'Take' }).click();
  await panel.getByRole('button', { name: 'Delete' }).click();
  await expect(page.getByText('Deleted the message.')).toBeVisible();
  await page.getByRole('row', { name: /^taken/ }).click();
  await panel.getByRole('button', { name: 'Delete' }).click();
  await expect(page.getByText('The queue is empty.')).toBeVisible();
});

test('a receipt that is too old is explained', async ({ page, server }) => {
  await makeQueue(server, 'stale', ['mine']);
  await page.goto('/#/queues/stale?dialog=take');
  await page
    .getByRole('dialog')
    .getByLabel(/Hide for/)
    .fill('1');
  await page.getByRole('dialog').getByRole('button', { name: 'Take' }).click();
  const panel = page.getByRole('region', { name: 'Message, taken here' });
  await expect(panel.getByText('Visible to others again')).toBeVisible();
  await expect.poll(async () => (await call(server, 'queue', 'GET', '/stale/messages')).text()).toContain('mine');
  await panel.getByRole('button', { name: 'Delete' }).click();
  await expect(panel.getByRole('alert')).toContainText('not ours any more');
});

test('poison messages are moved back to their queue', async ({ page, server }) => {
  const texts = Array.from({ length: 70 }, (_, at) => `poison ${at}`);
  await makeQueue(server, 'jobs');
  await makeQueue(server, 'jobs-poison');
  await atOnce(texts, 8, (text) => putMessage(server, 'jobs-poison', text));
  await page.goto('/#/queues');
  await expect(page.getByRole('row', { name: /jobs-poison poison 70/ })).toBeVisible();
  await page.getByRole('link', { name: 'jobs-poison' }).click();
  await page.getByRole('button', { name: 'Move to jobs…' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByLabel('At most so many')).toHaveValue('70');
  await dialog.getByRole('button', { name: 'Move' }).click();
  await expect(page.getByText('70 messages moved to jobs.')).toBeVisible();
  await expect(page.getByText('The queue is empty.')).toBeVisible();
  const count = (await call(server, 'queue', 'GET', '/jobs', { query: 'comp=metadata' })).headers;
  expect(count.get('x-ms-approximate-messages-count')).toBe('70');
});

test('messages go nowhere if the other queue does not exist', async ({ page, server }) => {
  await makeQueue(server, 'lonely-poison', ['stays']);
  await page.goto('/#/queues/lonely-poison?dialog=move');
  await page.getByRole('dialog').getByRole('button', { name: 'Move' }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText(
    'There is no queue lonely. 0 messages moved.',
  );
  expect(await peek(server, 'lonely-poison')).toEqual(['stays']);
});

test('metadata, stored policies and a signature of a queue', async ({ page, server }) => {
  await makeQueue(server, 'shared', ['for you']);
  await page.goto('/#/queues/shared?dialog=metadata');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Add' }).click();
  await dialog.getByLabel('Name 1').fill('team');
  await dialog.getByLabel('Value 1').fill('blue');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('Saved the metadata of shared.')).toBeVisible();
  const about = await call(server, 'queue', 'GET', '/shared', { query: 'comp=metadata' });
  expect(about.headers.get('x-ms-meta-team')).toBe('blue');

  await page.getByText('More').click();
  await page.getByRole('button', { name: 'Stored policies' }).click();
  await dialog.getByRole('button', { name: 'Add a policy' }).click();
  await dialog.getByLabel('Name').fill('readers');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('Saved the access policies of shared.')).toBeVisible();

  await page.getByText('More').click();
  await page.getByRole('button', { name: 'Signature (SAS)' }).click();
  await dialog.getByLabel('Stored policy').selectOption('readers');
  await dialog.getByRole('button', { name: 'Make signature' }).click();
  const sas = await dialog.getByLabel('Signature', { exact: true }).inputValue();
  expect(sas).toContain('si=readers');
  const peeked = await call(server, 'queue', 'GET', '/shared/messages', { query: 'peekonly=true', sas });
  expect(await peeked.text()).toContain('for you');
  const refused = await call(server, 'queue', 'DELETE', '/shared/messages', { sas, allowed: [403] });
  expect(refused.status).toBe(403);
  await expect(page).not.toHaveURL(/sig/);
});

test('queues of more than one page are listed and found', async ({ page, server }) => {
  const names = Array.from({ length: 5_100 }, (_, at) => `many-${String(at).padStart(5, '0')}`);
  await atOnce(names, 16, (name) => call(server, 'queue', 'PUT', `/${name}`, { allowed: [409] }));
  await page.goto('/#/queues');
  await expect(page.getByRole('grid')).toHaveAttribute('aria-rowcount', /^51\d\d$/);
  expect(await page.locator('*').count()).toBeLessThan(1500);
  await page.getByRole('grid').focus();
  await page.keyboard.press('Control+End');
  await expect(page.getByRole('link', { name: 'many-05099' })).toBeVisible();
  await page.getByRole('searchbox').fill('many-0123');
  await expect(page.getByText('10 queues')).toBeVisible();
  await page.getByRole('grid').focus();
  await page.keyboard.press('Control+Home');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 1, name: 'many-01231' })).toBeVisible();
  await page.goBack();
  await expect(page.getByRole('searchbox')).toHaveValue('many-0123');
});

async function peek(server: Parameters<typeof call>[0], queue: string): Promise<string[]> {
  const xml = await (
    await call(server, 'queue', 'GET', `/${queue}/messages`, { query: 'peekonly=true&numofmessages=32' })
  ).text();
  return [...xml.matchAll(/<MessageText>([^<]*)</g)].map((match) => match[1] ?? '');
}
