/**
 * Which rows and columns of a large grid are visible: arithmetic alone, so that a million rows cost as much as ten.
 *
 * Browsers cap the height of elements (17.8 million pixels in Firefox, 33.5 in Chromium). Beyond `HEIGHT_MAX` the scrolled
 * element is shorter than its rows together: small movements (wheel, keys) move rows by as many pixels, and large ones
 * (dragging the scroll bar) move to the same part of the whole.
 */

export interface ScrollState {
  /** Pixels from the top of the first row to the top of the view, as if the element had its full height. */
  readonly offset: number;
  /** The element's `scrollTop` that belongs to it. */
  readonly scrollTop: number;
}

export const HEIGHT_MAX = 12_000_000;
export const TOP: ScrollState = { offset: 0, scrollTop: 0 };

export class Scroller {
  constructor(
    readonly rows: number,
    readonly rowHeight: number,
    readonly viewHeight: number,
  ) {}

  /** The height of all rows. */
  get fullHeight(): number {
    return this.rows * this.rowHeight;
  }

  /** The height of the scrolled element. */
  get height(): number {
    return Math.min(this.fullHeight, HEIGHT_MAX);
  }

  get isScaled(): boolean {
    return this.fullHeight > HEIGHT_MAX;
  }

  /** The state after the element was scrolled to `scrollTop`. If that differs from the result's, set it. */
  scrolled(before: ScrollState, scrollTop: number): ScrollState {
    if (!this.isScaled) return { offset: scrollTop, scrollTop };
    const moved = scrollTop - before.scrollTop;
    if (Math.abs(moved) > Math.max(this.viewHeight * 2, 1)) return { offset: this.#offsetAt(scrollTop), scrollTop };
    const offset = clamp(before.offset + moved, 0, this.#offsetMax);
    // At an end of the element, but not of the rows (or the other way round): go where the offset belongs.
    const atEnd = scrollTop <= 0 || scrollTop >= this.#scrollMax;
    const rowsAtEnd = offset <= 0 || offset >= this.#offsetMax;
    return atEnd === rowsAtEnd ? { offset, scrollTop } : this.at(offset);
  }

  /** The state that shows an offset. */
  at(offset: number): ScrollState {
    const clamped = clamp(offset, 0, this.#offsetMax);
    if (!this.isScaled) return { offset: clamped, scrollTop: clamped };
    return { offset: clamped, scrollTop: (clamped / this.#offsetMax) * this.#scrollMax };
  }

  /** The state in which a row is visible, moving as little as possible. `hidden` pixels at the top are covered. */
  reveal(state: ScrollState, row: number, hidden = 0): ScrollState {
    const top = row * this.rowHeight;
    if (top < state.offset) return this.at(top);
    const bottom = top + this.rowHeight - (this.viewHeight - hidden);
    return bottom > state.offset ? this.at(bottom) : state;
  }

  /** The rows to draw: the first, and the one after the last. */
  window(state: ScrollState, overscan: number): { first: number; end: number } {
    const first = Math.floor(state.offset / this.rowHeight) - overscan;
    const end = Math.ceil((state.offset + this.viewHeight) / this.rowHeight) + overscan;
    return { first: clamp(first, 0, this.rows), end: clamp(end, 0, this.rows) };
  }

  /** Where a row is drawn in the element. */
  top(state: ScrollState, row: number): number {
    return state.scrollTop + row * this.rowHeight - state.offset;
  }

  #offsetAt(scrollTop: number): number {
    return clamp((scrollTop / this.#scrollMax) * this.#offsetMax, 0, this.#offsetMax);
  }

  get #offsetMax(): number {
    return Math.max(0, this.fullHeight - this.viewHeight);
  }

  get #scrollMax(): number {
    return Math.max(1, this.height - this.viewHeight);
  }
}

/** The columns between two pixels: the first, the one after the last, and how wide those before the first are. */
export function columnWindow(
  widths: readonly number[],
  left: number,
  right: number,
): { first: number; end: number; before: number } {
  let [first, before] = [0, 0];
  while (first < widths.length && before + (widths[first] ?? 0) < left) before += widths[first++] ?? 0;
  let [end, at] = [first, before];
  while (end < widths.length && at < right) at += widths[end++] ?? 0;
  return { first, end, before };
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), Math.max(min, max));
}
