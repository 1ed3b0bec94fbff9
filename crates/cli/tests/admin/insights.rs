//! Insights at the admin endpoint: who may read and remove them, what they count, and that they survive a restart.

use super::{launch, send, signature, token};
use larimar_testkit::Server;
use larimar_testkit::http::{ACCOUNT, Batch, Client, KEY, Response, Sas, entity, entity_path};
use serde_json::Value;
use std::time::{Duration, Instant};

const OTHER_KEY: &str = "a2V5IG9uZQ==";
const PATH: &str = "/insights?account=devstoreaccount1";
/// A key that must not be seen by others.
const SECRET: &str = "secret-partition";

fn signed(server: &Server, method: &str, target: &str, account: &str, key: &str) -> Response {
    let headers = signature(method, target, account, key);
    send(server.admin_address(), method, target, &headers.each_ref().map(|(name, value)| (*name, value.as_str())))
}

fn with_token(server: &Server, method: &str, target: &str) -> Response {
    send(server.admin_address(), method, target, &[("authorization", &format!("Bearer {}", token(server)))])
}

fn report(server: &Server) -> Value {
    let reply = with_token(server, "GET", PATH);
    reply.is_status(200);
    reply.json()
}

/// The figures of a table.
fn table<'a>(report: &'a Value, name: &str) -> &'a Value {
    let tables = report["tables"].as_array().expect("a list");
    tables.iter().find(|table| table["table"] == name).unwrap_or_else(|| panic!("{name} is not in {report}"))
}

fn number(json: &Value, name: &str) -> u64 {
    json[name].as_u64().unwrap_or_else(|| panic!("{name} is not in {json}"))
}

/// The figures of one kind of operations of a table: requests, and how many of them were done.
fn operation(report: &Value, name: &str, operation: &str) -> (u64, u64) {
    let operations = table(report, name)["operations"].as_array().expect("a list");
    let found = operations.iter().find(|figures| figures["operation"] == operation);
    found.map_or((0, 0), |figures| (number(figures, "requests"), number(figures, "done")))
}

/// A server with two accounts and a table with one secret entity.
fn serve(folder: &tempfile::TempDir) -> Server {
    let accounts = format!("{ACCOUNT}:{KEY};other:{OTHER_KEY}");
    let server = launch(folder).environment("LARIMAR_ACCOUNTS", &accounts).start();
    server.client().create_table("orders");
    server.client().insert("orders", SECRET, "r", "");
    server
}

#[test]
fn only_the_token_the_key_and_an_account_signature_open_them() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = serve(&folder);
    let limited = |sas: Sas| sas.with("spk", SECRET).with("epk", SECRET);
    let of_other_service = |service: &str| Sas::account("sco", "rwdlacup").with("ss", service);
    let expired = Sas::account("sco", "rwdlacup").with("se", "2020-01-01T00:00:00Z");
    let not_begun =
        Sas::account("sco", "rwdlacup").with("st", "2090-01-01T00:00:00Z").with("se", "2091-01-01T00:00:00Z");
    let tokens = [
        ("of a table", Sas::table("orders", "raud").token()),
        ("of a range of keys", limited(Sas::table("orders", "raud")).token()),
        ("of a policy", Sas::policy("orders", "id").token()),
        ("of a queue", Sas::queue("jobs", "raup").token()),
        ("of a container", Sas::container("box", "rwdl").token()),
        ("of a blob", Sas::blob("box", "file", "rwd").token()),
        ("of blobs", of_other_service("b").token()),
        ("of queues", of_other_service("q").token()),
        ("of blobs and queues", of_other_service("bq").token()),
        ("expired", expired.token()),
        ("not begun", not_begun.token()),
        ("for another address", Sas::account("sco", "rwdlacup").with("sip", "203.0.113.7").token()),
        ("for https alone", Sas::account("sco", "rwdlacup").with("spr", "https").token()),
        ("by the key of another account", Sas::account("sco", "rwdlacup").token_signed_with(OTHER_KEY)),
        ("without a time of expiry", Sas::account("sco", "rwdlacup").without("se").token()),
        ("changed", Sas::account("sco", "rwdlacup").token().replace("sp=rwdlacup", "sp=rwdlacupx")),
        ("with a table's fields, too", format!("{}&tn=orders&tn=orders", Sas::account("sco", "rl").token())),
    ];
    for (what, token) in &tokens {
        for method in ["GET", "DELETE"] {
            is_refused(what, &send(server.admin_address(), method, &format!("{PATH}&{token}"), &[]), 401);
        }
    }
    is_refused("the key of another account", &signed(&server, "GET", PATH, "other", OTHER_KEY), 404);
    is_refused("the key of another account", &signed(&server, "DELETE", PATH, "other", OTHER_KEY), 404);
    is_refused("a wrong key", &signed(&server, "GET", PATH, ACCOUNT, OTHER_KEY), 401);
    is_refused("a wrong token", &send(server.admin_address(), "GET", PATH, &[("authorization", "Bearer x")]), 401);
    is_refused("nothing", &send(server.admin_address(), "GET", PATH, &[]), 401);
    is_shown_to_those_who_may_see(&server);
}

#[test]
fn an_account_signature_needs_the_permissions() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = serve(&folder);
    for (types, letters) in
        [("sco", "wdacup"), ("sco", "r"), ("sco", "l"), ("sc", "rwdlacup"), ("s", "rl"), ("c", "rl")]
    {
        let token = Sas::account(types, letters).token();
        is_refused(letters, &send(server.admin_address(), "GET", &format!("{PATH}&{token}"), &[]), 401);
    }
    for (types, letters) in [("sco", "rlwacup"), ("sc", "d")] {
        let token = Sas::account(types, letters).token();
        is_refused(letters, &send(server.admin_address(), "DELETE", &format!("{PATH}&{token}"), &[]), 401);
    }
    let of_account = Sas::account("o", "rl").token();
    for (method, target) in [
        ("GET", format!("/insights?account=other&{of_account}")),
        ("GET", format!("/insights?{of_account}")),
        ("GET", format!("/none?account={ACCOUNT}&{of_account}")),
        ("POST", format!("/reset?account={ACCOUNT}&{of_account}")),
    ] {
        is_refused(&target, &send(server.admin_address(), method, &target, &[]), 401);
    }
    is_shown_to_those_who_may_see(&server);
    assert_eq!(number(&with_token(&server, "GET", "/insights?account=other").json(), "otherRequests"), 0);
}

/// Nothing was removed, and those who may see the figures do.
fn is_shown_to_those_who_may_see(server: &Server) {
    let of_account = Sas::account("o", "rl").token();
    let by_signature = send(server.admin_address(), "GET", &format!("{PATH}&{of_account}"), &[]);
    for reply in [by_signature, signed(server, "GET", PATH, ACCOUNT, KEY), with_token(server, "GET", PATH)] {
        reply.is_status(200);
        assert_eq!(operation(&reply.json(), "orders", "insert"), (1, 1));
        assert!(reply.text().contains(SECRET));
    }
}

fn is_refused(what: &str, reply: &Response, status: u16) {
    assert_eq!(reply.status, status, "{what}: {}", reply.text());
    assert!(!reply.text().contains(SECRET) && !reply.text().contains("orders"), "{what}: {}", reply.text());
}

#[test]
fn they_count_requests_survive_a_restart_and_can_be_removed() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = serve(&folder);
    let client = server.client();
    assert_eq!(client.post("/orders", entity(SECRET, "r", "")).send().status, 409);
    assert_eq!(client.get(&entity_path("orders", SECRET, "r")).send().status, 200);
    assert_eq!(client.get(&entity_path("orders", SECRET, "none")).send().status, 404);
    client.get("/orders()").query("$filter", "Price gt 7").send().is_status(200);
    client.get("/orders()").query("$filter", "Price gt 8").send().is_status(200);
    let batch = Batch::new().insert(&client, "orders", "p", "1", "").insert(&client, "orders", "p", "2", "");
    assert_eq!(batch.send(&client).statuses(), [204, 204]);
    let check = |server: &Server| {
        let report = report(server);
        assert_eq!(operation(&report, "orders", "insert"), (2, 1));
        assert_eq!(operation(&report, "orders", "get"), (2, 1));
        assert_eq!(operation(&report, "orders", "query"), (2, 2));
        assert_eq!(operation(&report, "orders", "transaction"), (1, 1));
        let orders = table(&report, "orders");
        let shape = &orders["shapes"][0];
        assert_eq!((number(shape, "queries"), orders["shapes"].as_array().map(Vec::len)), (2, Some(1)), "{shape}");
        assert!(
            shape["shape"].as_str().is_some_and(|shape| shape.contains("Price") && !shape.contains('7')),
            "{shape}"
        );
        assert_eq!(shape["plan"], "table-scan");
        let partition = &orders["partitions"][0];
        assert_eq!(partition["partition"], SECRET);
        assert_eq!((number(partition, "reads"), number(partition, "writes")), (2, 2));
        assert_eq!(number(partition, "conflicts"), 1);
        assert_eq!(number(orders, "transactionWrites"), 2);
        report
    };
    let before = check(&server);
    let (launch, _) = server.stop();
    let server = launch.start();
    let after = check(&server);
    assert_eq!(before["tables"], after["tables"]);
    // A signature that may delete removes them; another account has nothing to do with it.
    let target = format!("{PATH}&{}", Sas::account("o", "d").token());
    send(server.admin_address(), "DELETE", &target, &[]).is_status(200);
    assert_eq!(report(&server)["tables"].as_array().map(Vec::len), Some(0));
    let (launch, _) = server.stop();
    let server = launch.start();
    assert_eq!(report(&server)["tables"].as_array().map(Vec::len), Some(0));
}

/// The output of `larimar insights`, and whether it succeeded.
fn run(server: &Server, arguments: &[&str]) -> (bool, String) {
    let mut command = std::process::Command::new(super::EXE);
    command.arg("insights").arg("--data-dir").arg(server.data()).args(arguments);
    command.args(["--admin-port", &server.admin_address().port().to_string()]);
    command.env("XDG_RUNTIME_DIR", server.runtime_directory());
    let output = command.output().expect("the binary runs");
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn the_command_shows_and_removes_them() {
    let folder = tempfile::tempdir().expect("a directory");
    if launch(&folder).database().is_some() {
        return;
    }
    let server = launch(&folder).start();
    server.client().create_table("orders");
    server.client().insert("orders", SECRET, "r", "");
    let (is_done, shown) = run(&server, &["orders", "--since", "30m"]);
    assert!(is_done, "{shown}");
    for part in ["orders: 1 requests", "insert", SECRET, "heat by key"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert_eq!(run(&server, &["--erase"]), (true, "removed\n".to_owned()));
    let (is_done, shown) = run(&server, &[]);
    assert!(is_done && shown.contains("no requests to tables"), "{shown}");
    let (is_done, shown) = run(&server, &["--account", "none"]);
    assert!(!is_done && shown.contains("404"), "{shown}");
}

#[test]
fn a_server_without_them_says_so() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--insights=false").start();
    server.client().create_table("orders");
    server.client().insert("orders", SECRET, "r", "");
    let reply = with_token(&server, "GET", PATH);
    assert_eq!(reply.status, 404);
    assert!(reply.text().contains("insights are off"), "{}", reply.text());
}

/// The longest keys, keys that terminals and JSON could misread, and keys that no client may send.
#[test]
fn hostile_keys_are_shown_whole_or_cut_and_never_raw() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    let client = server.client();
    client.create_table("orders");
    let longest = "\u{10FFFF}".repeat(256);
    let keys = [&*longest, "\u{202E}gnp.exe", "quote'\"", "\u{FFFE}\u{FEFF}", "<script>", "a\u{85}b"];
    let mut accepted = 0;
    for key in keys {
        let body = serde_json::json!({ "PartitionKey": key, "RowKey": key }).to_string();
        let status = client.post("/orders", body).send().status;
        assert!([204, 201, 400].contains(&status), "{status} for {key:?}");
        accepted += u64::from(status != 400);
    }
    assert!(accepted >= 3, "{accepted}");
    for key in ["\\ud800", "\\udc00x", "\\u0000", "\\u001b[31m"] {
        let body = format!("{{\"PartitionKey\":\"{key}\",\"RowKey\":\"r\"}}");
        client.post("/orders", body).send().is_status(400);
    }
    let report = report(&server);
    assert_eq!(operation(&report, "orders", "insert"), (accepted, accepted));
    let orders = table(&report, "orders");
    let partitions = orders["partitions"].as_array().expect("a list");
    assert_eq!(partitions.len() as u64, accepted);
    for partition in partitions {
        let shown = partition["partition"].as_str().expect("a text");
        assert!(keys.iter().any(|key| key.starts_with(shown)) && shown.len() <= 96, "{shown:?}");
    }
    if launch(&folder).database().is_none() {
        let (is_done, shown) = run(&server, &["orders", "--since", "30m"]);
        assert!(is_done, "{shown}");
        let raw = shown.chars().find(|c| (c.is_control() && *c != '\n') || ('\u{202A}'..='\u{202E}').contains(c));
        assert_eq!(raw, None, "{shown:?}");
    }
}

/// Each request has a new table, partition and shape; the figures of another table stay exact, and neither the report nor
/// the memory grows. `LARIMAR_ATTACK_SECONDS=600` makes it longer.
#[test]
fn made_up_tables_partitions_and_shapes_do_not_hide_the_others() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--durability=async").argument("--log-level=warn").start();
    let client = server.client();
    client.create_table("victim");
    client.insert("victim", "p", "r", "");
    let seconds = std::env::var("LARIMAR_ATTACK_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2);
    let until = Instant::now() + Duration::from_secs(seconds);
    let (mut rounds, mut bytes_max) = (0_u64, 0);
    while Instant::now() < until || rounds < 40 {
        attack(&client, rounds);
        client.get(&entity_path("victim", "p", "r")).send().is_status(200);
        rounds += 1;
        if rounds.is_multiple_of(1000) {
            bytes_max = bytes_max.max(resident_bytes(&server));
        }
    }
    let reply = with_token(&server, "GET", PATH);
    let report = reply.json();
    assert_eq!(operation(&report, "victim", "get"), (rounds, rounds));
    assert_eq!(number(&table(&report, "victim")["partitions"][0], "reads"), rounds);
    let tables = report["tables"].as_array().expect("a list");
    let counted: u64 = tables.iter().map(|table| number(table, "requests")).sum();
    assert_eq!(counted + number(&report, "otherRequests"), 3 * rounds + 1, "no request is lost or counted twice");
    assert!(tables.len() <= 32, "{}", tables.len());
    assert!(reply.text().len() < 4 << 20, "{}", reply.text().len());
    bytes_max = bytes_max.max(resident_bytes(&server));
    let (report_bytes, disk_bytes) = (reply.text().len(), directory_bytes(&server.data()));
    let [memory, disk] = [bytes_max >> 20, disk_bytes >> 20];
    println!("{rounds} rounds, report of {report_bytes} bytes, {memory} MiB resident, {disk} MiB on disk");
    assert!(bytes_max < 600 << 20, "{bytes_max}");
    // The journal, the rows of insights, and dropped tables that are not reclaimed yet.
    assert!(disk_bytes < 512 << 20, "{disk_bytes}");
}

/// A new table with a new partition, and a query of a new shape; then the table goes, so that the catalogue stays small.
fn attack(client: &Client, round: u64) {
    let (table, partition) = (format!("made{round}up"), format!("{round:0>200}"));
    client.create_table(&table);
    client.insert(&table, &partition, "r", "");
    let filter = format!("P{round} eq 1 and PartitionKey eq '{partition}'");
    client.get(&format!("/{table}()")).query("$filter", &filter).send().is_status(200);
    client.delete(&format!("/Tables('{table}')")).send().is_status(204);
}

/// The bytes of the files in a directory; some may go while it is read.
fn directory_bytes(directory: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        Some(if metadata.is_dir() { directory_bytes(&entry.path()) } else { metadata.len() })
    });
    bytes.sum()
}

/// The memory of a server's process.
fn resident_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    kilobytes.and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok()).unwrap_or_default() << 10
}
