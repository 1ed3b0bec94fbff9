//! A bounded cache of open files.

use super::Handle;
use super::folder::Folder;
use crate::record::FileName;
use larimar_engine::Fault;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Handles {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    files: HashMap<FileName, (Handle, u64)>,
    uses: u64,
}

impl Handles {
    /// The file, opened if it is not.
    pub(super) fn get(&self, folder: &Folder, file: &FileName) -> Result<Handle, Fault> {
        let mut open = self.open.lock();
        if let Some(handle) = open.find(file) {
            return Ok(handle);
        }
        // Under the lock, so that a file which is removed meanwhile is not kept: `forget` comes after the removal.
        let handle = Arc::new(File::open(folder.path(file)).map_err(|error| folder.fault(file, &error))?);
        if open.files.len() >= HANDLES_MAX
            && let Some(oldest) = open.files.iter().min_by_key(|(_, (_, used))| *used).map(|(file, _)| *file)
        {
            open.files.remove(&oldest);
        }
        let now = open.uses;
        open.files.insert(*file, (Arc::clone(&handle), now));
        Ok(handle)
    }

    /// The file, if it is open.
    pub(super) fn open(&self, file: &FileName) -> Option<Handle> {
        self.open.lock().find(file)
    }

    /// Closes a removed file as soon as no reader uses it.
    pub(super) fn forget(&self, file: &FileName) {
        self.open.lock().files.remove(file);
    }
}

impl Open {
    fn find(&mut self, file: &FileName) -> Option<Handle> {
        self.uses += 1;
        let (handle, used) = self.files.get_mut(file)?;
        *used = self.uses;
        Some(Arc::clone(handle))
    }
}

const HANDLES_MAX: usize = 256;
