//! Where logs and metrics are found: names of blobs, tables, partitions and rows.

use crate::sas::Service;
use larimar_model::{TableName, Timestamp};

/// The services, in the order in which analytics go through them.
pub const LOG_SERVICES: [Service; 3] = [Service::Blob, Service::Queue, Service::Table];

/// The row that sums up all operations of a period.
pub const METRICS_ALL: &str = "All";

/// A span of time that one row of metrics is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// An hour.
    Hour,
    /// A minute.
    Minute,
}

impl Period {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Hour, Self::Minute];

    /// The start of the period that a point of time lies in.
    #[must_use]
    pub const fn start(self, time: Timestamp) -> Timestamp {
        Timestamp::from_ticks(time.ticks() - time.ticks() % self.ticks())
    }

    /// The start of the period after the one that starts here.
    #[must_use]
    pub const fn next(self, start: Timestamp) -> Timestamp {
        Timestamp::from_ticks(start.ticks() + self.ticks())
    }

    /// The partition of the period that starts here: `20140619T2200`.
    #[must_use]
    pub fn partition(self, start: Timestamp) -> String {
        let text = start.to_seven_digits();
        [&text[..4], &text[5..7], &text[8..13], &text[14..16]].concat()
    }

    /// The table that holds the metrics of a service.
    #[must_use]
    pub fn table(self, service: Service) -> TableName {
        let period = match self {
            Self::Hour => "Hour",
            Self::Minute => "Minute",
        };
        let service = match service {
            Service::Blob => "Blob",
            Service::Queue => "Queue",
            Service::Table => "Table",
        };
        format!("$Metrics{period}PrimaryTransactions{service}").parse().expect("a name of a system table")
    }

    const fn ticks(self) -> u64 {
        match self {
            Self::Hour => 36_000_000_000,
            Self::Minute => 600_000_000,
        }
    }
}

/// The row of an operation, or of [`METRICS_ALL`]. Requests of users are the only ones that are counted.
#[must_use]
pub fn metrics_row(operation: &str) -> String {
    format!("user;{operation}")
}

/// The common beginning of the names of an hour's logs: `table/2011/07/31/1800/`.
#[must_use]
pub fn log_hour_prefix(service: Service, time: Timestamp) -> String {
    let text = time.to_seven_digits();
    let (year, month, day, hour) = (&text[..4], &text[5..7], &text[8..10], &text[11..13]);
    format!("{}{year}/{month}/{day}/{hour}00/", log_prefix(service))
}

/// The common beginning of the names of all logs of a service: `table/`.
#[must_use]
pub fn log_prefix(service: Service) -> String {
    format!("{}/", service.name())
}

/// The number of a log among those of its hour, by its name.
#[must_use]
pub fn log_counter(name: &str) -> Option<u32> {
    let (_, file) = name.rsplit_once('/')?;
    let digits = file.strip_suffix(".log")?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The name of one log of an hour: `table/2011/07/31/1800/000001.log`.
#[must_use]
pub fn log_name(service: Service, time: Timestamp, counter: u32) -> String {
    format!("{}{counter:06}.log", log_hour_prefix(service, time))
}

/// A time as a log's metadata has it: `2011-07-31T18:20:00Z`.
#[must_use]
pub fn log_time(time: Timestamp) -> String {
    format!("{}Z", &time.to_seven_digits()[..19])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("a time")
    }

    #[test]
    fn t13_a_log_is_named_by_service_hour_and_counter() {
        let at = time("2011-07-31T18:59:59.9999999Z");
        assert_eq!(log_name(Service::Table, at, 1), "table/2011/07/31/1800/000001.log");
        assert_eq!(log_name(Service::Blob, time("2024-02-29T00:00:00Z"), 0), "blob/2024/02/29/0000/000000.log");
        assert_eq!(log_counter("table/2011/07/31/1800/000123.log"), Some(123));
        assert_eq!((log_counter("table/2011/07/31/1800/+1.log"), log_counter("000001.log")), (None, None));
        assert_eq!(log_time(at), "2011-07-31T18:59:59Z");
    }

    #[test]
    fn x3_metrics_are_found_by_service_and_period() {
        let at = time("2014-06-19T22:59:23.1967767Z");
        for (period, start, partition, table) in [
            (Period::Hour, "2014-06-19T22:00:00Z", "20140619T2200", "$MetricsHourPrimaryTransactionsQueue"),
            (Period::Minute, "2014-06-19T22:59:00Z", "20140619T2259", "$MetricsMinutePrimaryTransactionsQueue"),
        ] {
            assert_eq!(period.start(at), time(start));
            assert_eq!(period.partition(period.start(at)), partition);
            assert_eq!(period.table(Service::Queue).as_str(), table);
        }
        assert_eq!(Period::Minute.next(time("2014-06-19T22:59:00Z")), time("2014-06-19T23:00:00Z"));
        assert_eq!(metrics_row("QueryEntity"), "user;QueryEntity");
    }
}
