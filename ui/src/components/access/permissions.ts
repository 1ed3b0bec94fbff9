/** The permissions of signatures and stored access policies, in words. */

import { orderPermissions, PERMISSION_ORDER } from '../../protocol';

/** What a signature is for. */
export type AccessKind = 'table' | 'queue' | 'container' | 'blob';

export interface Permission {
  readonly letter: string;
  readonly label: string;
}

export const PERMISSIONS: Record<AccessKind, readonly Permission[]> = {
  table: [
    { letter: 'r', label: 'Read entities' },
    { letter: 'a', label: 'Insert' },
    { letter: 'u', label: 'Update' },
    { letter: 'd', label: 'Delete' },
  ],
  queue: [
    { letter: 'r', label: 'Peek and read metadata' },
    { letter: 'a', label: 'Put messages' },
    { letter: 'u', label: 'Update messages' },
    { letter: 'p', label: 'Take and delete messages' },
  ],
  container: [
    { letter: 'r', label: 'Read blobs' },
    { letter: 'l', label: 'List blobs' },
    { letter: 'c', label: 'Create blobs' },
    { letter: 'w', label: 'Write blobs' },
    { letter: 'a', label: 'Append' },
    { letter: 'd', label: 'Delete blobs' },
    { letter: 't', label: 'Tags' },
    { letter: 'f', label: 'Find by tags' },
  ],
  blob: [
    { letter: 'r', label: 'Read' },
    { letter: 'c', label: 'Create' },
    { letter: 'w', label: 'Write' },
    { letter: 'a', label: 'Append' },
    { letter: 'd', label: 'Delete' },
    { letter: 't', label: 'Tags' },
  ],
};

/** The letters with one more or one less, in the order that the services want. Letters without a label stay. */
export function withPermission(kind: AccessKind, letters: string, letter: string, on: boolean): string {
  const chosen = new Set(letters);
  if (on) chosen.add(letter);
  else chosen.delete(letter);
  return orderPermissions(kind, chosen);
}

/** The letters of a text that the kind does not know. */
export function unknownLetters(kind: AccessKind, letters: string): string {
  return [...letters].filter((letter) => !PERMISSION_ORDER[kind].includes(letter)).join('');
}
