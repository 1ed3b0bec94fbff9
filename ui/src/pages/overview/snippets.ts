/** A connection string and first programs for somebody who has just started a server. */

import { WELL_KNOWN_ACCOUNT, WELL_KNOWN_KEY } from '../../protocol';

export const LANGUAGES = ['python', 'javascript', 'csharp', 'rust'] as const;
export type Language = (typeof LANGUAGES)[number];
export const LANGUAGE_NAMES: Record<Language, string> = {
  python: 'Python',
  javascript: 'JavaScript',
  csharp: 'C#',
  rust: 'Rust',
};

/** What stands for the key where it is not shown. */
export const HIDDEN_KEY = '••••••••';
/** What stands for a key that the page does not have: keys cannot be read back once a user has signed in. */
export const OWN_KEY = 'YOUR-KEY';

/** The connection string of an account, for the ports that a server has by default. */
export function connectionString(account: string, secure: boolean, host: string, key: string): string {
  const scheme = secure ? 'https' : 'http';
  const at = (port: number) => `${scheme}://${host}:${port}/${account}`;
  return [
    `DefaultEndpointsProtocol=${scheme}`,
    `AccountName=${account}`,
    `AccountKey=${key}`,
    `BlobEndpoint=${at(10_000)}`,
    `QueueEndpoint=${at(10_001)}`,
    `TableEndpoint=${at(10_002)}`,
    '',
  ].join(';');
}

/** The key of the account if everybody knows it. */
export function knownKey(account: string, development: string | undefined): string | undefined {
  return account === WELL_KNOWN_ACCOUNT && development === account ? WELL_KNOWN_KEY : undefined;
}

export const SNIPPETS: Record<Language, string> = {
  python: `# pip install azure-data-tables
import os
from azure.data.tables import TableServiceClient

service = TableServiceClient.from_connection_string(os.environ["CONNECTION_STRING"])
table = service.create_table_if_not_exists("Employees")
table.upsert_entity({"PartitionKey": "Sales", "RowKey": "000123", "Name": "Ada"})
print(table.get_entity("Sales", "000123"))`,
  javascript: `// npm install @azure/data-tables
import { TableClient } from '@azure/data-tables';

const table = TableClient.fromConnectionString(process.env.CONNECTION_STRING, 'Employees', {
  allowInsecureConnection: true,
});
await table.createTable();
await table.upsertEntity({ partitionKey: 'Sales', rowKey: '000123', Name: 'Ada' });
console.log(await table.getEntity('Sales', '000123'));`,
  csharp: `// dotnet add package Azure.Data.Tables
using Azure.Data.Tables;

var table = new TableClient(Environment.GetEnvironmentVariable("CONNECTION_STRING"), "Employees");
await table.CreateIfNotExistsAsync();
await table.UpsertEntityAsync(new TableEntity("Sales", "000123") { ["Name"] = "Ada" });
Console.WriteLine((await table.GetEntityAsync<TableEntity>("Sales", "000123")).Value["Name"]);`,
  rust: `// cargo add larimar-client tokio
use larimar_client::{Account, DynamicEntity};

let account = Account::connect(&std::env::var("CONNECTION_STRING")?)?;
let table = account.table("Employees");
table.create_if_missing().await?;
let mut ada = DynamicEntity::new("Sales", "000123");
ada.set("Name", "Ada");
table.insert_or_replace(&ada).await?;`,
};
