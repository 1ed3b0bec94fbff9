/** What of a blob can be shown. */
import { expect, test } from 'vitest';
import { hexOf, imageType, readStart, textOf } from './preview';

const utf8 = (text: string) => new TextEncoder().encode(text);

test('a picture is known by its bytes, whatever it is called', () => {
  expect(imageType(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0]))).toBe('image/png');
  expect(imageType(utf8('RIFF....WEBPVP8 '))).toBe('image/webp');
  expect(imageType(utf8('<svg onload="alert(1)">'))).toBeUndefined();
  expect(imageType(utf8('<!doctype html>'))).toBeUndefined();
});

test('text is text until a control character or a byte that UTF-8 does not have', () => {
  expect(textOf(utf8('Grüße\n\t'), true)).toBe('Grüße\n\t');
  expect(textOf(utf8('ü').subarray(0, 1), false)).toBe('');
  expect(textOf(utf8('ü').subarray(0, 1), true)).toBeUndefined();
  expect(textOf(new Uint8Array([0xff, 0xfe, 0x41, 0]), true)).toBe('A');
  expect(textOf(new Uint8Array([0x41, 0, 0x42]), true)).toBeUndefined();
});

test('other bytes are shown as numbers', () => {
  expect(hexOf(new Uint8Array([0, 1, 0x41]))).toContain('00 01 41');
  expect(hexOf(new Uint8Array(5000)).split('\n')).toHaveLength(32);
});

test('only the start of a body is read', async () => {
  const start = await readStart(new Response(new Uint8Array(100_000).fill(7)), 10);
  expect(start).toEqual(new Uint8Array(10).fill(7));
});
