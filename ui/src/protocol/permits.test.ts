// Tests of `permits.ts`.
import { expect, test } from 'vitest';
import { sasCredential } from './credentials';
import { refusal } from './permits';

const sas = (text: string) => sasCredential(`sv=2020-12-06&sig=x&${text}`, 'acc');

test('a signature of an account is limited to its services, types and permissions', () => {
  const credential = sas('ss=t&srt=co&sp=rl');
  expect(refusal(credential, 'tables.list')).toBeUndefined();
  expect(refusal(credential, 'entities.read')).toBeUndefined();
  expect(refusal(credential, 'entities.insert')).toContain('sp with a');
  expect(refusal(credential, 'properties.read')).toContain('srt without s');
  expect(refusal(credential, 'queues.list')).toContain('ss without q');
  expect(refusal(credential, 'properties.read', 'blob')).toContain('ss without b');
  expect(refusal(credential, 'tables.acl')).toContain('account key');
});

test('an upsert needs both permissions', () => {
  expect(refusal(sas('ss=t&srt=o&sp=a'), 'entities.upsert')).toContain('a and u');
  expect(refusal(sas('ss=t&srt=o&sp=au'), 'entities.upsert')).toBeUndefined();
});

test('a signature of a table is for its entities alone', () => {
  const credential = sas('tn=People&sp=ra');
  expect(refusal(credential, 'entities.read')).toBeUndefined();
  expect(refusal(credential, 'entities.delete')).toContain('sp with d');
  expect(refusal(credential, 'tables.create')).toContain('table People');
  expect(refusal(credential, 'insights.read')).toContain('table People');
  expect(refusal(credential, 'queues.list')).toContain('table People');
});

test('what a stored policy allows is left to the server', () => {
  expect(refusal(sas('tn=People&si=policy'), 'entities.delete')).toBeUndefined();
});
