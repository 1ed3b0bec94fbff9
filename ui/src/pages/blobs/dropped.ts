/** The files of a drop, also those in directories, or of a file field. */

export interface Chosen {
  /** The path below what was dropped: `photos/2026/a.png`. */
  readonly name: string;
  readonly file: File;
}

export const FILES_MAX = 10_000;

export function filesOfField(list: FileList | null): Chosen[] {
  return [...(list ?? [])].map((file) => ({ name: file.webkitRelativePath || file.name, file }));
}

/** Reads what was dropped. Call it in the event: browsers take the items back after it. */
export async function filesOfDrop(transfer: DataTransfer): Promise<Chosen[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return filesOfField(transfer.files);
  const found: Chosen[] = [];
  for (const entry of entries) await walk(entry, '', found);
  return found;
}

async function walk(entry: FileSystemEntry, path: string, found: Chosen[]): Promise<void> {
  if (found.length >= FILES_MAX)
    throw new Error(`These are more than ${FILES_MAX} files. Use “larimar copy”, rclone or az.`);
  if (entry.isFile) {
    const file = await new Promise<File>((done, fail) => (entry as FileSystemFileEntry).file(done, fail));
    found.push({ name: path + entry.name, file });
  } else if (entry.isDirectory) {
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const part = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
      if (part.length === 0) break;
      for (const child of part) await walk(child, `${path}${entry.name}/`, found);
    }
  }
}
