//! A list that may be written in any order: each key in it carries the version it was put in or taken out with.

use crate::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The row keys of a value. Keys that were taken out stay for a while, as tombstones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct List {
    members: BTreeMap<String, Member>,
}

/// The version of the primary that said it, and whether it is in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, u8)", into = "(i64, u8)")]
struct Member(i64, bool);

impl From<(i64, u8)> for Member {
    fn from((version, is_in): (i64, u8)) -> Self {
        Self(version, is_in != 0)
    }
}

/// A digit in place of a word: a key takes no more room out of the list than in it, so a full list can still shrink.
impl From<Member> for (i64, u8) {
    fn from(Member(version, is_in): Member) -> Self {
        (version, u8::from(is_in))
    }
}

impl List {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|_| crate::Error::Answer("a list that is none"))
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are JSON")
    }

    /// Takes a key in or out, unless a later version spoke of it; returns whether that changed anything.
    pub(super) fn set(&mut self, key: &str, version: i64, is_in: bool) -> bool {
        match self.members.get_mut(key) {
            Some(member) if member.0 > version || *member == Member(version, is_in) => false,
            Some(member) => {
                *member = Member(version, is_in);
                true
            }
            None => {
                self.members.insert(key.to_owned(), Member(version, is_in));
                true
            }
        }
    }

    /// Removes the tombstone of this version; returns whether there was one.
    pub(super) fn forget(&mut self, key: &str, version: i64) -> bool {
        let is_there = self.members.get(key) == Some(&Member(version, false));
        if is_there {
            self.members.remove(key);
        }
        is_there
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The keys in the list, in their order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|(_, member)| member.1).map(|(key, _)| key.as_str())
    }

    /// All that is known: key, version, and whether it is in the list.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, i64, bool)> {
        self.members.iter().map(|(key, member)| (key.as_str(), member.0, member.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is said of a key depends on its version only, so the order does not matter, nor how often it is said.
        #[test]
        fn t4_a_list_is_the_same_in_every_order(
            said in prop::collection::vec((0..3_u8, 0..6_i64), 0..12),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..24),
        ) {
            let apply = |list: &mut List, (key, version): (u8, i64)| {
                list.set(&key.to_string(), version, (i64::from(key) + version) % 2 == 0)
            };
            let (mut once, mut mixed) = (List::default(), List::default());
            for one in &said {
                apply(&mut once, *one);
            }
            if !said.is_empty() {
                for index in order {
                    apply(&mut mixed, *index.get(&said));
                }
            }
            for one in said.iter().rev() {
                apply(&mut mixed, *one);
            }
            prop_assert_eq!(&once, &mixed);
            prop_assert_eq!(List::parse(&mixed.to_bytes()).expect("it is read again"), once);
        }
    }
}
