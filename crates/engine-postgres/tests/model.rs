//! Random sequences of operations on PostgreSQL equal the same on a `BTreeMap`, also when servers come and go.

use larimar_engine_postgres::{PostgresEngine, Settings};
use larimar_testkit::engine::model::{self, Harness};
use larimar_testkit::postgres::Cluster;
use proptest::prelude::*;

struct OnPostgres {
    settings: Settings,
    engine: PostgresEngine,
}

impl OnPostgres {
    async fn open() -> Self {
        let settings = Settings { connections_max: 8, ..Settings::new(Cluster::shared().fresh_url()) };
        let engine = PostgresEngine::open(&settings).await.expect("the database is there");
        Self { settings, engine }
    }
}

impl Harness for OnPostgres {
    type Engine = PostgresEngine;

    fn engine(&self) -> &PostgresEngine {
        &self.engine
    }

    async fn restart(&mut self) {
        self.engine = PostgresEngine::open(&self.settings).await.expect("the database is there");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_random_sequence_of_operations_equals_the_model_across_restarts(steps in model::steps(true)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(async { model::run(&mut OnPostgres::open().await, &steps).await });
    }
}
