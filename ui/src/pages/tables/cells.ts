/** What a cell of the grid shows. */

import { edmText, type EdmType, type Entity } from '../../protocol';

export interface Cell {
  readonly kind: 'key' | 'missing' | 'empty' | EdmType;
  readonly text: string;
}

const MISSING: Cell = { kind: 'missing', text: '' };
const EMPTY: Cell = { kind: 'empty', text: '' };

export function cellOf(entity: Entity, name: string): Cell {
  switch (name) {
    case 'PartitionKey':
      return key(entity.partitionKey);
    case 'RowKey':
      return key(entity.rowKey);
    case 'Timestamp':
      return entity.timestamp === undefined ? MISSING : { kind: 'DateTime', text: entity.timestamp };
  }
  const value = entity.properties.get(name);
  if (!value) return MISSING;
  const text = edmText(value);
  return text === '' ? EMPTY : { kind: value.type, text: cut(text) };
}

function key(text: string): Cell {
  return text === '' ? EMPTY : { kind: 'key', text: cut(text) };
}

/** More does not fit into a cell; the entity's view has all of it. */
function cut(text: string): string {
  return text.length > CELL_CHARACTERS_MAX ? `${text.slice(0, CELL_CHARACTERS_MAX)}…` : text;
}

/** The width of a column before somebody drags it. */
export function defaultWidth(name: string, types: readonly string[]): number {
  if (name === 'PartitionKey' || name === 'RowKey') return 180;
  if (name === 'Timestamp') return 240;
  const [type] = types;
  const wanted = (type !== undefined && WIDTHS[type]) || 180;
  return Math.max(types.length > 1 ? 180 : wanted, Math.min(260, 40 + 8 * (name.length + (type?.length ?? 0))));
}

/** What is known about properties, with more of it; the same map if there is nothing new. */
export function withTypes(
  known: ReadonlyMap<string, readonly string[]>,
  more: ReadonlyMap<string, readonly string[]>,
): ReadonlyMap<string, readonly string[]> {
  const isKnown = ([name, types]: [string, readonly string[]]) =>
    known.has(name) && types.every((type) => known.get(name)?.includes(type));
  if ([...more].every(isKnown)) return known;
  const all = new Map(known);
  for (const [name, types] of more) all.set(name, [...new Set([...(all.get(name) ?? []), ...types])]);
  return all;
}

export function withWidth(
  widths: ReadonlyMap<string, number>,
  name: string,
  width: number,
): ReadonlyMap<string, number> {
  return new Map(widths).set(name, width);
}

const WIDTHS: Record<string, number> = { Boolean: 110, Int32: 120, Int64: 170, Double: 130, DateTime: 230, Guid: 300 };
const CELL_CHARACTERS_MAX = 250;
