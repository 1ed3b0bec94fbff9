//! What the suites share. A suite is a file of cases, functions of an account that hold over Larimar and Azurite alike,
//! and ends with the list of them.

use larimar_client::Account;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Makes tests of cases, each over a server of its own.
#[allow(unused_macros, reason = "the tests over Azurite have their own")]
macro_rules! over_larimar {
    ($suite:ident: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $case() {
                let server = larimar_embedded::Larimar::ephemeral().await.expect("a server");
                $suite::$case(&crate::suite::connect(&server.connection_string())).await;
            }
        )*
    };
}
#[allow(unused_imports, reason = "the tests over Azurite have their own")]
pub(crate) use over_larimar;

/// The account of a connection string.
pub(crate) fn connect(connection_string: &str) -> Account {
    Account::connect(connection_string).expect("an account")
}

/// A name that no other case uses, nor an earlier run over the same server.
#[allow(dead_code, reason = "not every suite needs names of its own")]
pub(crate) fn unique(kind: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
    format!("{kind}{now}n{}p{}", COUNT.fetch_add(1, Ordering::Relaxed), std::process::id())
}
