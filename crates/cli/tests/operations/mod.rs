//! Every operation of the three services with its facts: `docs/operations.md` lists them, and over HTTP each one is refused
//! to a shared access signature that lacks a permission it needs.
//!
//! A new operation needs a case: the `match`es in `tables.rs`, `queues.rs` and `blobs.rs` name every variant, so it does
//! not compile without a name there, and a name without a case fails the tests.

mod blobs;
mod page;
mod permissions;
mod queues;
mod tables;

use larimar_wire::operation::Facts;

/// A request for one operation, as a client sends it.
#[derive(Clone, Debug, Default)]
struct Case {
    /// How the request is sent: by itself, or as a part of a batch.
    place: Place,
    method: &'static str,
    /// Path and query below the account.
    target: &'static str,
    headers: Vec<(&'static str, String)>,
    body: String,
}

/// How a request is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// By itself.
    #[default]
    Alone,
    /// As the only operation of a table's transaction.
    Changeset,
    /// As the query of a table's batch.
    BatchQuery,
    /// As a part of a blob batch, with a signature of its own.
    BlobBatch,
}

impl Case {
    fn new(method: &'static str, target: &'static str) -> Self {
        Self { method, target, ..Self::default() }
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    fn part_of(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// The path and the query of the target.
    fn path_and_query(&self) -> (&'static str, &'static str) {
        self.target.split_once('?').unwrap_or((self.target, ""))
    }

    /// The headers that are parsed, with the length of the body.
    fn pairs(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

/// The names of all operations of a service, from a `match` that names every variant: a variant without a name does not
/// compile.
macro_rules! names {
    ($function:ident($operation:ty) { $($pattern:pat $(if $guard:expr)? => $name:literal),+ $(,)? }) => {
        /// The name of an operation.
        fn $function(operation: &$operation) -> &'static str {
            match operation {
                $($pattern $(if $guard)? => $name),+
            }
        }

        /// All names.
        const NAMES: &[&str] = &[$($name),+];
    };
}
use names;

/// Checks that each name has a case, and that each case has the name that its facts declare.
#[track_caller]
fn check_names(names: &[&str], cases: &[(&'static str, Facts<'_>)]) {
    for name in names {
        assert!(cases.iter().any(|(found, _)| found == name), "{name} has no case");
    }
    for (name, facts) in cases {
        assert_eq!(*name, facts.name);
    }
}
