//! From Larimar to Azurite and back. `cargo xtask test` starts Azurite and runs this.

use super::{copy, drained, fill_blobs, fill_queue, fill_tables, seen, server, text};
use larimar_client::Account;

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the run that starts Azurite says where it is")]
#[ignore = "needs Azurite and LARIMAR_TEST_AZURITE"]
async fn larimar_to_azurite_to_larimar_keeps_everything() {
    let azurite = std::env::var("LARIMAR_TEST_AZURITE").expect("a connection string of Azurite");
    let ((from, source), (back, returned)) = (server().await, server().await);
    fill_tables(&source).await;
    fill_queue(&source, 50).await;
    fill_blobs(&source).await;
    let before = seen(&source).await;
    let folder = tempfile::tempdir().expect("a folder");
    // Other tests use the same Azurite, so everything is named.
    let names = ["--table", "Types", "--table", "Many", "--table", "Empty", "--queue", "work", "--container", "files"];
    let more = [&names[..], &["--container", "none", "--messages", "receive", "--overwrite"]].concat();
    copy(folder.path(), &from.connection_string(), &azurite, &more).await.expect("copied to Azurite");
    copy(folder.path(), &azurite, &back.connection_string(), &more).await.expect("copied back");
    assert_eq!(seen(&returned).await, before);
    let texts: Vec<_> = (0..50).map(text).collect();
    assert_eq!(drained(&returned).await, texts);
    let azurite = Account::connect(&azurite).expect("an account");
    assert_eq!(drained(&azurite).await, texts, "Azurite has them still");
}
