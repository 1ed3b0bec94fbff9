//! Blobs keep every promise on the engine over PostgreSQL, on a schema of its own for each.

use larimar_engine::blob::bytes::MemoryBytes;
use larimar_engine_postgres::{PostgresEngine, Settings};
use larimar_testkit::postgres::Cluster;
use std::sync::Arc;
use std::time::Duration;

/// An engine whose tables nobody else uses.
async fn fresh() -> (Arc<PostgresEngine>, Arc<MemoryBytes>, ()) {
    let settings = Settings::new(Cluster::shared().fresh_url());
    let engine = PostgresEngine::open(&settings).await.expect("the database is there");
    (Arc::new(engine), Arc::new(MemoryBytes::new(Duration::ZERO)), ())
}

larimar_testkit::blob_conformance!(fresh().await);
