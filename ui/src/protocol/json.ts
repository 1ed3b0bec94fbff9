/**
 * A JSON parser that keeps the text of numbers.
 *
 * The Table service writes an Int32 as `3` and a Double as `3.0`, without an annotation. `JSON.parse` reads both as 3, so
 * that saving an entity would change its types.
 */

/** A number as it was written. */
export class NumberText {
  constructor(readonly text: string) {}
}

export type Json = string | boolean | null | NumberText | Json[] | Map<string, Json>;

/** Parses a document. Objects are maps, so that no name is special. Throws `SyntaxError`. */
export function parseJson(text: string): Json {
  return new Parser(text).document();
}

class Parser {
  #at = 0;

  constructor(readonly text: string) {}

  document(): Json {
    const value = this.#value(0);
    this.#space();
    if (this.#at < this.text.length) this.#fail();
    return value;
  }

  #value(depth: number): Json {
    if (depth > DEPTH_MAX) throw new SyntaxError('The JSON is nested too deeply.');
    this.#space();
    switch (this.text.charCodeAt(this.#at)) {
      case 0x7b:
        return this.#object(depth);
      case 0x5b:
        return this.#array(depth);
      case 0x22:
        return this.#string();
      case 0x74:
        return this.#word('true', true);
      case 0x66:
        return this.#word('false', false);
      case 0x6e:
        return this.#word('null', null);
      default:
        return this.#number();
    }
  }

  #object(depth: number): Map<string, Json> {
    const members = new Map<string, Json>();
    this.#at++;
    this.#space();
    if (this.#take('}')) return members;
    do {
      this.#space();
      if (this.text[this.#at] !== '"') this.#fail();
      const name = this.#string();
      this.#space();
      if (!this.#take(':')) this.#fail();
      members.set(name, this.#value(depth + 1));
      this.#space();
    } while (this.#take(','));
    if (!this.#take('}')) this.#fail();
    return members;
  }

  #array(depth: number): Json[] {
    const items: Json[] = [];
    this.#at++;
    this.#space();
    if (this.#take(']')) return items;
    do {
      items.push(this.#value(depth + 1));
      this.#space();
    } while (this.#take(','));
    if (!this.#take(']')) this.#fail();
    return items;
  }

  #string(): string {
    const start = this.#at;
    let end = this.text.indexOf('"', start + 1);
    while (end > 0 && this.#isEscaped(end, start)) end = this.text.indexOf('"', end + 1);
    if (end < 0) this.#fail();
    this.#at = end + 1;
    const inner = this.text.slice(start + 1, end);
    return PLAIN.test(inner) ? inner : (JSON.parse(this.text.slice(start, end + 1)) as string);
  }

  /** Whether the quote at `at` has an odd number of backslashes before it. */
  #isEscaped(at: number, start: number): boolean {
    let backslashes = 0;
    while (at - 1 - backslashes > start && this.text[at - 1 - backslashes] === '\\') backslashes++;
    return backslashes % 2 === 1;
  }

  #number(): NumberText {
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.text);
    if (!found) this.#fail();
    this.#at = NUMBER.lastIndex;
    return new NumberText(found[0]);
  }

  #word<T>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.#at)) this.#fail();
    this.#at += word.length;
    return value;
  }

  #take(character: string): boolean {
    if (this.text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #space(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at++;
    }
  }

  #fail(): never {
    throw new SyntaxError(`Expected JSON at position ${this.#at}.`);
  }
}

// eslint-disable-next-line no-control-regex -- control characters have to be escaped in JSON
const PLAIN = /^[^\\\u0000-\u001f]*$/;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const DEPTH_MAX = 64;
