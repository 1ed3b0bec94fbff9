//! The file, and what is lost when it cannot be written.

use super::*;
use larimar_model::Timestamp;
use larimar_wire::analytics::Authentication;
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const NONE: [(&str, &hyper::header::HeaderValue); 0] = [];

fn line(path: &str) -> AccessLine {
    let head = RequestHead::new("GET", path, "sig=secret", NONE);
    AccessLine::new(Accessed {
        head: &head,
        peer: "[::ffff:10.1.2.3]:4567".parse().expect("an address"),
        now: Timestamp::parse("2026-01-02T03:04:05.5Z").expect("a time"),
        request_id: "id",
        service: Service::Blob,
        account: Some("shop".to_owned()),
        path,
        operation: "GetBlob",
        authentication: Authentication::Sas,
        status: 206,
        code: None,
        received_bytes: 7,
    })
}

const END: End = End { sent_bytes: 12, is_complete: true, elapsed: Duration::from_micros(1500) };
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_line_is_an_object_with_numbers_as_numbers() {
    let text = String::from_utf8(line("/box/a%0A%22%00b").to_json(END)).expect("UTF-8");
    let expected = concat!(
        r#"{"time":"2026-01-02T03:04:05.5Z","client":"10.1.2.3","client_port":4567,"service":"blob","account":"shop","#,
        r#""operation":"GetBlob","method":"GET","resource":"/box/a\n\"\u0000b","auth":"sas","status":206,"code":null,"#,
        r#""bytes_in":7,"request_id":"id","client_request_id":null,"user_agent":null,"#,
        r#""bytes_out":12,"complete":true,"ms":1.5}"#,
        "\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn the_file_is_appended_to_and_opened_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, rotated) = (folder.path().join("access"), folder.path().join("access.1"));
    fs::write(&path, "{}\n").expect("a file");
    let log = AccessLog::start(&path, Arc::default()).expect("a log");
    log.write(&line("/first"), END);
    fs::rename(&path, &rotated).expect("a rename");
    log.reopen();
    log.write(&line("/second"), END);
    assert!(log.close(SOON));
    let (old, new) = (fs::read_to_string(&rotated).expect("text"), fs::read_to_string(&path).expect("text"));
    assert!(old.starts_with("{}\n{") && old.contains("/first") && !old.contains("/second"), "{old}");
    assert!(new.contains("/second") && new.lines().count() == 1, "{new}");
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    // After the end lines are counted, not written.
    log.write(&line("/third"), END);
    assert_eq!(lost(&log.metrics), 1);
}

#[test]
fn what_is_not_a_regular_file_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    for path in [folder.path(), &pipe, Path::new("/dev/null")] {
        let refused = AccessLog::start(path, Arc::default());
        assert!(matches!(refused, Err(AccessLogError::NotAFile(_))), "{refused:?}");
    }
    let refused = AccessLog::start(&folder.path().join("none/access"), Arc::default());
    assert!(matches!(refused, Err(AccessLogError::NotOpened(..))), "{refused:?}");
    // A pipe in the place of the file does not stall the log either.
    let path = folder.path().join("access");
    let log = AccessLog::start(&path, Arc::default()).expect("a log");
    fs::remove_file(&path).expect("the file is ours");
    fs::rename(&pipe, &path).expect("a rename");
    log.reopen();
    log.write(&line("/a"), END);
    assert!(log.close(SOON));
    assert_eq!(lost(&log.metrics), 0, "it went to the old file");
}

#[test]
fn without_room_lines_are_dropped_and_counted_and_nobody_waits() {
    let metrics = Arc::new(Metrics::default());
    // No thread takes lines out of this one, as if the disk were stuck.
    let log = AccessLog { state: Mutex::default(), changed: Condvar::new(), metrics };
    let bytes = line("/a").to_json(END).len();
    let fitting = PENDING_BYTES_MAX / bytes;
    for _ in 0..fitting + 10 {
        log.write(&line("/a"), END);
    }
    assert_eq!(lost(&log.metrics), 10);
    assert!(log.state.lock().pending.len() <= PENDING_BYTES_MAX);
    assert!(!log.close(Duration::from_millis(1)));
}

fn lost(metrics: &Metrics) -> u64 {
    let page = metrics.render(&larimar_engine::Statistics::default(), true);
    let line = page.lines().find_map(|line| line.strip_prefix("larimar_access_log_lost_total "));
    line.and_then(|count| count.parse().ok()).expect("a count")
}
