/** Views of a message's text. */
import { expect, test } from 'vitest';
import { encodeBase64, firstLine, problemOf, show } from './text';

test('JSON is shown with its lines, also from base64', () => {
  expect(show('{"order":7}', 'auto')).toEqual({ text: '{\n  "order": 7\n}', steps: ['json'] });
  expect(show(encodeBase64('{"order":7}'), 'auto')).toEqual({ text: '{\n  "order": 7\n}', steps: ['base64', 'json'] });
});

test('words that happen to be base64 stay as they are', () => {
  for (const word of ['test', 'true', 'Employee', 'hello', '12345678']) expect(show(word, 'auto').text).toBe(word);
});

test('base64 of text is decoded, of other bytes not', () => {
  expect(show(encodeBase64('Grüße an alle'), 'auto')).toEqual({ text: 'Grüße an alle', steps: ['base64'] });
  expect(firstLine(encodeBase64('one\n  two'))).toBe('one two');
  expect(show('/////w==', 'base64').problem).toContain('UTF-8');
});

test('a view that does not fit says so and shows what is stored', () => {
  expect(show('<b>', 'json')).toEqual({ text: '<b>', steps: [], problem: 'The text is not JSON.' });
});

test('what a message cannot hold is refused before it is sent', () => {
  expect(problemOf('a\u0000b')).toContain('control characters');
  expect(problemOf('\ud800')).toContain('control characters');
  expect(problemOf('😀 \t\r\n')).toBeUndefined();
  expect(problemOf('ü'.repeat(32_769))).toContain('64 KiB');
  expect(problemOf('ü'.repeat(32_768))).toBeUndefined();
});
