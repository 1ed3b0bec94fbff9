/** The filter's language for CodeMirror: colours, completion, and errors at their place. */

import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from '@codemirror/autocomplete';
import { StreamLanguage } from '@codemirror/language';
import { linter, type Diagnostic } from '@codemirror/lint';
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { OPERATORS, problemOf, tokenAt, tokens, type FilterProblem, type Token, type TokenKind } from './filter';

/** A property that was seen, and the types it had. */
export interface KnownProperty {
  readonly name: string;
  readonly types: readonly string[];
}

const STYLES: Partial<Record<TokenKind, string>> = {
  property: 'propertyName',
  operator: 'keyword',
  logic: 'keyword',
  string: 'string',
  typed: 'string',
  number: 'number',
  boolean: 'bool',
};

const language = StreamLanguage.define<null>({
  token(stream) {
    if (stream.eatSpace()) return null;
    const token = tokenAt(stream.string, stream.pos);
    stream.pos = token.to;
    return STYLES[token.kind] ?? null;
  },
});

/**
 * @param properties what to complete, asked when it is needed
 * @param refused what the server says about the filter that was sent last, if it is still the text
 */
export function filterExtensions(
  properties: () => readonly KnownProperty[],
  refused: () => FilterProblem | undefined,
): Extension {
  return [
    language,
    autocompletion({ override: [(context) => complete(context, properties())], icons: false }),
    linter(
      (view): Diagnostic[] => {
        const text = view.state.doc.toString();
        const problem = problemOf(text) ?? refused();
        // While the user types, the end of the text is not an error.
        if (!problem || problem.unfinished) return [];
        const from = Math.min(problem.from, text.length);
        return [
          { from, to: Math.min(Math.max(problem.to, from), text.length), severity: 'error', message: problem.message },
        ];
      },
      { delay: 300 },
    ),
    EditorView.contentAttributes.of({ autocapitalize: 'off', autocorrect: 'off', spellcheck: 'false' }),
  ];
}

/** What may follow at a place of the text. */
export function expectation(before: readonly Token[]): 'operand' | 'operator' | 'value' | 'logic' {
  const last = before.at(-1);
  if (!last || last.kind === 'logic' || last.kind === 'open') return 'operand';
  if (last.kind === 'operator') return 'value';
  if (last.kind === 'property' && before.at(-2)?.kind !== 'operator') return 'operator';
  return 'logic';
}

export function complete(
  context: Pick<CompletionContext, 'pos' | 'explicit' | 'state'>,
  properties: readonly KnownProperty[],
): CompletionResult | null {
  const text = context.state.doc.sliceString(0, context.pos);
  const list = tokens(text);
  const last = list.at(-1);
  // The word before the cursor is what is completed; a text or number is not.
  const isWord = last !== undefined && last.to === text.length && /^[\p{L}_]/u.test(last.text) && last.kind !== 'typed';
  if (last?.text === "'" || (last !== undefined && last.to === text.length && !isWord && last.kind !== 'open'))
    return null;
  const before = isWord ? list.slice(0, -1) : list;
  if (!isWord && !context.explicit && list.length > 0 && !/[\s(]$/.test(text)) return null;
  return {
    from: isWord ? last.from : context.pos,
    options: optionsFor(expectation(before), before, properties),
    validFor: /^[\p{L}\p{N}_]*$/u,
  };
}

function optionsFor(
  wanted: ReturnType<typeof expectation>,
  before: readonly Token[],
  properties: readonly KnownProperty[],
): Completion[] {
  switch (wanted) {
    case 'operand':
      return [
        ...properties.map(({ name, types }): Completion => ({
          label: name,
          detail: types.join(', '),
          type: 'property',
          boost: name === 'PartitionKey' ? 3 : name === 'RowKey' ? 2 : 1,
        })),
        template("PartitionKey eq ''", 'one partition', 1),
        template("RowKey ge '' and RowKey lt ''", 'a range of rows', " ' and RowKey lt ''".length - 1),
        { label: 'not', type: 'keyword', apply: 'not (', detail: 'the opposite' },
      ];
    case 'operator':
      return [
        ...OPERATORS.map((label): Completion => ({ label, type: 'keyword', detail: WORDS[label], apply: `${label} ` })),
        ...LOGIC,
      ];
    case 'value': {
      const name = before.at(-2)?.text;
      const types = properties.find((property) => property.name === name)?.types ?? [];
      return VALUES.map(({ type, ...completion }) => ({ ...completion, boost: types.includes(type) ? 5 : 0 }));
    }
    case 'logic':
      return LOGIC;
  }
}

/** A completion after which the cursor is `back` characters before its end. */
function template(label: string, detail: string, back: number): Completion {
  return {
    label,
    detail,
    type: 'text',
    apply: (view, _, from, to) => {
      view.dispatch({ changes: { from, to, insert: label }, selection: { anchor: from + label.length - back } });
    },
  };
}

const WORDS: Record<(typeof OPERATORS)[number], string> = {
  eq: 'equal',
  ne: 'not equal',
  gt: 'greater than',
  ge: 'greater or equal',
  lt: 'less than',
  le: 'less or equal',
};
const LOGIC: Completion[] = [
  { label: 'and', type: 'keyword', detail: 'both', apply: 'and ' },
  { label: 'or', type: 'keyword', detail: 'one of them', apply: 'or ' },
];
const VALUES: readonly (Completion & { type: string })[] = [
  { ...template("''", 'text', 1), type: 'String' },
  { ...template("datetime''", 'time, such as 2026-11-17T08:00:00Z', 1), type: 'DateTime' },
  { ...template("guid''", 'GUID', 1), type: 'Guid' },
  { ...template("X''", 'binary, in hexadecimal', 1), type: 'Binary' },
  { label: 'true', type: 'Boolean' },
  { label: 'false', type: 'Boolean' },
];
