//! So many point gets, one after another, by one of the two sides: for callgrind, which counts instructions and so
//! distinguishes changes from the noise of a machine.
//!
//! The server is a process of its own and not counted. The difference of two runs leaves out the start:
//!
//! ```text
//! valgrind --tool=callgrind target/release/larimar-load gets client 1000
//! valgrind --tool=callgrind target/release/larimar-load gets client 3000
//! ```

use super::{Bench, ClientWork};
use crate::dataset::{Key, Random};
use crate::http::Connection;
use crate::measure::Work as _;
use crate::request::Requests;
use crate::settings::Settings;
use crate::workload::{Worker, Workload};

/// Who asks.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum By {
    /// The load generator by itself.
    Raw,
    /// The Rust client.
    Client,
}

/// Makes the gets, on a table that has as few entities as there can be.
pub(crate) async fn run(settings: &Settings, by: By, gets: u64) -> anyhow::Result<()> {
    let Bench { server, signer, store, table } = Bench::prepare(settings, 0).await?;
    match by {
        By::Raw => {
            let requests = Requests::new(signer, server.port);
            let mut worker = Worker::new(Connection::open(server.port).await?, requests, store, 0);
            for _ in 0..gets {
                worker.operate(Workload::PointGet).await?;
            }
        }
        By::Client => {
            let (random, key) = (Random::new(0), Key::default());
            let mut work = ClientWork { table, store, random, key, workload: Workload::PointGet };
            for _ in 0..gets {
                work.operate().await?;
            }
        }
    }
    Ok(())
}
