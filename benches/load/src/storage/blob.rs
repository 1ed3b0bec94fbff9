//! Work on blobs: putting new ones, getting and listing those that are there, and comparing their bytes.
//!
//! Every blob is a part of one long pattern, so that nothing is generated while something is measured, and blobs of
//! different numbers differ.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

use super::request::{PAGE_BLOBS, StorageRequests};
use super::task::{BLOCKS, Size};
use crate::check::{element, expect_status};
use crate::dataset::Random;
use crate::http::Connection;
use crate::measure::{Outcome, Work};

/// Blobs start at this many different offsets of the pattern.
const STARTS: usize = 64 << 10;
/// Every so many gets of a connection, all bytes are compared; of the others, the first ones and the length.
const SAMPLE: u64 = 16;
/// Pages of one list; more is a server that never ends.
const PAGES_MAX: usize = 100;
/// Puts whose blobs are read back after a turn.
const CHECKED: usize = 8;

/// The bytes that all blobs are parts of.
pub(crate) fn pattern() -> Rc<[u8]> {
    let mut random = Random::new(0x1a71_3a75);
    let words = (Size::Large.bytes() + STARTS) / 8;
    (0..words).flat_map(|_| random.next().to_le_bytes()).collect()
}

/// What is known of the blobs of one server.
pub(crate) struct BlobStore {
    pattern: Rc<[u8]>,
    /// The number of the next new blob.
    next: Cell<u64>,
    /// How many operations may still be made in this turn.
    left: Cell<u64>,
    /// The last new blobs whose put was answered.
    done: RefCell<Vec<(Size, u64)>>,
}

impl BlobStore {
    /// A store without blobs.
    pub(crate) fn new(pattern: Rc<[u8]>) -> Self {
        Self { pattern, next: Cell::new(0), left: Cell::new(0), done: RefCell::default() }
    }

    /// Allows so many operations in the next turn.
    pub(crate) fn allow(&self, operations: u64) {
        self.left.set(operations);
    }

    fn content(&self, size: Size, number: u64) -> &[u8] {
        let start = (number.wrapping_mul(4_099) % STARTS as u64) as usize;
        &self.pattern[start..start + size.bytes()]
    }

    fn note(&self, size: Size, number: u64) {
        let mut done = self.done.borrow_mut();
        if done.len() == CHECKED {
            done.remove(0);
        }
        done.push((size, number));
    }
}

/// What a connection does with blobs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Action {
    /// Put one of the blobs to read.
    Store(Size),
    Get(Size),
    List,
    /// Put a new blob.
    Put(Size),
    /// Put a new large blob in blocks.
    PutBlocks,
}

/// The containers of new blobs.
fn new_container(size: Size) -> &'static str {
    match size {
        Size::Small => "new-small",
        Size::Medium => "new-medium",
        Size::Large => "new-large",
    }
}

/// One connection at work.
pub(crate) struct BlobWorker {
    action: Action,
    connection: Connection,
    requests: StorageRequests,
    store: Rc<BlobStore>,
    random: Random,
    operations: u64,
}

impl BlobWorker {
    /// A worker on a connection of its own; equal seeds ask for equal blobs.
    pub(crate) fn new(
        action: Action,
        connection: Connection,
        requests: StorageRequests,
        store: Rc<BlobStore>,
        seed: u64,
    ) -> Self {
        Self { action, connection, requests, store, random: Random::new(seed), operations: 0 }
    }

    /// Creates every container.
    pub(crate) async fn create(&mut self) -> anyhow::Result<()> {
        for container in Size::ALL.iter().flat_map(|&size| [size.container(), new_container(size)]) {
            let answer = self.connection.exchange(self.requests.create_container(container)).await?;
            expect_status(&answer, 201)?;
        }
        Ok(())
    }

    /// Reads the last new blobs back and compares every byte.
    pub(crate) async fn verify(&mut self) -> anyhow::Result<()> {
        let done = self.store.done.take();
        for (size, number) in done {
            self.get(new_container(size), size, number, true).await?;
        }
        Ok(())
    }

    async fn put(&mut self, container: &str, size: Size, number: u64) -> anyhow::Result<()> {
        let body = self.store.content(size, number);
        let head = self.requests.put_blob(container, &name(number), body.len());
        let answer = self.connection.exchange_body(head, body).await?;
        expect_status(&answer, 201)
    }

    async fn put_blocks(&mut self, container: &str, size: Size, number: u64) -> anyhow::Result<()> {
        let (name, body) = (name(number), self.store.content(size, number));
        let ids: [String; BLOCKS] = std::array::from_fn(|index| STANDARD.encode(format!("{index:06}")));
        for (id, block) in ids.iter().zip(body.chunks(body.len() / BLOCKS)) {
            let head = self.requests.put_block(container, &name, id, block.len());
            let answer = self.connection.exchange_body(head, block).await?;
            expect_status(&answer, 201)?;
        }
        let list = self.requests.put_block_list(container, &name, ids.iter().map(String::as_str));
        let answer = self.connection.exchange(list).await?;
        expect_status(&answer, 201)
    }

    async fn get(&mut self, container: &str, size: Size, number: u64, whole: bool) -> anyhow::Result<()> {
        let expected = self.store.content(size, number);
        let request = self.requests.get_blob(container, &name(number));
        let downloaded = self.connection.download(request, whole, |offset, piece| {
            let same = expected.get(offset..offset + piece.len()) == Some(piece);
            ensure!(
                same,
                "blob {number} differs after {offset} bytes: {}",
                String::from_utf8_lossy(&piece[..piece.len().min(200)])
            );
            Ok(())
        });
        let (status, bytes) = downloaded.await?;
        ensure!(status == 200 && bytes == expected.len(), "status {status} with {bytes} bytes");
        Ok(())
    }

    /// Lists all blobs that are read: one page, or more of them if the server ends one early, as it may.
    async fn list(&mut self) -> anyhow::Result<()> {
        let (mut blobs, mut marker) = (0, String::new());
        for _ in 0..PAGES_MAX {
            let answer = self.connection.exchange(self.requests.list_blobs(Size::Small.container(), &marker)).await?;
            expect_status(&answer, 200)?;
            blobs += memmem::find_iter(answer.body, b"<Name>b0").count() as u64;
            marker.clear();
            marker.push_str(element(&answer, b"<NextMarker>").unwrap_or_default());
            if marker.is_empty() {
                let last = name(PAGE_BLOBS - 1);
                ensure!(memmem::find(answer.body, last.as_bytes()).is_some(), "no blob {last} in the list");
                ensure!(blobs == PAGE_BLOBS, "a list of {blobs} blobs instead of {PAGE_BLOBS}");
                return Ok(());
            }
        }
        anyhow::bail!("a list that does not end")
    }

    async fn put_new(&mut self, size: Size) -> anyhow::Result<()> {
        let number = self.store.next.replace(self.store.next.get() + 1);
        let container = new_container(size);
        match self.action {
            Action::PutBlocks => self.put_blocks(container, size, number).await?,
            _ => self.put(container, size, number).await?,
        }
        self.store.note(size, number);
        Ok(())
    }
}

impl Work for BlobWorker {
    async fn operate(&mut self) -> anyhow::Result<Outcome> {
        let Some(left) = self.store.left.get().checked_sub(1) else { return Ok(Outcome::Exhausted) };
        self.store.left.set(left);
        self.operations += 1;
        match self.action {
            // Counting down to 0 names each blob once.
            Action::Store(size) => self.put(size.container(), size, left).await?,
            Action::Get(size) => {
                let whole = size == Size::Small || self.operations % SAMPLE == 1;
                let number = self.random.below(size.stored());
                self.get(size.container(), size, number, whole).await?;
            }
            Action::List => self.list().await?,
            Action::Put(size) => self.put_new(size).await?,
            Action::PutBlocks => self.put_new(Size::Large).await?,
        }
        Ok(Outcome::Done)
    }

    fn reconnect(&mut self, connection: Connection) {
        self.connection = connection;
    }
}

fn name(number: u64) -> String {
    format!("b{number:08}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_blobs_differ_and_the_last_blobs_are_remembered() {
        let store = BlobStore::new(pattern());
        assert_ne!(store.content(Size::Small, 0), store.content(Size::Small, 1));
        assert_eq!(store.content(Size::Large, u64::MAX).len(), Size::Large.bytes());
        for number in 0..100 {
            store.note(Size::Small, number);
        }
        assert_eq!(store.done.borrow().len(), CHECKED);
        assert_eq!(store.done.borrow()[CHECKED - 1], (Size::Small, 99));
    }
}
