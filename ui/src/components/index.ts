/** Components that pages share. `CodeEditor` and `TimeChart` are large: import them from their files, in pages that need them. */

export { default as CodeTabs } from './CodeTabs.svelte';
export { default as CopyButton } from './CopyButton.svelte';
export { default as DataGrid } from './DataGrid.svelte';
export { default as Dialog } from './Dialog.svelte';
export { default as EmptyState } from './EmptyState.svelte';
export { default as ErrorNote } from './ErrorNote.svelte';
export { default as Icon } from './Icon.svelte';
export { default as Loading } from './Loading.svelte';
export { default as PageHeader } from './PageHeader.svelte';
export { default as Segmented } from './Segmented.svelte';
export type { IconName } from './icons';
