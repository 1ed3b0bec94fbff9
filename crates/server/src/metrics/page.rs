//! A page of metrics in the text format of Prometheus.

use super::{OperationSum, Query};
use crate::in_flight::InFlightFigures;
use larimar_engine::{BlockReads, HistogramSnapshot};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A page of the Prometheus text format. Label values are names of ours and need no escapes.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
}

impl Page {
    pub(super) fn requests(&mut self, operations: &BTreeMap<&'static str, OperationSum>) {
        self.family("larimar_requests_total", "counter", "Requests by operation and status.");
        for (operation, sum) in operations {
            for (status, count) in &sum.statuses {
                let labels = format!("operation=\"{operation}\",status=\"{status}\"");
                self.line("larimar_requests_total", &labels, count);
            }
        }
        self.family("larimar_request_seconds", "histogram", "Time from a request's head to its answer.");
        for (operation, sum) in operations {
            self.histogram("larimar_request_seconds", &format!("operation=\"{operation}\""), &sum.seconds);
        }
    }

    pub(super) fn queries(&mut self, queries: &BTreeMap<&'static str, Query>) {
        self.by_kind("larimar_queries_total", "Queries by the kind of their plan.", queries, |query| query.count);
        let read = "Rows that queries read.";
        self.by_kind("larimar_query_rows_read_total", read, queries, |query| query.rows_read);
        let returned = "Rows that queries returned.";
        self.by_kind("larimar_query_rows_returned_total", returned, queries, |query| query.rows_returned);
    }

    pub(super) fn in_flight(&mut self, figures: &InFlightFigures) {
        let used = "Bytes of bodies and answers that are in memory now.";
        self.single("larimar_in_flight_bytes", "gauge", used, figures.used_bytes);
        let peak = "The most bytes that were in flight since the start.";
        self.single("larimar_in_flight_peak_bytes", "gauge", peak, figures.peak_bytes);
        let limit = "Bytes that may be in flight.";
        self.single("larimar_in_flight_limit_bytes", "gauge", limit, figures.limit_bytes);
        let waiting = "Requests that wait for others to free bytes.";
        self.single("larimar_in_flight_waiting", "gauge", waiting, figures.waiting);
        let refused = "Requests that were refused or cut for lack of bytes.";
        self.single("larimar_in_flight_refused_total", "counter", refused, figures.refused_total);
    }

    pub(super) fn block_reads(&mut self, all: &[BlockReads]) {
        if all.is_empty() {
            return;
        }
        let served = "Reads of blocks that the cache of the store served.";
        self.family("larimar_cache_hits_total", "counter", served);
        for BlockReads { of, hits, .. } in all {
            self.line("larimar_cache_hits_total", &format!("of=\"{of}\""), hits);
        }
        let missed = "Reads of blocks that went to the disk, or to the system.";
        self.family("larimar_cache_misses_total", "counter", missed);
        for BlockReads { of, misses, .. } in all {
            self.line("larimar_cache_misses_total", &format!("of=\"{of}\""), misses);
        }
    }

    fn by_kind(&mut self, name: &str, help: &str, all: &BTreeMap<&'static str, Query>, figure: fn(&Query) -> u64) {
        self.family(name, "counter", help);
        for (kind, query) in all {
            self.line(name, &format!("kind=\"{kind}\""), figure(query));
        }
    }

    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string takes every write");
    }

    pub(super) fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let result = match labels {
            "" => writeln!(self.text, "{name} {value}"),
            _ => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
        result.expect("a string takes every write");
    }

    pub(super) fn single(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, kind, help);
        self.line(name, "", value);
    }

    /// Buckets in the format count all values up to their bound; ours count those between two bounds.
    pub(super) fn histogram(&mut self, name: &str, labels: &str, histogram: &HistogramSnapshot) {
        let bucket = format!("{name}_bucket");
        let separator = if labels.is_empty() { "" } else { "," };
        let mut total = 0;
        for (bound, count) in histogram.bounds.iter().zip(&histogram.counts) {
            total += count;
            self.line(&bucket, &format!("{labels}{separator}le=\"{bound}\""), total);
        }
        total = histogram.counts.iter().sum();
        self.line(&bucket, &format!("{labels}{separator}le=\"+Inf\""), total);
        self.line(&format!("{name}_sum"), labels, histogram.sum);
        self.line(&format!("{name}_count"), labels, total);
    }
}
