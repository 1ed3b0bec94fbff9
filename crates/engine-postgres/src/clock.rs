//! The database's clock, known without a statement each time: it is read now and then, and the time since is added.
//!
//! The database reads its clock between the moment a statement is sent and the moment it is answered, so the clock is
//! known up to the round trip. A measurement older than [`REFRESH_AGE`] is renewed in the background, one older than
//! [`AGE_MAX`] is not used. The server's own clock decides nothing.

use crate::failure::Failure;
use crate::pool::Pool;
use crate::statements::system::Now;
use larimar_engine::{Fault, Moment};
use larimar_model::Timestamp;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Notify;

pub(crate) struct StoreClock {
    pool: Arc<Pool>,
    measured: Mutex<Option<Measured>>,
    /// One measurement at a time.
    turn: tokio::sync::Mutex<()>,
    refresh: Notify,
}

/// A measurement of the database's clock.
#[derive(Clone, Copy, Debug)]
struct Measured {
    time: Timestamp,
    asked: Instant,
    answered: Instant,
    /// The server's clock at the answer, only to notice that the machine was suspended: `Instant` does not count that
    /// time.
    wall: SystemTime,
}

impl StoreClock {
    pub(crate) fn new(pool: Arc<Pool>) -> Arc<Self> {
        Arc::new(Self { pool, measured: Mutex::default(), turn: tokio::sync::Mutex::default(), refresh: Notify::new() })
    }

    /// The database's time.
    pub(crate) async fn now(&self) -> Result<Moment, Fault> {
        if let Some(moment) = self.known() {
            return Ok(moment);
        }
        let _turn = self.turn.lock().await;
        match self.known() {
            Some(moment) => Ok(moment),
            None => self.measure().await,
        }
    }

    /// Measures again whenever a caller has found the last measurement old; runs until aborted.
    pub(crate) async fn serve(self: Arc<Self>) {
        loop {
            self.refresh.notified().await;
            let _turn = self.turn.lock().await;
            if self.latest().is_none_or(|measured| measured.age() >= REFRESH_AGE)
                && let Err(fault) = self.measure().await
            {
                tracing::debug!(reason = %fault, "cannot read the database's clock");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// The time according to the last measurement, unless that is too old.
    fn known(&self) -> Option<Moment> {
        let measured = self.latest()?;
        let age = measured.age();
        if age >= REFRESH_AGE {
            self.refresh.notify_one();
        }
        (age < AGE_MAX).then(|| measured.at(Instant::now()))
    }

    /// The last measurement, unless the machine was suspended since.
    fn latest(&self) -> Option<Measured> {
        let measured = *self.measured.lock();
        measured.filter(|measured| {
            let passed = measured.age();
            let shown = measured.wall.elapsed().unwrap_or_else(|error| error.duration());
            shown.abs_diff(passed) < SUSPENDED_MIN
        })
    }

    async fn measure(&self) -> Result<Moment, Fault> {
        let new = self.ask().await?;
        let mut measured = self.measured.lock();
        let now = Instant::now();
        // Of two measurements that agree the narrower one is better; if they do not agree, the clock was set.
        let is_better = measured.is_none_or(|old| {
            let (old_moment, new_moment) = (old.at(now), new.at(now));
            let agrees = old_moment.earliest <= new_moment.latest && new_moment.earliest <= old_moment.latest;
            !agrees || old.age() >= AGE_MAX || width(new_moment) <= width(old_moment)
        });
        if is_better {
            *measured = Some(new);
        }
        Ok(new.at(now))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "compared with monotonic time only, to notice that the machine slept"
    )]
    async fn ask(&self) -> Result<Measured, Fault> {
        let mut last = String::new();
        for _ in 0..ATTEMPTS_MAX {
            let pooled = self.pool.get().await?;
            let answer = async {
                // Prepared before, so that only one round trip is measured.
                pooled.prepare(&Now {}).await?;
                let asked = Instant::now();
                let found = pooled.query_first(&Now {}).await?;
                let (answered, wall) = (Instant::now(), SystemTime::now());
                let (time,) = found.unwrap_or_default();
                Ok::<_, Failure>(Measured { time: Timestamp::from_ticks(time.cast_unsigned()), asked, answered, wall })
            };
            match answer.await {
                Ok(measured) => return Ok(measured),
                Err(failure) => {
                    if failure.ends_connection() {
                        pooled.close();
                    }
                    last = failure.into_unavailable().to_string();
                }
            }
        }
        Err(Fault::Unavailable(last))
    }
}

impl Measured {
    fn age(&self) -> Duration {
        self.answered.elapsed()
    }

    /// What the clock shows later: at least the time since the answer has passed, at most that since the statement was
    /// sent.
    fn at(&self, now: Instant) -> Moment {
        let (least, most) = (now.duration_since(self.answered), now.duration_since(self.asked));
        Moment {
            earliest: self.time.after(least).before(least / DRIFT_PART),
            latest: self.time.after(most + most / DRIFT_PART),
        }
    }
}

fn width(moment: Moment) -> u64 {
    moment.latest.ticks().saturating_sub(moment.earliest.ticks())
}

/// From this age on a measurement is used while the next one is made.
const REFRESH_AGE: Duration = Duration::from_secs(1);
/// From this age on a measurement is not used.
const AGE_MAX: Duration = Duration::from_secs(5);
/// Two clocks that are being adjusted, each by at most 0.05 %, differ by at most this part of the time that passes.
const DRIFT_PART: u32 = 1000;
/// A difference between the clock that stops while the machine is suspended and the one that does not.
const SUSPENDED_MIN: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(200);
const ATTEMPTS_MAX: u32 = 3;

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a measurement has the time of the machine")]

    use super::*;

    #[test]
    fn the_clock_is_known_up_to_the_round_trip_and_the_drift() {
        let asked = Instant::now();
        let answered = asked + Duration::from_millis(10);
        let time = Timestamp::EDM_MIN.after(Duration::from_secs(1000));
        let measured = Measured { time, asked, answered, wall: SystemTime::now() };
        let at_once = measured.at(answered);
        assert_eq!(at_once.earliest, time);
        assert_eq!(at_once.latest, time.after(Duration::from_micros(10_010)));
        let later = measured.at(answered + Duration::from_secs(4));
        assert_eq!(later.earliest, time.after(Duration::from_millis(3996)));
        assert_eq!(later.latest, time.after(Duration::from_micros(4_014_010)));
    }
}
