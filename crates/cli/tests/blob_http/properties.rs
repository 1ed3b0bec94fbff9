//! Changes that leave a blob's bytes alone: metadata, content headers, tier.

use super::{HELLO_MD5, block_blob, content, header, properties, put, serve_container};

#[test]
fn x2_metadata_of_a_blob_is_replaced_whole() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let first =
        client.request("PUT", "/box/a?comp=metadata").header("x-ms-meta-a", "1").header("x-ms-meta-b", "2").send();
    first.is_status(200);
    assert_eq!(first.header("x-ms-request-server-encrypted"), Some("true"));
    for method in ["GET", "HEAD"] {
        let answer = client.request(method, "/box/a?comp=metadata").send();
        assert_eq!((answer.header("x-ms-meta-a"), answer.header("x-ms-meta-b")), (Some("1"), Some("2")), "{answer}");
        assert_eq!(answer.header("ETag"), first.header("ETag"));
    }
    client.request("PUT", "/box/a?comp=metadata").header("x-ms-meta-c", "3").send().is_status(200);
    let answer = properties(&client, "/box/a");
    assert_eq!((answer.header("x-ms-meta-a"), answer.header("x-ms-meta-c")), (None, Some("3")));
    assert_eq!(content(&client, "/box/a"), b"x");
    client.request("PUT", "/box/none?comp=metadata").send().is_error(404, "BlobNotFound");
    client.get("/box/none?comp=metadata").send().is_error(404, "BlobNotFound");
}

#[test]
fn x2_headers_that_are_not_named_are_cleared() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "Hello World");
    let set = client
        .request("PUT", "/box/a?comp=properties")
        .header("x-ms-blob-content-type", "text/plain")
        .header("x-ms-blob-content-encoding", "identity")
        .header("x-ms-blob-content-language", "en, de")
        .header("x-ms-blob-content-disposition", "inline")
        .header("x-ms-blob-cache-control", "max-age=60")
        .header("x-ms-blob-content-md5", HELLO_MD5)
        .send();
    set.is_status(200);
    let answer = client.get("/box/a").send();
    for (name, value) in [
        ("Content-Type", "text/plain"),
        ("Content-Encoding", "identity"),
        ("Content-Language", "en, de"),
        ("Content-Disposition", "inline"),
        ("Cache-Control", "max-age=60"),
        ("Content-MD5", HELLO_MD5),
        ("ETag", header(&set, "ETag")),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}: {answer}");
    }
    client.request("PUT", "/box/a?comp=properties").header("x-ms-blob-content-language", "fr").send().is_status(200);
    let answer = client.get("/box/a").send();
    for (name, value) in [
        // Service reference: it is cleared like the others, and no longer returned.
        ("Content-Type", None),
        ("Content-Encoding", None),
        ("Content-Language", Some("fr")),
        ("Content-Disposition", None),
        ("Cache-Control", None),
        ("Content-MD5", None),
    ] {
        assert_eq!(answer.header(name), value, "{name}: {answer}");
    }
    let listed = client.get("/box?restype=container&comp=list").send();
    assert!(listed.text().contains("<Content-Type />"), "{listed}");
    client.request("PUT", "/box/none?comp=properties").send().is_error(404, "BlobNotFound");
}

/// Microsoft's own tests set an MD5 of eight bytes: the service stores what it is given.
#[test]
fn an_md5_of_any_length_is_stored() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "Hello World");
    let name = "x-ms-blob-content-md5";
    let set = |md5: &str| client.request("PUT", "/box/a?comp=properties").header(name, md5).send();
    let long = "AAAA".repeat(340);
    for md5 in ["MDAwMDAwMDA=", "AA==", &long, HELLO_MD5] {
        set(md5).is_status(200);
        assert_eq!(properties(&client, "/box/a").header("Content-MD5"), Some(md5));
        assert_eq!(client.get("/box?restype=container&comp=list").send().element("Content-MD5"), Some(md5));
    }
    set("no base64!").is_error(400, "InvalidMd5");
    set(&"AAAA".repeat(342)).is_error(400, "InvalidMd5");
    let page = client.request("PUT", "/box/disk").header("x-ms-blob-type", "PageBlob").header(name, "MDAwMDAwMDA=");
    page.header("x-ms-blob-content-length", "512").body("").send().is_status(201);
    assert_eq!(properties(&client, "/box/disk").header("Content-MD5"), Some("MDAwMDAwMDA="));
    // Bytes have an MD5 of sixteen.
    block_blob(&client, "/box/a", "x").header(name, "MDAwMDAwMDA=").send().is_error(400, "InvalidMd5");
}

/// The service's reference of 2026: Delete Blob knows conditions on when the tier was set.
#[test]
fn a_delete_goes_by_when_the_tier_was_set() {
    let server = serve_container();
    let client = server.blobs();
    let (past, future) = ("Sat, 01 Jan 2000 00:00:00 GMT", "Tue, 01 Jan 2030 00:00:00 GMT");
    let delete = |name: &str, value: &str| client.request("DELETE", "/box/a").header(name, value).send();
    let (modified, unmodified) = ("x-ms-access-tier-if-modified-since", "x-ms-access-tier-if-unmodified-since");
    block_blob(&client, "/box/a", "x").header("x-ms-access-tier", "Cool").send().is_status(201);
    delete(modified, future).is_error(412, "ConditionNotMet");
    delete(unmodified, past).is_error(412, "ConditionNotMet");
    delete(unmodified, "soon").is_error(400, "InvalidHeaderValue");
    delete(modified, past).is_status(202);
    put(&client, "/box/a", "x");
    delete(unmodified, future).is_status(202);
}

#[test]
fn x2_tiers_other_than_the_archive_are_labels() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let tier =
        |path: &str, tier: &str| client.request("PUT", &format!("{path}?comp=tier")).header("x-ms-access-tier", tier);
    for name in ["Cool", "Hot", "Cold"] {
        let set = tier("/box/a", name).send();
        set.is_status(200);
        let answer = properties(&client, "/box/a");
        assert_eq!((answer.header("x-ms-access-tier"), answer.header("x-ms-access-tier-inferred")), (Some(name), None));
        assert!(answer.header("x-ms-access-tier-change-time").is_some());
        assert_eq!(content(&client, "/box/a"), b"x");
    }
    tier("/box/a", "Lukewarm").send().is_error(400, "InvalidHeaderValue");
    tier("/box/a", "P10").send().is_error(400, "InvalidBlobTier");
    client.request("PUT", "/box/a?comp=tier").send().is_error(400, "MissingRequiredHeader");
    tier("/box/none", "Cool").send().is_error(404, "BlobNotFound");
    let born = super::block_blob(&client, "/box/b", "x").header("x-ms-access-tier", "Cool").send();
    born.is_status(201);
    assert_eq!(properties(&client, "/box/b").header("x-ms-access-tier"), Some("Cool"));
    let append = client.request("PUT", "/box/c").header("x-ms-blob-type", "AppendBlob").body("").send();
    append.is_status(201);
    assert_eq!(properties(&client, "/box/c").header("x-ms-access-tier"), None);
}
