/** JSON lines, one JSON array, or the body of a query: `{"value":[…]}`. */

import {
  doubleText,
  edmText,
  NumberText,
  parseJson,
  type EdmType,
  type EdmValue,
  type Entity,
  type Json,
} from '../../../protocol';

export interface JsonRecord {
  readonly line: number;
  readonly text: string;
}

/** Finds the objects of a file, piece by piece. */
export class JsonReader {
  #text = '';
  /** Where to go on in `#text`. */
  #at = 0;
  #start = -1;
  #depth = 0;
  #inString = false;
  #line = 1;
  #startLine = 1;
  /** Not known before the first characters are there. */
  #isArray: boolean | undefined;
  #isDone = false;

  push(piece: string): JsonRecord[] {
    this.#text += piece;
    if (this.#isArray === undefined && !this.#begin(false)) return [];
    return this.#scan();
  }

  end(): JsonRecord[] {
    if (this.#isArray === undefined) this.#begin(true);
    const records = this.#scan();
    if (this.#depth > 0) throw new Error(`Line ${this.#startLine}: the object is not closed.`);
    if (this.#isArray && !this.#isDone) throw new Error(`Line ${this.#line}: the array is not closed.`);
    return records;
  }

  /** Decides what kind of file it is. */
  #begin(isEnd: boolean): boolean {
    const text = this.#text.replace(/^\uFEFF/, '');
    const body = /^\s*(\{\s*("odata\.metadata"\s*:\s*"[^"]*"\s*,\s*)?"value"\s*:\s*)?\[/.exec(text)?.[0];
    if (body === undefined && text.length < BEGIN_CHARACTERS && !isEnd) return false;
    this.#isArray = body !== undefined;
    this.#at = (body?.length ?? 0) + (this.#text.length - text.length);
    this.#line += (body ?? '').split('\n').length - 1;
    return true;
  }

  #scan(): JsonRecord[] {
    const records: JsonRecord[] = [];
    const text = this.#text;
    while (this.#at < text.length && !this.#isDone) {
      const code = text.charCodeAt(this.#at);
      if (this.#inString) {
        this.#skipString(text);
        continue;
      }
      if (code === 0x0a) this.#line++;
      else if (code === 0x22 && this.#depth > 0) this.#inString = true;
      else if (code === 0x7b || (code === 0x5b && this.#depth > 0)) this.#open();
      else if ((code === 0x7d || code === 0x5d) && this.#depth > 0) this.#close(records);
      else if (this.#depth === 0) this.#between(code);
      this.#at++;
    }
    this.#forget();
    return records;
  }

  /** To the end of a string, or of the text. */
  #skipString(text: string): void {
    while (this.#at < text.length) {
      const code = text.charCodeAt(this.#at);
      if (code === 0x5c) {
        // The escaped character may be in the next piece.
        if (this.#at + 1 >= text.length) return this.#waitAt();
        this.#at += 2;
        continue;
      }
      this.#at++;
      if (code === 0x22) {
        this.#inString = false;
        return;
      }
    }
  }

  /** A backslash at the end of a piece: leaves it for the next one by ending the loop. */
  #waitAt(): void {
    this.#pendingEscape = true;
    this.#at = this.#text.length;
  }

  #pendingEscape = false;

  #open(): void {
    if (this.#depth === 0) {
      this.#start = this.#at;
      this.#startLine = this.#line;
    }
    this.#depth++;
  }

  #close(records: JsonRecord[]): void {
    this.#depth--;
    if (this.#depth > 0) return;
    records.push({ line: this.#startLine, text: this.#text.slice(this.#start, this.#at + 1) });
    this.#start = -1;
  }

  /** A character between objects. */
  #between(code: number): void {
    if (this.#isArray && code === 0x5d) this.#isDone = true;
    else if (!(code <= 0x20 || (code === 0x2c && this.#isArray))) {
      throw new Error(
        `Line ${this.#line}: expected a JSON object, found ${JSON.stringify(String.fromCharCode(code))}.`,
      );
    }
  }

  /** Drops what was read. */
  #forget(): void {
    const from = this.#start >= 0 ? this.#start : this.#at;
    const keep = this.#pendingEscape ? Math.min(from, this.#at) : from;
    this.#text = this.#text.slice(keep);
    this.#at -= keep;
    if (this.#pendingEscape) {
      this.#at--;
      this.#pendingEscape = false;
    }
    if (this.#start >= 0) this.#start = 0;
    if (this.#text.length > OBJECT_CHARACTERS_MAX)
      throw new Error(`Line ${this.#startLine}: an object of more than 16 MiB.`);
  }
}

/** One value of a file: its text, and its type if the file has it. */
export interface RawValue {
  readonly text: string;
  readonly type?: EdmType;
}

/** The members of an object; what cannot be stored throws. */
export function valuesOfJson(text: string): Map<string, RawValue> {
  const json = parseJson(text);
  if (!(json instanceof Map)) throw new Error('Expected an object.');
  const values = new Map<string, RawValue>();
  for (const [name, value] of json) {
    if (value === null || name.startsWith('odata.') || name.includes('@')) continue;
    values.set(name, rawOf(name, value, json.get(`${name}@odata.type`)));
  }
  return values;
}

function rawOf(name: string, value: Json, annotation: Json | undefined): RawValue {
  const annotated = typeof annotation === 'string' ? (annotation.replace('Edm.', '') as EdmType) : undefined;
  if (typeof value === 'string') return { text: value, type: annotated ?? 'String' };
  if (typeof value === 'boolean') return { text: String(value), type: 'Boolean' };
  if (value instanceof NumberText) return { text: value.text, type: annotated ?? numberType(value.text) };
  throw new Error(
    `${name} is ${Array.isArray(value) ? 'a list' : 'an object'}: entities have only texts, numbers and booleans.`,
  );
}

function numberType(text: string): EdmType {
  if (/[.eE]/.test(text)) return 'Double';
  const value = BigInt(text);
  if (value >= -(2n ** 31n) && value < 2n ** 31n) return 'Int32';
  return value >= -(2n ** 63n) && value < 2n ** 63n ? 'Int64' : 'Double';
}

/** A line of an export: the entity as the service has it in JSON. */
export function entityJson({ partitionKey, rowKey, timestamp, properties }: Entity): string {
  const members = [`"PartitionKey":${JSON.stringify(partitionKey)}`, `"RowKey":${JSON.stringify(rowKey)}`];
  if (timestamp !== undefined) members.push(`"Timestamp":${JSON.stringify(timestamp)}`);
  for (const [name, value] of properties) {
    const [type, text] = memberOf(value);
    if (type) members.push(`${JSON.stringify(`${name}@odata.type`)}:"Edm.${value.type}"`);
    members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join(',')}}`;
}

/** Whether a value needs its type beside it, and its JSON. */
function memberOf(value: EdmValue): [boolean, string] {
  if (value.type === 'Boolean' || value.type === 'Int32') return [false, String(value.value)];
  if (value.type === 'Double' && Number.isFinite(value.value)) return [false, doubleText(value.value)];
  return [value.type !== 'String', JSON.stringify(edmText(value))];
}

const BEGIN_CHARACTERS = 4096;
const OBJECT_CHARACTERS_MAX = 16 * 1024 * 1024;
