//! Request logs in `$logs`.

use crate::analytics::fixture::{Fixture, Log, logging_part, set_properties};
use larimar_testkit::http::{ACCOUNT, Sas, entity_path};
use larimar_wire::analytics::{Period, log_hour_prefix, log_time};
use larimar_wire::sas::Service;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

const FLUSH: Duration = Duration::from_secs(300);
const HOUR: Duration = Duration::from_secs(3600);
const ALL: [bool; 3] = [true; 3];

/// The operations and outcomes of a log.
fn operations(logs: &[Log]) -> Vec<(String, String)> {
    logs.iter().flat_map(Log::lines).map(|fields| (fields[2].clone(), fields[3].clone())).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(operation, status)| ((*operation).to_owned(), (*status).to_owned())).collect()
}

#[test]
fn t13_requests_are_logged_to_a_blob_of_their_hour() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    let client = &server.client;
    client.create_table("people");
    assert!(fixture.logs().is_none());
    server.set_properties(&logging_part("1.0", ALL, None));
    // The place is there from the start, the logs are not.
    assert!(fixture.logs().expect("a container").is_empty());
    let first = fixture.now();
    let path = entity_path("people", "p q", "r");
    client.insert("people", "p q", "r", "");
    fixture.clock.advance(Duration::from_secs(7));
    let get = client.get(&path).header("user-agent", "one; \"two\"").header("x-ms-client-request-id", "mine");
    let read = get.header("referer", "http://contoso.com/?a&b").send();
    client.delete(&path).if_match("*").send().is_status(204);
    let later = fixture.now();
    server.after(FLUSH);
    let logs = fixture.logs().expect("a container");
    let [log] = logs.as_slice() else { panic!("{logs:?}") };
    assert_eq!(log.name, format!("{}000000.log", log_hour_prefix(Service::Table, first)));
    assert_eq!(log.metadata, [log_time(first), log_time(later), "read,write,delete".into(), "1.0".into()]);
    let lines = log.lines();
    let names = ["SetTableServiceProperties", "InsertEntity", "QueryEntity", "DeleteEntity"];
    assert_eq!(lines.iter().map(|fields| fields[2].as_str()).collect::<Vec<_>>(), names);
    assert!(lines.iter().all(|fields| fields.len() == 30), "{lines:?}");
    let entry: Vec<&str> = lines[2].iter().map(String::as_str).collect();
    assert_eq!(entry[..6], ["1.0", &later.to_seven_digits(), "QueryEntity", "Success", "200", entry[5]]);
    let milliseconds = |field: &str| field.parse::<u64>().expect("a number");
    assert!(milliseconds(entry[5]) >= milliseconds(entry[6]), "{entry:?}");
    assert_eq!(entry[7..11], ["authenticated", ACCOUNT, ACCOUNT, "table"]);
    assert_eq!(entry[11], format!("{}{path}", server.client.base()).replace('\'', "&#39;"));
    assert_eq!(entry[12], format!("/{ACCOUNT}/people"));
    assert_eq!(Some(entry[13]), read.header("x-ms-request-id"));
    assert_eq!(entry[14], "0");
    assert!(entry[15].starts_with("127.0.0.1:"), "{entry:?}");
    assert_eq!(Some(entry[16]), read.header("x-ms-version"));
    let sizes: Vec<u64> = entry[17..22].iter().map(|size| size.parse().expect("a size")).collect();
    assert!(sizes[0] > 100 && sizes[2] > 100, "{entry:?}");
    assert_eq!((sizes[1], sizes[3], sizes[4]), (0, read.body.len() as u64, 0));
    let etag = read.header("etag").expect("an etag").replace('"', "&quot;").replace('\'', "&#39;");
    assert_eq!(entry[22..25], ["", "", etag.as_str()]);
    assert_eq!(entry[25..28], ["", "", "one; &quot;two&quot;"]);
    assert_eq!(entry[28..], ["http://contoso.com/?a&amp;b", "mine"]);
    // The condition of the delete, the body of the insert.
    assert_eq!(lines[3][26], "If-Match=*");
    assert_eq!((lines[1][18].as_str(), lines[1][4].as_str()), (lines[1][21].as_str(), "201"));
}

#[test]
fn x3_only_what_is_switched_on_is_logged() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.set_properties(&logging_part("1.0", [false, false, true], None));
    let client = &server.client;
    client.create_table("people");
    client.insert("people", "p", "r", "");
    client.get("/people()").send().is_status(200);
    client.delete(&entity_path("people", "p", "r")).if_match("*").send().is_status(204);
    client.delete("/Tables('other')").send().is_status(404);
    server.set_properties(&logging_part("1.0", [false; 3], None));
    server.client.delete("/Tables('people')").send().is_status(204);
    server.after(FLUSH);
    let logs = fixture.logs().expect("a container");
    assert_eq!(operations(&logs), pairs(&[("DeleteEntity", "Success"), ("DeleteTable", "ResourceNotFound")]));
    assert_eq!(logs[0].metadata[2], "delete");
}

#[test]
fn x3_who_asked_is_told_but_no_secrets() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.client.create_table("people");
    server.set_properties(&logging_part("1.0", [true, false, false], None));
    let client = &server.client;
    let token = Sas::table("people", "r").token();
    let guest = client.with_sas(&token);
    guest.get("/people()").send().is_status(200);
    guest.get("/other()").send().is_status(403);
    client.anonymous().get("/people()").send().is_status(401);
    // A request whose signature is wrong is anonymous.
    let wrong = client.get("/people()").unsigned().header("authorization", "SharedKey devstoreaccount1:AAAA");
    wrong.send().is_status(403);
    client.get("/people()").unsigned().header("authorization", "junk").send().is_status(400);
    client.with_sas("sv=2019-02-02&tn=people&sp=r&se=2099-01-01&sig=junk").get("/people()").send().is_status(403);
    client.with_sas("sig=junk").get("/people()").send().is_status(403);
    client.get("/people(1").header("x-ms-version", "2015-12-11").send().is_status(400);
    server.after(FLUSH);
    let logs = fixture.logs().expect("a container");
    // A stranger who was turned away is not the owner's business.
    let expected =
        [("QueryEntities", "SASSuccess"), ("QueryEntities", "SASAuthorizationError"), ("Unknown", "ClientOtherError")];
    assert_eq!(operations(&logs), pairs(&expected));
    let lines = logs[0].lines();
    assert_eq!((lines[0][7].as_str(), lines[0][8].as_str()), ("sas", ""));
    assert!(lines[0][11].contains("&amp;sig=XXXXX"), "{lines:?}");
    let secret = token.split('&').find_map(|part| part.strip_prefix("sig=")).expect("a signature");
    assert!(!logs[0].text.contains(secret));
}

#[test]
fn x3_each_flush_has_a_blob_of_its_own_also_of_other_servers_and_after_a_restart() {
    let fixture = Fixture::new();
    let mut one = fixture.server();
    one.client.create_table("people");
    one.set_properties(&logging_part("1.0", [false, true, false], None));
    let mut other = fixture.server();
    for number in 0..3 {
        one.client.insert("people", "one", &number.to_string(), "");
        other.client.insert("people", "other", &number.to_string(), "");
        one.flush();
        other.flush();
    }
    drop(one);
    let mut again = fixture.server();
    again.client.insert("people", "again", "0", "");
    again.flush();
    let logs = fixture.logs().expect("a container");
    let names: Vec<&str> = logs.iter().map(|log| &log.name[log.name.len() - 10..]).collect();
    let expected: Vec<String> = (0..7).map(|number| format!("{number:06}.log")).collect();
    assert_eq!(names, expected);
    let inserts = operations(&logs).into_iter().filter(|(operation, _)| operation == "InsertEntity").count();
    assert_eq!(inserts, 7);
}

#[test]
fn x3_an_hour_that_ends_has_its_log_at_once() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.set_properties(&logging_part("1.0", [false, true, false], None));
    server.tick();
    let start = fixture.now();
    fixture.clock.set(Period::Hour.next(Period::Hour.start(start)));
    server.tick();
    let logs = fixture.logs().expect("a container");
    assert_eq!(operations(&logs), pairs(&[("SetTableServiceProperties", "Success")]));
    assert!(logs[0].name.starts_with(&log_hour_prefix(Service::Table, start)), "{logs:?}");
}

#[test]
fn x3_queues_log_in_the_second_form_tables_do_not() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    let second = logging_part("2.0", [false, true, false], None);
    set_properties(&server.queues, &second);
    let xml = format!("<StorageServiceProperties>{second}</StorageServiceProperties>");
    server.client.put("/?restype=service&comp=properties", xml).send().is_error(400, "InvalidXmlDocument");
    server.queues.put("/jobs", "").send().is_status(201);
    server.after(FLUSH);
    let logs = fixture.logs().expect("a container");
    let [log] = logs.as_slice() else { panic!("{logs:?}") };
    let lines = log.lines();
    assert!(log.name.starts_with("queue/") && log.metadata[3] == "2.0", "{log:?}");
    assert_eq!((lines[1][0].as_str(), lines[1][2].as_str(), lines[1].len()), ("2.0", "CreateQueue", 38));
    assert_eq!((lines[1][10].as_str(), lines[1][12].as_str()), ("queue", "/devstoreaccount1/jobs"));
}

#[test]
fn x3_logs_are_kept_as_long_as_wished_for() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.set_properties(&logging_part("1.0", [false, true, false], Some(3)));
    set_properties(&server.queues, &logging_part("1.0", [false, true, false], None));
    // The hour of the requests: the log may be written in the next one.
    let kept = Period::Hour.start(fixture.now()).after(3 * 24 * HOUR);
    server.after(FLUSH);
    let names = || fixture.logs().expect("a container").into_iter().map(|log| log.name).collect::<Vec<_>>();
    let services = |names: Vec<String>| names.iter().map(|name| name[..5].to_owned()).collect::<Vec<_>>();
    fixture.clock.set(kept);
    server.tick();
    assert_eq!(services(names()), ["queue", "table"]);
    fixture.clock.set(kept.after(HOUR));
    server.tick();
    assert_eq!(services(names()), ["queue"]);
}

#[test]
fn x3_a_log_that_cannot_be_written_is_kept_until_it_can() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.set_properties(&logging_part("1.0", [false, true, false], None));
    server.client.create_table("people");
    fixture.bytes.is_full.store(true, SeqCst);
    server.after(FLUSH);
    assert!(fixture.logs().expect("a container").is_empty());
    server.client.insert("people", "p", "r", "");
    fixture.bytes.is_full.store(false, SeqCst);
    server.after(FLUSH);
    let logs = fixture.logs().expect("a container");
    let expected = [("SetTableServiceProperties", "Success"), ("CreateTable", "Success"), ("InsertEntity", "Success")];
    assert_eq!(operations(&logs), pairs(&expected));
}

#[test]
fn x3_strangers_cannot_fill_the_logs() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.set_properties(&logging_part("1.0", ALL, None));
    server.flush();
    let long = "x".repeat(20_000);
    for number in 0..50 {
        let client = &server.client;
        let request = client.get(&format!("/people(PartitionKey='{long}',RowKey='{number}')")).unsigned();
        let request =
            request.header("user-agent", long.as_str()).header("authorization", "SharedKey devstoreaccount1:AAAA");
        assert!(request.send().status < 500);
        let junk = format!("/people()?$filter={long}&sig=junk&sv=2019-02-02&tn=people&sp=r&se=2099-01-01");
        assert!(client.anonymous().get(&junk).send().status < 500);
    }
    server.flush();
    let logged: Vec<String> =
        operations(&fixture.logs().expect("a container")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(logged, ["SetTableServiceProperties"]);
}

#[test]
fn x3_no_field_of_a_log_is_longer_than_it_may_be() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.client.create_table("people");
    server.set_properties(&logging_part("1.0", [true, false, false], None));
    // Each quote takes six bytes in a log.
    let long = "\"".repeat(9_000);
    let client = &server.client;
    let get = client.get("/people()").query("$filter", &format!("PartitionKey eq '{}'", "y".repeat(20_000)));
    let get = get.header("user-agent", long.as_str()).header("referer", long.as_str());
    get.header("if-match", long.as_str()).send().is_status(200);
    server.after(FLUSH);
    let logs = fixture.logs().expect("a container");
    let lines = logs[0].lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].iter().all(|field| field.len() <= 4200), "{:?}", lines[0]);
    assert!(lines[0][11].starts_with(server.client.base().as_str()) && lines[0][11].ends_with("..."), "{lines:?}");
    assert!(logs[0].text.len() < 20_000, "{} bytes", logs[0].text.len());
}

#[test]
fn x3_a_signature_in_a_referrer_cannot_be_read_back() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.client.create_table("people");
    server.set_properties(&logging_part("1.0", [true, false, false], None));
    for referrer in [
        "https://h/c/b?sv=2020&sig=s3cret%2B%3D&se=2030",
        "https://h/c/b?SIG=s3cret",
        "https://h/?next=https%3A%2F%2Fh%2Fb%3Fsv%3D1%26sig%3Ds3cret%252B%26se%3D2",
        "https://h/#/open?sig=s3cret",
        "https://h/c/b?s%69g=s3cret",
    ] {
        server.client.get("/people()").header("referer", referrer).header("user-agent", referrer).send().is_status(200);
    }
    server.after(FLUSH);
    let logs = fixture.logs().expect("a container");
    let lines = logs[0].lines();
    assert_eq!(lines.len(), 5);
    assert!(!logs[0].text.contains("s3cret"), "{}", logs[0].text);
    assert_eq!(lines[0][28], "https://h/c/b?sv=2020&amp;sig=XXXXX&amp;se=2030");
}

#[test]
fn x3_logs_that_cannot_be_removed_do_not_keep_those_behind_them() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.set_properties(&logging_part("1.0", [false, true, false], Some(1)));
    // More than one page of logs, all but the last of them under a lease without an end.
    for _ in 0..502 {
        server.set_properties(&logging_part("1.0", [false, true, false], Some(1)));
        server.flush();
    }
    let names = || fixture.logs().expect("a container").into_iter().map(|log| log.name).collect::<Vec<_>>();
    let all = names();
    for name in &all[..all.len() - 1] {
        let lease = server.blobs.put(&format!("/$logs/{name}?comp=lease"), "");
        lease.header("x-ms-lease-action", "acquire").header("x-ms-lease-duration", "-1").send().is_status(201);
    }
    fixture.clock.advance(50 * HOUR);
    server.tick();
    server.after(Duration::from_secs(1));
    let left = names();
    assert_eq!(left.len(), all.len() - 1, "only the log without a lease is removed");
    assert!(!left.contains(&all[all.len() - 1]));
}
