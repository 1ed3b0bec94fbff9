/** HMAC-SHA256 with Web Crypto, which browsers have only on HTTPS and localhost. */

/** Whether this page can sign requests. */
export function canSign(): boolean {
  return typeof crypto !== 'undefined' && crypto.subtle !== undefined;
}

/** A key that signs and whose bytes cannot be read back by script. */
export async function importKey(base64: string): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', fromBase64(base64), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
}

/** The signature of a text, in base64. */
export async function sign(key: CryptoKey, text: string): Promise<string> {
  return toBase64(new Uint8Array(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(text))));
}

export function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (let start = 0; start < bytes.length; start += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  }
  return btoa(text);
}

/** The bytes of standard base64. Throws if it is malformed. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
