//! The archive: what can be done with its blobs, how they come back, and tiers of snapshots.

use super::{block_blob, content, header, make_container, properties, put};
use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{Client, Response, Sas};

/// A server on which a rehydration takes so long, with one container.
fn serve_rehydrating(time: &str) -> TemporaryServer {
    let flags = ["--durability", "async", "--log-level", "warn", "--rehydration-time", time];
    let server = TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &flags);
    make_container(&server.blobs(), "box");
    server
}

/// Method, query, headers and body.
type Operation<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

fn set_tier(client: &Client, path: &str, headers: &[(&str, &str)]) -> Response {
    let separator = if path.contains('?') { '&' } else { '?' };
    let request = client.request("PUT", &format!("{path}{separator}comp=tier"));
    headers.iter().fold(request, |request, (name, value)| request.header(name, *value)).send()
}

fn archive(client: &Client, path: &str) {
    set_tier(client, path, &[("x-ms-access-tier", "Archive")]).is_status(200);
}

/// Tier, status and priority, as properties tell them.
fn tier_headers(reply: &Response) -> [Option<&str>; 3] {
    ["x-ms-access-tier", "x-ms-archive-status", "x-ms-rehydrate-priority"].map(|name| reply.header(name))
}

#[test]
fn x2_blobs_in_the_archive_are_neither_read_nor_changed() {
    let server = serve_rehydrating("1h");
    let client = server.blobs();
    let source = format!("{}/box/other", client.base());
    put(&client, "/box/other", "y");
    block_blob(&client, "/box/a", "x").header("x-ms-tags", "k=1").header("x-ms-meta-m", "1").send().is_status(201);
    archive(&client, "/box/a");
    archive(&client, "/box/a");
    let operations: [Operation<'_>; 10] = [
        ("GET", "", &[], ""),
        ("GET", "?comp=blocklist", &[], ""),
        ("PUT", "", &[("x-ms-blob-type", "BlockBlob")], "y"),
        ("PUT", "", &[("x-ms-blob-type", "AppendBlob")], ""),
        ("PUT", "", &[("x-ms-copy-source", &source)], ""),
        ("PUT", "?comp=block&blockid=AAAA", &[], "y"),
        ("PUT", "?comp=blocklist", &[], "<BlockList/>"),
        ("PUT", "?comp=metadata", &[], ""),
        ("PUT", "?comp=properties", &[], ""),
        ("PUT", "?comp=snapshot", &[], ""),
    ];
    for is_pending in [false, true] {
        for (method, query, headers, body) in operations {
            let request = client.request(method, &format!("/box/a{query}"));
            let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
            request.body(body).send().is_error(409, "BlobArchived");
        }
        // What is known of it stays known, and tags and leases may change.
        let head = properties(&client, "/box/a");
        assert_eq!((head.header("x-ms-meta-m"), head.header("content-length")), (Some("1"), Some("1")), "{head}");
        client.get("/box/a?comp=metadata").send().is_status(200);
        client.get("/box/a?comp=tags").send().is_status(200);
        client.request("PUT", "/box/a?comp=tags").xml("<Tags><TagSet/></Tags>").send().is_status(204);
        let listed = client.get("/box?restype=container&comp=list&prefix=a").send();
        assert_eq!(listed.element("AccessTier"), Some("Archive"), "{listed}");
        assert_eq!(listed.element("ArchiveStatus"), is_pending.then_some("rehydrate-pending-to-hot"), "{listed}");
        assert_eq!(listed.element("RehydratePriority"), is_pending.then_some("Standard"), "{listed}");
        if !is_pending {
            set_tier(&client, "/box/a", &[("x-ms-access-tier", "Hot")]).is_status(202);
        }
    }
    client.request("DELETE", "/box/a").send().is_status(202);
}

#[test]
fn x2_a_blob_comes_back_from_the_archive() {
    let server = serve_rehydrating("0s");
    let client = server.blobs();
    for (tier, how) in [("Hot", &[][..]), ("Cool", &[("x-ms-rehydrate-priority", "High")])] {
        put(&client, "/box/a", "x");
        archive(&client, "/box/a");
        let etag = properties(&client, "/box/a").header("etag").map(str::to_owned);
        let headers = [&[("x-ms-access-tier", tier)], how].concat();
        set_tier(&client, "/box/a", &headers).is_status(202);
        assert_eq!(content(&client, "/box/a"), b"x");
        let head = properties(&client, "/box/a");
        assert_eq!(tier_headers(&head), [Some(tier), None, None], "{head}");
        assert_eq!(head.header("etag").map(str::to_owned), etag);
    }
    // Into the archive with its bytes, and out of it.
    block_blob(&client, "/box/b", "x").header("x-ms-access-tier", "Archive").send().is_status(201);
    client.get("/box/b").send().is_error(409, "BlobArchived");
    set_tier(&client, "/box/b", &[("x-ms-access-tier", "Cold")]).is_status(202);
    assert_eq!(content(&client, "/box/b"), b"x");
}

#[test]
fn x2_a_rehydration_under_way_is_told_and_not_stopped() {
    let server = serve_rehydrating("1h");
    let client = server.blobs();
    put(&client, "/box/a", "x");
    archive(&client, "/box/a");
    assert_eq!(tier_headers(&properties(&client, "/box/a")), [Some("Archive"), None, None]);
    let none = [("x-ms-access-tier", "Hot"), ("x-ms-rehydrate-priority", "None")];
    set_tier(&client, "/box/a", &none).is_error(400, "InvalidHeaderValue");
    set_tier(&client, "/box/a", &[("x-ms-access-tier", "Cool")]).is_status(202);
    let pending = |priority| [Some("Archive"), Some("rehydrate-pending-to-cool"), Some(priority)];
    assert_eq!(tier_headers(&properties(&client, "/box/a")), pending("Standard"));
    for other in ["Hot", "Archive"] {
        set_tier(&client, "/box/a", &[("x-ms-access-tier", other)]).is_error(409, "BlobBeingRehydrated");
    }
    set_tier(&client, "/box/a", &[("x-ms-access-tier", "Cool"), ("x-ms-rehydrate-priority", "High")]).is_status(202);
    assert_eq!(tier_headers(&properties(&client, "/box/a")), pending("High"));
    client.get("/box/a").send().is_error(409, "BlobArchived");
}

#[test]
fn x2_a_copy_brings_a_blob_back_from_the_archive() {
    for (time, status) in [("1h", "pending"), ("0s", "success")] {
        let server = serve_rehydrating(time);
        let client = server.blobs();
        put(&client, "/box/a", "x");
        archive(&client, "/box/a");
        let source = format!("{}/box/a?{}", client.base(), Sas::container("box", "r").token());
        let copy = |path: &str| client.request("PUT", path).header("x-ms-copy-source", &source).body("");
        copy("/box/b").send().is_error(409, "BlobArchived");
        copy("/box/b").header("x-ms-access-tier", "Archive").send().is_error(409, "BlobArchived");
        let sync = copy("/box/b").header("x-ms-access-tier", "Hot").header("x-ms-requires-sync", "true").send();
        sync.is_error(409, "BlobArchived");
        copy("/box/b").header("x-ms-blob-type", "BlockBlob").send().is_error(409, "BlobArchived");
        let started = copy("/box/b").header("x-ms-access-tier", "Hot").header("x-ms-rehydrate-priority", "High").send();
        started.is_status(202);
        assert_eq!(header(&started, "x-ms-copy-status"), status);
        let head = properties(&client, "/box/b");
        assert_eq!(header(&head, "x-ms-copy-status"), status);
        if status == "pending" {
            assert_eq!(tier_headers(&head), [Some("Archive"), Some("rehydrate-pending-to-hot"), Some("High")]);
            assert_eq!(header(&head, "x-ms-copy-progress"), "0/1");
            client.get("/box/b").send().is_error(409, "BlobArchived");
        } else {
            assert_eq!(tier_headers(&head), [Some("Hot"), None, None]);
            assert_eq!(content(&client, "/box/b"), b"x");
        }
        client.get("/box/a").send().is_error(409, "BlobArchived");
    }
}

#[test]
fn x2_snapshots_have_tiers_of_their_own() {
    let server = serve_rehydrating("0s");
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let taken = client.request("PUT", "/box/a?comp=snapshot").send();
    let snapshot = format!("/box/a?snapshot={}", header(&taken, "x-ms-snapshot"));
    set_tier(&client, &snapshot, &[("x-ms-access-tier", "Cool")]).is_status(200);
    assert_eq!(tier_headers(&properties(&client, &snapshot))[0], Some("Cool"));
    assert_eq!(tier_headers(&properties(&client, "/box/a"))[0], Some("Hot"));
    archive(&client, &snapshot);
    client.get(&snapshot).send().is_error(409, "BlobArchived");
    put(&client, "/box/a", "y");
    assert_eq!(content(&client, "/box/a"), b"y");
    let listed = client.get("/box?restype=container&comp=list&include=snapshots").send();
    assert_eq!(listed.elements("AccessTier"), ["Archive", "Hot"], "{listed}");
    set_tier(&client, &snapshot, &[("x-ms-access-tier", "Hot")]).is_status(202);
    assert_eq!(content(&client, &snapshot), b"x");
    let missing = "/box/a?snapshot=2020-01-01T00:00:00.0000000Z";
    set_tier(&client, missing, &[("x-ms-access-tier", "Cool")]).is_error(404, "BlobNotFound");
    client.request("DELETE", "/box/a").header("x-ms-delete-snapshots", "include").send().is_status(202);
}

#[test]
fn x2_tiers_of_page_blobs_are_refused_for_block_blobs() {
    let server = serve_rehydrating("1h");
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let source = format!("{}/box/a", client.base());
    for refused in [
        block_blob(&client, "/box/b", "x").header("x-ms-access-tier", "P10").send(),
        client.request("PUT", "/box/b?comp=blocklist").header("x-ms-access-tier", "P10").body("<BlockList/>").send(),
        client.request("PUT", "/box/b").header("x-ms-access-tier", "P10").header("x-ms-copy-source", source).send(),
    ] {
        refused.is_error(400, "InvalidHeaderValue");
        assert_eq!(refused.element("HeaderName"), Some("x-ms-access-tier"), "{refused}");
        assert_eq!(refused.element("HeaderValue"), Some("P10"), "{refused}");
    }
}
