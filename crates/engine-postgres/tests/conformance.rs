//! The engine over PostgreSQL keeps every promise of the contract, on a schema of its own for each.

use larimar_engine_postgres::{PostgresEngine, Settings};
use larimar_testkit::postgres::Cluster;

/// An engine with tables of its own.
async fn fresh() -> Box<PostgresEngine> {
    let settings = Settings::new(Cluster::shared().fresh_url());
    Box::new(PostgresEngine::open(&settings).await.expect("the database is there"))
}

larimar_testkit::engine_conformance!(fresh().await);
