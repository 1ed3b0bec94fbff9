//! The page as text, and counts that many threads added.

use super::*;
use larimar_engine::BlockReads;
use larimar_model::Timestamp;

/// The value of a series, by its full name with labels.
fn value(page: &str, series: &str) -> Option<f64> {
    let line = page.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn requests_are_counted_by_operation_and_status() {
    let metrics = Metrics::default();
    metrics.request("InsertEntity", 204, Duration::from_micros(300));
    metrics.request("InsertEntity", 204, Duration::from_millis(3));
    metrics.request("InsertEntity", 409, Duration::from_millis(700));
    metrics.request("GetEntity", 200, Duration::from_secs(60));
    let page = metrics.render(&Statistics::default(), true);
    let cases = [
        ("larimar_requests_total{operation=\"InsertEntity\",status=\"204\"}", 2.0),
        ("larimar_requests_total{operation=\"InsertEntity\",status=\"409\"}", 1.0),
        ("larimar_requests_total{operation=\"GetEntity\",status=\"200\"}", 1.0),
        ("larimar_request_seconds_bucket{operation=\"InsertEntity\",le=\"0.00025\"}", 0.0),
        ("larimar_request_seconds_bucket{operation=\"InsertEntity\",le=\"0.0005\"}", 1.0),
        ("larimar_request_seconds_bucket{operation=\"InsertEntity\",le=\"0.005\"}", 2.0),
        ("larimar_request_seconds_bucket{operation=\"InsertEntity\",le=\"1\"}", 3.0),
        ("larimar_request_seconds_bucket{operation=\"InsertEntity\",le=\"+Inf\"}", 3.0),
        ("larimar_request_seconds_bucket{operation=\"GetEntity\",le=\"10\"}", 0.0),
        ("larimar_request_seconds_bucket{operation=\"GetEntity\",le=\"+Inf\"}", 1.0),
        ("larimar_request_seconds_count{operation=\"InsertEntity\"}", 3.0),
        ("larimar_request_seconds_sum{operation=\"InsertEntity\"}", 0.7033),
    ];
    for (series, expected) in cases {
        assert_eq!(value(&page, series), Some(expected), "{series} in\n{page}");
    }
}

#[test]
fn queries_are_counted_with_the_rows_they_read_and_returned() {
    let metrics = Metrics::default();
    metrics.query("point", 1, 1);
    metrics.query("partition_scan", 1000, 3);
    metrics.query("partition_scan", 500, 4);
    let page = metrics.render(&Statistics::default(), true);
    assert_eq!(value(&page, "larimar_queries_total{kind=\"point\"}"), Some(1.0));
    assert_eq!(value(&page, "larimar_queries_total{kind=\"partition_scan\"}"), Some(2.0));
    assert_eq!(value(&page, "larimar_query_rows_read_total{kind=\"partition_scan\"}"), Some(1500.0));
    assert_eq!(value(&page, "larimar_query_rows_returned_total{kind=\"partition_scan\"}"), Some(7.0));
}

#[test]
fn figures_of_the_engine_are_on_the_page() {
    let commits = Histogram::new(Histogram::COUNTS);
    commits.record(1.0);
    commits.record(40.0);
    let engine = Statistics {
        commit_writes: commits.snapshot(),
        sync_seconds: HistogramSnapshot::default(),
        store_bytes: 123_456,
        dropped_spaces: 2,
        reclaimable_bytes: 42,
        disk: Some(DiskRoom { free: 70, needed: 50 }),
        last_version: Some(SystemClock.now().after(Duration::from_secs(3600))),
        block_reads: vec![BlockReads { of: "rows", hits: 9, misses: 1 }],
    };
    let page = Metrics::default().render(&engine, true);
    assert_eq!(value(&page, "larimar_commit_writes_bucket{le=\"1\"}"), Some(1.0));
    assert_eq!(value(&page, "larimar_commit_writes_bucket{le=\"50\"}"), Some(2.0));
    assert_eq!(value(&page, "larimar_commit_writes_sum"), Some(41.0));
    assert_eq!(value(&page, "larimar_sync_seconds_count"), Some(0.0));
    assert_eq!(value(&page, "larimar_store_bytes"), Some(123_456.0));
    assert_eq!(value(&page, "larimar_reclaimable_bytes{of=\"rows\"}"), Some(42.0));
    assert_eq!(value(&page, "larimar_dropped_tables"), Some(2.0));
    assert_eq!(value(&page, "larimar_cache_hits_total{of=\"rows\"}"), Some(9.0));
    assert_eq!(value(&page, "larimar_cache_misses_total{of=\"rows\"}"), Some(1.0));
    assert_eq!(value(&page, "larimar_disk_free_bytes"), Some(70.0));
    assert_eq!(value(&page, "larimar_disk_needed_bytes"), Some(50.0));
    let ahead = value(&page, "larimar_versions_ahead_seconds");
    assert!(ahead.is_some_and(|seconds| (3000.0..=3600.0).contains(&seconds)), "{ahead:?}");
    let behind = Statistics { last_version: Some(Timestamp::EDM_MIN), ..engine.clone() };
    for engine in [behind, Statistics { last_version: None, ..engine }] {
        assert_eq!(value(&Metrics::default().render(&engine, true), "larimar_versions_ahead_seconds"), Some(0.0));
    }
    assert!(value(&page, "process_start_time_seconds").is_some_and(|seconds| seconds > 1.0e9), "{page}");
}

#[test]
fn every_line_is_a_comment_or_a_name_with_a_number() {
    let metrics = Metrics::default();
    metrics.request("GetEntity", 200, Duration::from_millis(1));
    metrics.query("point", 1, 1);
    let page = metrics.render(&Statistics::default(), true);
    let mut families = std::collections::BTreeSet::new();
    for line in page.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.split(' ');
            let (kind, name) = (words.next(), words.next().expect("a comment names its family"));
            assert!(matches!(kind, Some("HELP" | "TYPE")), "{line}");
            families.insert(name);
            continue;
        }
        let (series, number) = line.rsplit_once(' ').expect("a series has a value");
        assert!(number.parse::<f64>().is_ok(), "{line}");
        let name = series.split('{').next().expect("a split has a first part");
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(families.contains(family) || families.contains(name), "{line} comes before its family");
    }
}

#[test]
fn counts_of_many_threads_add_up() {
    let metrics = Metrics::default();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    metrics.request("GetEntity", 200, Duration::from_micros(50));
                    metrics.query("point", 1, 1);
                }
            });
        }
    });
    let page = metrics.render(&Statistics::default(), true);
    assert_eq!(value(&page, "larimar_requests_total{operation=\"GetEntity\",status=\"200\"}"), Some(8000.0));
    assert_eq!(value(&page, "larimar_request_seconds_count{operation=\"GetEntity\"}"), Some(8000.0));
    assert_eq!(value(&page, "larimar_queries_total{kind=\"point\"}"), Some(8000.0));
}

#[test]
fn requests_and_bytes_are_counted_by_service_and_account() {
    let metrics = Metrics::default();
    metrics.name_account(0, "shop");
    metrics.name_account(1, "other");
    metrics.traffic(Service::Table, Some(0), 200, 10, 500);
    metrics.traffic(Service::Table, Some(0), 204, 20, 0);
    metrics.traffic(Service::Table, Some(0), 404, 0, 30);
    metrics.traffic(Service::Blob, Some(0), 503, 7, 0);
    // An account of this name, requests that name none that is served, and one too many, share their series.
    metrics.traffic(Service::Queue, Some(1), 200, 1, 1);
    metrics.traffic(Service::Queue, None, 404, 1, 1);
    metrics.traffic(Service::Queue, Some(traffic::ACCOUNTS_MAX), 404, 1, 1);
    let page = metrics.render(&Statistics::default(), true);
    let found: Vec<&str> = page.lines().filter(|line| line.starts_with("larimar_account_")).collect();
    assert_eq!(
        found,
        [
            "larimar_account_requests_total{service=\"queue\",account=\"other\",class=\"2xx\"} 1",
            "larimar_account_requests_total{service=\"queue\",account=\"other\",class=\"4xx\"} 2",
            "larimar_account_requests_total{service=\"blob\",account=\"shop\",class=\"5xx\"} 1",
            "larimar_account_requests_total{service=\"table\",account=\"shop\",class=\"2xx\"} 2",
            "larimar_account_requests_total{service=\"table\",account=\"shop\",class=\"4xx\"} 1",
            "larimar_account_received_bytes_total{service=\"queue\",account=\"other\"} 3",
            "larimar_account_received_bytes_total{service=\"blob\",account=\"shop\"} 7",
            "larimar_account_received_bytes_total{service=\"table\",account=\"shop\"} 30",
            "larimar_account_sent_bytes_total{service=\"queue\",account=\"other\"} 3",
            "larimar_account_sent_bytes_total{service=\"blob\",account=\"shop\"} 0",
            "larimar_account_sent_bytes_total{service=\"table\",account=\"shop\"} 530",
        ]
    );
}

#[test]
fn figures_of_a_store_of_bytes_are_on_the_page() {
    let metrics = Metrics::default();
    let figures = ByteStatistics { discarded_bytes: 5, stored_bytes: Some(4096), ..ByteStatistics::default() };
    metrics.show_bytes(Box::new(move || figures));
    let page = metrics.render(&Statistics::default(), true);
    assert_eq!(value(&page, "larimar_reclaimable_bytes{of=\"payloads\"}"), Some(5.0));
    assert_eq!(value(&page, "larimar_blob_bytes"), Some(4096.0));
    assert_eq!(value(&Metrics::default().render(&Statistics::default(), true), "larimar_blob_bytes"), None);
}
