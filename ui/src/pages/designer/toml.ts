/**
 * The part of TOML that descriptions use: tables, arrays of tables, inline tables, arrays, strings, numbers, booleans.
 * Dates and multi-line strings are refused; the server reads all of TOML.
 */

export type TomlValue = string | number | boolean | TomlValue[] | TomlTable;
export interface TomlTable {
  [key: string]: TomlValue;
}

/** Text that cannot be read here, with its line, counted from 1. */
export class TomlError extends Error {
  override readonly name = 'TomlError';

  constructor(
    message: string,
    readonly line: number,
  ) {
    super(`line ${line}: ${message}`);
  }
}

export function parseToml(text: string): TomlTable {
  return new Parser(text).document();
}

class Parser {
  #at = 0;

  constructor(readonly text: string) {}

  document(): TomlTable {
    const root = table();
    let current = root;
    for (this.#blank(true); this.#at < this.text.length; this.#blank(true)) {
      if (this.text.startsWith('[[', this.#at)) current = this.#arrayHeader(root);
      else if (this.#peek() === '[') current = this.#header(root);
      else this.#pair(current);
      this.#blank(false);
      if (this.#at < this.text.length && this.#peek() !== '\n') throw this.#error('expected the end of the line');
    }
    return root;
  }

  #header(root: TomlTable): TomlTable {
    this.#at += 1;
    const path = this.#path();
    this.#expect(']');
    return path.reduce((parent, key) => this.#child(parent, key), root);
  }

  #arrayHeader(root: TomlTable): TomlTable {
    this.#at += 2;
    const path = this.#path();
    this.#expect(']');
    this.#expect(']');
    const last = path.pop() ?? '';
    const parent = path.reduce((above, key) => this.#child(above, key), root);
    const items = (parent[last] ??= []);
    if (!Array.isArray(items)) throw this.#error(`'${last}' is not an array of tables`);
    const item = table();
    items.push(item);
    return item;
  }

  #child(parent: TomlTable, key: string): TomlTable {
    const found = (parent[key] ??= table());
    const child = Array.isArray(found) ? found.at(-1) : found;
    if (typeof child !== 'object' || Array.isArray(child)) throw this.#error(`'${key}' is not a table`);
    return child;
  }

  #pair(into: TomlTable, depth = 0): void {
    const path = this.#path();
    this.#expect('=');
    this.#blank(false);
    const last = path.pop() ?? '';
    const parent = path.reduce((above, key) => this.#child(above, key), into);
    if (Object.hasOwn(parent, last)) throw this.#error(`'${last}' is there twice`);
    parent[last] = this.#value(depth);
  }

  #path(): string[] {
    const keys: string[] = [];
    for (;;) {
      this.#blank(false);
      const mark = this.#peek();
      keys.push(mark === '"' || mark === "'" ? this.#string() : this.#match(/[A-Za-z0-9_-]+/y, 'a name'));
      this.#blank(false);
      if (this.#peek() !== '.') return keys;
      this.#at += 1;
    }
  }

  #value(depth: number): TomlValue {
    if (depth > DEPTH_MAX) throw this.#error('this is nested too deeply');
    const mark = this.#peek();
    if (mark === '"' || mark === "'") return this.#string();
    if (mark === '[') return this.#array(depth);
    if (mark === '{') return this.#inline(depth);
    const word = this.#match(/[A-Za-z0-9_.+-]+/y, 'a value');
    if (word === 'true' || word === 'false') return word === 'true';
    if (/^[+-]?\d[\d_]*(\.\d[\d_]*)?([eE][+-]?\d+)?$/.test(word)) return Number(word.replaceAll('_', ''));
    throw this.#error(`unknown value '${word.slice(0, 40)}'`);
  }

  #array(depth: number): TomlValue[] {
    this.#at += 1;
    const items: TomlValue[] = [];
    for (;;) {
      this.#blank(true);
      if (this.#peek() === ']') break;
      items.push(this.#value(depth + 1));
      this.#blank(true);
      if (this.#peek() === ',') this.#at += 1;
      else if (this.#peek() !== ']') throw this.#error("expected ',' or ']'");
    }
    this.#at += 1;
    return items;
  }

  #inline(depth: number): TomlTable {
    this.#at += 1;
    const result = table();
    for (;;) {
      this.#blank(false);
      if (this.#peek() === '}') break;
      this.#pair(result, depth + 1);
      this.#blank(false);
      if (this.#peek() === ',') this.#at += 1;
      else if (this.#peek() !== '}') throw this.#error("expected ',' or '}'");
    }
    this.#at += 1;
    return result;
  }

  #string(): string {
    const mark = this.#peek();
    if (this.text.startsWith(mark.repeat(3), this.#at))
      throw this.#error('texts of several lines cannot be shown here');
    const found = this.#match(mark === '"' ? /"(?:[^"\\\n]|\\.)*"/y : /'[^'\n]*'/y, 'the end of a text');
    if (mark === "'") return found.slice(1, -1);
    return found.slice(1, -1).replaceAll(ESCAPE, (whole, code: string) => {
      const hex = /^[uU]([0-9A-Fa-f]+)$/.exec(code)?.[1];
      if (hex !== undefined && parseInt(hex, 16) <= 0x10ffff) return String.fromCodePoint(parseInt(hex, 16));
      const plain = ESCAPES[code];
      if (plain === undefined) throw this.#error(`unknown escape '${whole}'`);
      return plain;
    });
  }

  #match(pattern: RegExp, expected: string): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text)?.[0];
    if (found === undefined) throw this.#error(`expected ${expected}`);
    this.#at += found.length;
    return found;
  }

  #expect(mark: string): void {
    this.#blank(false);
    if (this.#peek() !== mark) throw this.#error(`expected '${mark}'`);
    this.#at += 1;
  }

  #peek(): string {
    return this.text[this.#at] ?? '';
  }

  /** Skips spaces and comments, and line ends if they mean nothing here. */
  #blank(lines: boolean): void {
    const pattern = lines ? /(?:[ \t\r\n]|#[^\n]*)*/y : /(?:[ \t\r]|#[^\n]*)*/y;
    pattern.lastIndex = this.#at;
    this.#at += pattern.exec(this.text)?.[0].length ?? 0;
  }

  #error(message: string): TomlError {
    return new TomlError(message, this.text.slice(0, this.#at).split('\n').length);
  }
}

/** A table whose keys cannot be those of every object. */
function table(): TomlTable {
  return Object.create(null) as TomlTable;
}

/** A table as text: plain members first, then tables, then arrays of tables. */
export function writeToml(root: TomlTable): string {
  const lines: string[] = [];
  const isTable = (value: TomlValue): value is TomlTable => typeof value === 'object' && !Array.isArray(value);
  const isTables = (value: TomlValue): value is TomlTable[] =>
    Array.isArray(value) && value.length > 0 && value.every(isTable);
  const plain = (members: TomlTable) => {
    for (const [key, value] of Object.entries(members)) lines.push(`${keyText(key)} = ${valueText(value)}`);
  };
  const entries = Object.entries(root);
  plain(Object.fromEntries(entries.filter(([, value]) => !isTable(value) && !isTables(value))));
  for (const [key, value] of entries) {
    if (!isTable(value)) continue;
    lines.push('', `[${keyText(key)}]`);
    plain(value);
  }
  for (const [key, value] of entries) {
    if (!isTables(value)) continue;
    for (const item of value) {
      lines.push('', `[[${keyText(key)}]]`);
      plain(item);
    }
  }
  return `${lines.join('\n').replace(/^\n+/, '')}\n`;
}

function keyText(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
}

function valueText(value: TomlValue): string {
  if (typeof value === 'string') return JSON.stringify(value).replaceAll('\u007f', '\\u007f');
  if (typeof value === 'number') return numberText(value);
  if (typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return `[${value.map(valueText).join(', ')}]`;
  const members = Object.entries(value).map(([key, member]) => `${keyText(key)} = ${valueText(member)}`);
  return members.length ? `{ ${members.join(', ')} }` : '{}';
}

function numberText(value: number): string {
  const shown = String(value);
  // TOML wants a digit on both sides of a point, and `1e-7` is one of its floats.
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? shown.replace(/\B(?=(\d{3})+$)/g, '_') : shown;
}

const DEPTH_MAX = 8;
const ESCAPE = /\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[\s\S])/g;
const ESCAPES: Record<string, string> = {
  b: '\b',
  t: '\t',
  n: '\n',
  f: '\f',
  r: '\r',
  '"': '"',
  '\\': '\\',
};
