//! Messages of one queue in a file, on their way from the source to the destination.
//!
//! A file bounds the memory that a queue of any length needs, and it is what makes a copy of messages exact: the source
//! is read once, and the destination can be filled again from the start after an interruption.

use super::state::private;
use crate::{Error, Result};
use larimar_client::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// A message as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spooled {
    pub(super) id: String,
    /// Present if the message was received, and has to be given back.
    pub(super) receipt: Option<String>,
    pub(super) text: String,
    /// When it expires, in ticks; never if absent.
    pub(super) expires: Option<u64>,
}

impl Spooled {
    /// For how many seconds the message still lives, if not for ever; `Err` if it has expired.
    pub(super) fn seconds_left(&self, now: Timestamp) -> Result<Option<u64>, Expired> {
        let Some(expires) = self.expires else { return Ok(None) };
        match expires.saturating_sub(now.ticks()) / TICKS_PER_SECOND {
            0 => Err(Expired),
            seconds => Ok(Some(seconds)),
        }
    }
}

/// A message whose time is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expired;

/// The file.
#[derive(Debug)]
pub(super) struct Spool {
    path: PathBuf,
    file: File,
}

impl Spool {
    /// An empty file, in the place of any other.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = private().write(true).create(true).truncate(true).open(path);
        Ok(Self { path: path.to_owned(), file: file.map_err(|error| Error::io(path.display(), error))? })
    }

    /// Adds messages, which are on disk afterwards.
    pub(super) fn add(&mut self, messages: &[Spooled]) -> Result<()> {
        let mut lines = Vec::new();
        for message in messages {
            serde_json::to_writer(&mut lines, message).expect("a message is JSON");
            lines.push(b'\n');
        }
        let written = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        written.map_err(|error| Error::io(self.path.display(), error))
    }
}

/// The messages of a file, in order. A last line that is not whole is the trace of a crash and is passed over; a file
/// that does not exist is empty.
pub(super) fn read(path: &Path) -> Result<impl Iterator<Item = Result<Spooled>> + use<>> {
    let failed = {
        let path = path.to_owned();
        move |error| Error::io(path.display(), error)
    };
    let file = match File::open(path) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let lines = file.map(|file| BufReader::new(file).split(b'\n')).into_iter().flatten();
    Ok(lines.map_while(move |line| match line {
        Ok(line) => serde_json::from_slice(&line).ok().map(Ok),
        Err(error) => Some(Err(failed(error))),
    }))
}

const TICKS_PER_SECOND: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Spooled {
        Spooled { id: "1".to_owned(), receipt: None, text: text.to_owned(), expires: None }
    }

    #[test]
    fn messages_are_read_in_order_up_to_a_torn_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("spool");
        assert_eq!(read(&path).expect("absent").count(), 0);
        let mut spool = Spool::create(&path).expect("created");
        let messages = [message("a\nb"), message("ü \"\u{FFFD}")];
        spool.add(&messages[..1]).expect("added");
        spool.add(&messages[1..]).expect("added");
        spool.file.write_all(b"{\"id\":\"3").expect("torn");
        let read: Vec<_> = read(&path).expect("opened").map(|message| message.expect("read")).collect();
        assert_eq!(read, messages);
    }

    #[test]
    fn a_message_lives_as_long_as_it_would_have() {
        let now = Timestamp::from_ticks(1_000 * TICKS_PER_SECOND);
        let until = |seconds: u64| Spooled { expires: Some(seconds * TICKS_PER_SECOND), ..message("a") };
        assert_eq!(message("a").seconds_left(now), Ok(None));
        assert_eq!(until(1_007).seconds_left(now), Ok(Some(7)));
        assert_eq!(until(1_000).seconds_left(now), Err(Expired));
        assert_eq!(until(10).seconds_left(now), Err(Expired));
    }
}
