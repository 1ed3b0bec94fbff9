/** The text format of `/metrics`. */

export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/** All samples by name, and when they were taken. */
export class Metrics {
  readonly #samples = new Map<string, Sample[]>();

  constructor(
    text: string,
    readonly atMillis: number,
  ) {
    for (const line of text.split('\n')) {
      const sample = parseLine(line);
      if (!sample) continue;
      const same = this.#samples.get(sample.name);
      if (same) same.push(sample);
      else this.#samples.set(sample.name, [sample]);
    }
  }

  names(): string[] {
    return [...this.#samples.keys()];
  }

  /** The samples of a metric whose labels have these values. */
  select(name: string, labels: Readonly<Record<string, string>> = {}): Sample[] {
    const wanted = Object.entries(labels);
    return (this.#samples.get(name) ?? []).filter((sample) =>
      wanted.every(([label, value]) => sample.labels.get(label) === value),
    );
  }

  /** The sum of the samples; `undefined` if there are none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
    const samples = this.select(name, labels);
    return samples.length ? samples.reduce((sum, sample) => sum + sample.value, 0) : undefined;
  }
}

/** The increase of a counter a second between two polls; after a restart, which sets counters to 0, what was counted since. */
export function rate(
  before: Metrics,
  after: Metrics,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const [one, other] = [before.sum(name, labels) ?? 0, after.sum(name, labels)];
  const seconds = (after.atMillis - before.atMillis) / 1000;
  if (other === undefined || seconds <= 0) return undefined;
  return (other >= one ? other - one : other) / seconds;
}

/** A quantile of a histogram's observations between two polls, as PromQL's `histogram_quantile` estimates it. */
export function quantile(
  before: Metrics | undefined,
  after: Metrics,
  name: string,
  part: number,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const counts = new Map<number, number>();
  const add = (metrics: Metrics, sign: 1 | -1) => {
    for (const sample of metrics.select(`${name}_bucket`, labels)) {
      const bound = parseValue(sample.labels.get('le') ?? '');
      counts.set(bound, (counts.get(bound) ?? 0) + sign * sample.value);
    }
  };
  add(after, 1);
  if (before) add(before, -1);
  const buckets = [...counts].sort(([one], [other]) => one - other);
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total <= 0) return undefined;
  const rank = part * total;
  let [low, below] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= rank) {
      if (bound === Infinity) return low;
      return count === below ? bound : low + ((bound - low) * (rank - below)) / (count - below);
    }
    [low, below] = [bound, count];
  }
  return low;
}

function parseLine(line: string): Sample | undefined {
  const found = /^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
  if (!found) return undefined;
  const [, name = '', labelText = '', value = ''] = found;
  const labels = new Map<string, string>();
  for (const [, label = '', text = ''] of labelText.matchAll(/([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"/g)) {
    labels.set(
      label,
      text.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped)),
    );
  }
  return { name, labels, value: parseValue(value) };
}

function parseValue(text: string): number {
  if (text === '+Inf') return Infinity;
  return text === '-Inf' ? -Infinity : Number(text);
}
