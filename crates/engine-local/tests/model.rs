//! Random sequences of operations on the embedded engine equal the same on a `BTreeMap`, across restarts.

use larimar_engine_local::{Durability, LocalEngine, Settings};
use larimar_testkit::engine::model::{self, Harness};
use larimar_testkit::engine::queue_model;
use proptest::prelude::*;

struct OnDisk {
    settings: Settings,
    engine: Option<LocalEngine>,
    /// Every other restart closes the engine first; the others drop it as it is.
    restarts: usize,
    /// The last field, so that the folder goes after the engine.
    _folder: tempfile::TempDir,
}

impl OnDisk {
    fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            folder: folder.path().into(),
            durability: Durability::Sync,
            memory_bytes: Some(64 << 20),
            reserve_bytes: 0,
        };
        let engine = LocalEngine::open(&settings).expect("the store opens");
        Self { settings, engine: Some(engine), restarts: 0, _folder: folder }
    }
}

impl Harness for OnDisk {
    type Engine = LocalEngine;

    fn engine(&self) -> &LocalEngine {
        self.engine.as_ref().expect("the engine is open")
    }

    async fn restart(&mut self) {
        let engine = self.engine.take().expect("the engine is open");
        if self.restarts.is_multiple_of(2) {
            engine.close().expect("the store closes");
        }
        drop(engine);
        self.restarts += 1;
        self.engine = Some(LocalEngine::open(&self.settings).expect("the store opens again"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_random_sequence_of_operations_equals_the_model_across_restarts(steps in model::steps(true)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(model::run(&mut OnDisk::open(), &steps));
    }

    #[test]
    fn a_random_sequence_of_calls_on_a_queue_equals_the_model_across_restarts(steps in queue_model::steps(true)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(queue_model::run(&mut OnDisk::open(), &steps));
    }
}
