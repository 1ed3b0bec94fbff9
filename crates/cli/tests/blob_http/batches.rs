//! Blob batches: many deletes or tiers in one request, each part signed for itself and answered for itself.

use super::{content, make_container, properties, put, serve_container};
use larimar_testkit::http::{Client, Request, Response, Sas};

const TYPE: &str = "multipart/mixed; boundary=batch_11111111-2222-3333-4444-555555555555";

/// The body of a batch of these requests, each as it would have been sent alone.
fn body(parts: &[Request<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for (n, part) in parts.iter().enumerate() {
        let head = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary";
        let start = format!("--batch_11111111-2222-3333-4444-555555555555\r\n{head}\r\nContent-ID: {n}\r\n\r\n");
        body.extend_from_slice(start.as_bytes());
        body.extend_from_slice(&part.to_bytes());
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--batch_11111111-2222-3333-4444-555555555555--\r\n");
    body
}

fn send(client: &Client, path: &str, parts: &[Request<'_>]) -> Response {
    client.request("POST", path).header("Content-Type", TYPE).body(body(parts)).send()
}

/// The status of each part, in order, with its code if it has one.
fn statuses(reply: &Response) -> Vec<(u16, String)> {
    reply.is_status(202);
    let parts = reply.text().split("HTTP/1.1 ").skip(1);
    parts
        .map(|part| {
            let code = part.lines().find_map(|line| line.strip_prefix("x-ms-error-code: ")).unwrap_or("");
            (part[..3].parse().expect("a status"), code.to_owned())
        })
        .collect()
}

fn expect(list: &[(u16, &str)]) -> Vec<(u16, String)> {
    list.iter().map(|(status, code)| (*status, (*code).to_owned())).collect()
}

fn delete<'c>(client: &'c Client, path: &str) -> Request<'c> {
    client.request("DELETE", path).body("")
}

#[test]
fn x2_parts_are_answered_each_for_itself() {
    let server = serve_container();
    let client = server.blobs();
    for name in ["a", "b", "c", "d%20%C3%BC"] {
        put(&client, &format!("/box/{name}"), "x");
    }
    client.request("PUT", "/box/b?comp=snapshot").send().is_status(201);
    let reply = send(
        &client,
        "/?comp=batch",
        &[
            delete(&client, "/box/a"),
            delete(&client, "/box/missing"),
            delete(&client, "/box/b"),
            delete(&client, "/box/b").header("x-ms-delete-snapshots", "include"),
            client.request("PUT", "/box/c?comp=tier").header("x-ms-access-tier", "Cool").body(""),
            delete(&client, "/box/d%20%C3%BC").without("Host").without("x-ms-version"),
            delete(&client, "/nowhere/a"),
        ],
    );
    let ok = (202, "");
    let expected =
        [ok, (404, "BlobNotFound"), (409, "SnapshotsPresent"), ok, (200, ""), ok, (404, "ContainerNotFound")];
    assert_eq!(statuses(&reply), expect(&expected), "{reply}");
    let boundary = reply.header("Content-Type").and_then(|kind| kind.strip_prefix("multipart/mixed; boundary="));
    let boundary = boundary.filter(|boundary| boundary.starts_with("batchresponse_")).expect("a boundary");
    let text = reply.text();
    assert_eq!(text.matches(&format!("--{boundary}\r\n")).count(), 7, "{text}");
    assert!(text.ends_with(&format!("--{boundary}--\r\n")) || text.ends_with(&format!("--{boundary}--")), "{text}");
    for n in 0..7 {
        assert!(text.contains(&format!("Content-ID: {n}\r\n")), "{text}");
    }
    assert!(text.contains("<Code>BlobNotFound</Code>"), "{text}");
    let left = client.get("/box?restype=container&comp=list").send();
    assert_eq!(left.elements("Name"), ["c"]);
    assert_eq!(properties(&client, "/box/c").header("x-ms-access-tier"), Some("Cool"));
}

#[test]
fn x2_each_part_has_its_own_signature() {
    let server = serve_container();
    let client = server.blobs();
    for name in ["a", "b", "c", "d", "e"] {
        put(&client, &format!("/box/{name}"), name);
    }
    let (stranger, wrong) = (client.anonymous(), client.of_account("devstoreaccount1", "d3Jvbmc="));
    let guest = client.with_sas(&Sas::blob("box", "d", "d").token());
    let reader = client.with_sas(&Sas::container("box", "r").token());
    let lite = client.lite();
    let reply = send(
        &client,
        "/?comp=batch",
        &[
            delete(&client, "/box/a"),
            delete(&stranger, "/box/b"),
            delete(&wrong, "/box/c"),
            delete(&guest, "/box/d"),
            delete(&reader, "/box/e"),
            delete(&lite, "/box/e").header("If-Match", "\"0x8D0\""),
        ],
    );
    let expected = [
        (202, ""),
        (401, "NoAuthenticationInformation"),
        (403, "AuthenticationFailed"),
        (202, ""),
        (403, "AuthorizationPermissionMismatch"),
        (412, "ConditionNotMet"),
    ];
    assert_eq!(statuses(&reply), expect(&expected), "{reply}");
    for name in ["b", "c", "e"] {
        assert_eq!(content(&client, &format!("/box/{name}")), name.as_bytes());
    }
    // The whole needs a signature too.
    send(&stranger, "/?comp=batch", &[delete(&client, "/box/b")]).is_error(401, "NoAuthenticationInformation");
    send(&wrong, "/?comp=batch", &[delete(&client, "/box/b")]).is_error(403, "AuthenticationFailed");
    assert_eq!(content(&client, "/box/b"), b"b");
}

#[test]
fn x2_a_batch_of_a_container_stays_inside_it() {
    let server = serve_container();
    let client = server.blobs();
    make_container(&client, "other");
    put(&client, "/box/a", "x");
    put(&client, "/other/a", "x");
    let path = "/box?restype=container&comp=batch";
    let reply = send(&client, path, &[delete(&client, "/box/a"), delete(&client, "/other/a")]);
    let found = statuses(&reply);
    assert_eq!((found[0].0, found.len()), (202, 2), "{reply}");
    assert!((400..500).contains(&found[1].0), "{reply}");
    assert_eq!(content(&client, "/other/a"), b"x");
    let guest = client.with_sas(&Sas::container("box", "d").token());
    put(&client, "/box/a", "x");
    assert_eq!(statuses(&send(&guest, path, &[delete(&guest, "/box/a")])), expect(&[(202, "")]));
    let foreign = client.with_sas(&Sas::container("other", "d").token());
    assert_eq!(send(&foreign, path, &[delete(&foreign, "/other/a")]).status, 403);
}

/// Recordings of the service: a part has the version of the whole, and the message of its error is its reason phrase.
#[test]
fn parts_have_a_version_and_the_message_as_their_reason() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let parts = [delete(&client, "/box/a"), delete(&client, "/nowhere/a"), delete(&client, "/box/a")];
    let reply = send(&client, "/?comp=batch", &parts);
    let text = reply.text();
    let version = format!("\r\nx-ms-version: {}\r\n", reply.header("x-ms-version").expect("a version"));
    assert_eq!(text.matches(&version).count(), 3, "{text}");
    for line in [
        "HTTP/1.1 202 Accepted\r\n",
        "HTTP/1.1 404 The specified container does not exist.\r\n",
        "HTTP/1.1 404 The specified blob does not exist.\r\n",
    ] {
        assert!(text.contains(line), "{line} {text}");
    }
    // A token for a container is not for the account's batch.
    let guest = client.with_sas(&Sas::container("box", "d").token());
    let refused = send(&guest, "/?comp=batch", &[delete(&client, "/box/a")]);
    refused.is_error(403, "AuthenticationFailed");
    let detail = "The specified signed resource is not allowed for this resource level";
    assert_eq!(refused.element("AuthenticationErrorDetail"), Some(detail), "{refused}");
}

#[test]
fn the_head_of_a_part_is_checked_like_that_of_a_request() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let part = delete(&client, "/box/a").header("x-ms-version", "garbage");
    let reply = send(&client, "/?comp=batch", &[part]);
    assert_eq!(statuses(&reply), expect(&[(400, "InvalidHeaderValue")]), "{reply}");
    client.get("/box/a").send().is_status(200);
}

/// The service's status lines have the message of the error, whatever the method and the code. A message that repeats what
/// a client sent cannot begin another line.
#[test]
fn the_message_of_an_error_is_the_reason_of_its_status() {
    let server = serve_container();
    let client = server.blobs();
    for (reply, reason) in [
        (client.get("/box/none").send(), "The specified blob does not exist."),
        (client.request("HEAD", "/box/none").send(), "The specified blob does not exist."),
        (client.request("DELETE", "/none?restype=container").send(), "The specified container does not exist."),
        (server.queues().get("/none?comp=metadata").send(), "The specified queue does not exist."),
        (client.get("/?comp=list").send(), "OK"),
    ] {
        assert_eq!(reply.reason, reason, "{reply}");
    }
    let made = put(&client, "/box/a", "x");
    let etag = made.header("ETag").expect("an etag");
    let unchanged = client.get("/box/a").header("If-None-Match", etag).send();
    assert_eq!(
        (unchanged.status, &*unchanged.reason),
        (304, "The condition specified using HTTP conditional header(s) is not met.")
    );
    for path in ["/box/a?snapshot=%0d%0aSet-Cookie:x", "/box/%C3%A4%0A?comp=block&blockid=%0A", "/b%0Ax/a?comp=%0D%0A"]
    {
        let refused = client.get(path).send();
        assert!(refused.status >= 400 && refused.header("Set-Cookie").is_none(), "{refused}");
        assert!(refused.reason.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{refused}");
    }
}

#[test]
fn x2_a_batch_has_at_most_256_parts_of_the_right_kind() {
    let server = serve_container();
    let client = server.blobs();
    for name in 0..4 {
        put(&client, &format!("/box/{name}"), "x");
    }
    let many: Vec<Request<'_>> = (0..257).map(|n| delete(&client, &format!("/box/{n}"))).collect();
    // The whole is answered with one part that fails, which has no id.
    let too_many = send(&client, "/?comp=batch", &many);
    assert_eq!(statuses(&too_many), expect(&[(400, "ExceedsMaxBatchRequestCount")]), "{too_many}");
    assert!(!too_many.text().contains("Content-ID"), "{too_many}");
    assert_eq!(content(&client, "/box/0"), b"x", "nothing of it was done");
    let found = statuses(&send(&client, "/?comp=batch", &many[..256]));
    assert_eq!(found.len(), 256);
    assert_eq!(found.iter().filter(|(status, _)| *status == 202).count(), 4);
    put(&client, "/box/a", "x");
    let odd = [
        client.get("/box/a"),
        super::block_blob(&client, "/box/b", ""),
        client.request("DELETE", "/box?restype=container"),
        client.request("PUT", "/box/a?comp=metadata"),
        client.request("POST", "/?comp=batch"),
    ];
    for part in odd {
        let reply = send(&client, "/?comp=batch", &[part]);
        let inside = reply.status == 202 && statuses(&reply).iter().all(|(status, _)| (400..500).contains(status));
        assert!(inside || (400..500).contains(&reply.status), "{reply}");
    }
    assert_eq!(content(&client, "/box/a"), b"x");
    client.get("/box/b").send().is_error(404, "BlobNotFound");
    let raw = |kind: &str, body: Vec<u8>| {
        client.request("POST", "/?comp=batch").header("Content-Type", kind).body(body).send()
    };
    let good = || body(&[delete(&client, "/box/a")]);
    raw("application/json", good()).is_error(400, "InvalidInput");
    for (kind, body) in [("multipart/mixed; boundary=other", good()), (TYPE, Vec::new()), (TYPE, vec![0xff; 100])] {
        assert_eq!(statuses(&raw(kind, body)), expect(&[(400, "InvalidInput")]), "{kind}");
    }
    // A body that was cut off, at the end of a line or anywhere in the closing delimiter.
    let whole = good();
    let closing = b"--batch_11111111-2222-3333-4444-555555555555--\r\n".len();
    for cut in [3, 4, closing, closing + 2] {
        let reply = raw(TYPE, whole[..whole.len() - cut].to_vec());
        assert_eq!(statuses(&reply), expect(&[(400, "InvalidInput")]), "{cut} bytes cut off: {reply}");
    }
    raw(TYPE, vec![b'x'; 4 * 1024 * 1024 + 1]).is_error(413, "RequestBodyTooLarge");
    assert_eq!(content(&client, "/box/a"), b"x");
}
