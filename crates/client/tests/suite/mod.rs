//! What the suites share. A suite is a file of cases, functions of an account that hold over Larimar and Azurite alike,
//! and ends with the list of them.

#[cfg(feature = "blob")]
pub(crate) mod blob;
#[cfg(feature = "blob")]
pub(crate) mod blob_parts;
#[cfg(all(feature = "derive", feature = "encryption"))]
pub(crate) mod encryption;
#[cfg(any(feature = "blob", feature = "queue"))]
pub(crate) mod losing;
#[cfg(feature = "queue")]
pub(crate) mod queue;
pub(crate) mod sas;
pub(crate) mod service_properties;
pub(crate) mod tables;

use larimar_client::Account;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Makes tests of cases, each over a server of its own.
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
pub(crate) use over_larimar;

/// The account of a connection string.
pub(crate) fn connect(connection_string: &str) -> Account {
    Account::connect(connection_string).expect("an account")
}

/// A name that no other case uses, nor an earlier run over the same server.
pub(crate) fn unique(kind: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
    format!("{kind}{now}n{}p{}", COUNT.fetch_add(1, Ordering::Relaxed), std::process::id())
}
