/** The tree of a container in memory. */
import { expect, test, vi } from 'vitest';
import type { Blob, BlobPage } from '../../protocol';
import { ancestors, lastPart, Tree, type Directory, type List } from './tree.svelte';

const blob = (name: string): Blob => ({
  name,
  bytes: 1,
  contentType: 'text/plain',
  blobType: 'BlockBlob',
  lastModified: '',
  etag: '',
  headers: {},
  metadata: new Map(),
});

/** A container in memory, two names a page. */
function listOf(pages: Record<string, BlobPage>): List {
  return (prefix, marker) => {
    const page = pages[`${prefix}|${marker}`];
    return page ? Promise.resolve(page) : Promise.reject(new Error(`no page ${prefix}|${marker}`));
  };
}

const names = (tree: Tree) =>
  Array.from({ length: tree.count }, (_, at) => tree.get(at)).map((row) => `${row?.kind} ${row?.name}`);

test('pages come in the order of names as their end is seen, and a directory opens in its place', async () => {
  const tree = new Tree(
    '',
    listOf({
      '|': { blobs: [blob('b')], prefixes: ['a/', 'c/'], next: 'm' },
      '|m': { blobs: [blob('d')], prefixes: [] },
      'a/|': { blobs: [blob('a/1')], prefixes: [] },
      'c/|': { blobs: [], prefixes: [] },
    }),
  );
  await vi.waitFor(() => expect(tree.ready).toBe(true));
  expect(names(tree)).toEqual(['directory a/', 'blob b', 'directory c/', 'rest ']);
  tree.visible(0, 3);
  expect(tree.count).toBe(4);
  tree.visible(0, 4);
  await vi.waitFor(() => expect(tree.isWhole).toBe(true));
  tree.toggle(tree.get(0) as Directory);
  tree.toggle(tree.get(3) as Directory);
  await vi.waitFor(() => expect(tree.isWhole).toBe(true));
  expect(names(tree)).toEqual(['directory a/', 'blob a/1', 'blob b', 'directory c/', 'nothing c/', 'blob d']);
  expect(tree.openNames()).toEqual(['a/', 'c/']);
  tree.toggle(tree.get(0) as Directory);
  expect(names(tree)[1]).toBe('blob b');
  tree.remove([
    { kind: 'blob', name: 'b' },
    { kind: 'directory', name: 'c/' },
  ]);
  expect(names(tree)).toEqual(['directory a/', 'blob d']);
});

test('directories of a link open by themselves, and a page that fails can be tried again', async () => {
  let fails = true;
  const pages = listOf({ '|': { blobs: [], prefixes: ['a/'] }, 'a/|': { blobs: [blob('a/1')], prefixes: [] } });
  const list: List = (prefix, marker, signal) =>
    prefix === 'a/' && fails ? Promise.reject(new Error('broken')) : pages(prefix, marker, signal);
  const tree = new Tree('', list, ['a/']);
  await vi.waitFor(() => expect(tree.get(1)).toMatchObject({ kind: 'rest', state: 'failed' }));
  expect(tree.error).toBeUndefined();
  fails = false;
  const rest = tree.get(1);
  if (rest?.kind === 'rest') tree.retry(rest);
  await vi.waitFor(() => expect(names(tree)).toEqual(['directory a/', 'blob a/1']));
});

test('there is an end to what is kept', async () => {
  const list: List = () => Promise.resolve({ blobs: [blob('x'), blob('y')], prefixes: [], next: 'more' });
  const tree = new Tree('', list, [], 4);
  await vi.waitFor(() => expect(tree.ready).toBe(true));
  tree.visible(0, 10);
  await vi.waitFor(() => expect(tree.get(4)).toMatchObject({ kind: 'rest', state: 'full' }));
  tree.visible(0, 10);
  expect(tree.count).toBe(5);
});

test('parts of names', () => {
  expect([lastPart('a/b/c'), lastPart('a/b/'), lastPart('x')]).toEqual(['c', 'b/', 'x']);
  expect(ancestors('a/b//')).toEqual(['a/', 'a/b/', 'a/b//']);
  expect(ancestors('')).toEqual([]);
});
