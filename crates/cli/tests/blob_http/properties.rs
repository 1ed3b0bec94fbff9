//! Changes that leave a blob's bytes alone: metadata, content headers, tier.

use super::{HELLO_MD5, content, header, properties, put, serve_container};

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
        let told = client.request(method, "/box/a?comp=metadata").send();
        assert_eq!((told.header("x-ms-meta-a"), told.header("x-ms-meta-b")), (Some("1"), Some("2")), "{told}");
        assert_eq!(told.header("ETag"), first.header("ETag"));
    }
    client.request("PUT", "/box/a?comp=metadata").header("x-ms-meta-c", "3").send().is_status(200);
    let told = properties(&client, "/box/a");
    assert_eq!((told.header("x-ms-meta-a"), told.header("x-ms-meta-c")), (None, Some("3")));
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
    let told = client.get("/box/a").send();
    for (name, value) in [
        ("Content-Type", "text/plain"),
        ("Content-Encoding", "identity"),
        ("Content-Language", "en, de"),
        ("Content-Disposition", "inline"),
        ("Cache-Control", "max-age=60"),
        ("Content-MD5", HELLO_MD5),
        ("ETag", header(&set, "ETag")),
    ] {
        assert_eq!(told.header(name), Some(value), "{name}: {told}");
    }
    client.request("PUT", "/box/a?comp=properties").header("x-ms-blob-content-language", "fr").send().is_status(200);
    let told = client.get("/box/a").send();
    for (name, value) in [
        ("Content-Type", Some("application/octet-stream")),
        ("Content-Encoding", None),
        ("Content-Language", Some("fr")),
        ("Content-Disposition", None),
        ("Cache-Control", None),
        ("Content-MD5", None),
    ] {
        assert_eq!(told.header(name), value, "{name}: {told}");
    }
    client.request("PUT", "/box/none?comp=properties").send().is_error(404, "BlobNotFound");
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
        let told = properties(&client, "/box/a");
        assert_eq!((told.header("x-ms-access-tier"), told.header("x-ms-access-tier-inferred")), (Some(name), None));
        assert!(told.header("x-ms-access-tier-change-time").is_some());
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
