//! When a request is sent again, and after how long.

use http::HeaderMap;
use std::time::{Duration, SystemTime};

/// When requests that failed are sent again: exponential back-off with jitter.
///
/// Only transient failures are retried: connections that break, time-outs, and the statuses 408, 429, 500, 502, 503
/// and 504. Where the service says how long to wait (`Retry-After`), that is how long the client waits at least.
///
/// Writes are retried too, and the outcome is reported correctly: if the answer to an insert was lost and the retry
/// finds the entity there, the client reads it and reports a conflict only if it is not what was to be inserted. Where
/// the client cannot determine whether a write was applied, the error says so
/// ([`Error::is_ambiguous`](crate::Error::is_ambiguous)).
///
/// ```
/// use larimar_client::RetryPolicy;
/// use std::time::Duration;
/// let policy = RetryPolicy::exponential().retries_max(6).delay(Duration::from_millis(100));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    retries_max: u32,
    delay: Duration,
    delay_max: Duration,
    reads_secondary: bool,
}

impl RetryPolicy {
    /// Up to four retries after about 0.4, 0.8, 1.6 and 3.2 seconds.
    #[must_use]
    pub const fn exponential() -> Self {
        Self {
            retries_max: 4,
            delay: Duration::from_millis(400),
            delay_max: Duration::from_secs(30),
            reads_secondary: false,
        }
    }

    /// No retries.
    #[must_use]
    pub const fn none() -> Self {
        Self { retries_max: 0, ..Self::exponential() }
    }

    /// This policy with at most this many retries of a request.
    #[must_use]
    pub const fn retries_max(mut self, retries_max: u32) -> Self {
        self.retries_max = retries_max;
        self
    }

    /// This policy with another delay before the first retry; it doubles with each further one.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// This policy with another limit of the delay, and of what a service may ask for by `Retry-After`: a call fails at
    /// once when it would have to wait longer.
    #[must_use]
    pub const fn delay_max(mut self, delay_max: Duration) -> Self {
        self.delay_max = delay_max;
        self
    }

    /// This policy, with retries of reads going to the secondary endpoint and the primary in turn, where there is a
    /// secondary. What is read there may be older.
    #[must_use]
    pub const fn read_from_secondary(mut self, reads_secondary: bool) -> Self {
        self.reads_secondary = reads_secondary;
        self
    }

    pub(crate) const fn reads_secondary(&self) -> bool {
        self.reads_secondary
    }

    /// How long to wait before a retry, if there is to be one. `retries` were made already; `fraction` is a random
    /// number from 0 to 1.
    pub(crate) fn wait(&self, retries: u32, retry_after: Option<Duration>, fraction: f64) -> Option<Duration> {
        if retries >= self.retries_max || retry_after.is_some_and(|asked| asked > self.delay_max) {
            return None;
        }
        let full = self.delay.saturating_mul(1 << retries.min(20)).min(self.delay_max);
        // From three quarters to five quarters, so that clients that failed together do not return together.
        let jittered = Duration::try_from_secs_f64(full.as_secs_f64() * (0.75 + fraction / 2.0));
        let jittered = jittered.unwrap_or(self.delay_max).min(self.delay_max);
        Some(jittered.max(retry_after.unwrap_or_default()))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::exponential()
    }
}

/// Whether a status means a transient failure.
pub(crate) const fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// How long the service asks to wait.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    for name in ["x-ms-retry-after-ms", "retry-after-ms"] {
        if let Some(milliseconds) = text(name).and_then(|text| text.parse().ok()) {
            return Some(Duration::from_millis(milliseconds));
        }
    }
    let text = text("retry-after")?;
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn c10_delays_double_up_to_their_limit_and_end() {
        let policy =
            RetryPolicy::exponential().retries_max(3).delay(Duration::from_secs(1)).delay_max(Duration::from_secs(3));
        let middle: Vec<_> = (0..4).map(|retries| policy.wait(retries, None, 0.5)).collect();
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(middle, [seconds(1), seconds(2), seconds(3), None]);
        assert_eq!(policy.wait(0, None, 0.0), Some(Duration::from_millis(750)));
        assert_eq!(RetryPolicy::none().wait(0, None, 0.5), None);
    }

    #[test]
    fn c10_what_the_service_asks_for_is_the_least() {
        let policy = RetryPolicy::exponential();
        let asked = Duration::from_secs(7);
        assert_eq!(policy.wait(0, Some(asked), 0.5), Some(asked));
        assert_eq!(policy.wait(0, Some(Duration::from_secs(31)), 0.5), None, "longer than the caller waits");
        let mut headers = HeaderMap::new();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        assert_eq!(retry_after(&headers, now), None);
        headers.insert("retry-after", HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"));
        assert_eq!(retry_after(&headers, now), Some(asked));
        headers.insert("retry-after", HeaderValue::from_static("12"));
        assert_eq!(retry_after(&headers, now), Some(Duration::from_secs(12)));
        headers.insert("x-ms-retry-after-ms", HeaderValue::from_static("250"));
        assert_eq!(retry_after(&headers, now), Some(Duration::from_millis(250)));
    }
}
