/** The route: the page's fragment, `#/PAGE/SEGMENT…?name=value`. Every state that a user may want to link to is in it. */

import { fragment, parseFragment, readParams, writeParams, type Codec, type Values } from './params';

class Router {
  #current = $state.raw(parseFragment(location.hash));

  start(): void {
    addEventListener('hashchange', () => (this.#current = parseFragment(location.hash)));
  }

  /** The name of the page. */
  get page(): string {
    return this.#current.segments[0] ?? 'overview';
  }

  /** What follows the page, decoded: `['Employees']` for `#/tables/Employees`. */
  get rest(): readonly string[] {
    return this.#current.segments.slice(1);
  }

  /** The query parameters, typed. Reactive. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- inference needs it
  params<S extends Readonly<Record<string, Codec<any>>>>(spec: S): Values<S> {
    return readParams(spec, this.#current.query);
  }

  /** Changes some query parameters. Without `push` the back button skips the change. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- inference needs it
  setParams<S extends Readonly<Record<string, Codec<any>>>>(
    spec: S,
    values: Partial<Values<S>>,
    options: { push?: boolean } = {},
  ): void {
    const query = writeParams(spec, values, this.#current.query);
    this.#go(fragment(this.#current.segments, query), options.push ?? false);
  }

  /** Opens another route. */
  open(link: string): void {
    this.#go(link, true);
  }

  #go(link: string, push: boolean): void {
    if (link === location.hash) return;
    if (push) history.pushState(null, '', link);
    else history.replaceState(null, '', link);
    this.#current = parseFragment(link);
  }
}

export const router = new Router();

/** A link to a page, for `href`: `link('tables', ['Employees'], spec, { filter: 'x' })`. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- inference needs it
export function link<S extends Readonly<Record<string, Codec<any>>>>(
  page: string,
  rest: readonly string[] = [],
  spec?: S,
  values?: Partial<Values<S>>,
): string {
  return fragment([page, ...rest], spec && values ? writeParams(spec, values) : undefined);
}
