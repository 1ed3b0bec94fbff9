//! What metrics tell of many requests: sums that can be added up, and the columns made of them.

use super::status::{Authentication, Outcome};
use larimar_model::{BodyBuilder, EntityBody, ValueRef};
use std::time::Duration;

/// What metrics keep of one request.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// How it said who sends it.
    pub authentication: Authentication,
    /// How it ended.
    pub outcome: Outcome,
    /// Bytes that came.
    pub ingress: u64,
    /// Bytes that went.
    pub egress: u64,
    /// From the first byte of the request to the last one of the answer.
    pub end_to_end: Duration,
    /// The same without waiting for the network.
    pub server: Duration,
}

/// Sums over requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// By outcome, then by authentication.
    counts: [[u64; 3]; 8],
    ingress: u64,
    egress: u64,
    /// Milliseconds of the requests that succeeded.
    end_to_end: f64,
    server: f64,
}

impl Totals {
    /// Adds a request.
    pub fn count(&mut self, sample: &Sample) {
        self.counts[sample.outcome as usize][sample.authentication as usize] += 1;
        self.ingress += sample.ingress;
        self.egress += sample.egress;
        if sample.outcome == Outcome::Success {
            self.end_to_end += sample.end_to_end.as_secs_f64() * 1000.0;
            self.server += sample.server.as_secs_f64() * 1000.0;
        }
    }

    /// Adds other sums.
    pub fn add(&mut self, other: &Self) {
        for (ours, theirs) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *ours = ours.saturating_add(*theirs);
        }
        self.ingress = self.ingress.saturating_add(other.ingress);
        self.egress = self.egress.saturating_add(other.egress);
        self.end_to_end += other.end_to_end;
        self.server += other.server;
    }

    /// How many requests these are.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.sum(|_, _| true)
    }

    /// The sums that a row of metrics was made of. Averages give their sums back but for rounding.
    #[must_use]
    pub fn from_body(body: EntityBody<'_>) -> Self {
        let whole = |name: &str| match body.get(name) {
            Some(ValueRef::Int64(value)) => u64::try_from(value).unwrap_or_default(),
            _ => 0,
        };
        let average = |name: &str| match body.get(name) {
            Some(ValueRef::Double(value)) => value,
            _ => 0.0,
        };
        let mut totals = Self { ingress: whole("TotalIngress"), egress: whole("TotalEgress"), ..Self::default() };
        for (outcome, authentication) in columns() {
            totals.counts[outcome as usize][authentication as usize] = whole(outcome.name(authentication));
        }
        let successes = totals.successes() as f64;
        totals.end_to_end = average("AverageE2ELatency") * successes;
        totals.server = average("AverageServerLatency") * successes;
        totals
    }

    /// The row's body: sums, averages and percentages.
    #[must_use]
    pub fn to_body(&self) -> Vec<u8> {
        let mut body = BodyBuilder::new();
        let mut push = |name, value| body.push(name, value).expect("the columns are distinct and few");
        let whole = |value: u64| ValueRef::Int64(i64::try_from(value).unwrap_or(i64::MAX));
        let requests = self.requests();
        let billable = self.sum(Outcome::is_billable);
        push("TotalIngress", whole(self.ingress));
        push("TotalEgress", whole(self.egress));
        push("TotalRequests", whole(requests));
        push("TotalBillableRequests", whole(billable));
        // Throttled requests and refused anonymous requests do not lower the availability.
        let expected = self.sum(|outcome, authentication| {
            outcome != Outcome::ThrottlingError
                && (outcome, authentication) != (Outcome::AuthorizationError, Authentication::Anonymous)
        });
        push("Availability", ValueRef::Double(if expected == 0 { 100.0 } else { percent(billable, expected) }));
        let successes = self.successes().max(1) as f64;
        push("AverageE2ELatency", ValueRef::Double(self.end_to_end / successes));
        push("AverageServerLatency", ValueRef::Double(self.server / successes));
        for (name, outcomes) in PERCENTAGES {
            let count = self.sum(|outcome, _| outcomes.contains(&outcome));
            push(name, ValueRef::Double(percent(count, requests)));
        }
        for (outcome, authentication) in columns() {
            push(outcome.name(authentication), whole(self.counts[outcome as usize][authentication as usize]));
        }
        body.into_bytes()
    }

    fn successes(&self) -> u64 {
        self.sum(|outcome, _| outcome == Outcome::Success)
    }

    fn sum(&self, counts: impl Fn(Outcome, Authentication) -> bool) -> u64 {
        let counted = columns().filter(|(outcome, authentication)| counts(*outcome, *authentication));
        counted.map(|(outcome, authentication)| self.counts[outcome as usize][authentication as usize]).sum()
    }
}

fn columns() -> impl Iterator<Item = (Outcome, Authentication)> {
    Outcome::ALL.into_iter().flat_map(|outcome| Authentication::ALL.map(|authentication| (outcome, authentication)))
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

const PERCENTAGES: [(&str, &[Outcome]); 7] = [
    ("PercentSuccess", &[Outcome::Success]),
    ("PercentThrottlingError", &[Outcome::ThrottlingError]),
    ("PercentTimeoutError", &[Outcome::ClientTimeoutError, Outcome::ServerTimeoutError]),
    ("PercentServerOtherError", &[Outcome::ServerOtherError]),
    ("PercentClientOtherError", &[Outcome::ClientOtherError]),
    ("PercentAuthorizationError", &[Outcome::AuthorizationError]),
    ("PercentNetworkError", &[Outcome::NetworkError]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(authentication: Authentication, outcome: Outcome, milliseconds: u64) -> Sample {
        let end_to_end = Duration::from_millis(milliseconds);
        Sample { authentication, outcome, ingress: 100, egress: 200, end_to_end, server: end_to_end / 2 }
    }

    fn totals(samples: &[Sample]) -> Totals {
        let mut totals = Totals::default();
        samples.iter().for_each(|sample| totals.count(sample));
        totals
    }

    fn double(totals: &Totals, name: &str) -> f64 {
        match EntityBody::from_trusted(&totals.to_body()).get(name) {
            Some(ValueRef::Double(value)) => value,
            other => panic!("{name} is {other:?}"),
        }
    }

    fn whole(totals: &Totals, name: &str) -> i64 {
        match EntityBody::from_trusted(&totals.to_body()).get(name) {
            Some(ValueRef::Int64(value)) => value,
            other => panic!("{name} is {other:?}"),
        }
    }

    #[test]
    fn x3_columns_are_sums_averages_of_successes_and_percentages() {
        let totals = totals(&[
            sample(Authentication::Key, Outcome::Success, 10),
            sample(Authentication::Sas, Outcome::Success, 30),
            sample(Authentication::Key, Outcome::ClientOtherError, 1000),
            sample(Authentication::Key, Outcome::ServerTimeoutError, 1000),
            sample(Authentication::Key, Outcome::ThrottlingError, 1000),
            sample(Authentication::Anonymous, Outcome::AuthorizationError, 1000),
        ]);
        for (name, value) in [
            ("TotalRequests", 6),
            ("TotalBillableRequests", 3),
            ("TotalIngress", 600),
            ("TotalEgress", 1200),
            ("Success", 1),
            ("SASSuccess", 1),
            ("AnonymousSuccess", 0),
            ("ClientOtherError", 1),
            ("AnonymousAuthorizationError", 1),
        ] {
            assert_eq!(whole(&totals, name), value, "{name}");
        }
        for (name, value) in [
            ("AverageE2ELatency", 20.0),
            ("AverageServerLatency", 10.0),
            ("Availability", 75.0),
            ("PercentSuccess", 100.0 / 3.0),
            ("PercentTimeoutError", 100.0 / 6.0),
            ("PercentNetworkError", 0.0),
        ] {
            assert!((double(&totals, name) - value).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn x3_an_idle_period_is_available() {
        let idle = Totals::default();
        assert_eq!((whole(&idle, "TotalRequests"), double(&idle, "Availability")), (0, 100.0));
        assert_eq!((double(&idle, "PercentSuccess"), double(&idle, "AverageE2ELatency")), (0.0, 0.0));
    }

    #[test]
    fn a_row_gives_back_what_it_was_made_of() {
        let first = totals(&[
            sample(Authentication::Key, Outcome::Success, 8),
            sample(Authentication::Anonymous, Outcome::Success, 24),
        ]);
        let second = totals(&[sample(Authentication::Key, Outcome::NetworkError, 5)]);
        let mut read = Totals::from_body(EntityBody::from_trusted(&first.to_body()));
        assert_eq!(read, first);
        read.add(&second);
        assert_eq!((read.requests(), whole(&read, "NetworkError")), (3, 1));
        assert!((double(&read, "AverageE2ELatency") - 16.0).abs() < 1e-9);
    }

    #[test]
    fn a_row_has_every_documented_column() {
        assert_eq!(EntityBody::from_trusted(&Totals::default().to_body()).properties().count(), 4 + 3 + 7 + 24);
    }
}
