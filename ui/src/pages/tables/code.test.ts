// Tests of `code.ts`.
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { codeOf, LANGUAGES } from './code';

const filter = `PartitionKey eq 'it''s "$x" \\ \`id\`' and A gt 1`;
const query = { account: 'a', table: 'Employees', filter, select: ['Name', 'Größe'], top: 1500 };

test('every language names the table, the filter, the columns and the limit', () => {
  for (const language of LANGUAGES) {
    const code = codeOf(language, query);
    for (const part of ['Employees', 'PartitionKey eq', 'Größe', language === 'curl' ? '1000' : '1500']) {
      expect(code, `${language} without ${part}`).toContain(part);
    }
    const plain = codeOf(language, { ...query, filter: '', select: [], top: 0 });
    expect(plain).toContain('Employees');
    expect(plain).not.toMatch(/Größe|1500|undefined/);
  }
});

test('a shell gives the filter on as it is', () => {
  for (const language of ['larimar', 'curl'] as const) {
    const command = codeOf(language, query).replace(/^(larimar|curl)/, "printf '%s\\n'");
    const lines = execFileSync('sh', ['-c', command], { encoding: 'utf8', env: { SAS: 'sig=x' } }).split('\n');
    expect(lines).toContain(language === 'curl' ? `$filter=${filter}` : filter);
    if (language === 'curl') expect(lines).toContain('http://127.0.0.1:10002/a/Employees()?sig=x');
  }
});

test('JavaScript reads the filter back', () => {
  const code = codeOf('JavaScript', { ...query, filter: `${filter}\u2028\n` });
  const literal = /filter: (".*"),/.exec(code)?.[1] ?? '';
  expect(JSON.parse(literal)).toBe(`${filter}\u2028\n`);
});
