/** Numbers, bytes, durations and times as people read them. */

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });

/** `1,234,567`. */
export function count(value: number): string {
  return whole.format(value);
}

/** `1.23M`, for tight places. */
export function compact(value: number): string {
  return Math.abs(value) < 10 ? String(Number(value.toPrecision(2))) : short.format(value);
}

/** `1 row`, `2 rows`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** `1.5 MiB`. */
export function bytes(value: number): string {
  let [size, unit] = [value, 0];
  while (size >= 1024 && unit < BYTE_UNITS.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${unit === 0 ? whole.format(size) : significant(size)} ${BYTE_UNITS[unit]}`;
}

/** Microseconds as `850 µs`, `1.25 ms`, `2.5 s`, `3 min`. */
export function micros(value: number): string {
  if (value < 1000) return `${whole.format(value)} µs`;
  if (value < 1_000_000) return `${significant(value / 1000)} ms`;
  return seconds(value / 1_000_000);
}

/** Seconds as `2.5 s`, `3 min`, `4 h`, `5 d`. */
export function seconds(value: number): string {
  if (value < 90) return `${significant(value)} s`;
  if (value < 5400) return `${significant(value / 60)} min`;
  if (value < 129_600) return `${significant(value / 3600)} h`;
  return `${significant(value / 86_400)} d`;
}

/** A part as `12.5 %`. */
export function percent(part: number): string {
  return `${significant(part * 100)} %`;
}

/** A time in this browser's time zone: `2026-11-17 09:30:05`. Empty if it is none. */
export function time(value: string | number | Date): string {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return '';
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(date)}`;
}

/** The time of day: `09:30:05`. */
export function clock(value: string | number | Date): string {
  const date = new Date(value);
  return Number.isNaN(date.getTime())
    ? ''
    : `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** How long ago: `3 min ago`, or `in 2 h`. */
export function ago(value: string | number | Date, now = Date.now()): string {
  const millis = new Date(value).getTime();
  if (Number.isNaN(millis)) return '';
  const exact = (now - millis) / 1000;
  // Parts of seconds only flicker.
  const span = Math.abs(exact) < 90 ? Math.round(exact) : exact;
  if (Math.abs(span) < 1) return 'now';
  return span < 0 ? `in ${seconds(-span)}` : `${seconds(span)} ago`;
}

function significant(value: number): string {
  return value >= 100 ? whole.format(value) : String(Number(value.toPrecision(3)));
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
