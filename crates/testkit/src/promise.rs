//! How one promise of a suite is run.

use std::{future::Future, panic, thread};

/// Runs one promise on a runtime of its own.
///
/// Without optimisation a promise with many steps needs more than the 2 MiB of stack that a test's thread has, so it
/// gets a thread with more. The worker threads of the runtime keep the stack that those of a server have.
///
/// # Panics
///
/// If the promise is broken.
pub fn keep<F: Future<Output = ()>>(promise: impl FnOnce() -> F + Send + 'static) {
    let run = || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime starts").block_on(promise());
    };
    let name = thread::current().name().unwrap_or("promise").to_owned();
    let thread = thread::Builder::new().name(name).stack_size(16 << 20).spawn(run).expect("a thread starts");
    thread.join().unwrap_or_else(|broken| panic::resume_unwind(broken));
}
