/** Typed query parameters of deep links. A parameter that has its default is left out of the link. */

export interface Codec<T> {
  read(text: string | null): T;
  /** `null` if it is the default. */
  write(value: T): string | null;
}

export type Spec = Readonly<Record<string, Codec<never> | Codec<unknown>>>;
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- inference needs it
export type Values<S extends Readonly<Record<string, Codec<any>>>> = { [K in keyof S]: ReturnType<S[K]['read']> };

export function text(fallback = ''): Codec<string> {
  return { read: (value) => value ?? fallback, write: (value) => (value === fallback ? null : value) };
}

export function integer(fallback: number, min = 0, max = Number.MAX_SAFE_INTEGER): Codec<number> {
  return {
    read: (value) => {
      const parsed = value === null || !/^-?\d+$/.test(value) ? NaN : Number(value);
      return parsed >= min && parsed <= max ? parsed : fallback;
    },
    write: (value) => (value === fallback ? null : String(value)),
  };
}

export function flag(fallback = false): Codec<boolean> {
  return {
    read: (value) => (value === null ? fallback : value === '1'),
    write: (value) => (value === fallback ? null : value ? '1' : '0'),
  };
}

export function oneOf<const T extends readonly [string, ...string[]]>(...choices: T): Codec<T[number]> {
  return {
    read: (value) => (value !== null && choices.includes(value) ? value : choices[0]),
    write: (value) => (value === choices[0] ? null : value),
  };
}

/** Several values; commas in them are escaped. */
export function list(): Codec<string[]> {
  return {
    read: (value) => (value ? value.split(',').map(safeDecode) : []),
    write: (values) => (values.length ? values.map((value) => encodeURIComponent(value)).join(',') : null),
  };
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- inference needs it
export function readParams<S extends Readonly<Record<string, Codec<any>>>>(spec: S, query: URLSearchParams): Values<S> {
  return Object.fromEntries(
    Object.entries(spec).map(([name, codec]) => [name, codec.read(query.get(name)) as unknown]),
  ) as Values<S>;
}

/** The query with some parameters changed; others stay. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- inference needs it
export function writeParams<S extends Readonly<Record<string, Codec<any>>>>(
  spec: S,
  values: Partial<Values<S>>,
  query = new URLSearchParams(),
): URLSearchParams {
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries(values)) {
    const written = spec[name]?.write(value) ?? null;
    if (written === null) changed.delete(name);
    else changed.set(name, written);
  }
  return changed;
}

/** The parts of a fragment such as `#/tables/Employees?filter=x`. */
export function parseFragment(fragment: string): { segments: string[]; query: URLSearchParams } {
  const text = fragment.replace(/^#?\/?/, '');
  const mark = text.indexOf('?');
  const path = mark < 0 ? text : text.slice(0, mark);
  return {
    segments: path.split('/').filter(Boolean).map(safeDecode),
    query: new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1)),
  };
}

/** The fragment of a route. */
export function fragment(segments: readonly string[], query = new URLSearchParams()): string {
  const path = segments.map((segment) => encodeURIComponent(segment)).join('/');
  const text = query.toString();
  return `#/${path}${text ? `?${text}` : ''}`;
}

function safeDecode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
