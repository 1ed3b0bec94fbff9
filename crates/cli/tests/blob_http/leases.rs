//! Leases of blobs and containers: the whole table of states, over HTTP. What only time brings is tested in the engine.

use super::{block_blob, content, header, make_container, properties, put, serve, serve_container};
use larimar_testkit::http::{Client, Response};

const A: &str = "aaaaaaaa-0000-4000-8000-000000000000";
const B: &str = "bbbbbbbb-0000-4000-8000-000000000000";

/// A lease operation on a blob or, with its query, a container.
fn lease(client: &Client, path: &str, action: &str, headers: &[(&str, &str)]) -> Response {
    let separator = if path.contains('?') { '&' } else { '?' };
    let request = client.request("PUT", &format!("{path}{separator}comp=lease")).header("x-ms-lease-action", action);
    headers.iter().fold(request, |request, (name, value)| request.header(name, *value)).send()
}

fn acquire(client: &Client, path: &str, id: &str) -> Response {
    lease(client, path, "acquire", &[("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", id)])
}

fn of(id: &str) -> [(&'static str, &str); 1] {
    [("x-ms-lease-id", id)]
}

/// Brings something new into a state, with the lease A where there is one.
fn bring(client: &Client, path: &str, state: &str) {
    if state != "available" {
        acquire(client, path, A).is_status(201);
    }
    match state {
        "breaking" => lease(client, path, "break", &[("x-ms-lease-break-period", "60")]).is_status(202),
        "broken" => lease(client, path, "break", &[]).is_status(202),
        _ => {}
    }
    let answer = client.request("HEAD", path).send();
    let status = if ["leased", "breaking"].contains(&state) { "locked" } else { "unlocked" };
    assert_eq!((answer.header("x-ms-lease-state"), answer.header("x-ms-lease-status")), (Some(state), Some(status)));
    let duration = (state == "leased").then_some("infinite");
    assert_eq!(answer.header("x-ms-lease-duration"), duration, "{answer}");
}

const PRESENT: (u16, &str) = (409, "LeaseAlreadyPresent");
const MISMATCH: (u16, &str) = (409, "LeaseIdMismatchWithLeaseOperation");
const NO_LEASE: (u16, &str) = (409, "LeaseNotPresentWithLeaseOperation");

/// Each operation in each state: status and, for refusals, code. The rows are those of the service's reference.
type Row = (&'static str, &'static [(&'static str, &'static str)], [(u16, &'static str); 4]);

const STATES: [&str; 4] = ["available", "leased", "breaking", "broken"];
const TABLE: [Row; 12] = [
    ("acquire", &[("x-ms-lease-duration", "-1")], [(201, ""), PRESENT, PRESENT, (201, "")]),
    (
        "acquire",
        &[("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", A)],
        [(201, ""), (201, ""), (409, "LeaseIsBreakingAndCannotBeAcquired"), (201, "")],
    ),
    (
        "acquire",
        &[("x-ms-lease-duration", "60"), ("x-ms-proposed-lease-id", B)],
        [(201, ""), PRESENT, PRESENT, (201, "")],
    ),
    ("break", &[], [NO_LEASE, (202, ""), (202, ""), (202, "")]),
    ("break", &[("x-ms-lease-break-period", "0")], [NO_LEASE, (202, ""), (202, ""), (202, "")]),
    ("break", &[("x-ms-lease-break-period", "30")], [NO_LEASE, (202, ""), (202, ""), (202, "")]),
    (
        "change",
        &[("x-ms-lease-id", A), ("x-ms-proposed-lease-id", B)],
        [NO_LEASE, (200, ""), (409, "LeaseIsBreakingAndCannotBeChanged"), NO_LEASE],
    ),
    (
        "change",
        &[("x-ms-lease-id", B), ("x-ms-proposed-lease-id", "cccccccc-0000-4000-8000-000000000000")],
        [NO_LEASE, MISMATCH, MISMATCH, NO_LEASE],
    ),
    (
        "renew",
        &[("x-ms-lease-id", A)],
        [MISMATCH, (200, ""), (409, "LeaseIsBrokenAndCannotBeRenewed"), (409, "LeaseIsBrokenAndCannotBeRenewed")],
    ),
    ("renew", &[("x-ms-lease-id", B)], [MISMATCH; 4]),
    ("release", &[("x-ms-lease-id", A)], [MISMATCH, (200, ""), (200, ""), (200, "")]),
    ("release", &[("x-ms-lease-id", B)], [MISMATCH; 4]),
];

fn try_table(client: &Client, fresh: impl Fn(usize) -> String) {
    let mut number = 0;
    for (action, headers, outcomes) in TABLE {
        for (state, (status, code)) in STATES.into_iter().zip(outcomes) {
            number += 1;
            let path = fresh(number);
            bring(client, &path, state);
            let reply = lease(client, &path, action, headers);
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (status, code),
                "{action} {headers:?} when {state}: {reply}"
            );
            let has_id = ["acquire", "renew", "change"].contains(&action) && code.is_empty();
            assert_eq!(reply.header("x-ms-lease-id").is_some(), has_id, "{action}: {reply}");
            assert_eq!(reply.header("x-ms-lease-time").is_some(), action == "break" && code.is_empty(), "{reply}");
            if code.is_empty() {
                assert!(header(&reply, "ETag").starts_with("\"0x8D") && reply.header("Last-Modified").is_some());
            }
        }
    }
}

#[test]
fn x2_every_lease_operation_on_a_blob_in_every_state() {
    let server = serve_container();
    let client = server.blobs();
    try_table(&client, |number| {
        let path = format!("/box/blob{number}");
        put(&client, &path, "x");
        path
    });
}

#[test]
fn x2_every_lease_operation_on_a_container_in_every_state() {
    let server = serve();
    let client = server.blobs();
    try_table(&client, |number| {
        make_container(&client, &format!("box{number}"));
        format!("/box{number}?restype=container")
    });
}

#[test]
fn x2_writes_and_reads_of_a_blob_in_every_state() {
    let server = serve_container();
    let client = server.blobs();
    const OK: (u16, &str) = (200, "");
    const ABSENT: (u16, &str) = (412, "LeaseNotPresentWithBlobOperation");
    const WRONG: (u16, &str) = (412, "LeaseIdMismatchWithBlobOperation");
    const MISSING: (u16, &str) = (412, "LeaseIdMissing");
    const LOST: (u16, &str) = (412, "LeaseLost");
    // With A, with B, with none.
    let writes = [[ABSENT, ABSENT, OK], [OK, WRONG, MISSING], [OK, WRONG, MISSING], [LOST, WRONG, OK]];
    let reads = [[ABSENT, ABSENT, OK], [OK, WRONG, OK], [OK, WRONG, OK], [LOST, WRONG, OK]];
    for (n, state) in STATES.into_iter().enumerate() {
        for (m, id) in [Some(A), Some(B), None].into_iter().enumerate() {
            let path = format!("/box/{state}{m}");
            put(&client, &path, "x");
            bring(&client, &path, state);
            let send = |method: &str, query: &str| {
                let request = client.request(method, &format!("{path}{query}"));
                let request = id.map_or(request.clone(), |id| request.header("x-ms-lease-id", id));
                let reply = request.send();
                (reply.status, reply.code())
            };
            let expected = |(status, code): (u16, &str)| (status, code.to_owned());
            for query in ["", "?comp=metadata", "?comp=blocklist"] {
                assert_eq!(send("GET", query), expected(reads[n][m]), "GET {query} {id:?} when {state}");
            }
            assert_eq!(send("HEAD", ""), expected(reads[n][m]), "HEAD {id:?} when {state}");
            assert_eq!(send("PUT", "?comp=metadata"), expected(writes[n][m]), "write {id:?} when {state}");
        }
    }
}

#[test]
fn x2_every_kind_of_write_needs_the_lease() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/source", "source");
    put(&client, "/box/a", "kept");
    acquire(&client, "/box/a", A).is_status(201);
    let list = "<BlockList/>";
    let base = client.base();
    let source = format!("{base}/box/source");
    let requests = || {
        [
            block_blob(&client, "/box/a", "new"),
            client.request("PUT", "/box/a").header("x-ms-copy-source", source.as_str()),
            client.request("PUT", "/box/a?comp=metadata"),
            client.request("PUT", "/box/a?comp=properties"),
            client.request("PUT", "/box/a?comp=block&blockid=AAAA").body("x"),
            client.request("PUT", "/box/a?comp=blocklist").body(list),
            client.request("PUT", "/box/a?comp=tags").body("<Tags><TagSet/></Tags>"),
            client.request("DELETE", "/box/a"),
        ]
    };
    for request in requests() {
        request.send().is_error(412, "LeaseIdMissing");
        request.header("x-ms-lease-id", B).send().is_error(412, "LeaseIdMismatchWithBlobOperation");
    }
    assert_eq!(content(&client, "/box/a"), b"kept");
    for request in requests() {
        let reply = request.header("x-ms-lease-id", A).send();
        assert!((200..300).contains(&reply.status), "{reply}");
    }
    // The lease went with the blob.
    put(&client, "/box/a", "free");
    let missing = block_blob(&client, "/box/none", "x").header("x-ms-lease-id", A).send();
    missing.is_error(412, "LeaseNotPresentWithBlobOperation");
}

/// Recordings of the service: blocks that are not committed can be leased. Their blob was changed in 1601.
#[test]
fn a_blob_of_uncommitted_blocks_is_leased() {
    let server = serve_container();
    let client = server.blobs();
    let block = |path: &str| client.request("PUT", &format!("{path}?comp=block&blockid=AAAA")).body("x");
    let commit = |path: &str| {
        client.request("PUT", &format!("{path}?comp=blocklist")).xml("<BlockList><Latest>AAAA</Latest></BlockList>")
    };
    lease(&client, "/box/a", "acquire", &[("x-ms-lease-duration", "-1")]).is_error(404, "BlobNotFound");
    block("/box/a").send().is_status(201);
    let blocks = || client.get("/box/a?comp=blocklist&blocklisttype=all");
    blocks().header("x-ms-lease-id", A).send().is_error(412, "LeaseNotPresentWithBlobOperation");
    let acquired = acquire(&client, "/box/a", A);
    acquired.is_status(201);
    assert_eq!(acquired.header("ETag"), Some("\"0x701CE1722770000\""));
    assert_eq!(acquired.header("Last-Modified"), Some("Mon, 01 Jan 1601 00:00:00 GMT"));
    assert_eq!(acquired.header("x-ms-lease-id"), Some(A));
    client.get("/box/a").send().is_error(404, "BlobNotFound");
    block("/box/a").send().is_error(412, "LeaseIdMissing");
    blocks().send().is_status(200);
    blocks().header("x-ms-lease-id", A).send().is_status(200);
    blocks().header("x-ms-lease-id", B).send().is_error(412, "LeaseIdMismatchWithBlobOperation");
    commit("/box/a").send().is_error(412, "LeaseIdMissing");
    commit("/box/a").header("x-ms-lease-id", A).send().is_status(201);
    assert_eq!(properties(&client, "/box/a").header("x-ms-lease-state"), Some("leased"));
    client.request("DELETE", "/box/a").send().is_error(412, "LeaseIdMissing");
    // Microsoft's own tests: a time to come is later than any block.
    block("/box/b").send().is_status(201);
    let future = ("If-Modified-Since", "Tue, 01 Jan 2030 00:00:00 GMT");
    commit("/box/b").header(future.0, future.1).send().is_error(412, "ConditionNotMet");
    commit("/box/b").header("If-None-Match", "*").send().is_status(201);
}

#[test]
fn x2_a_leased_container_is_only_guarded_against_deletion() {
    let server = serve_container();
    let client = server.blobs();
    let path = "/box?restype=container";
    acquire(&client, path, A).is_status(201);
    put(&client, "/box/a", "x");
    client.request("PUT", "/box?restype=container&comp=metadata").send().is_status(200);
    let with =
        |id: &str| client.request("PUT", "/box?restype=container&comp=metadata").header("x-ms-lease-id", id).send();
    with(A).is_status(200);
    with(B).is_error(412, "LeaseIdMismatchWithContainerOperation");
    let read = client.get(path).header("x-ms-lease-id", B).send();
    read.is_error(412, "LeaseIdMismatchWithContainerOperation");
    client.request("DELETE", path).send().is_error(412, "LeaseIdMissing");
    let wrong = client.request("DELETE", path).header("x-ms-lease-id", B).send();
    wrong.is_error(412, "LeaseIdMismatchWithContainerOperation");
    let listed = client.get("/?comp=list").send();
    assert_eq!((listed.element("LeaseStatus"), listed.element("LeaseState")), (Some("locked"), Some("leased")));
    assert_eq!(listed.element("LeaseDuration"), Some("infinite"));
    lease(&client, path, "release", &of(A)).is_status(200);
    with(A).is_error(412, "LeaseNotPresentWithContainerOperation");
    acquire(&client, path, A).is_status(201);
    client.request("DELETE", path).header("x-ms-lease-id", A).send().is_status(202);
}

#[test]
fn x2_lease_operations_that_make_no_sense_are_refused() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let bad = |action: &str, headers: &[(&str, &str)], code: &str| {
        lease(&client, "/box/a", action, headers).is_error(400, code);
        lease(&client, "/box?restype=container", action, headers).is_error(400, code);
    };
    bad("steal", &[], "InvalidHeaderValue");
    bad("acquire", &[], "MissingRequiredHeader");
    for duration in ["0", "14", "61", "-2", "x", "15.5"] {
        bad("acquire", &[("x-ms-lease-duration", duration)], "InvalidHeaderValue");
    }
    bad("acquire", &[("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", "me")], "InvalidHeaderValue");
    bad("renew", &[], "MissingRequiredHeader");
    bad("renew", &of("me"), "InvalidHeaderValue");
    bad("change", &of(A), "MissingRequiredHeader");
    bad("release", &[], "MissingRequiredHeader");
    for period in ["-1", "61", "x"] {
        bad("break", &[("x-ms-lease-break-period", period)], "InvalidHeaderValue");
    }
    client.request("PUT", "/box/a?comp=lease").send().is_error(400, "MissingRequiredHeader");
    lease(&client, "/box/none", "acquire", &[("x-ms-lease-duration", "-1")]).is_error(404, "BlobNotFound");
    client.get("/box/a").header("x-ms-lease-id", "me").send().is_error(400, "InvalidHeaderValue");
}

#[test]
fn x2_a_lease_outlives_writes_under_it_and_shortens_when_it_is_broken() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let first = lease(&client, "/box/a", "acquire", &[("x-ms-lease-duration", "60")]);
    let id = header(&first, "x-ms-lease-id").to_owned();
    assert_eq!(id.len(), 36, "the service makes up an id");
    block_blob(&client, "/box/a", "new").header("x-ms-lease-id", &*id).send().is_status(201);
    let answer = client.request("HEAD", "/box/a").send();
    assert_eq!(
        (answer.header("x-ms-lease-state"), answer.header("x-ms-lease-duration")),
        (Some("leased"), Some("fixed"))
    );
    // An id is a Guid, however it is spelled.
    lease(&client, "/box/a", "renew", &of(&id.to_uppercase())).is_status(200);
    lease(&client, "/box/a", "renew", &of(&format!("{{{id}}}"))).is_status(200);
    let seconds = |period: &str| {
        let broken = lease(&client, "/box/a", "break", &[("x-ms-lease-break-period", period)]);
        header(&broken, "x-ms-lease-time").parse::<u64>().expect("seconds")
    };
    let left = seconds("40");
    assert!((30..=40).contains(&left), "{left}");
    assert!(seconds("60") <= 40, "a break does not make it longer");
    assert!(seconds("10") <= 10);
    assert_eq!(seconds("0"), 0);
    put(&client, "/box/a", "free");
    assert_eq!(client.request("HEAD", "/box/a").send().header("x-ms-lease-state"), Some("available"));
}
