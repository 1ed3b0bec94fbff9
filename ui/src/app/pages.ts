/** The pages, in the order of the sidebar. Each is a directory of `src/pages/` and is loaded when it is opened. */

import type { Component } from 'svelte';
import type { IconName } from '../components/icons';

export interface PageEntry {
  /** The first part of the fragment. */
  readonly name: string;
  readonly title: string;
  readonly icon: IconName;
  /** Pressed after `g`. */
  readonly key: string;
  readonly load: () => Promise<{ default: Component }>;
}

export const PAGES: readonly PageEntry[] = [
  {
    name: 'overview',
    title: 'Overview',
    icon: 'overview',
    key: 'o',
    load: () => import('../pages/overview/Page.svelte'),
  },
  { name: 'tables', title: 'Tables', icon: 'table', key: 't', load: () => import('../pages/tables/Page.svelte') },
  { name: 'heat', title: 'Heat', icon: 'heat', key: 'h', load: () => import('../pages/heat/Page.svelte') },
  { name: 'advisor', title: 'Advisor', icon: 'advisor', key: 'a', load: () => import('../pages/advisor/Page.svelte') },
  {
    name: 'designer',
    title: 'Designer',
    icon: 'designer',
    key: 'd',
    load: () => import('../pages/designer/Page.svelte'),
  },
  { name: 'queues', title: 'Queues', icon: 'queue', key: 'q', load: () => import('../pages/queues/Page.svelte') },
  { name: 'blobs', title: 'Blobs', icon: 'blob', key: 'b', load: () => import('../pages/blobs/Page.svelte') },
  {
    name: 'properties',
    title: 'Service properties',
    icon: 'settings',
    key: 's',
    load: () => import('../pages/properties/Page.svelte'),
  },
  {
    name: 'requests',
    title: 'Live requests',
    icon: 'live',
    key: 'l',
    load: () => import('../pages/requests/Page.svelte'),
  },
];
