/**
 * Colours of the heat map: from cold to hot, each step lighter (dark theme) or darker (light theme) than the one before, so
 * that they are told apart without hue: by colour-blind people, and in print. YlGnBu of ColorBrewer, and matplotlib's inferno.
 */

type Rgb = readonly [number, number, number];

const LIGHT: readonly Rgb[] = [
  [237, 248, 205],
  [199, 233, 180],
  [127, 205, 187],
  [65, 182, 196],
  [29, 145, 192],
  [34, 94, 168],
  [37, 52, 148],
  [8, 29, 88],
];

const DARK: readonly Rgb[] = [
  [45, 17, 80],
  [87, 16, 110],
  [136, 34, 106],
  [186, 54, 85],
  [227, 89, 51],
  [249, 140, 10],
  [249, 201, 50],
  [252, 255, 164],
];

/** The colour of an intensity from 0 (excluded) to 1. */
export function heatColor(intensity: number, isDark: boolean): string {
  const stops = isDark ? DARK : LIGHT;
  const place = Math.min(Math.max(intensity, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const [from, to] = [stops[low] ?? [0, 0, 0], stops[low + 1] ?? [0, 0, 0]];
  const mix = (at: 0 | 1 | 2) => Math.round(from[at] + (to[at] - from[at]) * (place - low));
  return `rgb(${mix(0)}, ${mix(1)}, ${mix(2)})`;
}
