/** The entity editor's model: rows of text with a type each, what is wrong with them, and the entity they make. */

import { edmText, parseEdm, type EdmType, type EdmValue, type Entity } from '../../protocol';

export interface PropertyDraft {
  /** Stays while the row is edited. */
  readonly id: number;
  name: string;
  type: EdmType;
  text: string;
}

export interface EntityDraft {
  partitionKey: string;
  rowKey: string;
  properties: PropertyDraft[];
}

export interface Problems {
  readonly partitionKey?: string;
  readonly rowKey?: string;
  /** Of the whole entity. */
  readonly entity?: string;
  /** By the id of the property. */
  readonly names: ReadonlyMap<number, string>;
  readonly values: ReadonlyMap<number, string>;
}

let lastId = 0;

export function newProperty(name = '', type: EdmType = 'String', text = ''): PropertyDraft {
  return { id: ++lastId, name, type, text };
}

export function draftOf(entity: Entity): EntityDraft {
  return {
    partitionKey: entity.partitionKey,
    rowKey: entity.rowKey,
    properties: [...entity.properties].map(([name, value]) => newProperty(name, value.type, edmText(value))),
  };
}

/** The entity of a draft, or what is wrong with it. */
export function checkDraft(draft: EntityDraft): { entity: Entity } | { problems: Problems } {
  const names = new Map<number, string>();
  const values = new Map<number, string>();
  const properties = new Map<string, EdmValue>();
  for (const { id, name, type, text } of draft.properties) {
    const problem = nameProblem(name) ?? (properties.has(name) ? 'Another property has this name.' : undefined);
    if (problem) names.set(id, problem);
    const value = parseEdm(type, text);
    if ('error' in value) values.set(id, value.error);
    // A wrong value still takes the name.
    properties.set(name, 'error' in value ? { type: 'String', value: '' } : value);
  }
  const partitionKey = keyProblem(draft.partitionKey);
  const rowKey = keyProblem(draft.rowKey);
  const entity = { partitionKey: draft.partitionKey, rowKey: draft.rowKey, properties };
  const whole =
    draft.properties.length > PROPERTIES_MAX
      ? `An entity has at most ${PROPERTIES_MAX} properties; this has ${draft.properties.length}.`
      : entityBytes(entity) > ENTITY_BYTES_MAX
        ? 'An entity has at most 1 MiB.'
        : undefined;
  if (names.size || values.size || partitionKey || rowKey || whole) {
    return {
      problems: {
        names,
        values,
        ...(partitionKey ? { partitionKey } : {}),
        ...(rowKey ? { rowKey } : {}),
        ...(whole ? { entity: whole } : {}),
      },
    };
  }
  return { entity };
}

export function keyProblem(key: string): string | undefined {
  if (key.length > KEY_UNITS_MAX) return `A key has at most ${KEY_UNITS_MAX} characters; this has ${key.length}.`;
  // eslint-disable-next-line no-control-regex -- keys must not have them
  const wrong = /[/\\#?\u0000-\u001f\u007f-\u009f]/.exec(key)?.[0];
  if (wrong === undefined) return undefined;
  return /[/\\#?]/.test(wrong) ? `A key cannot have the character ${wrong}` : 'A key cannot have control characters.';
}

export function nameProblem(name: string): string | undefined {
  if (!name) return 'A property needs a name.';
  if (['PartitionKey', 'RowKey', 'Timestamp'].includes(name)) return `Every entity has ${name} already.`;
  if (name.length > NAME_UNITS_MAX) return `A name has at most ${NAME_UNITS_MAX} characters.`;
  return /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name)
    ? undefined
    : 'A name has letters, digits and underscores, and does not start with a digit.';
}

/** The size of an entity as the service counts it. */
export function entityBytes({ partitionKey, rowKey, properties }: Entity): number {
  let bytes = 4 + 2 * (partitionKey.length + rowKey.length);
  for (const [name, value] of properties) bytes += 8 + 2 * name.length + valueBytes(value);
  return bytes;
}

function valueBytes({ type, value }: EdmValue): number {
  switch (type) {
    case 'String':
      return 2 * value.length + 4;
    case 'Binary':
      return Math.floor((value.length * 3) / 4) + 4;
    case 'Guid':
      return 16;
    case 'Int32':
      return 4;
    case 'Boolean':
      return 1;
    default:
      return 8;
  }
}

export function isEqual(a: EdmValue | undefined, b: EdmValue | undefined): boolean {
  if (!a || !b) return a === b;
  return a.type === b.type && Object.is(a.value, b.value);
}

/** What a merge has to send: properties that are new or differ. */
export function changesOf(before: Entity, after: Entity): Map<string, EdmValue> {
  return new Map([...after.properties].filter(([name, value]) => !isEqual(before.properties.get(name), value)));
}

/** Properties that were removed, which only a replace can do. */
export function removedFrom(before: Entity, after: Entity): string[] {
  return [...before.properties.keys()].filter((name) => !after.properties.has(name));
}

export interface Difference {
  readonly name: string;
  readonly base: EdmValue | undefined;
  readonly theirs: EdmValue | undefined;
  readonly mine: EdmValue | undefined;
  /** Who changed it since it was read. */
  readonly changedBy: 'mine' | 'theirs' | 'both';
}

/** Properties in which the stored entity and the edited one differ. */
export function differences(base: Entity, theirs: Entity, mine: Entity): Difference[] {
  const names = new Set([...theirs.properties.keys(), ...mine.properties.keys()]);
  return [...names].flatMap((name): Difference[] => {
    const [b, t, m] = [base, theirs, mine].map((entity) => entity.properties.get(name));
    if (isEqual(t, m)) return [];
    return [
      { name, base: b, theirs: t, mine: m, changedBy: isEqual(b, t) ? 'mine' : isEqual(b, m) ? 'theirs' : 'both' },
    ];
  });
}

/** The stored entity with some properties as they were edited. */
export function mergeChosen(theirs: Entity, list: readonly Difference[], takeMine: (name: string) => boolean): Entity {
  const properties = new Map(theirs.properties);
  for (const { name, mine } of list) {
    if (!takeMine(name)) continue;
    if (mine) properties.set(name, mine);
    else properties.delete(name);
  }
  return { partitionKey: theirs.partitionKey, rowKey: theirs.rowKey, properties };
}

const PROPERTIES_MAX = 252;
export const ENTITY_BYTES_MAX = 1024 * 1024;
const KEY_UNITS_MAX = 512;
const NAME_UNITS_MAX = 255;
