/** Names and values while they are edited, such as metadata and tags. */

export interface Pair {
  readonly key: number;
  name: string;
  value: string;
}

let last = 0;

export function newPair(name = '', value = ''): Pair {
  return { key: ++last, name, value };
}

export function toPairs(map: ReadonlyMap<string, string>): Pair[] {
  return [...map].map(([name, value]) => newPair(name, value));
}

/** What was edited. Pairs without a name and value are left out. Throws if a name is missing or there twice. */
export function fromPairs(pairs: readonly Pair[]): Map<string, string> {
  const map = new Map<string, string>();
  for (const { name, value } of pairs) {
    if (!name && !value) continue;
    if (!name) throw new Error(`The value “${value.slice(0, 40)}” has no name.`);
    if (map.has(name)) throw new Error(`The name ${name} is there twice.`);
    map.set(name, value);
  }
  return map;
}
