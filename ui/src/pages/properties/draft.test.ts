/** Properties while they are edited. */
import { expect, test } from 'vitest';
import { changes, draftOf, newRule, problemsOf } from './draft';

const stored = {
  logging: { version: '1.0', read: false, write: false, delete: false, retentionDays: undefined },
  hourMetrics: { version: '1.0', enabled: true, includeApis: true, retentionDays: 7 },
  minuteMetrics: { version: '1.0', enabled: false, includeApis: false, retentionDays: undefined },
  cors: [{ origins: 'https://a.test', methods: 'GET,PUT', allowedHeaders: '*', exposedHeaders: '', maxAgeSeconds: 60 }],
};

test('only what was changed is sent', () => {
  const draft = draftOf(stored);
  expect(changes(stored, draft)).toEqual({});
  draft.hour.days = 0;
  draft.cors.push({ ...newRule(), origins: ' https://b.test,\n https://c.test ' });
  const changed = changes(stored, draft);
  expect(Object.keys(changed)).toEqual(['hourMetrics', 'cors']);
  expect(changed.hourMetrics?.retentionDays).toBeUndefined();
  expect(changed.cors?.[1]).toMatchObject({
    origins: 'https://b.test,https://c.test',
    methods: 'GET',
    maxAgeSeconds: 3600,
  });
});

test('what the service would refuse is named at its field', () => {
  const draft = draftOf(stored);
  draft.logging.days = 366;
  draft.defaultVersion = 'latest';
  const rule = newRule();
  draft.cors.push(rule, { ...newRule(), origins: 'https://a.test/path' }, { ...newRule(), origins: '*', methods: [] });
  const problems = problemsOf(draft);
  expect(problems.get('logging.days')).toContain('1 to 365');
  expect(problems.get('defaultVersion')).toContain('date');
  expect(problems.get(`cors.${rule.key}`)).toContain('origin');
  expect(problems.get(`cors.${draft.cors[2]?.key}`)).toContain('without a path');
  expect(problems.get(`cors.${draft.cors[3]?.key}`)).toContain('method');
  expect(
    problemsOf({ ...draftOf(stored), cors: Array.from({ length: 6 }, () => ({ ...newRule(), origins: '*' })) }).has(
      'cors',
    ),
  ).toBe(true);
});
