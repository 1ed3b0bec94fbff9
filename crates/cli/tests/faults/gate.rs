//! An object store whose requests can be held, so that a program stops at a point that the test chooses.

use crate::moments::s3::{BUCKET, S3};
use s3s::S3Result;
use s3s::access::{S3Access, S3AccessContext};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// The store; its files are those of a directory.
pub(super) struct Gate {
    s3: S3,
    holds: Holds,
    folder: PathBuf,
    _runtime: Runtime,
}

#[derive(Clone, Default)]
struct Holds(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Goes up with every change, so that a held request knows when to go on.
    number: u64,
    /// A part of the names that are held, and how many reads of them still pass.
    hold: Option<(String, usize)>,
    is_reached: bool,
}

impl Holds {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic while locked")
    }

    /// The hold that a read of this name has to wait for.
    fn held_by(&self, name: &str) -> Option<u64> {
        let mut state = self.state();
        let number = state.number;
        let (part, passing) = state.hold.as_mut()?;
        if !name.contains(&**part) {
            return None;
        }
        if *passing > 0 {
            *passing -= 1;
            return None;
        }
        state.is_reached = true;
        Some(number)
    }
}

impl S3Access for Holds {
    fn check<'a: 'f, 'b: 'f, 'c: 'f, 'f>(
        &'a self,
        context: &'b mut S3AccessContext<'c>,
    ) -> Pin<Box<dyn Future<Output = S3Result<()>> + Send + 'f>> {
        let name = context.s3_path().get_object_key().filter(|_| context.method() == "GET");
        let held_by = name.and_then(|name| self.held_by(name));
        Box::pin(async move {
            while held_by.is_some_and(|number| self.state().number == number) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Ok(())
        })
    }
}

impl Gate {
    /// A store in a folder, which holds nothing yet.
    pub(super) fn start(folder: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let holds = Holds::default();
        let s3 = runtime.block_on(S3::start(folder, holds.clone()));
        Self { s3, holds, folder: folder.to_owned(), _runtime: runtime }
    }

    /// The place as a directory, through which nothing is held.
    pub(super) fn directory(&self) -> PathBuf {
        self.folder.join(BUCKET).join("larimar")
    }

    /// The place in the store.
    pub(super) fn address() -> String {
        format!("s3://{BUCKET}/larimar")
    }

    /// The environment of a program that uses the store.
    pub(super) fn variables(&self) -> [(&'static str, String); 5] {
        self.s3.variables()
    }

    /// Lets some reads of files with this part in their names pass, and holds the next. Requests held before go on.
    pub(super) fn hold(&self, part: &str, passing: usize) {
        let mut state = self.holds.state();
        *state = State { number: state.number + 1, hold: Some((part.to_owned(), passing)), is_reached: false };
    }

    /// Waits until a request is held.
    pub(super) fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.holds.state().is_reached {
            assert!(Instant::now() < deadline, "no request is held within a minute");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Holds nothing any more.
    pub(super) fn open(&self) {
        let mut state = self.holds.state();
        *state = State { number: state.number + 1, ..State::default() };
    }
}
