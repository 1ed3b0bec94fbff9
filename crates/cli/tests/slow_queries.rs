//! Queries that read many rows for few are logged with the shape of their filter, seldom, and counted.

use larimar_testkit::http::{Batch, Client, exchange};
use larimar_testkit::{Launch, Server};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const SECRET: &str = "s3cret";

fn fill(client: &Client) {
    client.create_table("people");
    for batch in 0..11 {
        let rows = (0..100).map(|row| format!("{batch:02}-{row:02}"));
        let batch = rows.fold(Batch::new(), |batch, row| batch.insert(client, "people", "p", &row, r#""Age":1"#));
        assert_eq!(batch.send(client).statuses(), [204; 100]);
    }
}

fn counted(server: &Server, reason: &str) -> u64 {
    let page = exchange(server.admin_address(), b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").expect("an answer");
    let series = format!("larimar_slow_queries_total{{reason=\"{reason}\"}} ");
    let line = page.text().lines().find_map(|line| line.strip_prefix(&series).map(str::to_owned));
    line.and_then(|count| count.parse().ok()).expect("a count")
}

fn lines(server: &Server) -> Vec<String> {
    server.output().lines().filter(|line| line.contains("slow query")).map(str::to_owned).collect()
}

/// Waits until so many lines were logged; the writer of the log is a thread of its own.
fn eventually(server: &Server, count: usize) -> Vec<String> {
    for _ in 0..2000 {
        let found = lines(server);
        if found.len() >= count {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{count} lines in {}", server.output());
}

#[test]
fn a_wasteful_query_is_logged_without_its_literals_and_once_a_minute() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(EXE, folder.path().join("data")).argument("--log-format=json");
    let server = launch.argument("--slow-query-time=0s").start();
    let client = server.client();
    fill(&client);
    let query = |filter: &str| {
        let request = client.get("/people()").query("$filter", filter).query("$select", SECRET);
        let reply = request.send();
        reply.is_status(200);
        reply.header("x-ms-request-id").expect("an id").to_owned()
    };
    let scan = |secret: &str| format!("Age gt 5 and (Name eq '{secret}' or Name eq 'x''{secret}\n' or Name eq '')");
    let id = query(&scan(SECRET));
    for number in 0..20 {
        query(&scan(&format!("{SECRET}{number}")));
    }
    // Few rows, or as many as are returned, are not worth a line.
    query("PartitionKey eq 'p' and RowKey lt '01' and Age gt 5");
    query("PartitionKey eq 'p'");
    query("not (Height eq 1.5) and Age lt 0");
    let found = eventually(&server, 2);
    assert_eq!(found.len(), 2, "{found:#?}");
    let line: serde_json::Value = serde_json::from_str(&found[0]).expect("JSON");
    let fields = &line["fields"];
    assert_eq!(line["level"], "WARN");
    for (name, expected) in [
        ("account", "devstoreaccount1"),
        ("table", "people"),
        ("plan", "table-scan"),
        ("filter", "Age gt ? and (Name eq ? or …)"),
        ("reason", "rows"),
        ("id", &id),
    ] {
        assert_eq!(fields[name], expected, "{line}");
    }
    assert_eq!((&fields["rows_read"], &fields["rows_returned"]), (&1100.into(), &0.into()), "{line}");
    assert!(fields["ms"].is_u64(), "{line}");
    assert!(found[1].contains("not (Height eq ?) and Age lt ?"), "{}", found[1]);
    assert_eq!((counted(&server, "rows"), counted(&server, "time")), (22, 0));
    assert!(!server.output().contains(SECRET), "{}", server.output());
}

#[test]
fn a_client_cannot_fill_the_log_with_new_queries() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Launch::new(EXE, folder.path().join("data")).start();
    let client = server.client();
    fill(&client);
    for number in 0..24 {
        // A name of 8 KiB is cut.
        let name = "N".repeat(if number == 0 { 8192 } else { number });
        client.get("/people()").query("$filter", &format!("{name} eq '{SECRET}'")).send().is_status(200);
    }
    let rows = counted(&server, "rows");
    assert_eq!(rows, 24);
    let found = eventually(&server, 17);
    // Sixteen shapes have their own lines, the others one in common.
    assert_eq!(found.len(), 17, "{found:#?}");
    assert!(found.iter().all(|line| line.len() < 1024), "{found:#?}");
    assert!(!server.output().contains(SECRET));
}

#[test]
fn the_thresholds_can_be_changed_and_switched_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(EXE, folder.path().join("data")).argument("--slow-query-time=0s");
    let server = launch.argument("--slow-query-ratio=0").start();
    fill(&server.client());
    let query = |server: &Server| server.client().get("/people()").query("$filter", "Age gt 5").send().is_status(200);
    query(&server);
    assert_eq!((counted(&server, "rows"), counted(&server, "time")), (0, 0));
    let server = server.stop().0.argument("--slow-query-ratio=1101").start();
    query(&server);
    assert_eq!(counted(&server, "rows"), 0);
    let server = server.stop().0.argument("--slow-query-ratio=1100").start();
    query(&server);
    assert_eq!(counted(&server, "rows"), 1);
}
