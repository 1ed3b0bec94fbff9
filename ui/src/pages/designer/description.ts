/** A description as the form edits it: a view of its TOML, in which everything else stays. */

import { parseToml, writeToml, type TomlTable, type TomlValue } from './toml';

export const TYPES = ['string', 'int32', 'int64', 'double', 'boolean', 'datetime', 'guid', 'binary'] as const;
export const DOES = ['insert', 'update', 'delete'] as const;

/** The lists of a description. */
export type ListName = 'property' | 'query' | 'write' | 'related';

export const EMPTY = `entity = "Entity"

[volume]
entities = 100_000

[[property]]
name = "Id"
type = "string"
unique = true

[[query]]
name = "by id"
equals = ["Id"]
rate = "10/s"

[[write]]
name = "add"
does = "insert"
rate = "1/s"
`;

/** One edit of a description, from text to text. Comments are lost; everything else stays. */
export function edit(text: string, change: (root: TomlTable) => void): string {
  const root = parseToml(text);
  change(root);
  return writeToml(root);
}

export function listOf(root: TomlTable, name: ListName): TomlTable[] {
  const value = root[name];
  return Array.isArray(value) ? value.filter(isTable) : [];
}

export function textOf(value: TomlValue | undefined): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

export function namesOf(value: TomlValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

export function tableOf(value: TomlValue | undefined): TomlTable {
  return value !== undefined && isTable(value) ? value : {};
}

/** Sets a member, or removes it if there is nothing to set. */
export function set(table: TomlTable, key: string, value: TomlValue | undefined): void {
  const isNothing =
    value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0);
  if (isNothing) Reflect.deleteProperty(table, key);
  else table[key] = value;
}

/** A number that a user typed; `undefined` for none. */
export function numberOf(text: string): number | undefined {
  const value = Number(text.replaceAll(/[\s_,]/g, ''));
  return text.trim() === '' || !Number.isFinite(value) || value < 0 ? undefined : value;
}

/** Gives a property another name, wherever it is named. */
export function renameProperty(root: TomlTable, from: string, to: string): void {
  const renamed = (value: TomlValue | undefined) => namesOf(value).map((name) => (name === from ? to : name));
  const change = (table: TomlTable, keys: readonly string[]) => {
    for (const key of keys) if (Array.isArray(table[key])) table[key] = renamed(table[key]);
  };
  change(root, ['identity']);
  for (const property of listOf(root, 'property')) if (property['name'] === from) property['name'] = to;
  for (const query of listOf(root, 'query')) {
    change(query, ['equals', 'returns']);
    const range = tableOf(query['range']);
    if (range['property'] === from) range['property'] = to;
    const order = textOf(query['order']);
    if (order.replace(/^-/, '') === from) query['order'] = order.startsWith('-') ? `-${to}` : to;
  }
  for (const write of listOf(root, 'write')) change(write, ['by', 'changes', 'same']);
  for (const related of listOf(root, 'related')) if (related['per'] === from) related['per'] = to;
}

/** A name like this one that none of the others has. */
export function freshName(base: string, taken: readonly string[]): string {
  if (!taken.includes(base)) return base;
  let number = 2;
  while (taken.includes(`${base}${number}`)) number++;
  return `${base}${number}`;
}

/** The beginning of a sample file that fits into a request, cut at the end of a line. */
export function sampleOf(
  name: string,
  text: string,
): { format: 'csv' | 'jsonl' | 'json'; text: string; isCut: boolean } {
  const start = text.replace(/^\uFEFF/, '').trimStart();
  const format = start.startsWith('[')
    ? 'json'
    : start.startsWith('{') || /\.(jsonl|ndjson)$/i.test(name)
      ? 'jsonl'
      : 'csv';
  if (text.length <= SAMPLE_CHARS_MAX) return { format, text, isCut: false };
  const cut = text.slice(0, SAMPLE_CHARS_MAX);
  return { format, text: cut.slice(0, cut.lastIndexOf('\n') + 1), isCut: true };
}

/** A description that a sample adds its properties to: named after the file. */
export function descriptionFor(fileName: string): string {
  const words = fileName.replace(/\.[^.]*$/, '').match(/[A-Za-z0-9]+/g) ?? [];
  const joined = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  const entity = /^[A-Za-z]/.test(joined) ? joined.slice(0, 40) : `Entity${joined}`.slice(0, 40);
  return `entity = "${entity}"\n\n[volume]\nentities = 0\n`;
}

function isTable(value: TomlValue): value is TomlTable {
  return typeof value === 'object' && !Array.isArray(value);
}

/** A request has at most 256 KiB, with escapes. */
const SAMPLE_CHARS_MAX = 150_000;
