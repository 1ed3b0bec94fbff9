//! Finds payloads that nothing points to, by asking the owners named in their headers.
//!
//! Files are walked in pages, so that the memory needed does not depend on their number.

use super::folder::is_pack;
use super::packs::{Walk, read_header};
use super::{Shared, blocking};
use crate::record::{FileName, MAGIC, State, parse_name, payload_bytes};
use crate::release::{Candidate, release_unowned};
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{Extent, Owners, Reclaimed};
use std::fs::{File, ReadDir};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

pub(super) async fn reclaim(shared: &Arc<Shared>, owners: &impl Owners) -> Result<Reclaimed, Fault> {
    let mut reclaimed = Reclaimed::default();
    let mut walker = Walker::new(Arc::clone(shared));
    loop {
        let (returned, page) = blocking(move || {
            let page = walker.page();
            (walker, page)
        })
        .await?;
        walker = returned;
        let Page { candidates, seen, last, .. } =
            page.map_err(|error| super::folder::unavailable(&walker.place, &error))?;
        reclaimed.seen += seen;
        let garbage = release_unowned(owners, candidates).await?;
        reclaimed.removed += garbage.len() as u64;
        reclaimed.removed_bytes += garbage.iter().map(|extent| extent.length).sum::<u64>();
        if !garbage.is_empty() {
            shared.remover.discard(garbage, shared.grace);
        }
        if last {
            return Ok(reclaimed);
        }
    }
}

/// Walks all files of the directory.
struct Walker {
    shared: Arc<Shared>,
    folders: Box<dyn Iterator<Item = PathBuf> + Send>,
    folder: Option<ReadDir>,
    pack: Option<Walk>,
    /// When the walk started, by the clock of the file system.
    now: Option<SystemTime>,
    /// The current directory, for error messages.
    place: PathBuf,
}

/// Payloads to ask about.
#[derive(Default)]
struct Page {
    candidates: Vec<Candidate>,
    /// Payloads found.
    seen: u64,
    /// Records and files that were read.
    steps: u64,
    last: bool,
}

impl Walker {
    fn new(shared: Arc<Shared>) -> Self {
        let packs = shared.folder.packs();
        let folders = Box::new(std::iter::once(packs.clone()).chain(shared.folder.file_folders()));
        Self { shared, folders, folder: None, pack: None, now: None, place: packs }
    }

    /// The next page of payloads that are old enough to ask about.
    fn page(&mut self) -> Result<Page, Error> {
        let mut page = Page::default();
        if self.now.is_none() {
            self.now = Some(self.shared.folder.now()?);
        }
        while page.candidates.len() < PAGE_CANDIDATES_MAX && page.steps < PAGE_STEPS_MAX {
            if self.walk_pack(&mut page)? {
                continue;
            }
            let Some(folder) = &mut self.folder else {
                let Some(next) = self.folders.next() else {
                    page.last = true;
                    break;
                };
                self.folder = Some(std::fs::read_dir(&next)?);
                self.place = next;
                continue;
            };
            match folder.next() {
                None => self.folder = None,
                Some(entry) => {
                    if let Some(name) = entry?.file_name().to_str().and_then(parse_name) {
                        self.visit(name, &mut page)?;
                    }
                }
            }
        }
        Ok(page)
    }

    /// Reads the next record of the current pack; `false` if there is no current pack.
    #[expect(
        clippy::disallowed_methods,
        reason = "the age of a file is compared with times of the file system, which come from this clock"
    )]
    fn walk_pack(&mut self, page: &mut Page) -> Result<bool, Error> {
        let Some(walk) = &mut self.pack else { return Ok(false) };
        match walk.next()? {
            Some((header, extent)) => {
                page.steps += 1;
                let wanted = header.state != State::Dead;
                page.seen += u64::from(wanted);
                if wanted && self.is_old(SystemTime::now(), header.written) {
                    page.candidates.push(Candidate { space: header.space, blob: header.blob, extent });
                }
            }
            None => {
                let (name, counts) = (walk.name(), walk.counts());
                self.pack = None;
                if !self.shared.packs.is_open(&name) && self.shared.packs.learn(name, counts) {
                    self.shared.remove_pack(&name);
                }
            }
        }
        Ok(true)
    }

    fn visit(&mut self, name: FileName, page: &mut Page) -> Result<(), Error> {
        let file = match File::open(self.shared.folder.path(&name)) {
            Ok(file) => file,
            // Removed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if is_pack(&name) {
            self.pack = Some(Walk::new(name, file)?);
            return Ok(());
        }
        page.steps += 1;
        if self.shared.writing.lock().contains(&name) {
            return Ok(());
        }
        let metadata = file.metadata()?;
        let header = read_header(&file, name, 0)?;
        let Some(header) = header else { return self.visit_headless(name, &file) };
        if header.state == State::Unfinished {
            self.shared.remover.remove_unfinished(name);
            return Ok(());
        }
        page.seen += 1;
        let modified = metadata.modified()?;
        let stored = metadata.len().saturating_sub(header.bytes());
        if let Some(length) = payload_bytes(stored)
            && self.now.is_some_and(|now| self.is_old(now, modified))
        {
            let extent = Extent { file: name, offset: header.bytes(), length };
            page.candidates.push(Candidate { space: header.space, blob: header.blob, extent });
        }
        Ok(())
    }

    /// A file without a header. A crash leaves files that are empty or begin with zeros; anything else is damaged and
    /// may be in use.
    fn visit_headless(&self, name: FileName, file: &File) -> Result<(), Error> {
        let mut first = [0; MAGIC.len()];
        let found = file.read_at(&mut first, 0)?;
        if first[..found].iter().all(|byte| *byte == 0) {
            self.shared.remover.remove_unfinished(name);
        } else {
            tracing::warn!(fault = %self.shared.folder.damaged(&name, "its header is damaged"), "it is kept");
        }
        Ok(())
    }

    /// Whether a time is past the grace period. `now` must be from the clock that set the time: the file system's for
    /// files, this machine's for the headers in packs.
    fn is_old(&self, now: SystemTime, since: SystemTime) -> bool {
        // A time in the future comes from a clock that was set back: it is old when the clock has caught up.
        now.duration_since(since).is_ok_and(|age| age >= self.shared.grace)
    }
}

/// Payloads that are asked about together.
const PAGE_CANDIDATES_MAX: usize = 1024;
const PAGE_STEPS_MAX: u64 = 16 << 10;
