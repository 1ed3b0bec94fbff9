/** Signatures and stored access policies: dialogs for tables, queues, containers and blobs. */

export type { AccessKind } from './permissions';
export { default as PoliciesDialog } from './PoliciesDialog.svelte';
export { default as SasDialog } from './SasDialog.svelte';
export { default as TimeField } from './TimeField.svelte';
