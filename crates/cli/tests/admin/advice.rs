//! `larimar advise` and `/advice`: real traffic with and without each fault, who may ask, and how a CI run uses it.

use super::{EXE, launch, send, signature, token};
use larimar_testkit::Server;
use larimar_testkit::http::{ACCOUNT, Batch, Client, KEY, Response, Sas, entity, entity_path};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const PATH: &str = "/advice?account=devstoreaccount1";

/// The exit code of `larimar advise`, what it printed, and what it complained of.
fn advise(server: &Server, folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(EXE);
    command.arg("advise").arg("--data-dir").arg(server.data()).arg("--admin-port");
    command.arg(server.admin_address().port().to_string()).args(arguments);
    command.env("XDG_RUNTIME_DIR", server.runtime_directory()).current_dir(folder);
    let output = command.output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The findings as JSON.
fn findings(server: &Server, folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let (code, text, error) = advise(server, folder, &[&["--format", "json"], arguments].concat());
    assert_eq!(code, Some(0), "{error}");
    let advice: Value = serde_json::from_str(&text).expect("JSON");
    advice["findings"].as_array().expect("a list").clone()
}

/// Tables and ids, in order.
fn named(findings: &[Value]) -> Vec<String> {
    let text = |finding: &Value, name: &str| finding[name].as_str().expect("a text").to_owned();
    let mut all: Vec<_> =
        findings.iter().map(|finding| format!("{} {}", text(finding, "table"), text(finding, "id"))).collect();
    all.sort();
    all
}

/// Creates a table and inserts rows into its partitions, in this order, in transactions.
fn fill<'a>(client: &Client, table: &str, partitions: impl IntoIterator<Item = &'a str>, rows: &[String]) {
    client.create_table(table);
    for partition in partitions {
        for some in rows.chunks(100) {
            let add = |batch: Batch, row: &String| batch.insert(client, table, partition, row, "\"Email\":\"e\"");
            let sent = some.iter().fold(Batch::new(), add).send(client);
            assert!(sent.statuses().iter().all(|status| *status == 204));
        }
    }
}

fn numbered(count: u32) -> Vec<String> {
    (0..count).map(|number| format!("r{number:04}")).collect()
}

fn query(client: &Client, table: &str, filter: &str) {
    client.get(&format!("/{table}()")).query("$filter", filter).send().is_status(200);
}

/// Queries for a property, and queries that the keys answer.
fn scan_and_seek(client: &Client) {
    for table in ["scanned", "sought"] {
        fill(client, table, ["p"], &numbered(120));
    }
    for _ in 0..12 {
        query(client, "scanned", "Email eq 'x'");
        query(client, "scanned", "PartitionKey eq 'p' and Email eq 'x'");
        query(client, "sought", "PartitionKey eq 'p' and RowKey eq 'r0007'");
        query(client, "sought", "PartitionKey eq 'p' and RowKey ge 'r0010' and RowKey lt 'r0020'");
        query(client, "sought", "PartitionKey eq 'p'");
        client.get("/sought()").send().is_status(200);
    }
}

/// Keys in order, in another order, in order within one partition, and in the order of time.
fn append_and_spread(client: &Client) {
    let ordered = ["p00", "p01", "p02", "p03", "p04", "p05", "p06", "p07", "p08", "p09", "p10", "p11"];
    fill(client, "appended", ordered, &numbered(100));
    let order = [5, 2, 9, 0, 7, 11, 3, 8, 1, 10, 6, 4];
    fill(client, "spread", order.map(|number: usize| ordered[number]), &numbered(100));
    fill(client, "tail", ["p"], &numbered(1200));
    let times: Vec<String> = (0..100).map(|second| format!("{second:04}")).collect();
    let minutes: Vec<String> = (0..12).map(|minute| format!("2026-11-16T10:{minute:02}")).collect();
    fill(client, "logged", minutes.iter().map(String::as_str), &times);
}

/// Rows of a partition one by one, and the same rows here and there.
fn list_and_look_up(client: &Client) {
    let partitions: Vec<String> = (0..20).map(|number| format!("p{number:02}")).collect();
    let rows = numbered(20);
    for table in ["listed", "looked"] {
        fill(client, table, partitions.iter().map(String::as_str), &rows);
    }
    for one in 0..20 {
        for other in 0..20 {
            client.get(&entity_path("listed", &partitions[one], &rows[other])).send().is_status(200);
            client.get(&entity_path("looked", &partitions[other], &rows[one])).send().is_status(200);
        }
    }
}

/// Entities that are alone in their partitions: read together, and read by key.
fn insert_alone(client: &Client) {
    for table in ["alone", "keyed"] {
        client.create_table(table);
        for number in 0..550_u32 {
            client.insert(table, &format!("k{:08x}", number.wrapping_mul(2_654_435_761)), "r", "");
        }
    }
    for _ in 0..12 {
        query(client, "alone", "PartitionKey ge 'k' and PartitionKey lt 'l'");
        client.get(&entity_path("keyed", "k00000000", "r")).send().is_status(200);
    }
}

/// Deletes by age and of a customer, conflicts, and entities near the limits.
fn delete_and_change(client: &Client) {
    for (table, partition) in [("expired", "2026-11-15"), ("closed", "customer")] {
        fill(client, table, [partition], &numbered(510));
        for row in numbered(510) {
            client.delete(&entity_path(table, partition, &row)).if_match("*").send().is_status(204);
        }
    }
    for (table, failures) in [("contended", 110), ("changed", 20)] {
        client.create_table(table);
        client.insert(table, "p", "r", "");
        let replace =
            |etag: &str| client.put(&entity_path(table, "p", "r"), entity("p", "r", "")).if_match(etag).send();
        (0..failures).for_each(|_| {
            replace("W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"").is_error(412, "UpdateConditionNotSatisfied")
        });
        (0..15).for_each(|_| replace("*").is_status(204));
    }
    client.create_table("sizes");
    let photo = "AAAA".repeat(15_000);
    let photos: Vec<String> =
        (0..12).map(|n| format!("\"P{n}\":\"{photo}\",\"P{n}@odata.type\":\"Edm.Binary\"")).collect();
    client.insert("sizes", "p", "large", &photos.join(","));
    let many: Vec<String> = (0..243).map(|number| format!("\"N{number}\":{number}")).collect();
    client.insert("sizes", "p", "wide", &many.join(","));
    client.insert("sizes", "p", "small", "\"N\":1");
}

#[test]
fn traffic_with_a_fault_is_found_and_traffic_without_is_not() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--durability=async").start();
    let client = server.client();
    scan_and_seek(&client);
    append_and_spread(&client);
    list_and_look_up(&client);
    insert_alone(&client);
    delete_and_change(&client);
    let found = findings(&server, folder.path(), &[]);
    assert_eq!(
        named(&found),
        [
            "alone one-entity-per-partition",
            "appended append-only",
            "contended conflict-retries",
            "expired mass-delete",
            "listed row-by-row",
            "logged log-data",
            "scanned partition-scan",
            "scanned table-scan",
            "sizes large-entity",
            "sizes wide-entity",
        ]
    );
    let scan = found.iter().find(|finding| finding["id"] == "table-scan").expect("a scan");
    assert_eq!((&scan["subject"], &scan["severity"]), (&"Email eq ?".into(), &"warning".into()));
    assert_eq!((&scan["cost"]["now"]["rows"], &scan["cost"]["after"]["rows"]), (&1440.into(), &0.into()));
    assert_eq!(scan["pattern"]["link"], "docs/advisor.md#table-scan");
    for language in ["rust", "python"] {
        assert!(scan["code"][language].as_str().is_some_and(|code| code.contains("find") || code.contains("query")));
    }
    let rows = found.iter().find(|finding| finding["id"] == "row-by-row").expect("reads");
    assert_eq!(rows["cost"]["now"]["requests"], 400);
    assert_eq!(named(&findings(&server, folder.path(), &["Listed"])), ["listed row-by-row"], "one table");
}

#[test]
fn a_run_fails_on_findings_until_they_are_dismissed() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    let client = server.client();
    for table in ["orders", "people"] {
        fill(&client, table, ["p"], &numbered(3));
        query(&client, table, "Email eq 'x'");
    }
    let run = |arguments: &[&str]| advise(&server, folder.path(), arguments);
    let (code, text, _) = run(&["--fail-on", "notice"]);
    assert!(code == Some(0) && text.ends_with(": no findings\n"), "too little to say: {text}");
    let (code, text, error) = run(&["--every-scan", "--fail-on", "table-scan", "--format", "github"]);
    assert_eq!(code, Some(6), "{error}");
    assert!(
        text.lines().count() == 2 && text.contains("::notice title=larimar table-scan in orders::orders: "),
        "{text}"
    );
    assert!(error.contains("--fail-on names: 2"), "{error}");
    assert_eq!(run(&["--every-scan", "--fail-on", "warning,row-by-row"]).0, Some(0));
    let (code, text, _) = run(&["--every-scan", "--fail-on", "notice", "--dismiss", "table-scan:ORDERS"]);
    assert!(code == Some(6) && text.contains("people") && !text.contains("orders"), "{text}");
    assert_eq!(named(&findings(&server, folder.path(), &["--every-scan"])), ["people table-scan"], "remembered");
    assert_eq!(run(&["--every-scan", "--fail-on", "notice", "--dismiss", "table-scan"]).0, Some(0));
    std::fs::write(folder.path().join("advise.toml"), "[[dismiss]]\nfinding = \"nonsense\"\n").expect("written");
    let (code, _, error) = run(&[]);
    assert!(code == Some(1) && error.contains("advise.toml") && error.contains("nonsense"), "{error}");
    assert_eq!(run(&["--dismissed", "none.toml"]).0, Some(0));
    assert_eq!(run(&["--fail-on", "nonsense"]).0, Some(2));
}

#[test]
fn advice_needs_what_insights_need() {
    const SECRET: &str = "secret";
    let folder = tempfile::tempdir().expect("a directory");
    let other_key = "a2V5IG9uZQ==";
    let accounts = format!("{ACCOUNT}:{KEY};other:{other_key}");
    let server = launch(&folder).environment("LARIMAR_ACCOUNTS", &accounts).start();
    server.client().create_table("orders");
    query(&server.client(), "orders", &format!("{SECRET} eq 1"));
    let target = format!("{PATH}&scans=every");
    let get = |target: &str, headers: &[(&str, &str)]| send(server.admin_address(), "GET", target, headers);
    let limited = Sas::table("orders", "raud").with("spk", "a").with("epk", "b");
    for refused in [
        Sas::table("orders", "raud").token(),
        limited.token(),
        Sas::policy("orders", "id").token(),
        Sas::account("sco", "rwdlacup").with("ss", "bq").token(),
        Sas::account("sco", "w").token(),
        Sas::account("sco", "rwdlacup").with("se", "2020-01-01T00:00:00Z").token(),
        Sas::account("sco", "rwdlacup").token_signed_with(other_key),
        String::new(),
    ] {
        let reply = get(&format!("{target}&{refused}"), &[]);
        assert!(reply.status == 401 && !reply.text().contains(SECRET), "{refused}: {reply}");
    }
    let foreign = signature("GET", &target, "other", other_key);
    let reply = get(&target, &foreign.each_ref().map(|(name, value)| (*name, value.as_str())));
    assert!(reply.status == 404 && !reply.text().contains(SECRET), "{reply}");
    let own = signature("GET", &target, ACCOUNT, KEY);
    let bearer = format!("Bearer {}", token(&server));
    for reply in [
        get(&target, &own.each_ref().map(|(name, value)| (*name, value.as_str()))),
        get(&target, &[("authorization", &bearer)]),
        get(&format!("{target}&{}", Sas::account("sco", "rl").token()), &[]),
    ] {
        assert!(reply.status == 200 && reply.json()["findings"][0]["subject"] == "secret eq ?", "{reply}");
    }
    for (method, target, status) in [
        ("DELETE", PATH, 405),
        ("POST", PATH, 405),
        ("GET", "/advice", 400),
        ("GET", "/advice?account=devstoreaccount1&scans=some", 400),
        ("GET", "/advice?account=nobody", 404),
    ] {
        let reply = send(server.admin_address(), method, target, &[("authorization", &bearer)]);
        assert_eq!(reply.status, status, "{method} {target}: {reply}");
    }
}

/// Puts or removes a dismissal with these headers.
fn dismiss(server: &Server, method: &str, query: &str, headers: &[(&str, &str)]) -> Response {
    send(server.admin_address(), method, &format!("/advice/dismissals?account={ACCOUNT}&{query}"), headers)
}

#[test]
fn findings_are_dismissed_at_the_server_for_everybody() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--allow-reset").start();
    let client = server.client();
    for table in ["orders", "people"] {
        fill(&client, table, ["p"], &numbered(3));
        query(&client, table, "Email eq 'x'");
    }
    let bearer = format!("Bearer {}", token(&server));
    let headers = [("authorization", bearer.as_str())];
    let put = |query: &str| dismiss(&server, "PUT", query, &headers).is_status(200);
    put("finding=table-scan&table=Orders&reason=the%20report");
    put("finding=log-data");
    let advice = || send(server.admin_address(), "GET", &format!("{PATH}&scans=every"), &headers).json();
    let marked = |advice: &Value| {
        let all = advice["findings"].as_array().expect("a list").iter();
        all.map(|it| (it["table"].as_str().expect("a name").to_owned(), it["dismissed"] == true)).collect::<Vec<_>>()
    };
    let answer = advice();
    assert_eq!(marked(&answer), [("people".to_owned(), false), ("orders".to_owned(), true)], "dismissed ones last");
    let dismissal = &answer["dismissals"][0];
    assert_eq!((&dismissal["finding"], &dismissal["table"]), (&"table-scan".into(), &"Orders".into()));
    assert_eq!((&dismissal["reason"], dismissal["time"].is_string()), (&"the report".into(), true));
    assert_eq!(answer["dismissals"].as_array().map(Vec::len), Some(2));
    let run = |arguments: &[&str]| advise(&server, folder.path(), &[&["--every-scan"], arguments].concat());
    let (code, text, _) = run(&["--fail-on", "notice"]);
    assert_eq!(code, Some(6), "people");
    assert!(!text.contains("orders") && text.ends_with("1 finding is dismissed: --all shows it\n"), "{text}");
    let (_, text, _) = run(&["--all"]);
    assert!(text.contains("table-scan in orders (dismissed): "), "{text}");
    let (_, text, _) = run(&["--format", "json"]);
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&json["hidden"], json["findings"].as_array().map(Vec::len)), (&1.into(), Some(1)));
    put("finding=table-scan");
    assert_eq!(run(&["--fail-on", "notice", "--all"]).0, Some(0), "dismissed ones do not count");
    dismiss(&server, "DELETE", "finding=table-scan", &headers).is_status(200);
    dismiss(&server, "DELETE", "finding=table-scan&table=ORDERS", &headers).is_status(200);
    dismiss(&server, "DELETE", "finding=table-scan&table=orders", &headers).is_status(404);
    assert_eq!(marked(&advice()), [("orders".to_owned(), false), ("people".to_owned(), false)]);
    let reset = send(server.admin_address(), "POST", &format!("/reset?account={ACCOUNT}"), &headers);
    reset.is_status(200);
    assert_eq!(advice()["dismissals"], Value::Array(Vec::new()), "a reset removes them");
}

#[test]
fn dismissals_need_a_credential_that_may_write_and_are_bounded() {
    let folder = tempfile::tempdir().expect("a directory");
    let other_key = "a2V5IG9uZQ==";
    let accounts = format!("{ACCOUNT}:{KEY};other:{other_key}");
    let server = launch(&folder).environment("LARIMAR_ACCOUNTS", &accounts).start();
    let with = |method: &str, token: &str| dismiss(&server, method, &format!("finding=log-data&{token}"), &[]).status;
    for (method, token, status) in [
        ("PUT", Sas::account("sco", "w").token(), 200),
        ("DELETE", Sas::account("sco", "d").token(), 200),
        ("PUT", Sas::account("sco", "rl").token(), 401),
        ("PUT", Sas::account("sco", "rdlacup").token(), 401),
        ("DELETE", Sas::account("sco", "rwlacup").token(), 401),
        ("PUT", Sas::account("sco", "w").with("ss", "bq").token(), 401),
        ("PUT", Sas::account("sc", "w").token(), 401),
        ("PUT", Sas::account("sco", "w").token_signed_with(other_key), 401),
        ("PUT", Sas::table("orders", "raud").token(), 401),
        ("PUT", String::new(), 401),
    ] {
        assert_eq!(with(method, &token), status, "{method} {token}");
    }
    let signed = |query: &str, account: &str, key: &str| {
        let target = format!("/advice/dismissals?account={ACCOUNT}&{query}");
        let headers = signature("PUT", &target, account, key);
        send(server.admin_address(), "PUT", &target, &headers.each_ref().map(|(name, value)| (*name, value.as_str())))
    };
    signed("finding=log-data", ACCOUNT, KEY).is_status(200);
    signed("finding=log-data", "other", other_key).is_status(404);
    let bearer = format!("Bearer {}", token(&server));
    let headers = [("authorization", bearer.as_str())];
    for (query, status) in [
        ("finding=nonsense", 400),
        ("finding=log-data&table=a%22b", 400),
        ("finding=log-data&reason=a%0Ab", 400),
        ("", 400),
        ("finding=log-data&account=other", 400),
    ] {
        assert_eq!(dismiss(&server, "PUT", query, &headers).status, status, "{query}");
    }
    for (method, status) in [("GET", 405), ("POST", 405)] {
        assert_eq!(dismiss(&server, method, "finding=log-data", &headers).status, status);
    }
    // Several at once: none is lost, and no more than 500 are kept.
    let results: Vec<u16> = std::thread::scope(|scope| {
        let put = |first: u32| {
            let (server, headers) = (&server, &headers);
            scope.spawn(move || {
                let put = |number| dismiss(server, "PUT", &format!("finding=row-by-row&table=t{number:03}"), headers);
                (first..first + 130).map(|number| put(number).status).collect::<Vec<u16>>()
            })
        };
        let threads: Vec<_> = [0, 130, 260, 390].map(put).into();
        threads.into_iter().flat_map(|thread| thread.join().expect("answers")).collect()
    });
    assert_eq!(results.iter().filter(|status| **status == 200).count(), 499, "one was there before");
    assert_eq!(results.iter().filter(|status| **status == 409).count(), 21);
    let advice = send(server.admin_address(), "GET", PATH, &headers).json();
    assert_eq!(advice["dismissals"].as_array().map(Vec::len), Some(500));
}
