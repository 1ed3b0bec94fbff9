//! How fast a backup goes, so that requests hardly notice it.

use std::str::FromStr;
use std::time::{Duration, Instant};

/// How fast a backup may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// At most a quarter of the time, and at most 16 MiB a second.
    #[default]
    Gentle,
    /// At most so many bytes a second, and at most a quarter of the time.
    Bytes(u64),
    /// As fast as it can.
    Max,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("expected max, or MiB a second such as 20, found '{text}'");
        match text {
            "max" => Ok(Self::Max),
            _ => match text.parse::<u64>() {
                Ok(mebibytes @ 1..=1_000_000) => Ok(Self::Bytes(mebibytes << 20)),
                _ => Err(refused()),
            },
        }
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gentle => write!(f, "{}", GENTLE_BYTES >> 20),
            Self::Bytes(bytes) => write!(f, "{}", bytes >> 20),
            Self::Max => f.write_str("max"),
        }
    }
}

/// Pauses a backup after each piece of work.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: Rate,
    since: Instant,
}

impl Pace {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, since: Instant::now() }
    }

    /// Waits after work on so many bytes.
    pub(crate) async fn wait(&mut self, bytes: u64) {
        if let Some(pause) = pause(self.rate, bytes, self.since.elapsed()) {
            tokio::time::sleep(pause).await;
        }
        self.since = Instant::now();
    }
}

/// How long to pause after work on so many bytes that took this long.
fn pause(rate: Rate, bytes: u64, worked: Duration) -> Option<Duration> {
    let rate = match rate {
        Rate::Max => return None,
        Rate::Gentle => GENTLE_BYTES,
        Rate::Bytes(rate) => rate,
    };
    let due = Duration::from_secs_f64(bytes as f64 / rate as f64);
    Some(due.saturating_sub(worked).max(worked * 3).min(PAUSE_MAX))
}

const GENTLE_BYTES: u64 = 16 << 20;
/// A slow disk must not stop a backup altogether.
const PAUSE_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_a_quarter_of_the_time_at_most_and_keeps_the_rate() {
        let ms = Duration::from_millis;
        for (rate, bytes, worked, expected) in [
            (Rate::Max, 1 << 30, ms(500), None),
            (Rate::Gentle, 16 << 20, ms(0), Some(ms(1000))),
            (Rate::Gentle, 16 << 20, ms(200), Some(ms(800))),
            (Rate::Gentle, 16 << 20, ms(500), Some(ms(1500))),
            (Rate::Bytes(1 << 20), 1 << 20, ms(100), Some(ms(900))),
            (Rate::Gentle, 0, ms(5000), Some(ms(2000))),
        ] {
            assert_eq!(pause(rate, bytes, worked), expected, "{rate} {bytes} {worked:?}");
        }
    }

    #[test]
    fn a_rate_is_max_or_a_number_of_mebibytes() {
        assert_eq!("max".parse(), Ok(Rate::Max));
        assert_eq!("20".parse(), Ok(Rate::Bytes(20 << 20)));
        for wrong in ["", "0", "-1", "fast", "20MiB", "18446744073709551615"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }
}
