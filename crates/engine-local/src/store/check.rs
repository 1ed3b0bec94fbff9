//! Checks every file of a data directory before fjall opens it: what is missing, damaged or too new.
//!
//! fjall takes parts that are missing for parts that were never made, starts without them and removes what they
//! listed. So the server asks here first and refuses by name; `larimar repair` asks the same questions and reads every
//! byte besides ([`Depth`]). Nothing here changes anything on disk.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::fjall::STORE;
use super::inventory::{INVENTORY, Inventory, Watermark};
use super::journal::{self, Inspection};
use super::manifest::{self, Manifest, TABLES};
use crate::catalogue::FORMAT;

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// As the server does at every start: each file is there, and what is needed to open it is whole.
    Start,
    /// Every byte: table files are compared with their checksums.
    Everything,
}

/// One thing that is wrong with a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file or directory.
    pub path: PathBuf,
    /// What kind of wrong it is.
    pub kind: Kind,
    /// What is wrong, in words.
    pub problem: String,
    /// What is lost with it.
    pub lost: String,
    /// Whether the store can be opened without it, once that is accepted.
    pub is_acceptable: bool,
}

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It should be there and is not.
    Missing,
    /// It is there and not as it was written.
    Damaged,
    /// Acknowledged commits are missing at the end of the journals: at least so many.
    CommitsMissing(u64),
    /// A later release wrote it.
    Newer,
}

/// What the check of a data directory found.
#[derive(Debug)]
pub(crate) struct Check {
    /// Whether nothing was ever stored here.
    pub(crate) is_new: bool,
    pub(crate) findings: Vec<Finding>,
    pub(crate) journals: Inspection,
    /// The number of the last commit in tables.
    pub(crate) persisted: Option<u64>,
    pub(crate) has_blobs: bool,
}

impl Finding {
    pub(crate) fn missing(path: &Path, lost: &str) -> Self {
        Self::new(path, Kind::Missing, "it is missing".to_owned(), lost)
    }

    pub(crate) fn damaged(path: &Path, problem: &str, lost: &str) -> Self {
        Self::new(path, Kind::Damaged, problem.to_owned(), lost)
    }

    fn new(path: &Path, kind: Kind, problem: String, lost: &str) -> Self {
        Self { path: path.to_owned(), kind, problem, lost: lost.to_owned(), is_acceptable: false }
    }

    fn acceptable(self) -> Self {
        Self { is_acceptable: true, ..self }
    }

    /// The finding that a later release wrote a store.
    pub(crate) fn newer(path: &Path, format: &str, release: Option<&str>) -> Self {
        let release = release.unwrap_or("an unknown later release");
        let problem = format!(
            "release {release} of Larimar wrote it in format {format}; this is release {}, which reads formats up to \
             {FORMAT}",
            env!("CARGO_PKG_VERSION")
        );
        Self::new(path, Kind::Newer, problem, "nothing; open it with that release or a later one")
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (lost: {})", self.path.display(), self.problem, self.lost)
    }
}

/// Checks a data directory.
pub(crate) fn check(folder: &Path, depth: Depth) -> io::Result<Check> {
    let mut findings = Vec::new();
    let inventory = Inventory::read(folder).unwrap_or_else(|error| {
        let lost = "nothing but the knowledge of which files there should be";
        let problem = format!("it cannot be read ({error})");
        findings.push(Finding::damaged(&folder.join(INVENTORY), &problem, lost).acceptable());
        None
    });
    let store = folder.join(STORE);
    let has_blobs = inventory.as_ref().is_some_and(|inventory| inventory.has_blobs);
    if !store.try_exists()? {
        let blobs = folder.join(BLOBS);
        if inventory.is_some() || !findings.is_empty() || holds_files(&blobs)? {
            findings.push(Finding::missing(&store, "all tables, queues and descriptions of blobs"));
        }
        let journals = Inspection { journals: Vec::new(), state: journal::State::Intact };
        return Ok(Check { is_new: findings.is_empty(), findings, journals, persisted: None, has_blobs });
    }
    if let Some(Inventory { format, release, .. }) = &inventory
        && *format > FORMAT
    {
        findings.push(Finding::newer(&folder.join(INVENTORY), &format.to_string(), Some(release)));
    }
    findings.extend(check_version(&store));
    let mut persisted = None;
    for tree in TREES {
        let (highest, tree_findings) = check_tree(&store.join(tree), depth);
        findings.extend(tree_findings);
        // The second one, with the rows, counts.
        persisted = highest;
    }
    let journals = journal::inspect(&store)?;
    let are_tables_known = findings.is_empty();
    findings.extend(check_journals(folder, &store, &journals, inventory.as_ref(), persisted, are_tables_known));
    if has_blobs {
        findings.extend(check_blobs(&folder.join(BLOBS)));
    }
    Ok(Check { is_new: false, findings, journals, persisted, has_blobs })
}

/// Whether a directory is a store, however damaged: it has the mark, the trees or a journal of one.
pub(crate) fn is_store(store: &Path) -> io::Result<bool> {
    let has_mark = std::fs::read(store.join(VERSION)).is_ok_and(|mark| mark.starts_with(b"FJL"));
    if has_mark || store.join(KEYSPACES).is_dir() {
        return Ok(true);
    }
    match journal::journal_files(store) {
        Ok(journals) => Ok(!journals.is_empty()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}

/// fjall's own mark: four bytes, of which the last is its format.
fn check_version(store: &Path) -> Option<Finding> {
    let path = store.join(VERSION);
    let lost = "nothing but the store's mark";
    match std::fs::read(&path) {
        Ok(bytes) if bytes == *b"FJL\x03" => None,
        Ok(bytes) if bytes.starts_with(b"FJL") && bytes.len() == 4 && bytes[3] > 3 => {
            Some(Finding::newer(&path, &format!("fjall {}", bytes[3]), None))
        }
        Ok(_) => Some(Finding::damaged(&path, "it is not the mark of a store", lost)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Finding::missing(&path, lost)),
        Err(error) => Some(Finding::damaged(&path, &error.to_string(), lost)),
    }
}

/// Looks at one tree; returns the number of the last commit in its tables too.
fn check_tree(tree: &Path, depth: Depth) -> (Option<u64>, Vec<Finding>) {
    for folder in [tree, &tree.join(TABLES)] {
        if !folder.is_dir() {
            return (None, vec![Finding::missing(folder, "all rows that were flushed to tables")]);
        }
    }
    let manifest = match Manifest::read(tree) {
        Ok(manifest) => manifest,
        Err(finding) => return (None, vec![finding]),
    };
    let mut findings = Vec::new();
    let mut highest = None;
    for table in &manifest.tables {
        match table.open() {
            Ok(open) => {
                highest = highest.max(Some(open.get_highest_seqno()));
                if depth == Depth::Everything {
                    findings.extend(table.verify().err());
                }
            }
            Err(finding) => findings.push(finding),
        }
    }
    (highest, findings)
}

/// Looks for journals that are gone, and for commits that are gone from the last one.
fn check_journals(
    folder: &Path,
    store: &Path,
    found: &Inspection,
    inventory: Option<&Inventory>,
    persisted: Option<u64>,
    are_tables_known: bool,
) -> Vec<Finding> {
    let path = |number: u64| store.join(format!("{number}.jnl"));
    let numbers: Vec<u64> = found.journals.iter().map(|journal| journal.number).collect();
    let lost = "the commits in it that were not flushed to tables";
    let Some((first, newest)) = numbers.first().copied().zip(numbers.last().copied()) else {
        let number = inventory.map_or(0, |inventory| inventory.journal);
        return vec![Finding::missing(&path(number), lost).acceptable()];
    };
    let mut findings = Vec::new();
    let sealed = inventory.map_or(&[][..], |inventory| &inventory.sealed);
    // The newest journal that the inventory names may have been sealed since: another one is there.
    let sealed_since = Watermark::read(folder).filter(|watermark| watermark.journal < newest);
    let sealed_since = sealed_since.map(|watermark| (watermark.journal, watermark.seqno));
    // A sealed journal goes away once its last commit is in a table.
    let is_flushed = |number| {
        let mut known = sealed.iter().chain(&sealed_since);
        known.any(|(sealed, last)| *sealed == number && (*last == 0 || Some(*last) <= persisted))
    };
    let expected_to = inventory.map_or(newest, |inventory| inventory.journal.max(newest));
    let expected_from = sealed.first().map_or(first, |(sealed, _)| first.min(*sealed));
    for number in expected_from..=expected_to {
        let is_expected = !(are_tables_known && is_flushed(number));
        if is_expected && !numbers.contains(&number) {
            findings.push(Finding::missing(&path(number), lost).acceptable());
        }
    }
    if findings.is_empty() && are_tables_known {
        findings.extend(check_watermark(folder, found, persisted, path));
    }
    findings
}

/// Compares the end of the journals with how far they had come.
fn check_watermark(
    folder: &Path,
    found: &Inspection,
    persisted: Option<u64>,
    path: impl Fn(u64) -> PathBuf,
) -> Option<Finding> {
    let Watermark { journal, commits, seqno } = Watermark::read(folder)?;
    let last = found.journals.iter().filter_map(|journal| journal.last_seqno).max().max(persisted);
    // Damage is reported by the journals themselves; here they end as if nothing had followed.
    let is_cut = matches!(found.state, journal::State::Intact | journal::State::Torn);
    if !is_cut || commits == 0 || last >= Some(seqno) {
        return None;
    }
    let there = found.journals.iter().find(|found| found.number == journal).map_or(0, |found| found.batches);
    let missing = commits.saturating_sub(there).max(1);
    let problem = format!(
        "it was cut: {there} commits are in it and {commits} were acknowledged, so that at least {missing} are missing"
    );
    let lost = format!("at least {missing} acknowledged commits, the last ones that were written");
    Some(Finding::new(&path(journal), Kind::CommitsMissing(missing), problem, &lost).acceptable())
}

/// The directories of blobs' bytes are all made with the first one.
pub(crate) fn check_blobs(blobs: &Path) -> Option<Finding> {
    let files = blobs.join("files");
    let of_files = (0..=u8::MAX).map(|first| files.join(format!("{first:02x}")));
    let mut folders = [blobs.to_owned(), blobs.join("packs"), files.clone()].into_iter().chain(of_files);
    let missing = folders.find(|folder| !folder.is_dir())?;
    Some(Finding::missing(&missing, "the bytes of the blobs in it").acceptable())
}

/// Whether a directory of blobs' bytes has any file in it.
fn holds_files(blobs: &Path) -> io::Result<bool> {
    let is_empty = |folder: PathBuf| match manifest::file_names(&folder) {
        Ok(names) => Ok(names.is_empty()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    };
    let of_files = (0..=u8::MAX).map(|first| blobs.join("files").join(format!("{first:02x}")));
    for folder in std::iter::once(blobs.join("packs")).chain(of_files) {
        if !is_empty(folder)? {
            return Ok(true);
        }
    }
    Ok(false)
}

const VERSION: &str = "version";
const KEYSPACES: &str = "keyspaces";
/// The trees of a store: fjall's own records, and the rows. Both are made before the store gets its name.
const TREES: [&str; 2] = ["keyspaces/0", ROWS_TREE];
pub(crate) const ROWS_TREE: &str = "keyspaces/1";
/// Where the bytes of blobs are, below the data directory.
pub(crate) const BLOBS: &str = "blobs";
