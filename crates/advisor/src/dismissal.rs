//! Findings that were dismissed: known and accepted, so that nobody has to read them again.

use crate::finding::Finding;
use crate::kind::FindingKind;
use serde::{Deserialize, Serialize};

/// A kind of finding that is known and accepted, for one table or for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismissal {
    /// Which finding.
    pub finding: FindingKind,
    /// The table; all of them if none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub table: Option<String>,
    /// Why it is accepted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// When it was dismissed, as `2026-11-16T06:00:00Z`, if that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub time: Option<String>,
}

impl Dismissal {
    /// Of a kind of finding, for one table or for all.
    #[must_use]
    pub const fn new(finding: FindingKind, table: Option<String>) -> Self {
        Self { finding, table, reason: None, time: None }
    }

    /// Whether a finding is dismissed by this. Names of tables compare without case.
    #[must_use]
    pub fn covers(&self, finding: &Finding) -> bool {
        self.finding == finding.id && self.table.as_ref().is_none_or(|table| table.eq_ignore_ascii_case(&finding.table))
    }

    /// Whether both dismiss the same findings.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_table = match (&self.table, &other.table) {
            (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.finding == other.finding && is_same_table
    }
}

/// The dismissals of an account: at most [`DISMISSALS_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dismissals(Vec<Dismissal>);

/// There is no room for another dismissal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyDismissals;

impl Dismissals {
    /// Reads the stored form. Entries that this release does not know are left out, as is a list that cannot be read.
    #[must_use]
    pub fn from_json(bytes: &[u8]) -> Self {
        let entries: Vec<serde_json::Value> = serde_json::from_slice(bytes).unwrap_or_default();
        let known = entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok());
        Self(known.take(DISMISSALS_MAX).collect())
    }

    /// The stored form.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).expect("texts can be written")
    }

    /// Adds a dismissal, or replaces the one of the same findings.
    ///
    /// # Errors
    /// There are [`DISMISSALS_MAX`] others.
    pub fn put(&mut self, dismissal: Dismissal) -> Result<(), TooManyDismissals> {
        match self.0.iter_mut().find(|known| known.is_same(&dismissal)) {
            Some(known) => *known = dismissal,
            None => return self.push(dismissal),
        }
        Ok(())
    }

    fn push(&mut self, dismissal: Dismissal) -> Result<(), TooManyDismissals> {
        if self.0.len() >= DISMISSALS_MAX {
            return Err(TooManyDismissals);
        }
        self.0.push(dismissal);
        Ok(())
    }

    /// Removes the dismissal of the same findings; returns whether there was one.
    pub fn remove(&mut self, dismissal: &Dismissal) -> bool {
        let before = self.0.len();
        self.0.retain(|known| !known.is_same(dismissal));
        self.0.len() < before
    }

    /// All of them, the oldest first.
    #[must_use]
    pub fn all(&self) -> &[Dismissal] {
        &self.0
    }
}

/// Dismissals of an account at most.
pub const DISMISSALS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    fn dismissal(finding: FindingKind, table: Option<&str>) -> Dismissal {
        Dismissal::new(finding, table.map(str::to_owned))
    }

    #[test]
    fn a_dismissal_is_put_once_and_removed() {
        let mut all = Dismissals::default();
        let scan = dismissal(FindingKind::TableScan, Some("orders"));
        all.put(scan.clone()).expect("room");
        all.put(dismissal(FindingKind::TableScan, None)).expect("room");
        let again =
            Dismissal { reason: Some("monthly".to_owned()), ..dismissal(FindingKind::TableScan, Some("ORDERS")) };
        all.put(again.clone()).expect("room");
        assert_eq!(all.all(), [again, dismissal(FindingKind::TableScan, None)]);
        assert_eq!(Dismissals::from_json(&all.to_json()), all);
        assert!(all.remove(&scan) && !all.remove(&scan));
        assert_eq!(all.all().len(), 1);
    }

    #[test]
    fn there_are_at_most_so_many() {
        let mut all = Dismissals::default();
        for number in 0..DISMISSALS_MAX {
            all.put(dismissal(FindingKind::LogData, Some(&format!("t{number}")))).expect("room");
        }
        assert_eq!(all.put(dismissal(FindingKind::LogData, Some("t"))), Err(TooManyDismissals));
        all.put(dismissal(FindingKind::LogData, Some("t7"))).expect("one that is there is replaced");
        assert!(all.remove(&dismissal(FindingKind::LogData, Some("t0"))));
        all.put(dismissal(FindingKind::LogData, Some("t"))).expect("room again");
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let stored = br#"[{"finding":"of-a-later-release"},{"finding":"log-data","later":1},3]"#;
        assert_eq!(Dismissals::from_json(stored).all(), [dismissal(FindingKind::LogData, None)]);
        for damaged in [&b""[..], b"{", b"{}", b"\xff"] {
            assert_eq!(Dismissals::from_json(damaged), Dismissals::default());
        }
    }
}
