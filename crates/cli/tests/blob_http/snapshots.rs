//! Snapshots: taken, read, listed, deleted, and never written.

use super::{block_blob, content, header, properties, put, serve_container};
use larimar_testkit::http::{Client, encode};

fn snapshot(client: &Client, path: &str) -> String {
    let reply = client.request("PUT", &format!("{path}?comp=snapshot")).body("").send();
    reply.is_status(201);
    header(&reply, "x-ms-snapshot").to_owned()
}

#[test]
fn x2_a_snapshot_keeps_what_was() {
    let server = serve_container();
    let client = server.blobs();
    let made = block_blob(&client, "/box/a", "first").header("x-ms-meta-version", "1").send();
    made.is_status(201);
    let taken = client.request("PUT", "/box/a?comp=snapshot").send();
    assert_eq!(taken.header("ETag"), made.header("ETag"));
    let first = header(&taken, "x-ms-snapshot").to_owned();
    assert_eq!((first.len(), first.as_bytes()[10], &first[27..]), (28, b'T', "Z"), "{first}");
    let second = client.request("PUT", "/box/a?comp=snapshot").header("x-ms-meta-of", "snapshot").send();
    let second = header(&second, "x-ms-snapshot").to_owned();
    assert!(second > first);
    put(&client, "/box/a", "second, longer");
    for spelled in [first.clone(), encode(&first)] {
        let path = format!("/box/a?snapshot={spelled}");
        assert_eq!(content(&client, &path), b"first");
        let answer = properties(&client, &path);
        assert_eq!((answer.header("x-ms-meta-version"), answer.header("Content-Length")), (Some("1"), Some("5")));
        assert_eq!(answer.header("ETag"), made.header("ETag"));
        assert_eq!(answer.header("x-ms-lease-state"), None);
    }
    let answer = client.get(&format!("/box/a?comp=metadata&snapshot={second}")).send();
    assert_eq!((answer.header("x-ms-meta-of"), answer.header("x-ms-meta-version")), (Some("snapshot"), None));
    assert_eq!(content(&client, "/box/a"), b"second, longer");
    let range = client.get(&format!("/box/a?snapshot={first}")).header("Range", "bytes=1-2").send();
    assert_eq!((range.status, range.text()), (206, "ir"));
    client.get("/box/a?snapshot=2020-01-01T00:00:00.0000000Z").send().is_error(404, "BlobNotFound");
    client.get("/box/a?snapshot=yesterday").send().is_error(400, "InvalidQueryParameterValue");
    client.request("PUT", "/box/none?comp=snapshot").send().is_error(404, "BlobNotFound");
}

#[test]
fn x2_snapshots_are_not_written() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "first");
    let taken = snapshot(&client, "/box/a");
    let at = format!("snapshot={taken}");
    for request in [
        block_blob(&client, &format!("/box/a?{at}"), "x"),
        client.request("PUT", &format!("/box/a?comp=metadata&{at}")),
        client.request("PUT", &format!("/box/a?comp=properties&{at}")),
        client.request("PUT", &format!("/box/a?comp=block&blockid=AAAA&{at}")).body("x"),
        client.request("PUT", &format!("/box/a?comp=snapshot&{at}")),
        client
            .request("PUT", &format!("/box/a?comp=lease&{at}"))
            .header("x-ms-lease-action", "acquire")
            .header("x-ms-lease-duration", "-1"),
    ] {
        request.send().is_error(400, "InvalidQueryParameterValue");
    }
    assert_eq!(content(&client, &format!("/box/a?{at}")), b"first");
    assert_eq!(content(&client, "/box/a"), b"first");
}

#[test]
fn x2_a_blob_with_snapshots_is_deleted_only_as_a_whole_or_kept() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let (one, two) = (snapshot(&client, "/box/a"), snapshot(&client, "/box/a"));
    let delete = |query: &str, snapshots: Option<&str>| {
        let request = client.request("DELETE", &format!("/box/a{query}"));
        snapshots.map_or(request.clone(), |word| request.header("x-ms-delete-snapshots", word)).send()
    };
    delete("", None).is_error(409, "SnapshotsPresent");
    delete("", Some("some")).is_error(400, "InvalidHeaderValue");
    delete(&format!("?snapshot={one}"), Some("only")).is_error(400, "InvalidQueryParameterValue");
    delete(&format!("?snapshot={one}"), None).is_status(202);
    client.get(&format!("/box/a?snapshot={one}")).send().is_error(404, "BlobNotFound");
    delete(&format!("?snapshot={one}"), None).is_error(404, "BlobNotFound");
    assert_eq!(content(&client, &format!("/box/a?snapshot={two}")), b"x");
    delete("", Some("only")).is_status(202);
    client.get(&format!("/box/a?snapshot={two}")).send().is_error(404, "BlobNotFound");
    assert_eq!(content(&client, "/box/a"), b"x");
    let three = snapshot(&client, "/box/a");
    // A put leaves snapshots alone.
    put(&client, "/box/a", "y");
    assert_eq!(content(&client, &format!("/box/a?snapshot={three}")), b"x");
    delete("", Some("include")).is_status(202);
    client.get("/box/a").send().is_error(404, "BlobNotFound");
    client.get(&format!("/box/a?snapshot={three}")).send().is_error(404, "BlobNotFound");
    put(&client, "/box/a", "z");
    client.get(&format!("/box/a?snapshot={three}")).send().is_error(404, "BlobNotFound");
    delete("", None).is_status(202);
}

#[test]
fn x2_snapshots_are_listed_before_their_blob_and_across_pages() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let taken: Vec<String> = (0..3).map(|_| snapshot(&client, "/box/a")).collect();
    put(&client, "/box/b", "x");
    let plain = client.get("/box?restype=container&comp=list").send();
    assert_eq!((plain.elements("Name"), plain.elements("Snapshot").len()), (vec!["a", "b"], 0));
    for size in 1..=6 {
        let (mut names, mut times, mut marker) = (Vec::new(), Vec::new(), String::new());
        for _ in 0..6 {
            let query = format!("include=snapshots&maxresults={size}&marker={marker}");
            let page = client.get(&format!("/box?restype=container&comp=list&{query}")).send();
            page.is_status(200);
            names.extend(page.elements("Name").iter().map(|name| (*name).to_owned()));
            times.extend(page.elements("Snapshot").iter().map(|time| (*time).to_owned()));
            marker = page.element("NextMarker").unwrap_or_default().to_owned();
            if marker.is_empty() {
                break;
            }
        }
        assert_eq!((names.join(""), &times), ("aaaab".to_owned(), &taken), "in pages of {size}");
    }
    let refused = client.get("/box?restype=container&comp=list&include=snapshots&delimiter=/").send();
    refused.is_error(400, "InvalidQueryParameterValue");
}
