//! `x-larimar-explain`: what the server says about how it answered a query.

use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{Batch, Client, Response, Sas, entity_path};
use larimar_wire::uri::decode_path;

/// Two partitions, `a` and `b`, with the rows `r00` to `r49` and the property `N`.
fn serve(arguments: &[&str]) -> TemporaryServer {
    let arguments = [&["--durability", "async"], arguments].concat();
    let server = TemporaryServer::start(super::EXE, &arguments);
    let client = server.client();
    client.create_table("tab");
    for partition in ["a", "b"] {
        let rows = (0..50).fold(Batch::new(), |batch, row| {
            batch.insert(&client, "tab", partition, &format!("r{row:02}"), &format!("\"N\":{row}"))
        });
        assert!(rows.send(&client).statuses().iter().all(|status| *status == 204));
    }
    server
}

fn query(client: &Client, filter: &str, top: &str, explain: &str) -> Response {
    let request = client.get("/tab()").header("x-larimar-explain", explain);
    let request = if filter.is_empty() { request } else { request.query("$filter", filter) };
    if top.is_empty() { request.send() } else { request.query("$top", top).send() }
}

/// The decoded plan, and the rows read and returned.
fn explained(reply: &Response) -> (String, u64, u64) {
    reply.is_status(200);
    let header = |name: &str| reply.header(name).unwrap_or_else(|| panic!("{name}: {reply:?}"));
    let number = |name: &str| header(name).parse().expect("a number");
    assert!(number("x-larimar-time-us") > 0);
    let plan = decode_path(header("x-larimar-plan")).expect("percent-encoded").into_owned();
    (plan, number("x-larimar-rows-read"), number("x-larimar-rows-returned"))
}

fn is_unexplained(reply: &Response) -> bool {
    ["plan", "filter", "rows-read", "rows-returned", "time-us"]
        .iter()
        .all(|name| reply.header(&format!("x-larimar-{name}")).is_none())
}

#[test]
fn plans_and_rows_are_those_of_the_query() {
    let server = serve(&[]);
    let client = server.client();
    for (filter, top, plan, read, returned) in [
        ("", "", r#"table-scan [""/"" ..)"#, 100, 100),
        ("", "10", r#"table-scan [""/"" ..)"#, 11, 10),
        ("PartitionKey eq 'a' and RowKey eq 'r07'", "", r#"point "a"/"r07""#, 1, 1),
        ("PartitionKey eq 'a' and RowKey eq 'none'", "", r#"point "a"/"none""#, 0, 0),
        ("PartitionKey eq 'a' and (RowKey eq 'r01' or RowKey eq 'r49')", "", r#"points "a"/"r01" "a"/"r49""#, 2, 2),
        (
            "PartitionKey eq 'a' and RowKey ge 'r10' and RowKey lt 'r20'",
            "",
            r#"row-range ["a"/"r10" .. "a"/"r20")"#,
            10,
            10,
        ),
        ("PartitionKey eq 'a' and N lt 5", "", r#"partition-scan ["a"/"" .. "a\0"/"")"#, 50, 5),
        ("PartitionKey gt 'a' and N lt 5", "", r#"partition-range ["a\0"/"" ..)"#, 50, 5),
        ("N eq 5", "", r#"table-scan [""/"" ..)"#, 100, 2),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", "", "nothing", 0, 0),
    ] {
        let reply = query(&client, filter, top, "true");
        assert_eq!(explained(&reply), (plan.to_owned(), read, returned), "{filter} {top}");
        assert_eq!(reply.values().len() as u64, returned, "{filter}");
        let planned = query(&client, filter, top, "plan");
        assert_eq!(explained(&planned), (plan.to_owned(), 0, 0), "{filter}");
        assert_eq!(planned.values().len(), 0, "{filter}");
        assert_eq!(planned.header("x-ms-continuation-nextpartitionkey"), None, "{filter}");
    }
    let scan = query(&client, "PartitionKey eq 'a' and N lt 5", "", "true");
    assert_eq!(scan.header("x-larimar-filter"), Some("N%20lt%205"));
    // The second page has the plan of the query, and the rows of the page.
    let first = query(&client, "", "10", "true");
    let next = |name: &str| first.header(name).expect("another page").to_owned();
    let reply = client
        .get("/tab()")
        .query("NextPartitionKey", &next("x-ms-continuation-nextpartitionkey"))
        .query("NextRowKey", &next("x-ms-continuation-nextrowkey"))
        .header("x-larimar-explain", "true")
        .send();
    assert_eq!(explained(&reply), (r#"table-scan [""/"" ..)"#.to_owned(), 90, 90));
}

#[test]
fn a_read_by_both_keys_is_explained() {
    let server = serve(&[]);
    let client = server.client();
    let get = |row: &str, explain: &str| {
        client.get(&entity_path("tab", "a", row)).header("x-larimar-explain", explain).send()
    };
    let reply = get("r07", "true");
    assert_eq!(explained(&reply), (r#"point "a"/"r07""#.to_owned(), 1, 1));
    assert_eq!(reply.json()["N"], 7);
    let planned = get("r07", "plan");
    assert_eq!(explained(&planned), (r#"point "a"/"r07""#.to_owned(), 0, 0));
    assert_eq!(planned.values().len(), 0);
    get("none", "true").is_error(404, "ResourceNotFound");
}

#[test]
fn a_signature_for_a_range_learns_nothing_about_other_rows() {
    let server = serve(&[]);
    let sas = Sas::table("tab", "r").with("spk", "a").with("srk", "r10").with("epk", "a").with("erk", "r19");
    let client = server.client().with_sas(&sas.token());
    for (filter, read, returned) in [
        ("", 10, 10),
        ("N ge 0", 10, 10),
        ("PartitionKey eq 'b'", 0, 0),
        ("PartitionKey eq 'a' and N ge 18", 10, 2),
        ("PartitionKey eq 'a' and RowKey eq 'r20'", 0, 0),
    ] {
        let (plan, rows_read, rows_returned) = explained(&query(&client, filter, "", "true"));
        assert_eq!((rows_read, rows_returned), (read, returned), "{filter}");
        assert!(!plan.contains("\"b\""), "{plan}");
    }
    let outside = client.get(&entity_path("tab", "a", "r20")).header("x-larimar-explain", "plan").send();
    assert!(outside.status == 404 && is_unexplained(&outside));
}

#[test]
fn only_those_who_ask_get_an_explanation_and_other_values_are_refused() {
    let server = serve(&[]);
    let client = server.client();
    assert!(is_unexplained(&client.get("/tab()").send()));
    assert!(is_unexplained(&query(&client, "", "", "false")));
    query(&client, "", "", "yes").is_error(400, "InvalidHeaderValue");
    // A browser's page sees the headers only if a rule exposes them.
    let reply = client.get("/tab()").header("x-larimar-explain", "true").header("Origin", "http://a.test").send();
    assert_eq!(reply.header("access-control-expose-headers"), None);
    let long = format!("PartitionKey ge '{0}' and PartitionKey lt '{0}z' and N eq 1", "ü".repeat(500));
    let reply = query(&client, &long, "", "true");
    let bytes: usize = reply.headers.iter().filter(|(name, _)| name.starts_with("x-larimar-")).map(header_bytes).sum();
    assert!(bytes > 500 && bytes < 4096, "{bytes}");
}

fn header_bytes((name, value): &(String, String)) -> usize {
    name.len() + value.len() + 4
}

#[test]
fn a_strict_server_ignores_the_header() {
    let server = serve(&["--strict"]);
    let client = server.client();
    for explain in ["true", "plan", "nonsense"] {
        let reply = query(&client, "", "", explain);
        assert!(reply.status == 200 && reply.values().len() == 100 && is_unexplained(&reply), "{explain}");
    }
}
