/**
 * What of a blob can be shown: the type is told from its first bytes, never from what the blob claims to be. Text is shown as
 * text, pictures through an object URL with a picture's type. Nothing becomes a document.
 */

/** Bytes that are read to show text. */
export const TEXT_BYTES = 65_536;
/** Larger pictures are not shown. */
export const IMAGE_BYTES_MAX = 32 * 1024 * 1024;

const MAGIC: readonly (readonly [string, readonly number[], number])[] = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], 0],
  ['image/jpeg', [0xff, 0xd8, 0xff], 0],
  ['image/gif', [0x47, 0x49, 0x46, 0x38], 0],
  ['image/webp', [0x57, 0x45, 0x42, 0x50], 8],
  ['image/bmp', [0x42, 0x4d], 0],
  ['image/avif', [0x66, 0x74, 0x79, 0x70, 0x61, 0x76, 0x69, 0x66], 4],
  ['image/x-icon', [0x00, 0x00, 0x01, 0x00], 0],
];

/** The type of a picture, from its first bytes. Pictures of vectors (SVG) are text here. */
export function imageType(start: Uint8Array): string | undefined {
  return MAGIC.find(([, magic, at]) => magic.every((byte, index) => start[at + index] === byte))?.[0];
}

/** The text of bytes, if they are text: UTF-8 or UTF-16 with a mark, without control characters. */
export function textOf(bytes: Uint8Array, isWhole: boolean): string | undefined {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'utf-8';
  try {
    // A character may be cut at the end of the part that was read.
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: !isWhole });
    // eslint-disable-next-line no-control-regex
    return /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** The first bytes as hexadecimal numbers and characters, 16 a line. */
export function hexOf(bytes: Uint8Array, most = 512): string {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, most); at += 16) {
    const part = [...bytes.subarray(at, Math.min(at + 16, most))];
    const hex = part.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const characters = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '·')).join('');
    lines.push(`${at.toString(16).padStart(4, '0')}  ${hex.padEnd(47)}  ${characters}`);
  }
  return lines.join('\n');
}

/** The first bytes of a body; the rest is not read. A compressed body may be larger than it looks, so there is a bound. */
export async function readStart(response: Response, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const reader = response.body?.getReader();
  if (!reader) return new Uint8Array();
  const result = new Uint8Array(most);
  let length = 0;
  while (length < most) {
    const { value, done } = await reader.read();
    if (done) break;
    const part = value.subarray(0, most - length);
    result.set(part, length);
    length += part.length;
  }
  await reader.cancel();
  return result.subarray(0, length);
}
