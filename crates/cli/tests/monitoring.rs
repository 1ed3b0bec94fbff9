//! The page of metrics: what a client can change of it, and that the dashboard and the alert rules in `deploy/` name what
//! it has.

use larimar_testkit::http::{Client, exchange};
use larimar_testkit::{Launch, Server};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The names of series with the names of their labels.
type Served = BTreeMap<String, BTreeSet<String>>;

fn page(server: &Server) -> String {
    Client::new(server.admin_address()).anonymous().request("GET", "").target("/metrics").send().text().to_owned()
}

/// The name of a series and its labels.
fn series(line: &str) -> (&str, Vec<(&str, &str)>) {
    let (series, _) = line.rsplit_once(' ').expect("a series has a value");
    let Some((name, labels)) = series.split_once('{') else { return (series, Vec::new()) };
    let labels = labels.strip_suffix("\"}").expect("labels end").split("\",");
    (name, labels.map(|label| label.split_once("=\"").expect("a label has a value")).collect())
}

fn served(page: &str) -> Served {
    let mut all = Served::new();
    for (name, labels) in page.lines().filter(|line| !line.starts_with('#')).map(series) {
        all.entry(name.to_owned()).or_default().extend(labels.iter().map(|(label, _)| (*label).to_owned()));
    }
    all
}

/// A server with everything on that has metrics, after some traffic and a backup.
fn everything_on(folder: &Path) -> (Server, Served) {
    let text = |name: &str| folder.join(name).display().to_string();
    let launch = Launch::new(EXE, folder.join("data")).engine("local").argument("--analytics-flush=1h");
    let launch = launch.argument("--archive").argument(text("archive")).argument("--access-log");
    let server = launch.argument(text("access")).start();
    let (tables, queues, blobs) = (server.client(), server.queues(), server.blobs());
    tables.create_table("people");
    tables.insert("people", "p", "r", "");
    tables.get("/people()").query("$filter", "Age gt 5").send().is_status(200);
    queues.put("/jobs", "").send().is_status(201);
    blobs.put("/box?restype=container", "").send().is_status(201);
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let served = served(&page(&server));
        if ["larimar_backup_last_success_seconds", "larimar_blob_bytes"].iter().all(|name| served.contains_key(*name)) {
            return (server, served);
        }
        assert!(Instant::now() < until, "the archive takes a backup, and files are counted: {}", page(&server));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What a query in PromQL names.
#[derive(Debug, Default)]
struct Named {
    /// Series, with the labels that they are selected by.
    series: Vec<(String, Vec<String>)>,
    /// Labels that groups are made of.
    groups: Vec<String>,
}

impl Named {
    /// Reads a query as far as the files in `deploy/` need it, and refuses any other word.
    fn of(query: &str) -> Self {
        let mut named = Self::default();
        let mut depth = 0;
        let mut rest = query;
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
            let after = rest[word.len().max(first.len_utf8())..].trim_start();
            rest = match first {
                '{' => {
                    let (labels, after) = after.split_once('}').expect("a selector ends");
                    let name = |label: &str| label.split(['=', '!']).next().expect("a part").trim().to_owned();
                    let (_, selected) = named.series.last_mut().expect("a selector follows a name");
                    selected.extend(labels.split(", ").map(name));
                    after
                }
                '[' => after.split_once(']').expect("a range ends").1,
                _ if first.is_ascii_digit() => after.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit()),
                _ if word.is_empty() => {
                    depth += i32::from(first == '(') - i32::from(first == ')');
                    assert!(depth >= 0 && "()+-*/<>=, ".contains(first), "{first} in {query}");
                    after
                }
                _ if ["by", "on"].contains(&word) => {
                    let (labels, after) =
                        after.strip_prefix('(').and_then(|list| list.split_once(')')).expect("a list");
                    named.groups.extend(labels.split(", ").map(str::to_owned));
                    after
                }
                _ if FUNCTIONS.contains(&word) => {
                    assert!(after.starts_with('(') || after.starts_with("by ("), "{word} in {query}");
                    after
                }
                _ => {
                    if !["and", "or"].contains(&word) {
                        named.series.push((word.to_owned(), Vec::new()));
                    }
                    after
                }
            };
        }
        assert_eq!(depth, 0, "{query}");
        named
    }

    /// Refuses names and labels that a server does not serve.
    fn check(&self, query: &str, served: &Served) {
        assert!(!self.series.is_empty(), "{query} names no series");
        let mut known: BTreeSet<&str> = SCRAPED.into();
        // Prometheus itself adds the series `up`.
        let empty = BTreeSet::new();
        for (name, labels) in &self.series {
            let has =
                if name == "up" { &empty } else { served.get(name).unwrap_or_else(|| panic!("{name} in {query}")) };
            known.extend(has.iter().map(String::as_str));
            for label in labels {
                assert!(has.contains(label) || SCRAPED.contains(&label.as_str()), "{name} has no {label}: {query}");
            }
        }
        for label in &self.groups {
            assert!(known.contains(label.as_str()), "no series of {query} has {label}");
        }
    }
}

const FUNCTIONS: [&str; 9] =
    ["sum", "min", "count", "topk", "rate", "increase", "histogram_quantile", "predict_linear", "time"];
/// Labels that Prometheus adds to what it scrapes.
const SCRAPED: [&str; 2] = ["job", "instance"];

#[test]
fn a_query_is_read() {
    let named =
        Named::of("sum by (le, kind) (rate(a_total{job=~\"$job\", status=~\"5..\"}[5m])) / 2.5 > b or time() - c");
    assert_eq!(named.groups, ["le", "kind"]);
    let names: Vec<_> = named.series.iter().map(|(name, labels)| format!("{name} {}", labels.join(" "))).collect();
    assert_eq!(names, ["a_total job status", "b ", "c "]);
    for wrong in ["sum(a", "a)", "a; b", "rate a", "sum by a", "a{b", "a[5m"] {
        assert!(std::panic::catch_unwind(|| Named::of(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn the_dashboard_and_the_alerts_name_what_a_server_serves() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, served) = everything_on(folder.path());
    let dashboard = std::fs::read_to_string(format!("{ROOT}/deploy/grafana/larimar.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    let mut queries = 0;
    for panel in panels {
        assert!(panel["title"].as_str().is_some_and(|title| !title.is_empty()), "{panel}");
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{panel}");
        let at = |name: &str| panel["gridPos"][name].as_u64().expect("a number");
        assert!(at("x") + at("w") <= 24, "{panel}");
        if panel["type"] == "row" {
            continue;
        }
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{panel}");
        let targets = panel["targets"].as_array().expect("queries");
        assert!(!targets.is_empty(), "{panel}");
        for target in targets {
            let query = target["expr"].as_str().expect("a query");
            Named::of(query).check(query, &served);
            queries += 1;
        }
    }
    assert!(queries >= 40, "{queries}");
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        if let Some(query) = variable["definition"].as_str() {
            assert!(query.starts_with("label_values(larimar_build_info"), "{query}");
        }
    }
    let manual = std::fs::read_to_string(format!("{ROOT}/docs/monitoring.md")).expect("the page");
    for alert in alerts() {
        Named::of(&alert.query).check(&alert.query, &served);
        assert!(manual.contains(&format!("`{}`", alert.name)), "docs/monitoring.md says nothing of {}", alert.name);
    }
    drop(server);
}

/// A rule of `alerts.yml`.
struct Alert {
    name: String,
    query: String,
}

/// The alert rules. `deploy/check` parses the file as YAML; this reads the form that it has.
fn alerts() -> Vec<Alert> {
    let file = std::fs::read_to_string(format!("{ROOT}/deploy/prometheus/alerts.yml")).expect("the rules");
    let rules = file.split("      - alert: ").skip(1);
    let alerts: Vec<_> = rules
        .map(|rule| {
            let (name, fields) = rule.split_once('\n').expect("a rule has fields");
            let mut query: Option<String> = None;
            let mut is_query = false;
            for line in fields.lines().filter(|line| !line.trim_start().starts_with('#')) {
                if let Some(field) = line.strip_prefix("        ").filter(|field| !field.starts_with(' ')) {
                    is_query = field.starts_with("expr: ");
                }
                if is_query {
                    let part = line.trim().trim_start_matches("expr: ").trim_start_matches(">-");
                    let query = query.get_or_insert_default();
                    *query = format!("{query} {part}").trim().to_owned();
                }
            }
            for needed in ["        labels: {severity: ", "          summary: \""] {
                assert_eq!(fields.matches(needed).count(), 1, "{rule}");
            }
            Alert { name: name.to_owned(), query: query.expect("a rule has a query") }
        })
        .collect();
    assert_eq!(alerts.iter().map(|alert| &alert.name).collect::<BTreeSet<_>>().len(), alerts.len());
    assert!(alerts.len() >= 15, "{}", alerts.len());
    alerts
}

/// Accounts, hosts, methods, paths, headers and bodies that clients make up.
#[test]
fn clients_cannot_add_a_value_of_a_label() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Launch::new(EXE, folder.path().join("data")).start();
    let (tables, blobs) = (server.client(), server.blobs());
    tables.create_table("people");
    blobs.put("/box?restype=container", "").send().is_status(201);
    let send = |made_up: &str| {
        for address in [server.table_address(), server.queue_address(), server.blob_address()] {
            for (method, target, host) in [
                ("GET", format!("/{made_up}/people"), "x".to_owned()),
                ("GET", "/people".to_owned(), format!("{made_up}.table.core.windows.net")),
                (made_up, format!("/devstoreaccount1/{made_up}"), "x".to_owned()),
                ("PUT", format!("/devstoreaccount1/{made_up}?comp={made_up}&restype={made_up}"), "x".to_owned()),
            ] {
                let head = format!("{method} {target} HTTP/1.1\r\nhost: {host}\r\nx-ms-version: {made_up}\r\n");
                let _ = exchange(address, format!("{head}content-length: 0\r\nconnection: close\r\n\r\n").as_bytes());
            }
        }
        let _ = tables.get(&format!("/{made_up}()")).query("$filter", &format!("{made_up} eq 1")).send();
        let _ = tables.of_account(made_up, "a2V5").get("/Tables").send();
        blobs.put(&format!("/box/{made_up}"), "x").header("x-ms-blob-type", "BlockBlob").send().is_status(201);
    };
    let labels = || -> BTreeSet<String> {
        let page = page(&server);
        let lines = page.lines().filter(|line| !line.starts_with('#') && line.contains('{'));
        lines.map(|line| line.rsplit_once(' ').expect("a value").0.to_owned()).collect()
    };
    send("first");
    let before = labels();
    for number in 0..20 {
        send(&format!("made{number:02}"));
    }
    let added: Vec<_> = labels().difference(&before).cloned().collect();
    assert!(added.is_empty(), "{added:#?}");
    let page = page(&server);
    let accounts: BTreeSet<_> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| series(line).1)
        .filter_map(|(label, value)| (label == "account").then_some(value))
        .collect();
    assert_eq!(accounts, BTreeSet::from(["devstoreaccount1", "other"]));
    let count = |series: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(series)).unwrap_or_else(|| panic!("{series}"));
        line.trim().parse::<u64>().expect("a number")
    };
    let other = "larimar_account_requests_total{service=\"table\",account=\"other\",class=\"4xx\"}";
    assert!(count(other) >= 2 * 21, "{page}");
    let written = "larimar_account_requests_total{service=\"blob\",account=\"devstoreaccount1\",class=\"2xx\"}";
    assert_eq!(count(written), 22);
    assert_eq!(count("larimar_account_received_bytes_total{service=\"blob\",account=\"devstoreaccount1\"}"), 21);
}
