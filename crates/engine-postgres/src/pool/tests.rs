//! What loans leave behind. Nothing runs beside these tests before they wait, so what they see is not a matter of time.

use super::*;
use crate::settings::Settings;
use larimar_testkit::postgres::Cluster;

fn pool() -> Arc<Pool> {
    let target = Settings::new(Cluster::shared().fresh_url()).target().expect("a URL");
    Arc::new(Pool::new(Arc::new(Core::new(target)), 2))
}

async fn free_again(pool: &Pool) {
    while pool.permits.available_permits() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_connection_with_unread_rows_is_not_lent_before_they_are_gone() {
    let pool = pool();
    let mut lent = pool.lend().await.expect("a connection");
    lent.leaves(Leftover::Unread);
    let rows =
        lent.client().query_raw("SELECT repeat('x', 1000000) FROM generate_series(1, 20)", Vec::<i32>::new()).await;
    drop(rows.expect("rows"));
    drop(lent);
    assert_eq!((pool.core.connections.idle_count(), pool.permits.available_permits()), (0, 1));
    free_again(&pool).await;
    assert_eq!(pool.core.connections.idle_count(), 1);
    let lent = pool.lend().await.expect("the same connection");
    lent.run("SELECT 1").await.expect("an answer");
    lent.check_commit().expect("no warning");
}

#[tokio::test]
async fn a_transaction_ends_before_its_connection_is_lent() {
    let pool = pool();
    let permits = Arc::new(Semaphore::new(1));
    let mut lent = pool.lend().await.expect("a connection");
    lent.keep(Some(Arc::clone(&permits).acquire_owned().await.expect("a permit")));
    lent.leaves(Leftover::Transaction);
    lent.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.expect("a transaction");
    // One that has failed ends too.
    assert!(lent.run("SELECT 1 / 0").await.is_err());
    drop(lent);
    assert_eq!((pool.core.connections.idle_count(), permits.available_permits()), (0, 0));
    free_again(&pool).await;
    assert_eq!((pool.core.connections.idle_count(), permits.available_permits()), (1, 1));
    let lent = pool.lend().await.expect("the same connection");
    // It does not run in a transaction.
    lent.run("VACUUM pg_catalog.pg_class").await.expect("no transaction is open");
    lent.check_commit().expect("no warning");
}

#[tokio::test]
async fn a_connection_that_leaves_nothing_goes_back_at_once() {
    let pool = pool();
    drop(pool.lend().await.expect("a connection"));
    assert_eq!((pool.core.connections.idle_count(), pool.permits.available_permits()), (1, 2));
    pool.lend().await.expect("the same connection").give_up();
    assert_eq!((pool.core.connections.idle_count(), pool.permits.available_permits()), (0, 2));
}
