//! Settings of limits, then of diagnostics.

use super::{Group, HOUR, Kind, SWITCH, Setting, TIMEOUT, number, path, put, show_count, size, timeout, value};
use crate::settings::value::LogFormat;
use std::time::Duration;

pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        name: "connections_max",
        group: Group::Limits,
        help: "Connections that may be open; a new one evicts one that has sent no request or is idle, or waits",
        expected: "a number from 1 to 1000000",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.connections_max, number(text, 1, 1_000_000)),
        show: |settings| Some(show_count(settings.connections_max)),
    },
    Setting {
        name: "header_bytes_max",
        group: Group::Limits,
        help: "Bytes that the head of a request may take",
        expected: "a number of bytes from 8KiB to 256KiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.header_bytes_max, size(text, 8 << 10, 256 << 10)),
        show: |settings| Some(value::show_bytes(settings.header_bytes_max).into()),
    },
    Setting {
        name: "header_timeout",
        group: Group::Limits,
        help: "How long a client may take for the head of a request or a TLS handshake",
        expected: TIMEOUT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.header_timeout, timeout(text)),
        show: |settings| Some(value::show_span(settings.header_timeout).into()),
    },
    Setting {
        name: "idle_timeout",
        group: Group::Limits,
        help: "How long a connection may be idle between requests",
        expected: TIMEOUT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.idle_timeout, timeout(text)),
        show: |settings| Some(value::show_span(settings.idle_timeout).into()),
    },
    Setting {
        name: "answer_timeout",
        group: Group::Limits,
        help: "How long a client may read nothing of an answer, and how long in total it may stay below client_rate_min",
        expected: TIMEOUT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.answer_timeout, timeout(text)),
        show: |settings| Some(value::show_span(settings.answer_timeout).into()),
    },
    Setting {
        name: "client_rate_min",
        group: Group::Limits,
        help: "Bytes per second of a body or an answer that a client must send or read on average, once \
               body_timeout or answer_timeout is over",
        expected: "a number of bytes from 1 to 64MiB, such as 1KiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.client_rate_min, size(text, 1, 64 << 20)),
        show: |settings| Some(value::show_bytes(settings.client_rate_min).into()),
    },
    Setting {
        name: "shutdown_grace",
        group: Group::Limits,
        help: "How long requests may continue after the signal to stop",
        expected: "a span of time up to 1h, such as 30s or 5m",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.shutdown_grace, value::span(text).filter(|span| *span <= HOUR)),
        show: |settings| Some(value::show_span(settings.shutdown_grace).into()),
    },
    Setting {
        name: "body_bytes_max",
        group: Group::Limits,
        help: "Bytes that the body of a request may take",
        expected: "a number of bytes from 64KiB to 64MiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.body_bytes_max, size(text, 64 << 10, 64 << 20)),
        show: |settings| Some(value::show_bytes(settings.body_bytes_max).into()),
    },
    Setting {
        name: "body_timeout",
        group: Group::Limits,
        help: "How long a client may send nothing of a body, and how long in total it may stay below client_rate_min",
        expected: TIMEOUT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.body_timeout, timeout(text)),
        show: |settings| Some(value::show_span(settings.body_timeout).into()),
    },
    Setting {
        name: "page_entities_max",
        group: Group::Limits,
        help: "Entities in one answer to a query",
        expected: "a number from 1 to 1000",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.page_entities_max, number(text, 1, 1000)),
        show: |settings| Some(show_count(settings.page_entities_max)),
    },
    Setting {
        name: "page_bytes_max",
        group: Group::Limits,
        help: "Bytes after which one answer to a query ends",
        expected: "a number of bytes from 64KiB to 64MiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.page_bytes_max, size(text, 64 << 10, 64 << 20)),
        show: |settings| Some(value::show_bytes(settings.page_bytes_max).into()),
    },
    Setting {
        name: "page_time_max",
        group: Group::Limits,
        help: "Time that one answer to a query may take",
        expected: "a span of time from 100ms to 30s",
        kind: Kind::Value,
        read: |settings, text| {
            let allowed = Duration::from_millis(100)..=Duration::from_secs(30);
            put(&mut settings.page_time_max, value::span(text).filter(|span| allowed.contains(span)))
        },
        show: |settings| Some(value::show_span(settings.page_time_max).into()),
    },
    Setting {
        name: "rehydration_time",
        group: Group::Data,
        help: "How long the rehydration of an archived blob takes",
        expected: "a span of time from 0s to 24h, such as 5s",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.rehydration_time, value::span(text).filter(|span| *span <= 24 * HOUR)),
        show: |settings| Some(value::show_span(settings.rehydration_time).into()),
    },
    Setting {
        name: "in_flight_bytes_max",
        group: Group::Limits,
        help: "Memory for bodies being received and answers being sent, of all clients together; default: half of \
               memory, or an eighth of the machine's, from 64MiB to 512MiB",
        expected: "a number of bytes from 16MiB on, such as 256MiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.in_flight_bytes_max, size(text, 16 << 20, 1 << 50).map(Some)),
        show: |settings| settings.in_flight_bytes_max.map(|bytes| value::show_bytes(bytes).into()),
    },
    Setting {
        name: "in_flight_wait",
        group: Group::Limits,
        help: "How long a request may wait for memory of in_flight_bytes_max before it gets 503",
        expected: "a span of time from 100ms to 5m",
        kind: Kind::Value,
        read: |settings, text| {
            let allowed = Duration::from_millis(100)..=Duration::from_secs(300);
            put(&mut settings.in_flight_wait, value::span(text).filter(|span| allowed.contains(span)))
        },
        show: |settings| Some(value::show_span(settings.in_flight_wait).into()),
    },
    Setting {
        name: "analytics_flush",
        group: Group::Diagnostics,
        help: "How often storage analytics write request logs and hourly metrics, where an account has them on",
        expected: "a span of time from 1s to 1h, such as 5m",
        kind: Kind::Value,
        read: |settings, text| {
            let allowed = Duration::from_secs(1)..=HOUR;
            put(&mut settings.observing.analytics_flush, value::span(text).filter(|span| allowed.contains(span)))
        },
        show: |settings| Some(value::show_span(settings.observing.analytics_flush).into()),
    },
    Setting {
        name: "insights",
        group: Group::Diagnostics,
        help: "Observe the traffic of tables for `larimar insights`, and keep the figures for a week",
        expected: SWITCH,
        kind: Kind::Switch,
        read: |settings, text| put(&mut settings.observing.insights, value::switch(text)),
        show: |settings| Some(settings.observing.insights.into()),
    },
    Setting {
        name: "access_log",
        group: Group::Diagnostics,
        help: "File to append a line of JSON to for each request; off: no access log (default); opened again at SIGHUP",
        expected: "the path of a file, or off",
        kind: Kind::Path,
        read: |settings, text| {
            let file = path(text).map(|path| Some(path).filter(|_| text != value::OFF));
            put(&mut settings.logs.access, file)
        },
        show: |settings| settings.logs.access.as_ref().map(|path| path.display().to_string().into()),
    },
    Setting {
        name: "slow_query_time",
        group: Group::Diagnostics,
        help: "Log queries that take at least this long; 0s: never",
        expected: "a span of time up to 1h, such as 500ms or 1s",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.logs.slow_query_time, value::span(text).filter(|span| *span <= HOUR)),
        show: |settings| Some(value::show_span(settings.logs.slow_query_time).into()),
    },
    Setting {
        name: "slow_query_ratio",
        group: Group::Diagnostics,
        help: "Log queries that read at least this many rows for each row returned, and at least 1,000; 0: never",
        expected: "a number from 0 to 1000000000",
        kind: Kind::Value,
        read: |settings, text| {
            let ratio = number(text, 0, 1_000_000_000).and_then(|ratio| ratio.try_into().ok());
            put(&mut settings.logs.slow_query_ratio, ratio)
        },
        show: |settings| Some(i64::try_from(settings.logs.slow_query_ratio).unwrap_or(i64::MAX).into()),
    },
    Setting {
        name: "log_level",
        group: Group::Diagnostics,
        help: "What to log: off, error, warn, info, debug, trace, also by module as in info,larimar_server=debug",
        expected: "off, error, warn, info, debug or trace, or module=level parts separated by commas",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.logs.level, value::log_level(text)),
        show: |settings| Some(settings.logs.level.as_str().into()),
    },
    Setting {
        name: "log_format",
        group: Group::Diagnostics,
        help: "Format of log lines: human or json",
        expected: "human or json",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.logs.format, LogFormat::from_text(text)),
        show: |settings| Some(settings.logs.format.as_text().into()),
    },
];
