/**
 * The grammar of `$filter`: tokens for colours and completion, and the place and reason of the first error.
 *
 * The server has the last word; this says earlier and more exactly what is wrong.
 */

import { parseEdm } from '../../protocol';

export type TokenKind =
  'property' | 'operator' | 'logic' | 'string' | 'number' | 'boolean' | 'typed' | 'open' | 'close' | 'other';

export interface Token {
  readonly kind: TokenKind;
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** What is wrong with a filter, and where. */
export interface FilterProblem {
  readonly from: number;
  readonly to: number;
  readonly message: string;
  /** The text ends where something has to follow: not worth a warning while the user types. */
  readonly unfinished?: boolean;
  /** The server says so; its message may name the position. */
  readonly isServers?: boolean;
}

export const OPERATORS = ['eq', 'ne', 'gt', 'ge', 'lt', 'le'] as const;

export function tokens(text: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  while (at < text.length) {
    SPACE.lastIndex = at;
    at += SPACE.exec(text)?.[0].length ?? 0;
    if (at >= text.length) break;
    const token = tokenAt(text, at);
    found.push(token);
    at = token.to;
  }
  return found;
}

/** The token that begins at a place that is not space. */
export function tokenAt(text: string, from: number): Token {
  for (const [kind, pattern] of PATTERNS) {
    pattern.lastIndex = from;
    const match = pattern.exec(text)?.[0];
    if (match)
      return { kind: kind === 'property' ? wordKind(match) : kind, from, to: from + match.length, text: match };
  }
  return { kind: 'other', from, to: from + 1, text: text[from] ?? '' };
}

function wordKind(word: string): TokenKind {
  if ((OPERATORS as readonly string[]).includes(word)) return 'operator';
  if (word === 'and' || word === 'or' || word === 'not') return 'logic';
  return word === 'true' || word === 'false' ? 'boolean' : 'property';
}

/** The first error of a filter; `undefined` if there is none. An empty filter is every entity. */
export function problemOf(text: string): FilterProblem | undefined {
  const list = tokens(text);
  if (list.length === 0) return undefined;
  try {
    new Parser(text, list).run();
    return undefined;
  } catch (error) {
    if (error instanceof Found) return error.problem;
    throw error;
  }
}

/** The position that the server's message names: `Syntax error at position 7 in …`. */
export function serverPosition(message: string): number | undefined {
  const found = /^Syntax error at position (\d+)/.exec(message)?.[1];
  return found === undefined ? undefined : Number(found);
}

class Found extends Error {
  constructor(readonly problem: FilterProblem) {
    super(problem.message);
  }
}

class Parser {
  #at = 0;
  #depth = 0;

  constructor(
    readonly text: string,
    readonly list: readonly Token[],
  ) {}

  run(): void {
    this.#or();
    const rest = this.#peek();
    if (!rest) return;
    if (rest.kind === 'close') this.#fail(rest, 'This parenthesis has no opening one.');
    if (rest.text === 'AND' || rest.text === 'OR') this.#fail(rest, `Write ${rest.text.toLowerCase()} in lower case.`);
    this.#fail(rest, 'Expected "and", "or", or the end.');
  }

  #or(): void {
    this.#and();
    while (this.#take('logic', 'or')) this.#and();
  }

  #and(): void {
    this.#unary();
    while (this.#take('logic', 'and')) this.#unary();
  }

  #unary(): void {
    if (++this.#depth > DEPTH_MAX) this.#fail(this.#peek(), 'The filter is nested too deeply.');
    const token = this.#peek();
    if (this.#take('logic', 'not')) {
      this.#unary();
    } else if (token?.kind === 'open') {
      this.#group();
      // A property or value in parentheses is compared like one without.
      if (this.#take('operator')) this.#right();
    } else {
      this.#comparison();
    }
    this.#depth--;
  }

  #group(): void {
    this.#at++;
    this.#or();
    if (!this.#take('close')) this.#fail(this.#peek(), 'Expected a closing parenthesis.');
  }

  /** The right side of a comparison, unless it is in parentheses. */
  #right(): Token | undefined {
    if (this.#peek()?.kind !== 'open') return this.#operand('a value');
    this.#group();
    return undefined;
  }

  #comparison(): void {
    const left = this.#operand('a property, "not" or an opening parenthesis');
    const operator = this.#peek();
    if (!operator || operator.kind === 'logic' || operator.kind === 'close') {
      // A property alone is true if it is a Boolean that is true.
      if (left.kind === 'property' || left.kind === 'boolean' || operator?.kind === 'close') return;
      this.#fail(operator ?? left, `Expected a comparison (${OPERATORS.join(', ')}) after the value.`, !operator);
    }
    if (operator.kind === 'open' && left.kind === 'property') {
      this.#fail(
        left,
        `Functions such as ${left.text}() are not supported. For a prefix: Name ge 'A' and Name lt 'B'.`,
      );
    }
    if (operator.kind !== 'operator') {
      const wanted = SPELLINGS[operator.text + (this.list[this.#at + 1]?.text ?? '')] ?? SPELLINGS[operator.text];
      const lower = operator.text.toLowerCase();
      const hint = wanted ?? ((OPERATORS as readonly string[]).includes(lower) ? lower : undefined);
      this.#fail(operator, hint ? `Write ${hint} instead.` : `Expected one of ${OPERATORS.join(', ')}.`);
    }
    this.#at++;
    const right = this.#right();
    if (right && (left.kind === 'property') === (right.kind === 'property')) {
      const message =
        left.kind === 'property'
          ? `Two properties cannot be compared. Put text in single quotes: '${right.text}'.`
          : 'Expected a property on one side of the comparison.';
      this.#fail(right, message);
    }
  }

  #operand(wanted: string): Token {
    const token = this.#peek();
    if (!token || !VALUES.has(token.kind)) {
      if (token?.text === '"') this.#fail(token, "Text is in single quotes: 'text'.");
      if (token?.text === "'") this.#fail({ ...token, to: this.text.length }, 'This text has no closing quote.', true);
      this.#fail(token, `Expected ${wanted}.`);
    }
    this.#at++;
    const problem = problemOfLiteral(token);
    if (problem) this.#fail(token, problem);
    return token;
  }

  #peek(): Token | undefined {
    return this.list[this.#at];
  }

  #take(kind: TokenKind, text?: string): boolean {
    const token = this.#peek();
    if (token?.kind !== kind || (text !== undefined && token.text !== text)) return false;
    this.#at++;
    return true;
  }

  #fail(token: Token | undefined, message: string, unfinished = false): never {
    const end = this.text.trimEnd().length;
    throw new Found({
      from: token?.from ?? Math.max(0, end - 1),
      to: token?.to ?? end,
      message,
      ...(unfinished || !token ? { unfinished: true } : {}),
    });
  }
}

function problemOfLiteral({ kind, text }: Token): string | undefined {
  if (kind === 'property' && text === 'null')
    return 'There is no null: not (Name ne value) finds entities without Name.';
  if (kind === 'typed') return problemOfTyped(text);
  if (kind !== 'number') return undefined;
  const digits = text.replace(/[LlDd]$/, '');
  if (/[Ll]$/.test(text)) return errorIn(parseEdm('Int64', digits));
  if (/^-?\d+$/.test(text)) {
    const error = errorIn(parseEdm('Int32', text));
    return error && !errorIn(parseEdm('Int64', text)) ? `This is an Int64: write ${text}L.` : error;
  }
  return errorIn(parseEdm('Double', digits));
}

function problemOfTyped(text: string): string | undefined {
  const quote = text.indexOf("'");
  const [type, inner] = [text.slice(0, quote).toLowerCase(), text.slice(quote + 1, -1)];
  if (type === 'datetime') return errorIn(parseEdm('DateTime', inner));
  if (type === 'guid') return errorIn(parseEdm('Guid', inner));
  return /^([0-9a-f]{2})*$/i.test(inner) ? undefined : 'Expected pairs of hexadecimal digits.';
}

function errorIn(result: ReturnType<typeof parseEdm>): string | undefined {
  return 'error' in result ? result.error : undefined;
}

const SPACE = /\s*/y;
const PATTERNS: readonly (readonly [TokenKind, RegExp])[] = [
  ['typed', /(?:datetime|guid|binary|[Xx])'(?:[^']|'')*'/y],
  ['string', /'(?:[^']|'')*'/y],
  ['number', /-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[LlDd]?(?![\p{L}\p{N}_])/uy],
  ['property', /[\p{L}_][\p{L}\p{N}_]*/uy],
  ['open', /\(/y],
  ['close', /\)/y],
];
const VALUES = new Set<TokenKind>(['property', 'string', 'number', 'boolean', 'typed']);
const SPELLINGS: Record<string, string> = {
  '=': 'eq',
  '==': 'eq',
  '!=': 'ne',
  '<>': 'ne',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
};
const DEPTH_MAX = 200;
