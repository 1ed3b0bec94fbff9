// Tests of `entity-form.ts`.
import { expect, test } from 'vitest';
import type { EdmValue, Entity } from '../../protocol';
import { changesOf, checkDraft, differences, draftOf, mergeChosen, newProperty, removedFrom } from './entity-form';

function entity(properties: Record<string, EdmValue>): Entity {
  return { partitionKey: 'p', rowKey: 'r', properties: new Map(Object.entries(properties)) };
}

const text = (value: string): EdmValue => ({ type: 'String', value });
const number = (value: number): EdmValue => ({ type: 'Int32', value });

test('a draft of an entity makes the same entity, whatever its types are', () => {
  const before = entity({
    s: text(' text '),
    i: number(-1),
    l: { type: 'Int64', value: 9_007_199_254_740_993n },
    d: { type: 'Double', value: NaN },
    zero: { type: 'Double', value: 3 },
    b: { type: 'Boolean', value: false },
    t: { type: 'DateTime', value: '2026-11-17T08:00:00.1234567Z' },
    g: { type: 'Guid', value: 'c9da6455-213d-42c9-9a79-3e9149a57833' },
    x: { type: 'Binary', value: 'AAH/' },
  });
  const checked = checkDraft(draftOf(before));
  expect('entity' in checked && checked.entity).toEqual(before);
});

test('problems are named at their fields', () => {
  const draft = {
    partitionKey: 'a/b',
    rowKey: 'x'.repeat(513),
    properties: [
      newProperty('1a'),
      newProperty('Age', 'Int32', '3.5'),
      newProperty('Age', 'String'),
      newProperty('Timestamp'),
      newProperty(''),
    ],
  };
  const checked = checkDraft(draft);
  if (!('problems' in checked)) throw new Error('no problems');
  const { problems } = checked;
  expect(problems.partitionKey).toMatch(/\//);
  expect(problems.rowKey).toMatch(/512/);
  expect([...problems.names.values()]).toEqual([
    expect.stringMatching(/digit/),
    expect.stringMatching(/Another/),
    expect.stringMatching(/already/),
    expect.stringMatching(/needs a name/),
  ]);
  expect([...problems.values.values()]).toEqual([expect.stringMatching(/whole number/)]);
});

test('a merge sends what differs, and removals are known', () => {
  const before = entity({ a: text('1'), b: number(1), c: text('x') });
  const after = entity({ a: number(1), b: number(1), d: text('new') });
  expect([...changesOf(before, after).keys()]).toEqual(['a', 'd']);
  expect(removedFrom(before, after)).toEqual(['c']);
});

test('a conflict shows who changed what, and a choice for each property', () => {
  const base = entity({ a: text('0'), b: text('0'), c: text('0'), d: text('0') });
  const theirs = entity({ a: text('theirs'), b: text('0'), c: text('theirs'), e: text('theirs') });
  const mine = entity({ a: text('0'), b: text('mine'), c: text('mine'), d: text('0') });
  const list = differences(base, theirs, mine);
  expect(list.map(({ name, changedBy }) => [name, changedBy])).toEqual([
    ['a', 'theirs'],
    ['b', 'mine'],
    ['c', 'both'],
    ['e', 'theirs'],
    ['d', 'theirs'],
  ]);
  const merged = mergeChosen(theirs, list, (name) => name === 'b' || name === 'c');
  expect([...merged.properties]).toEqual([
    ['a', text('theirs')],
    ['b', text('mine')],
    ['c', text('mine')],
    ['e', text('theirs')],
  ]);
});
