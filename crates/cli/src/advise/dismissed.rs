//! The file with the findings that were dismissed. It belongs to the repository of the code that uses the tables, so that CI
//! and everybody who works on it dismiss the same ones.
//!
//! ```toml
//! [[dismiss]]
//! finding = "table-scan"
//! table = "orders"
//! reason = "the monthly report"
//! ```

use anyhow::{Context, bail};
use larimar_advisor::Dismissal;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Everything that was dismissed.
#[derive(Debug)]
pub(super) struct Dismissed {
    path: PathBuf,
    all: Vec<Dismissal>,
    /// Whether the file has text whose last line has no end.
    is_open: bool,
}

impl Dismissed {
    /// Reads the file; one that is not there dismisses nothing.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = match File::open(path) {
            Ok(file) => {
                let mut text = String::new();
                file.take(BYTES_MAX + 1).read_to_string(&mut text).with_context(|| format!("cannot read {shown}"))?;
                text
            }
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        };
        if text.len() as u64 > BYTES_MAX {
            bail!("{shown} is longer than 1 MiB");
        }
        let all = parse(&text).with_context(|| format!("{shown} is not a list of dismissed findings"))?;
        Ok(Self { path: path.to_owned(), all, is_open: !text.is_empty() && !text.ends_with('\n') })
    }

    /// Adds what is not there yet, at the end of the file.
    pub(super) fn add(&mut self, new: &[Dismissal]) -> anyhow::Result<()> {
        let mut text = String::new();
        for dismissal in new {
            if self.all.iter().any(|known| known.is_same(dismissal)) {
                continue;
            }
            writeln!(text, "[[dismiss]]\nfinding = \"{}\"", dismissal.finding.id())?;
            if let Some(table) = &dismissal.table {
                writeln!(text, "table = \"{table}\"")?;
            }
            self.all.push(dismissal.clone());
        }
        if text.is_empty() {
            return Ok(());
        }
        if self.is_open {
            text.insert(0, '\n');
        }
        let append = || -> std::io::Result<()> {
            if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                fs::create_dir_all(folder)?;
            }
            OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(text.as_bytes())
        };
        append().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Everything that was dismissed.
    pub(super) fn all(&self) -> &[Dismissal] {
        &self.all
    }
}

fn parse(text: &str) -> anyhow::Result<Vec<Dismissal>> {
    let file: Table = text.parse()?;
    let mut all = Vec::new();
    for (name, value) in &file {
        let (true, Value::Array(list)) = (name == "dismiss", value) else {
            bail!("expected entries [[dismiss]], found '{name}'");
        };
        for entry in list {
            all.push(entry.as_table().context("expected entries [[dismiss]]").and_then(dismissal)?);
        }
    }
    Ok(all)
}

fn dismissal(entry: &Table) -> anyhow::Result<Dismissal> {
    let (mut kind, mut table, mut reason) = (None, None, None);
    for (name, value) in entry {
        let text = value.as_str().with_context(|| format!("{name}: expected a text"))?;
        match &**name {
            "finding" => kind = Some(text.parse().with_context(|| format!("finding = \"{text}\""))?),
            "table" => table = Some(text.to_owned()),
            "reason" => reason = Some(text.to_owned()),
            _ => bail!("unknown key '{name}': expected one of finding, table, reason"),
        }
    }
    Ok(Dismissal { reason, ..Dismissal::new(kind.context("expected finding = \"…\"")?, table) })
}

const BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_advisor::FindingKind;

    fn dismissal(kind: FindingKind, table: Option<&str>) -> Dismissal {
        Dismissal::new(kind, table.map(str::to_owned))
    }

    #[test]
    fn what_is_dismissed_is_added_once_and_read_again() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("ci/advise.toml");
        let scan = dismissal(FindingKind::TableScan, Some("orders"));
        let any_log = dismissal(FindingKind::LogData, None);
        Dismissed::read(&path).expect("no file").add(&[]).expect("nothing to write");
        assert!(!path.exists());
        Dismissed::read(&path).expect("no file").add(std::slice::from_ref(&scan)).expect("written");
        // Somebody edits it, and their editor ends no line.
        let edited = fs::read_to_string(&path).expect("text") + "reason = \"monthly\"\n# by hand";
        fs::write(&path, &edited).expect("written");
        let mut dismissed = Dismissed::read(&path).expect("a list");
        dismissed.add(&[scan.clone(), any_log.clone()]).expect("written");
        let after = fs::read_to_string(&path).expect("text");
        assert_eq!(after, edited + "\n[[dismiss]]\nfinding = \"log-data\"\n");
        let scan = Dismissal { reason: Some("monthly".to_owned()), ..scan };
        assert_eq!(Dismissed::read(&path).expect("a list").all(), [scan, any_log]);
    }

    #[test]
    fn files_of_another_form_are_refused() {
        for (text, reason) in [
            ("[[dismiss]]\ntable = \"t\"", "expected finding"),
            ("[[dismiss]]\nfinding = \"nonsense\"", "nonsense"),
            ("[[dismiss]]\nfinding = \"log-data\"\ntabel = \"t\"", "unknown key 'tabel'"),
            ("[[dismiss]]\nfinding = 1", "expected a text"),
            ("[dismiss]\nfinding = \"log-data\"", "[[dismiss]]"),
            ("dismiss = [1]", "[[dismiss]]"),
            ("[[dismissed]]\nfinding = \"log-data\"", "found 'dismissed'"),
            ("not TOML", ""),
        ] {
            let error = parse(text).expect_err(text);
            assert!(format!("{error:#}").contains(reason), "{text}: {error:#}");
        }
        assert_eq!(parse("").expect("nothing"), []);
    }
}
