//! Reads which table files a tree of the store consists of, without opening it.
//!
//! fjall keeps a tree in a directory of its own: `current` names a manifest `v<number>` and has its checksum, the manifest
//! lists the table files below `tables/` with theirs. fjall itself looks at neither checksum when it opens, takes a
//! tree without `current` for one that was never finished, and removes the tables that the manifest does not list.
//! So this reader looks first.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsm_tree::{Cache, Checksum, Table};
use xxhash_rust::xxh3::Xxh3;

use super::check::{Finding, Kind};

/// The tables that a manifest lists.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) tables: Vec<TableFile>,
}

/// One table file as the manifest has it.
#[derive(Debug, Clone)]
pub(crate) struct TableFile {
    pub(crate) path: PathBuf,
    /// `None` for a file that no manifest lists.
    pub(crate) checksum: Option<u128>,
    seqno_offset: u64,
}

impl Manifest {
    /// Reads the manifest that `current` names, and compares it with its checksum.
    pub(crate) fn read(tree: &Path) -> Result<Self, Finding> {
        let lost = "which table files belong to the store";
        let pointer = tree.join(CURRENT);
        let bytes = read_file(&pointer, lost)?;
        let Some((version, checksum)) = parse_pointer(&bytes) else {
            return Err(Finding::damaged(&pointer, "it has another length than fjall gives it", lost));
        };
        let path = tree.join(format!("v{version}"));
        let bytes = read_file(&path, lost)?;
        if xxh3(&bytes) != checksum {
            return Err(Finding::damaged(&path, "its checksum is not the one in `current`", lost));
        }
        Self::parse(tree, &path).map_err(|error| Finding::damaged(&path, &error.to_string(), lost))
    }

    /// The tables to read when a store is salvaged: those of the manifest, or else of the newest one whose tables are all
    /// there, or else all.
    pub(crate) fn salvage(tree: &Path) -> Self {
        match Self::read(tree) {
            Ok(manifest) => manifest,
            // What a damaged manifest lists may be anything.
            Err(finding) if finding.kind == Kind::Damaged => Self::everything(tree),
            Err(_) => Self::newest(tree).unwrap_or_else(|| Self::everything(tree)),
        }
    }

    fn newest(tree: &Path) -> Option<Self> {
        let mut versions: Vec<u64> =
            file_names(tree).ok()?.iter().filter_map(|name| name.strip_prefix('v')?.parse().ok()).collect();
        versions.sort_unstable();
        let parse = |version| Self::parse(tree, &tree.join(format!("v{version}"))).ok();
        let is_whole = |manifest: &Self| manifest.tables.iter().all(|table| table.path.exists());
        versions.iter().rev().find_map(|version| parse(version).filter(is_whole))
    }

    fn everything(tree: &Path) -> Self {
        let names = file_names(&tree.join(TABLES)).unwrap_or_default();
        let mut ids: Vec<u64> = names.iter().filter_map(|name| name.parse().ok()).collect();
        ids.sort_unstable();
        let table = |id| TableFile { path: table_path(tree, id), checksum: None, seqno_offset: 0 };
        Self { tables: ids.into_iter().map(table).collect() }
    }

    fn parse(tree: &Path, path: &Path) -> io::Result<Self> {
        let unreadable = |error: sfa::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let archive = sfa::Reader::new(path).map_err(unreadable)?;
        let section = archive.toc().section(b"tables").ok_or_else(|| io::Error::other("it has no list of tables"))?;
        let mut list = section.buf_reader(path)?;
        let mut tables = Vec::new();
        for _level in 0..number::<1>(&mut list)? {
            for _run in 0..number::<1>(&mut list)? {
                for _table in 0..number::<4>(&mut list)? {
                    let id = number::<8>(&mut list)?;
                    let _checksum_type = number::<1>(&mut list)?;
                    let mut checksum = [0; 16];
                    list.read_exact(&mut checksum)?;
                    let seqno_offset = number::<8>(&mut list)?;
                    let checksum = Some(u128::from_le_bytes(checksum));
                    tables.push(TableFile { path: table_path(tree, id), checksum, seqno_offset });
                }
            }
        }
        Ok(Self { tables })
    }
}

impl TableFile {
    /// Opens the file far enough to know that its ends are whole: its directory, its description and its index.
    pub(crate) fn open(&self) -> Result<Table, Finding> {
        let lost = "the rows in it";
        match self.path.try_exists() {
            Ok(true) => {}
            Ok(false) => return Err(Finding::missing(&self.path, lost)),
            Err(error) => return Err(Finding::damaged(&self.path, &error.to_string(), lost)),
        }
        let checksum = Checksum::from_raw(self.checksum.unwrap_or_default());
        let cache = Arc::new(Cache::with_capacity_bytes(0));
        let open = || {
            Table::recover(self.path.clone(), checksum, self.seqno_offset, 0, cache, None, false, true, Arc::default())
        };
        // The library asserts what a damaged description may break.
        let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(open));
        match opened {
            Ok(Ok(table)) => Ok(table),
            Ok(Err(_)) => Err(Finding::damaged(&self.path, "it is cut short, or its end is damaged", lost)),
            Err(_) => Err(Finding::damaged(&self.path, "its description is damaged", lost)),
        }
    }

    /// Compares the whole file with its checksum.
    pub(crate) fn verify(&self) -> Result<(), Finding> {
        let Some(expected) = self.checksum else { return Ok(()) };
        let lost = "the rows in its damaged blocks";
        let unreadable = |error: io::Error| Finding::damaged(&self.path, &error.to_string(), lost);
        let mut file = File::open(&self.path).map_err(unreadable)?;
        let mut hash = Xxh3::new();
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match file.read(&mut buffer).map_err(unreadable)? {
                0 => break,
                read => hash.update(&buffer[..read]),
            }
        }
        if hash.digest128() == expected {
            return Ok(());
        }
        Err(Finding::damaged(&self.path, "its checksum is not the one in the manifest", lost))
    }
}

/// The names of the files and directories in a directory.
pub(crate) fn file_names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

fn read_file(path: &Path, lost: &str) -> Result<Vec<u8>, Finding> {
    std::fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Finding::missing(path, lost),
        _ => Finding::damaged(path, &error.to_string(), lost),
    })
}

/// `current` = version:u64 checksum:u128 00, little-endian.
fn parse_pointer(bytes: &[u8]) -> Option<(u64, u128)> {
    let (version, rest) = bytes.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    (rest == [0]).then_some((u64::from_le_bytes(*version), u128::from_le_bytes(*checksum)))
}

fn xxh3(bytes: &[u8]) -> u128 {
    xxhash_rust::xxh3::xxh3_128(bytes)
}

fn number<const N: usize>(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes[..N])?;
    Ok(u64::from_le_bytes(bytes))
}

fn table_path(tree: &Path, id: u64) -> PathBuf {
    tree.join(TABLES).join(id.to_string())
}

pub(crate) const CURRENT: &str = "current";
pub(crate) const TABLES: &str = "tables";
const BUFFER_BYTES: usize = 256 * 1024;
