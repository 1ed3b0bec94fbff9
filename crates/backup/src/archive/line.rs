//! A line of the archive: an unbroken run of commits.
//!
//! ```text
//! archive/LINE/line              when it began, and after which commit; written first
//! archive/LINE/FIRST-LAST        a segment: the numbers of its first and last commit, twenty digits each
//! archive/LINE/through           up to which commit and time everything is archived; replaced while nothing is written
//! archive/LINE/end               the last commit, and why none follows; a line that goes on has none
//! ```

use crate::error::BackupError;
use crate::place::Place;
use crate::sealed;
use larimar_model::Timestamp;
use serde::{Deserialize, Serialize};

/// How a line began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    format: u32,
    /// Its name: when it began, the commit before its first, and random digits. Names order as times do.
    pub(crate) name: String,
    /// When it began, by the server's clock.
    pub(crate) began: String,
    /// The number of the commit before its first.
    pub(crate) after: u64,
    /// The release of the server.
    release: String,
}

/// Up to where a line is archived, or where and why it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Through {
    format: u32,
    /// The number of the last commit.
    pub(crate) sequence: u64,
    /// No later commit was published at or before this time, in ticks.
    time: u64,
    /// Why no commit follows, for a line that has ended.
    pub(crate) reason: Option<String>,
}

/// The numbers of the first and last commit of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentName {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Line {
    /// A line that begins after a commit.
    pub(crate) fn new(began: Timestamp, after: u64, random: [u8; 4]) -> Self {
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let began = began.to_seven_digits();
        let time: String = began.chars().filter(|char| !"-:".contains(*char)).collect();
        let name = format!("{time}-{after}-{digits}");
        Self { format: FORMAT, name, began, after, release: env!("CARGO_PKG_VERSION").to_owned() }
    }

    /// Its first file.
    pub(crate) fn file(&self) -> String {
        file(&self.name, LINE)
    }

    /// Writes its first file.
    pub(crate) async fn write(&self, place: &Place) -> Result<(), BackupError> {
        place.put(&self.file(), sealed::seal(self)).await
    }

    /// How far it is when it begins.
    pub(crate) fn start(&self) -> Through {
        Through::new(self.after, Timestamp::parse(&self.began).unwrap_or(Timestamp::from_ticks(0)))
    }

    /// Reads the line of a name.
    pub(crate) async fn read(place: &Place, name: &str) -> Result<Self, BackupError> {
        let line: Self = sealed::read(place, &file(name, LINE), FORMAT).await?;
        match line.name == name {
            true => Ok(line),
            false => Err(BackupError::damaged(place.show(&file(name, LINE)), "it is the file of another line")),
        }
    }

    /// The names of the lines of a place, the oldest first.
    pub(crate) async fn list(place: &Place) -> Result<Vec<String>, BackupError> {
        let mut names = place.names(ARCHIVE).await?;
        names.retain(|name| is_line(name));
        names.sort();
        Ok(names)
    }
}

impl Through {
    pub(crate) fn new(sequence: u64, time: Timestamp) -> Self {
        Self { format: FORMAT, sequence, time: time.ticks(), reason: None }
    }

    /// The end of a line.
    pub(crate) fn ended(self, reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..self }
    }

    pub(crate) const fn time(&self) -> Timestamp {
        Timestamp::from_ticks(self.time)
    }

    /// Writes how far a line is, or that it has ended.
    pub(crate) async fn write(&self, place: &Place, line: &str) -> Result<(), BackupError> {
        let name = if self.reason.is_some() { "end" } else { "through" };
        place.put(&file(line, name), sealed::seal(self)).await
    }

    /// How far a line is by its file, which may be behind its segments; `None` if it has none.
    pub(crate) async fn read(place: &Place, line: &str) -> Result<Option<Self>, BackupError> {
        Self::read_file(place, &file(line, "through")).await
    }

    /// Where and why a line ends, if it has ended.
    pub(crate) async fn read_end(place: &Place, line: &str) -> Result<Option<Self>, BackupError> {
        Self::read_file(place, &file(line, "end")).await
    }

    async fn read_file(place: &Place, file: &str) -> Result<Option<Self>, BackupError> {
        match sealed::read(place, file, FORMAT).await {
            Ok(through) => Ok(Some(through)),
            Err(BackupError::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl SegmentName {
    /// The segment's file or object below the place.
    pub(crate) fn file(self, line: &str) -> String {
        file(line, &format!("{:020}-{:020}", self.first, self.last))
    }

    /// The segments of a line, in order.
    pub(crate) async fn list(place: &Place, line: &str) -> Result<Vec<Self>, BackupError> {
        let names = place.names(&format!("{ARCHIVE}/{line}")).await?;
        let mut segments: Vec<Self> = names.iter().filter_map(|name| Self::parse(name)).collect();
        segments.sort();
        Ok(segments)
    }

    fn parse(name: &str) -> Option<Self> {
        let (first, last) = name.split_once('-')?;
        let number = |text: &str| (text.len() == 20).then(|| text.parse().ok()).flatten();
        Some(Self { first: number(first)?, last: number(last)? })
    }
}

/// Whether a directory has the name of a line.
pub(crate) fn is_line(name: &str) -> bool {
    let mut parts = name.splitn(3, '-');
    let (time, after, random) = (parts.next(), parts.next(), parts.next());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
    let is_time =
        time.is_some_and(|time| time.len() == TIME_CHARS && time.ends_with('Z') && time.bytes().all(is_plain));
    let is_number = after.is_some_and(|after| after.parse::<u64>().is_ok());
    is_time && is_number && random.is_some_and(|random| u32::from_str_radix(random, 16).is_ok() && random.len() == 8)
}

fn file(line: &str, name: &str) -> String {
    format!("{ARCHIVE}/{line}/{name}")
}

pub(crate) const ARCHIVE: &str = "archive";
/// The first file of a line.
pub(crate) const LINE: &str = "line";
const FORMAT: u32 = 1;
/// `20261116T170102.5000000Z`
const TIME_CHARS: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_is_found_with_its_segments_and_its_end() {
        let folder = tempfile::tempdir().expect("a directory");
        let place = Place::directory(folder.path().join("place"));
        let _lock = place.prepare().await.expect("a place");
        assert_eq!(Line::list(&place).await.expect("no lines"), Vec::<String>::new());
        let time = Timestamp::parse("2026-11-16T17:01:02.5Z").expect("a time");
        let line = Line::new(time, 7, [1, 2, 3, 255]);
        assert_eq!(line.name, "20261116T170102.5000000Z-7-010203ff");
        line.write(&place).await.expect("written");
        std::fs::create_dir(folder.path().join("place/archive/extra")).expect("a directory");
        assert_eq!(Line::list(&place).await.expect("lines"), std::slice::from_ref(&line.name));
        assert_eq!(Line::read(&place, &line.name).await.expect("a line"), line);
        assert_eq!(Through::read(&place, &line.name).await.expect("none"), None);
        let through = Through::new(9, time);
        through.write(&place, &line.name).await.expect("written");
        through.clone().ended("the spool was full").write(&place, &line.name).await.expect("written");
        assert_eq!(Through::read(&place, &line.name).await.expect("one"), Some(through.clone()));
        let end = Through::read_end(&place, &line.name).await.expect("one").expect("one");
        assert_eq!((end.sequence, end.time(), end.reason.as_deref()), (9, time, Some("the spool was full")));
        let segments = [SegmentName { first: 8, last: 8 }, SegmentName { first: 9, last: u64::MAX }];
        for segment in segments.iter().rev() {
            place.put(&segment.file(&line.name), "".into()).await.expect("written");
        }
        assert_eq!(SegmentName::list(&place, &line.name).await.expect("segments"), segments);
        place.remove(&segments[0].file(&line.name)).await.expect("removed");
        place.remove(&segments[0].file(&line.name)).await.expect("removed before");
        assert_eq!(SegmentName::list(&place, &line.name).await.expect("segments"), segments[1..]);
    }
}
