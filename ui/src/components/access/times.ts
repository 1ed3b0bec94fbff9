/** Times of signatures: UTC in the protocol, the browser's time zone in fields. */

import { sasTime } from '../../protocol';

/** The value of an `<input type="datetime-local">` for a time; empty if it is none. */
export function toField(time: string): string {
  const date = new Date(time);
  if (!time || Number.isNaN(date.getTime())) return '';
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** The time that such a field holds, as signatures have it: `2026-11-17T08:00:00Z`. */
export function fromField(value: string): string {
  const date = new Date(value);
  return !value || Number.isNaN(date.getTime()) ? '' : sasTime(date);
}

/** A time so many minutes from now. */
export function minutesFromNow(minutes: number, now = Date.now()): string {
  return sasTime(new Date(now + minutes * 60_000));
}
