//! Conditional headers: when they hold, and the answer when they do not.

use super::{block_blob, content, header, put, serve_container};
use larimar_testkit::http::{Client, Response};

const PAST: &str = "Sat, 01 Jan 2000 00:00:00 GMT";
const FUTURE: &str = "Tue, 01 Jan 2030 00:00:00 GMT";
const OTHER: &str = "\"0x8D0000000000000\"";

/// The requests that a condition is tried with.
fn send(client: &Client, what: &str, path: &str, conditions: &[(&str, &str)]) -> Response {
    let request = match what {
        "put" => block_blob(client, path, "new"),
        "metadata" => client.request("PUT", &format!("{path}?comp=metadata")),
        "delete" => client.request("DELETE", path),
        "lease" => {
            let lease = client.request("PUT", &format!("{path}?comp=lease"));
            lease.header("x-ms-lease-action", "acquire").header("x-ms-lease-duration", "-1")
        }
        other => client.request(other, path),
    };
    conditions.iter().fold(request, |request, (name, value)| request.header(name, *value)).send()
}

#[test]
fn x2_reads_answer_304_to_whoever_has_it_and_412_to_other_conditions() {
    let server = serve_container();
    let client = server.blobs();
    let made = put(&client, "/box/a", "one");
    let (etag, changed) = (header(&made, "ETag"), header(&made, "Last-Modified"));
    for method in ["GET", "HEAD"] {
        for (conditions, status) in [
            (&[("If-Match", etag)][..], 200),
            (&[("If-Match", "*")], 200),
            (&[("If-Match", etag.trim_matches('"'))], 200),
            (&[("If-Match", OTHER)], 412),
            (&[("If-None-Match", etag)], 304),
            (&[("If-None-Match", OTHER)], 200),
            (&[("If-Modified-Since", changed)], 304),
            (&[("If-Modified-Since", FUTURE)], 304),
            (&[("If-Modified-Since", PAST)], 200),
            (&[("If-Unmodified-Since", changed)], 200),
            (&[("If-Unmodified-Since", FUTURE)], 200),
            (&[("If-Unmodified-Since", PAST)], 412),
            (&[("If-Match", etag), ("If-Unmodified-Since", PAST)], 412),
            (&[("If-None-Match", etag), ("If-Modified-Since", FUTURE)], 304),
            (&[("If-Match", OTHER), ("If-None-Match", etag)], 412),
        ] {
            let reply = send(&client, method, "/box/a", conditions);
            assert_eq!(reply.status, status, "{method} {conditions:?}: {reply}");
            if status != 200 {
                assert_eq!(reply.header("x-ms-error-code"), Some("ConditionNotMet"), "{reply}");
            }
            if status == 304 {
                assert!(reply.body.is_empty());
            }
        }
        send(&client, method, "/box/none", &[("If-Match", etag)]).is_error(404, "BlobNotFound");
        for path in ["/box/a", "/box/none"] {
            send(&client, method, path, &[("If-None-Match", "*")]).is_error(400, "UnsatisfiableCondition");
        }
        send(&client, method, "/box/a", &[("If-Modified-Since", "soon")]).is_error(400, "InvalidHeaderValue");
    }
    // The connection is good after an answer without a body.
    assert_eq!(content(&client, "/box/a"), b"one");
}

#[test]
fn x2_changes_answer_412_where_a_condition_does_not_hold() {
    let server = serve_container();
    let client = server.blobs();
    let made = put(&client, "/box/a", "one");
    let (etag, changed) = (header(&made, "ETag"), header(&made, "Last-Modified"));
    for what in ["put", "metadata", "delete", "lease"] {
        for condition in [
            ("If-Match", OTHER),
            ("If-None-Match", etag),
            ("If-Modified-Since", changed),
            ("If-Modified-Since", FUTURE),
            ("If-Unmodified-Since", PAST),
        ] {
            let reply = send(&client, what, "/box/a", &[condition]);
            reply.is_error(412, "ConditionNotMet");
        }
    }
    assert_eq!(header(&client.get("/box/a").send(), "ETag"), etag, "nothing was changed");
    for (n, condition) in [
        ("If-Match", etag),
        ("If-Match", "*"),
        ("If-None-Match", OTHER),
        ("If-Modified-Since", PAST),
        ("If-Unmodified-Since", FUTURE),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/box/{n}");
        for (what, status) in [("put", 201), ("metadata", 200), ("lease", 201)] {
            let etag = header(&put(&client, &path, "one"), "ETag").to_owned();
            let condition = if condition.1 == header(&made, "ETag") { (condition.0, etag.as_str()) } else { condition };
            send(&client, what, &path, &[condition]).is_status(status);
        }
    }
    send(&client, "delete", "/box/a", &[("If-Match", etag)]).is_status(202);
}

#[test]
fn x2_a_blob_is_made_only_where_there_is_none() {
    let server = serve_container();
    let client = server.blobs();
    let none = [("If-None-Match", "*")];
    send(&client, "put", "/box/a", &none).is_status(201);
    send(&client, "put", "/box/a", &none).is_error(409, "BlobAlreadyExists");
    let list = |path: &str| {
        let request = client.request("PUT", &format!("{path}?comp=blocklist")).header("If-None-Match", "*");
        request.body("<BlockList/>").send()
    };
    list("/box/b").is_status(201);
    list("/box/b").is_error(409, "BlobAlreadyExists");
    let copy = |path: &str| {
        let source = format!("{}/box/a", client.base());
        client.request("PUT", path).header("x-ms-copy-source", source).header("If-None-Match", "*").send()
    };
    copy("/box/c").is_status(202);
    copy("/box/c").is_error(409, "BlobAlreadyExists");
    for kind in ["AppendBlob", "PageBlob"] {
        let request = client.request("PUT", "/box/a").header("x-ms-blob-type", kind).header("If-None-Match", "*");
        request.header("x-ms-blob-content-length", "512").body("").send().is_error(409, "BlobAlreadyExists");
    }
    // Blocks that are not committed are no blob yet.
    client.request("PUT", "/box/d?comp=block&blockid=AAAA").body("x").send().is_status(201);
    send(&client, "put", "/box/d", &none).is_status(201);
    // A condition on what should be there does not make it.
    send(&client, "put", "/box/e", &[("If-Match", OTHER)]).is_error(412, "ConditionNotMet");
    send(&client, "put", "/box/e", &[("If-Match", "*")]).is_error(412, "ConditionNotMet");
    send(&client, "metadata", "/box/e", &[("If-Match", "*")]).is_error(404, "BlobNotFound");
    client.get("/box/e").send().is_error(404, "BlobNotFound");
}

#[test]
fn x2_what_changes_the_etag_and_what_does_not() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "one");
    let etag = || header(&client.request("HEAD", "/box/a").send(), "ETag").to_owned();
    let lease = "x-ms-lease-action";
    let id = "11111111-2222-3333-4444-555555555555";
    for (path, headers, body, status) in [
        ("/box/a?comp=tags", &[][..], "<Tags><TagSet/></Tags>", 204),
        ("/box/a?comp=block&blockid=AAAA", &[], "block", 201),
        ("/box/a?comp=snapshot", &[], "", 201),
        ("/box/a?comp=tier", &[("x-ms-access-tier", "Cool")], "", 200),
        (
            "/box/a?comp=lease",
            &[(lease, "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", id)],
            "",
            201,
        ),
        ("/box/a?comp=lease", &[(lease, "renew"), ("x-ms-lease-id", id)], "", 200),
        ("/box/a?comp=lease", &[(lease, "break"), ("x-ms-lease-break-period", "0")], "", 202),
    ] {
        let before = etag();
        let request = client.request("PUT", path).body(body);
        headers.iter().fold(request, |request, (name, value)| request.header(name, *value)).send().is_status(status);
        assert_eq!(etag(), before, "{path} {headers:?}");
    }
    for (path, status) in
        [("/box/a?comp=metadata", 200), ("/box/a?comp=properties", 200), ("/box/a?comp=blocklist", 201)]
    {
        let before = etag();
        let body = if path.ends_with("list") { "<BlockList/>" } else { "" };
        let done = client.request("PUT", path).body(body).send();
        done.is_status(status);
        assert_ne!(etag(), before, "{path}");
        assert_eq!(header(&done, "ETag"), etag());
    }
}
