//! What is left on connections when they are dropped. No other task runs before these tests wait, so that what they see
//! does not depend on timing.

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
async fn a_connection_with_unread_rows_is_not_used_before_they_are_gone() {
    let pool = pool();
    let mut pooled = pool.get().await.expect("a connection");
    pooled.leaves(Leftover::Unread);
    let rows =
        pooled.client().query_raw("SELECT repeat('x', 1000000) FROM generate_series(1, 20)", Vec::<i32>::new()).await;
    drop(rows.expect("rows"));
    drop(pooled);
    assert_eq!((pool.core.connections.idle_count(), pool.permits.available_permits()), (0, 1));
    free_again(&pool).await;
    assert_eq!(pool.core.connections.idle_count(), 1);
    let pooled = pool.get().await.expect("the same connection");
    pooled.run("SELECT 1").await.expect("an answer");
    pooled.check_commit().expect("no warning");
}

#[tokio::test]
async fn a_transaction_ends_before_its_connection_is_used_again() {
    let pool = pool();
    let permits = Arc::new(Semaphore::new(1));
    let mut pooled = pool.get().await.expect("a connection");
    pooled.keep(Some(Arc::clone(&permits).acquire_owned().await.expect("a permit")));
    pooled.leaves(Leftover::Transaction);
    pooled.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.expect("a transaction");
    // A failed transaction is ended too.
    assert!(pooled.run("SELECT 1 / 0").await.is_err());
    drop(pooled);
    assert_eq!((pool.core.connections.idle_count(), permits.available_permits()), (0, 0));
    free_again(&pool).await;
    assert_eq!((pool.core.connections.idle_count(), permits.available_permits()), (1, 1));
    let pooled = pool.get().await.expect("the same connection");
    // `VACUUM` cannot run in a transaction.
    pooled.run("VACUUM pg_catalog.pg_class").await.expect("no transaction is open");
    pooled.check_commit().expect("no warning");
}

#[tokio::test]
async fn a_connection_that_leaves_nothing_goes_back_at_once() {
    let pool = pool();
    drop(pool.get().await.expect("a connection"));
    assert_eq!((pool.core.connections.idle_count(), pool.permits.available_permits()), (1, 2));
    pool.get().await.expect("the same connection").close();
    assert_eq!((pool.core.connections.idle_count(), pool.permits.available_permits()), (0, 2));
}

#[tokio::test]
async fn closing_closes_idle_connections_at_once_and_others_when_they_are_put_back() {
    let pool = pool();
    let (one, two) = (pool.get().await.expect("a connection"), pool.get().await.expect("another"));
    drop(one);
    assert_eq!((pool.core.connections.idle_count(), pool.core.connections.open_count()), (1, 2));
    pool.core.connections.close_all();
    assert_eq!((pool.core.connections.idle_count(), pool.core.connections.open_count()), (0, 1));
    drop(two);
    assert_eq!((pool.core.connections.idle_count(), pool.core.connections.open_count()), (0, 0));
}
