/** Times in fields of type `datetime-local`, which are in the browser's time zone and have no zone of their own. */

/** A time as such a field has it: `2026-11-17T08:30:00`. */
export function localTime(time: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const date = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${date}T${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/** A field's text as the service writes times, in UTC; `undefined` if it is empty. */
export function serviceTime(field: string): string | undefined {
  const time = new Date(field);
  return Number.isNaN(time.getTime()) ? undefined : `${time.toISOString().slice(0, 19)}Z`;
}
