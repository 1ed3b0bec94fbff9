//! Strict mode: reproduces the service's inconvenient behaviour, for testing clients. Published targets are enforced,
//! names stay busy after a delete, and unknown versions are refused.

use larimar_engine::Clock;
use larimar_model::{Timestamp, limits};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Service;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// The state of strict mode.
#[derive(Debug, Default)]
pub(crate) struct Strict {
    rates: Mutex<Rates>,
    deleted: Mutex<HashMap<(&'static str, String, String), Timestamp>>,
}

/// Operations counted in the current second.
#[derive(Debug, Default)]
struct Rates {
    second: u64,
    accounts: HashMap<u64, u32>,
    partitions: HashMap<u64, u32>,
}

/// How long a deleted name stays busy: at least 40 seconds in the service.
const BUSY: Duration = Duration::from_secs(40);

impl Strict {
    /// Counts operations on a partition, and refuses them over the published targets (P3).
    pub(crate) fn throttle(
        &self,
        clock: &dyn Clock,
        account: &str,
        place: Option<(u64, &str)>,
        operations: u32,
    ) -> Result<(), ErrorReply> {
        let second = clock.now().to_unix().as_secs();
        let mut rates = self.rates.lock();
        if rates.second != second {
            *rates = Rates { second, ..Rates::default() };
        }
        let account_rate = rates.accounts.entry(hash(&account)).or_default();
        *account_rate += operations;
        let mut is_over = *account_rate > limits::ACCOUNT_OPERATIONS_PER_SECOND;
        if let Some(place) = place {
            let partition_rate = rates.partitions.entry(hash(&place)).or_default();
            *partition_rate += operations;
            is_over |= *partition_rate > limits::PARTITION_OPERATIONS_PER_SECOND;
        }
        if is_over { Err(ErrorReply::new(ErrorCode::ServerBusy)) } else { Ok(()) }
    }

    /// Remembers that a table, queue or container was deleted.
    pub(crate) fn delete(&self, service: Service, account: &str, name: &str, now: Timestamp) {
        let mut deleted = self.deleted.lock();
        deleted.retain(|_, free_at| *free_at > now);
        deleted.insert((service.name(), account.to_owned(), name.to_owned()), now.after(BUSY));
    }

    /// Makes the names of everything that an account has deleted free again.
    pub(crate) fn forget_deleted(&self, account: &str) {
        self.deleted.lock().retain(|(_, owner, _), _| owner != account);
    }

    /// Refuses a name that was deleted a moment ago.
    pub(crate) fn check_name(
        &self,
        service: Service,
        account: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<(), ErrorReply> {
        let deleted = self.deleted.lock();
        match deleted.get(&(service.name(), account.to_owned(), name.to_owned())) {
            Some(free_at) if *free_at > now => Err(ErrorReply::new(match service {
                Service::Blob => ErrorCode::ContainerBeingDeleted,
                Service::Queue => ErrorCode::QueueBeingDeleted,
                Service::Table => ErrorCode::TableBeingDeleted,
            })),
            _ => Ok(()),
        }
    }
}

/// The refusal of a version that is not published, with the header, the version and the switch.
pub(crate) fn unknown_version(version: &str) -> ErrorReply {
    let message = format!(
        "The value for one of the HTTP headers is not in the correct format: x-ms-version {version} is not a published \
         version of the service, and this server runs with --strict, which refuses such versions."
    );
    ErrorReply {
        message: message.into(),
        ..ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-version", version)
    }
}

/// Whether the service has published a version.
pub(crate) fn is_known_version(version: &str) -> bool {
    KNOWN_VERSIONS.contains(&version)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The service's reference, "Versioning for Azure Storage", and what the official SDKs send: `tests/sdk/versions.toml`
/// lists the latter, and a test compares.
const KNOWN_VERSIONS: &[&str] = &[
    "2009-04-14",
    "2009-07-17",
    "2009-09-19",
    "2011-08-18",
    "2012-02-12",
    "2013-08-15",
    "2014-02-14",
    "2015-02-21",
    "2015-04-05",
    "2015-07-08",
    "2015-12-11",
    "2016-05-31",
    "2017-04-17",
    "2017-07-29",
    "2017-11-09",
    "2018-03-28",
    "2018-06-17",
    "2018-11-09",
    "2019-02-02",
    "2019-07-07",
    "2019-10-10",
    "2019-12-12",
    "2020-02-10",
    "2020-04-08",
    "2020-06-12",
    "2020-08-04",
    "2020-10-02",
    "2020-12-06",
    "2021-02-12",
    "2021-04-10",
    "2021-06-08",
    "2021-08-06",
    "2021-10-04",
    "2021-12-02",
    "2022-11-02",
    "2023-01-03",
    "2023-05-03",
    "2023-08-03",
    "2023-11-03",
    "2024-02-04",
    "2024-05-04",
    "2024-08-04",
    "2024-11-04",
    "2025-01-05",
    "2025-05-05",
    "2025-07-05",
    "2025-11-05",
    "2026-02-06",
    "2026-04-06",
    "2026-06-06",
    "2026-10-06",
];

#[cfg(test)]
mod tests {
    use super::*;

    struct At(Timestamp);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    fn second(n: u64) -> At {
        At(Timestamp::from_unix(Duration::from_secs(1_700_000_000 + n)))
    }

    #[test]
    fn p3_a_partition_over_its_target_is_busy_until_the_next_second() {
        let strict = Strict::default();
        let ask = |clock: &At, partition, n| strict.throttle(clock, "a", Some((1, partition)), n).map_err(|e| e.code);
        assert_eq!(ask(&second(0), "p", 2_000), Ok(()));
        assert_eq!(ask(&second(0), "p", 1), Err(ErrorCode::ServerBusy));
        assert_eq!(ask(&second(0), "q", 1), Ok(()));
        assert_eq!(ask(&second(1), "p", 1), Ok(()));
    }

    #[test]
    fn p3_an_account_over_its_target_is_busy() {
        let strict = Strict::default();
        for _ in 0..200 {
            assert!(strict.throttle(&second(0), "a", None, 100).is_ok());
        }
        assert!(strict.throttle(&second(0), "a", None, 1).is_err());
        assert!(strict.throttle(&second(0), "b", None, 1).is_ok());
    }

    #[test]
    fn d7_a_deleted_name_is_busy_for_a_while() {
        let strict = Strict::default();
        strict.delete(Service::Table, "a", "people", second(0).now());
        let check = |service, account, at: u64| strict.check_name(service, account, "people", second(at).now());
        assert_eq!(check(Service::Table, "a", 1).map_err(|e| e.code), Err(ErrorCode::TableBeingDeleted));
        assert!(check(Service::Table, "b", 1).is_ok());
        assert!(check(Service::Queue, "a", 1).is_ok());
        assert!(check(Service::Table, "a", 41).is_ok());
    }

    #[test]
    fn only_published_versions_are_known() {
        assert!(is_known_version("2019-02-02") && !is_known_version("2099-01-01"));
    }
}
