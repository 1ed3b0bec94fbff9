//! The in-memory reference engine agrees with a plain `BTreeMap` over random sequences of operations.

use larimar_engine::MemoryEngine;
use larimar_testkit::engine::model::{self, Harness};
use larimar_testkit::engine::queue_model;
use proptest::prelude::*;

struct Memory(MemoryEngine);

impl Harness for Memory {
    type Engine = MemoryEngine;

    fn engine(&self) -> &MemoryEngine {
        &self.0
    }

    // It forgets everything when it ends, so it goes on.
    async fn restart(&mut self) {}
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_random_sequence_of_operations_equals_the_model(steps in model::steps(false)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
        runtime.block_on(model::run(&mut Memory(MemoryEngine::new()), &steps));
    }

    #[test]
    fn a_random_sequence_of_calls_on_a_queue_equals_the_model(steps in queue_model::steps(false)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
        runtime.block_on(queue_model::run(&mut Memory(MemoryEngine::new()), &steps));
    }
}
