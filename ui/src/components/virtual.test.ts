// Tests of `virtual.ts`.
import { expect, test } from 'vitest';
import { columnWindow, HEIGHT_MAX, Scroller, TOP } from './virtual';

test('few rows scroll as the browser does', () => {
  const grid = new Scroller(1000, 30, 600);
  expect(grid.height).toBe(30_000);
  const state = grid.scrolled(TOP, 3000);
  expect(state).toEqual({ offset: 3000, scrollTop: 3000 });
  expect(grid.window(state, 5)).toEqual({ first: 95, end: 125 });
  expect(grid.top(state, 95)).toBe(2850);
});

test('the element of ten million rows is no higher than browsers allow, and its ends are those of the rows', () => {
  const grid = new Scroller(10_000_000, 30, 600);
  expect(grid.height).toBe(HEIGHT_MAX);
  const end = grid.scrolled(TOP, HEIGHT_MAX - 600);
  expect(grid.window(end, 0)).toEqual({ first: 9_999_980, end: 10_000_000 });
  expect(grid.scrolled(end, 0)).toEqual(TOP);
});

test('small movements move rows by as many pixels, wherever they are', () => {
  const grid = new Scroller(10_000_000, 30, 600);
  const middle = grid.scrolled(TOP, HEIGHT_MAX / 2);
  const next = grid.scrolled(middle, middle.scrollTop + 100);
  expect(next.offset - middle.offset).toBe(100);
  const row = grid.window(middle, 0).first;
  expect(grid.top(next, row)).toBeCloseTo(grid.top(middle, row), 3);
});

test('every row is reached by small movements alone, to both ends', () => {
  const grid = new Scroller(500_000, 30, 600);
  for (const [start, step] of [
    [grid.at(0), 1000],
    [grid.at(Infinity), -1000],
  ] as const) {
    let state = start;
    let [moves, largest] = [0, 0];
    const atEnd = () => (step > 0 ? grid.window(state, 0).end === 500_000 : state.offset === 0);
    for (; !atEnd() && moves < 20_000; moves++) {
      const scrollTop = Math.min(Math.max(state.scrollTop + step, 0), grid.height - 600);
      const next = grid.scrolled(state, scrollTop);
      largest = Math.max(largest, Math.abs(next.offset - state.offset));
      state = next;
    }
    expect(atEnd()).toBe(true);
    expect(largest).toBeLessThanOrEqual(1000);
  }
});

test('a row is revealed with the least movement', () => {
  const grid = new Scroller(1_000_000, 30, 600);
  expect(grid.reveal(TOP, 5)).toEqual(TOP);
  expect(grid.reveal(TOP, 25).offset).toBe(26 * 30 - 600);
  expect(grid.reveal(TOP, 19, 30).offset).toBe(30);
  expect(grid.reveal(grid.at(30_000), 10).offset).toBe(300);
  const last = grid.reveal(TOP, 999_999);
  expect(grid.window(last, 0).end).toBe(1_000_000);
});

test('only columns between two pixels are drawn', () => {
  const widths = [100, 200, 50, 300];
  expect(columnWindow(widths, 0, 250)).toEqual({ first: 0, end: 2, before: 0 });
  expect(columnWindow(widths, 310, 400)).toEqual({ first: 2, end: 4, before: 300 });
  expect(columnWindow([], 0, 100)).toEqual({ first: 0, end: 0, before: 0 });
});
