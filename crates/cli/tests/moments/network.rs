//! An object store behind a network that fails: requests are refused, connections are cut, delayed and silent.

use super::s3::S3;
use larimar_testkit::Dice;
use larimar_testkit::proxy::{Direction, Mode, Proxy};
use s3s::access::{S3Access, S3AccessContext};
use s3s::{S3Result, s3_error};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;

pub(super) struct Network {
    s3: S3,
    proxy: Proxy,
    seed: u64,
    refusals: Refusals,
}

/// Refuses some requests until the network is calm.
#[derive(Clone)]
struct Refusals {
    dice: Arc<Mutex<Dice>>,
    is_calm: Arc<AtomicBool>,
}

impl S3Access for Refusals {
    fn check<'a: 'f, 'b: 'f, 'c: 'f, 'f>(
        &'a self,
        _: &'b mut S3AccessContext<'c>,
    ) -> Pin<Box<dyn Future<Output = S3Result<()>> + Send + 'f>> {
        let is_refused = self.dice.lock().expect("no panic").below(8) == 0 && !self.is_calm.load(SeqCst);
        Box::pin(async move { if is_refused { Err(s3_error!(ServiceUnavailable)) } else { Ok(()) } })
    }
}

impl Network {
    pub(super) fn start(runtime: &Runtime, folder: &Path, seed: u64) -> Self {
        let dice = Arc::new(Mutex::new(Dice::new(seed)));
        let refusals = Refusals { dice, is_calm: Arc::default() };
        let s3 = runtime.block_on(S3::start(folder, refusals.clone()));
        let [(_, endpoint), ..] = s3.variables();
        let address = endpoint.strip_prefix("http://").expect("an address").parse().expect("an address");
        Self { s3, proxy: Proxy::start(address), seed, refusals }
    }

    /// The environment of a program that uses the bucket through the network.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        let [(endpoint, _), others @ ..] = self.s3.variables();
        let mut variables = vec![(endpoint, format!("http://{}", self.proxy.address()))];
        variables.extend(others);
        variables
    }

    /// Disturbs connections until the network is calm.
    pub(super) fn disturb(&self) {
        let mut dice = Dice::new(self.seed);
        while !self.refusals.is_calm.load(SeqCst) {
            let mode = match dice.below(6) {
                0 => Mode::Pass,
                1 => Mode::Delay(Duration::from_millis(20)),
                2 => Mode::Refuse,
                3 => Mode::HalfOpen(*dice.pick(&[Direction::ToServer, Direction::ToClient, Direction::Both])),
                _ => Mode::CutRandomly { percent: 40, bytes_max: 200_000, seed: dice.next() },
            };
            self.proxy.set(mode);
            std::thread::sleep(Duration::from_millis(50 + dice.below(300)));
        }
        self.proxy.set(Mode::Pass);
    }

    pub(super) fn calm(&self) {
        self.refusals.is_calm.store(true, SeqCst);
    }

    /// Calms the network when the value is dropped, also if a test panics.
    pub(super) fn calm_at_the_end(&self) -> impl Drop + '_ {
        Calm(self)
    }
}

struct Calm<'a>(&'a Network);

impl Drop for Calm<'_> {
    fn drop(&mut self) {
        self.0.calm();
    }
}
