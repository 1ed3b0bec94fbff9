//! What the tests share: a server with an account, and its requests counted.

use larimar_client::{Account, Table, Timestamp};
use larimar_embedded::Larimar;
use proptest::prelude::*;
use std::cmp::Ordering;

/// A server of its own.
pub(crate) struct Fixture {
    pub(crate) server: Larimar,
    pub(crate) account: Account,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let server = Larimar::ephemeral().await.expect("a server");
        let account = Account::connect(&server.connection_string()).expect("an account");
        Self { server, account }
    }

    /// A table that is there.
    pub(crate) async fn table(&self, name: &str) -> Table {
        let table = self.account.table(name);
        table.create().await.expect("created");
        table
    }

    /// What a call answers, and how many requests to tables it took.
    pub(crate) async fn counted<T>(&self, call: impl Future<Output = T>) -> (T, u64) {
        let before = self.server.requests();
        let answer = call.await;
        let after = self.server.requests();
        assert_eq!(after.total() - before.total(), after.table - before.table, "only tables are asked");
        (answer, after.table - before.table)
    }
}

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// Texts in the order of the service, by UTF-16 code units.
pub(crate) fn service_order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// Texts that are likely to break keys: separators, escapes, forbidden and neighbouring characters, both ends of UTF-16.
pub(crate) fn odd_text() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(
        "\0\u{1f} !\"#$%&'()+-./0123_`a>?@[\\]^{|}~\u{7f}\u{80}\u{9f}\u{a0}é\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}2ef"
            .chars()
            .collect::<Vec<_>>(),
    );
    prop::collection::vec(prop_oneof![4 => odd, 1 => any::<char>()], 0..6).prop_map(|chars| chars.into_iter().collect())
}

pub(crate) fn any_time() -> impl Strategy<Value = Timestamp> {
    (Timestamp::MIN.ticks()..=Timestamp::MAX.ticks()).prop_map(Timestamp::from_ticks)
}
