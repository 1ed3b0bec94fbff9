/** The spans of time that heat and advice are shown for. */

export const SPANS = ['hour', 'day', 'week'] as const;
export type Span = (typeof SPANS)[number];

export const SPAN_OPTIONS = [
  { value: 'hour', label: 'Hour' },
  { value: 'day', label: 'Day' },
  { value: 'week', label: 'Week' },
] as const;

export const SPAN_NAMES: Record<Span, string> = { hour: 'the last hour', day: 'the last day', week: 'the last week' };

/** Where a span begins, as `since` of the server's reports. Up to an hour back they are by minutes, else by hours. */
export function sinceOf(span: Span, now: number): string {
  // A little less than an hour, so that the request's own time does not make it more.
  const minutes = { hour: 59, day: 24 * 60, week: 7 * 24 * 60 - 60 }[span];
  return `${new Date(now - minutes * 60_000).toISOString().slice(0, 19)}Z`;
}
