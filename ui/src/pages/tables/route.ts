/** What of a table's page is in its address. */

import { integer, list, oneOf, text } from '../../app/params';

export const tableSpec = {
  filter: text(),
  /** Chosen columns in their order; empty: all that are seen. */
  columns: list(),
  /** At most so many rows; 0: no limit. */
  top: integer(0, 0, 1_000_000_000),
  dialog: oneOf('', 'edit', 'insert', 'clone', 'columns', 'delete', 'import', 'export', 'code', 'sas', 'policies'),
  /** PartitionKey and RowKey of the entity that a dialog is about. */
  entity: list(),
};

export type DialogName = ReturnType<(typeof tableSpec)['dialog']['read']>;
