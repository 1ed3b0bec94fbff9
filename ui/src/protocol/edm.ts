/** Values of entities: each keeps its EDM type, from the server to the editor and back. */

import { fromBase64 } from './crypto';
import { NumberText, type Json } from './json';

export type EdmValue =
  | { readonly type: 'String'; readonly value: string }
  | { readonly type: 'Boolean'; readonly value: boolean }
  | { readonly type: 'Int32'; readonly value: number }
  | { readonly type: 'Int64'; readonly value: bigint }
  /** Includes NaN, both infinities and -0. */
  | { readonly type: 'Double'; readonly value: number }
  /** The text of the service, in UTC, with up to seven digits of a second: a `Date` would lose four of them. */
  | { readonly type: 'DateTime'; readonly value: string }
  | { readonly type: 'Guid'; readonly value: string }
  /** Base64. */
  | { readonly type: 'Binary'; readonly value: string };

export type EdmType = EdmValue['type'];
export const EDM_TYPES: readonly EdmType[] = [
  'String',
  'Int32',
  'Int64',
  'Double',
  'Boolean',
  'DateTime',
  'Guid',
  'Binary',
];

export interface Entity {
  readonly partitionKey: string;
  readonly rowKey: string;
  /** As the service wrote it; `undefined` in entities that were not read, or without it in `$select`. */
  readonly timestamp?: string;
  readonly etag?: string;
  readonly properties: ReadonlyMap<string, EdmValue>;
}

/** An entity from its JSON with minimal metadata. */
export function entityOfJson(json: Map<string, Json>): Entity {
  const properties = new Map<string, EdmValue>();
  let timestamp: string | undefined;
  for (const [name, value] of json) {
    if (value === null || name.startsWith('odata.') || name.endsWith('@odata.type')) continue;
    if (name === 'PartitionKey' || name === 'RowKey') continue;
    if (name === 'Timestamp') timestamp = text(value);
    else properties.set(name, valueOfJson(value, json.get(`${name}@odata.type`)));
  }
  const etag = json.get('odata.etag');
  return {
    partitionKey: text(json.get('PartitionKey')),
    rowKey: text(json.get('RowKey')),
    ...(timestamp === undefined ? {} : { timestamp }),
    ...(typeof etag === 'string' ? { etag } : {}),
    properties,
  };
}

function text(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function valueOfJson(value: Json, annotation: Json | undefined): EdmValue {
  if (typeof value === 'boolean') return { type: 'Boolean', value };
  if (value instanceof NumberText) {
    const isDouble = annotation === 'Edm.Double' || /[.eE]/.test(value.text);
    if (annotation === 'Edm.Int64') return { type: 'Int64', value: BigInt(value.text) };
    return isDouble ? { type: 'Double', value: Number(value.text) } : { type: 'Int32', value: Number(value.text) };
  }
  if (typeof value !== 'string') throw new SyntaxError('A property of an entity is neither text, number nor boolean.');
  switch (annotation) {
    case 'Edm.Int64':
      return { type: 'Int64', value: BigInt(value) };
    case 'Edm.Double':
      return { type: 'Double', value: Number(value) };
    case 'Edm.Int32':
      return { type: 'Int32', value: Number(value) };
    case 'Edm.Boolean':
      return { type: 'Boolean', value: value.toLowerCase() === 'true' };
    case 'Edm.DateTime':
    case 'Edm.Guid':
    case 'Edm.Binary':
      return { type: annotation.slice(4) as 'DateTime' | 'Guid' | 'Binary', value };
    default:
      return { type: 'String', value };
  }
}

/** The JSON of an entity's keys and properties, every type annotated that JSON does not have. */
export function entityToJson(entity: Entity): string {
  const members = [
    `"PartitionKey":${JSON.stringify(entity.partitionKey)}`,
    `"RowKey":${JSON.stringify(entity.rowKey)}`,
  ];
  for (const [name, value] of entity.properties) {
    const quoted = JSON.stringify(name);
    if (!['String', 'Boolean', 'Int32'].includes(value.type)) {
      members.push(`${JSON.stringify(`${name}@odata.type`)}:"Edm.${value.type}"`);
    }
    members.push(`${quoted}:${valueToJson(value)}`);
  }
  return `{${members.join(',')}}`;
}

function valueToJson(value: EdmValue): string {
  switch (value.type) {
    case 'Boolean':
    case 'Int32':
      return String(value.value);
    case 'Int64':
      return `"${value.value}"`;
    case 'Double':
      return Number.isFinite(value.value) ? doubleText(value.value) : `"${value.value}"`;
    default:
      return JSON.stringify(value.value);
  }
}

/** A double so that it reads back as the same double and not as an integer. */
export function doubleText(value: number): string {
  if (Object.is(value, -0)) return '-0.0';
  const shown = String(value);
  return /^-?\d+$/.test(shown) ? `${shown}.0` : shown;
}

/** A value as people read and edit it; `parseEdm` is the way back. */
export function edmText(value: EdmValue): string {
  return value.type === 'Double' && Number.isFinite(value.value) ? doubleText(value.value) : String(value.value);
}

/** A value from what a user typed, or what is wrong with it. */
export function parseEdm(type: EdmType, input: string): EdmValue | { readonly error: string } {
  const trimmed = input.trim();
  switch (type) {
    case 'String':
      return input.length > STRING_UNITS_MAX
        ? { error: `A string has at most ${STRING_UNITS_MAX} UTF-16 characters; this has ${input.length}.` }
        : { type, value: input };
    case 'Boolean':
      return /^(true|false)$/i.test(trimmed)
        ? { type, value: trimmed.toLowerCase() === 'true' }
        : { error: 'Expected true or false.' };
    case 'Int32': {
      const value = integer(trimmed);
      return value !== undefined && value >= -(2n ** 31n) && value < 2n ** 31n
        ? { type, value: Number(value) }
        : { error: 'Expected a whole number from -2147483648 to 2147483647.' };
    }
    case 'Int64': {
      const value = integer(trimmed);
      return value !== undefined && value >= -(2n ** 63n) && value < 2n ** 63n
        ? { type, value }
        : { error: 'Expected a whole number from -9223372036854775808 to 9223372036854775807.' };
    }
    case 'Double':
      return parseDouble(trimmed);
    case 'DateTime':
      return parseDateTime(trimmed);
    case 'Guid':
      return GUID.test(trimmed)
        ? { type, value: trimmed.toLowerCase() }
        : { error: 'Expected a GUID such as 5b0b0b3e-7c1c-4d0e-9a3e-0d2f6a1c7b11.' };
    case 'Binary':
      return parseBinary(trimmed);
  }
}

function integer(input: string): bigint | undefined {
  return /^[+-]?\d{1,20}$/.test(input) ? BigInt(input.replace(/^\+/, '')) : undefined;
}

function parseDouble(input: string): EdmValue | { error: string } {
  if (/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(input)) {
    const value = Number(input);
    return Number.isFinite(value) ? { type: 'Double', value } : { error: 'This number is too large for a Double.' };
  }
  return /^(NaN|-?Infinity)$/.test(input)
    ? { type: 'Double', value: Number(input) }
    : { error: 'Expected a number, NaN, Infinity or -Infinity.' };
}

function parseDateTime(input: string): EdmValue | { error: string } {
  const found = DATE_TIME.exec(input);
  const [, date, time = 'T00:00', seconds = ':00', fraction = '', zone = 'Z'] = found ?? [];
  const error = { error: 'Expected a time such as 2026-11-17T08:30:00.1234567Z.' };
  if (!date || /^0[0-9]{3}/.test(date)) return error;
  const millis = Date.parse(`${date}${time.replace(' ', 'T')}${seconds}${zone}`);
  if (Number.isNaN(millis)) return error;
  // `Date` accepts 30 February as 2 March; the service does not.
  const atMidnight = new Date(`${date}T00:00:00Z`);
  if (atMidnight.toISOString().slice(0, 10) !== date) return error;
  if (millis < Date.UTC(1601, 0, 1)) return { error: 'The earliest time is 1601-01-01T00:00:00Z.' };
  if (millis >= Date.UTC(10_000, 0, 1)) return { error: 'The latest time is 9999-12-31T23:59:59.9999999Z.' };
  const digits = fraction.replace(/0+$/, '');
  return {
    type: 'DateTime',
    value: `${new Date(millis).toISOString().slice(0, 19)}${digits.length > 1 ? digits : ''}Z`,
  };
}

function parseBinary(input: string): EdmValue | { error: string } {
  const compact = input.replaceAll(/\s/g, '');
  try {
    const { length } = fromBase64(compact);
    if (length > BINARY_BYTES_MAX)
      return { error: `Binary has at most ${BINARY_BYTES_MAX} bytes; this has ${length}.` };
    return compact.length % 4 === 0
      ? { type: 'Binary', value: compact }
      : { error: 'Expected base64 with its padding.' };
  } catch {
    return { error: 'Expected base64.' };
  }
}

/** A value as a literal of `$filter`. */
export function filterLiteral(value: EdmValue): string {
  switch (value.type) {
    case 'String':
      return quoted(value.value);
    case 'Int64':
      return `${value.value}L`;
    case 'Double':
      return doubleText(value.value);
    case 'DateTime':
      return `datetime'${value.value}'`;
    case 'Guid':
      return `guid'${value.value}'`;
    case 'Binary':
      return `X'${[...fromBase64(value.value)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}'`;
    default:
      return String(value.value);
  }
}

/** Text as a literal of `$filter`. */
export function quoted(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

const STRING_UNITS_MAX = 32_768;
const BINARY_BYTES_MAX = 65_536;
const GUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})(?:([T ]\d{2}:\d{2})(:\d{2})?(\.\d{1,7})?(Z|[+-]\d{2}:\d{2})?)?$/;
