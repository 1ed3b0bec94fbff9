/** A query as code: with the SDKs of five languages, with curl, and with `larimar`. */

export interface CodeQuery {
  readonly account: string;
  readonly table: string;
  readonly filter: string;
  readonly select: readonly string[];
  /** 0: all. */
  readonly top: number;
}

export const LANGUAGES = ['Python', 'JavaScript', '.NET', 'Java', 'Go', 'larimar', 'curl'] as const;
export type CodeLanguage = (typeof LANGUAGES)[number];

export function codeOf(language: CodeLanguage, query: CodeQuery): string {
  return GENERATORS[language](query).join('\n');
}

/** What has to be there before the code runs. */
export const NEEDS: Record<CodeLanguage, string> = {
  Python: 'pip install azure-data-tables',
  JavaScript: 'npm install @azure/data-tables',
  '.NET': 'dotnet add package Azure.Data.Tables',
  Java: 'com.azure:azure-data-tables',
  Go: 'go get github.com/Azure/azure-sdk-for-go/sdk/data/aztables',
  larimar: 'The server of this directory, or AZURE_STORAGE_CONNECTION_STRING',
  curl: 'A shared access signature in SAS: make one with this table’s form',
};

const ENVIRONMENT = 'AZURE_STORAGE_CONNECTION_STRING';

const GENERATORS: Record<CodeLanguage, (query: CodeQuery) => string[]> = {
  Python: ({ table, filter, select, top }) =>
    [
      'import itertools',
      'import os',
      '',
      'from azure.data.tables import TableClient',
      '',
      `table = TableClient.from_connection_string(os.environ["${ENVIRONMENT}"], ${python(table)})`,
      'with table:',
      filter ? '    entities = table.query_entities(' : '    entities = table.list_entities(',
      ...(filter ? [`        ${python(filter)},`] : []),
      ...(select.length ? [`        select=[${select.map(python).join(', ')}],`] : []),
      ...(top ? [`        results_per_page=${Math.min(top, 1000)},`] : []),
      '    )',
      `    for entity in ${top ? `itertools.islice(entities, ${top})` : 'entities'}:`,
      '        print(entity)',
    ].filter((line) => top || line !== 'import itertools'),

  JavaScript: ({ table, filter, select, top }) => [
    'import { TableClient } from "@azure/data-tables";',
    '',
    'const table = TableClient.fromConnectionString(',
    `  process.env.${ENVIRONMENT},`,
    `  ${double(table)},`,
    '  { allowInsecureConnection: true }, // for http',
    ');',
    ...(filter || select.length
      ? [
          'const entities = table.listEntities({',
          '  queryOptions: {',
          ...(filter ? [`    filter: ${double(filter)},`] : []),
          ...(select.length ? [`    select: [${select.map(double).join(', ')}],`] : []),
          '  },',
          '});',
        ]
      : ['const entities = table.listEntities();']),
    ...(top ? ['let count = 0;'] : []),
    'for await (const entity of entities) {',
    '  console.log(entity);',
    ...(top ? [`  if (++count >= ${top}) break;`] : []),
    '}',
  ],

  '.NET': ({ table, filter, select, top }) => [
    'using Azure.Data.Tables;',
    '',
    'var table = new TableClient(',
    `    Environment.GetEnvironmentVariable("${ENVIRONMENT}"), ${double(table)});`,
    'var entities = table.QueryAsync<TableEntity>(',
    [
      `    filter: ${filter ? double(filter) : 'null as string'}`,
      ...(top ? [`    maxPerPage: ${Math.min(top, 1000)}`] : []),
      ...(select.length ? [`    select: new[] { ${select.map(double).join(', ')} }`] : []),
    ].join(',\n') + ');',
    ...(top ? ['var count = 0;'] : []),
    'await foreach (var entity in entities)',
    '{',
    '    Console.WriteLine(string.Join(", ", entity.Select(property => $"{property.Key}={property.Value}")));',
    ...(top ? [`    if (++count >= ${top}) break;`] : []),
    '}',
  ],

  Java: ({ table, filter, select, top }) => [
    'import com.azure.data.tables.TableClientBuilder;',
    'import com.azure.data.tables.models.ListEntitiesOptions;',
    ...(select.length ? ['import java.util.List;'] : []),
    '',
    'class Query {',
    '    public static void main(String[] arguments) {',
    '        var table = new TableClientBuilder()',
    `            .connectionString(System.getenv("${ENVIRONMENT}"))`,
    `            .tableName(${double(table)})`,
    '            .buildClient();',
    `        var options = new ListEntitiesOptions()${filter || select.length || top ? '' : ';'}`,
    ...endWithSemicolon([
      ...(filter ? [`            .setFilter(${double(filter)})`] : []),
      ...(select.length ? [`            .setSelect(List.of(${select.map(double).join(', ')}))`] : []),
      ...(top ? [`            .setTop(${Math.min(top, 1000)})`] : []),
    ]),
    '        table.listEntities(options, null, null).stream()',
    ...(top ? [`            .limit(${top})`] : []),
    '            .forEach(entity -> System.out.println(entity.getProperties()));',
    '    }',
    '}',
  ],

  Go: ({ table, filter, select, top }) => [
    'package main',
    '',
    'import (',
    '\t"context"',
    '\t"fmt"',
    '\t"os"',
    '',
    '\t"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"',
    ')',
    '',
    'func main() {',
    `\tservice, err := aztables.NewServiceClientFromConnectionString(os.Getenv("${ENVIRONMENT}"), nil)`,
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    ...(filter ? [`\tfilter := ${double(filter)}`] : []),
    ...(select.length ? [`\tproperties := ${double(select.join(','))}`] : []),
    ...(top ? [`\ttop := int32(${Math.min(top, 1000)})`] : []),
    `\tpager := service.NewClient(${double(table)}).NewListEntitiesPager(&aztables.ListEntitiesOptions{`,
    ...(filter ? ['\t\tFilter: &filter,'] : []),
    ...(select.length ? ['\t\tSelect: &properties,'] : []),
    ...(top ? ['\t\tTop:    &top,'] : []),
    '\t})',
    ...(top ? [`\tfor left := ${top}; left > 0 && pager.More(); {`] : ['\tfor pager.More() {']),
    '\t\tpage, err := pager.NextPage(context.Background())',
    '\t\tif err != nil {',
    '\t\t\tpanic(err)',
    '\t\t}',
    '\t\tfor _, entity := range page.Entities {',
    ...(top ? ['\t\t\tif left--; left < 0 {', '\t\t\t\tbreak', '\t\t\t}'] : []),
    '\t\t\tfmt.Println(string(entity))',
    '\t\t}',
    '\t}',
    '}',
  ],

  larimar: ({ table, filter, select, top }) =>
    continued([
      `larimar table query ${shell(table)}`,
      ...(filter ? [`--filter ${shell(filter)}`] : []),
      ...(select.length ? [`--select ${shell(select.join(','))}`] : []),
      ...(top ? [`--top ${top}`] : []),
      '--explain',
    ]),

  curl: ({ account, table, filter, select, top }) =>
    continued([
      'curl --get --fail-with-body',
      ...(filter ? [`--data-urlencode ${shell(`$filter=${filter}`)}`] : []),
      ...(select.length ? [`--data-urlencode ${shell(`$select=${select.join(',')}`)}`] : []),
      ...(top ? [`--data-urlencode ${shell(`$top=${Math.min(top, 1000)}`)}`] : []),
      "--header 'Accept: application/json;odata=minimalmetadata'",
      "--header 'x-larimar-explain: true' --dump-header -",
      `"\${TABLE_ENDPOINT:-http://127.0.0.1:10002/${account}}/${table}()?$SAS"`,
    ]),
};

function endWithSemicolon(lines: string[]): string[] {
  return lines.map((line, at) => (at === lines.length - 1 ? `${line};` : line));
}

function continued(lines: readonly string[]): string[] {
  return lines.map((line, at) => `${at === 0 ? '' : '    '}${line}${at < lines.length - 1 ? ' \\' : ''}`);
}

/** A text as JavaScript, C#, Java and Go write it. */
function double(text: string): string {
  return `"${escaped(text).replaceAll('"', '\\"')}"`;
}

function python(text: string): string {
  return double(text);
}

/** Backslashes and what is not printable, in the form that all five languages have. */
function escaped(text: string): string {
  const lines = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t');
  // eslint-disable-next-line no-control-regex -- they are escaped
  return lines.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

function shell(text: string): string {
  return /^[\w,.:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
