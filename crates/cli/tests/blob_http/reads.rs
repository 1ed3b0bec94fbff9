//! Get Blob with ranges, and their checksums.

use super::{HELLO_MD5, header, put, serve_container};

#[test]
fn x2_a_range_is_answered_with_206_and_its_place() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "Hello World");
    for (range, answer, bytes) in [
        ("bytes=0-4", "bytes 0-4/11", "Hello"),
        ("bytes=6-", "bytes 6-10/11", "World"),
        ("bytes=10-10", "bytes 10-10/11", "d"),
        ("bytes=6-100", "bytes 6-10/11", "World"),
        ("bytes=0-18446744073709551615", "bytes 0-10/11", "Hello World"),
    ] {
        for name in ["Range", "x-ms-range"] {
            let found = client.get("/box/a").header(name, range).send();
            found.is_status(206);
            assert_eq!((found.header("Content-Range"), found.text()), (Some(answer), bytes), "{name}: {range}");
            assert_eq!(found.header("Content-Length"), Some(bytes.len().to_string().as_str()));
            assert_eq!(found.header("Content-MD5"), None, "of the whole blob it would be wrong: {found}");
            assert_eq!(found.header("x-ms-blob-content-md5"), Some(HELLO_MD5));
        }
    }
    // Where both are there, the service's own header counts.
    let both = client.get("/box/a").header("Range", "bytes=0-0").header("x-ms-range", "bytes=6-10").send();
    assert_eq!(both.text(), "World");
}

#[test]
fn x2_a_range_after_the_end_is_refused_and_a_malformed_one_ignored() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "Hello World");
    for range in ["bytes=11-", "bytes=11-20", "bytes=18446744073709551615-"] {
        let refused = client.get("/box/a").header("Range", range).send();
        refused.is_error(416, "InvalidRange");
        assert_eq!(refused.header("Content-Range"), Some("bytes */11"), "{range}");
    }
    for range in [
        "bytes=-5",
        "bytes=4-2",
        "bytes=a-b",
        "bytes=0-1,3-4",
        "bytes",
        "0-4",
        "lines=0-4",
        "bytes=99999999999999999999-",
    ] {
        let found = client.get("/box/a").header("Range", range).send();
        found.is_status(200);
        assert_eq!(found.text(), "Hello World", "{range}");
    }
}

#[test]
fn x2_the_checksum_of_a_range_is_told_on_demand() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "Hello World");
    let get =
        |range: &str| client.get("/box/a").header("x-ms-range-get-content-md5", "true").header("x-ms-range", range);
    let found = get("bytes=3-7").send();
    found.is_status(206);
    assert_eq!((found.text(), header(&found, "Content-MD5")), ("lo Wo", "Z1FfgyMpf8NSjpTmas/pjQ=="));
    assert_eq!(found.header("x-ms-blob-content-md5"), Some(HELLO_MD5));
    let whole = get("bytes=0-").send();
    assert_eq!((whole.status, whole.header("Content-MD5")), (206, Some(HELLO_MD5)));
    get("").without("x-ms-range").send().is_error(400, "InvalidHeaderValue");
    get("bytes=0-4194304").send().is_error(400, "InvalidHeaderValue");
    get("bytes=0-1").header("x-ms-range-get-content-md5", "maybe").send().is_error(400, "InvalidHeaderValue");
    put(&client, "/box/long", vec![1; 4 * 1024 * 1024 + 1]);
    let long = |range: &str| {
        client.get("/box/long").header("x-ms-range-get-content-md5", "true").header("x-ms-range", range).send()
    };
    long("bytes=0-4194303").is_status(206);
    long("bytes=1-").is_status(206);
    // A range without an end is as long as the blob makes it.
    long("bytes=0-").is_error(400, "InvalidHeaderValue");
}

#[test]
fn x2_ranges_of_long_blobs_are_exact_across_their_parts() {
    let server = serve_container();
    let client = server.blobs();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    put(&client, "/box/whole", bytes.clone());
    let mut list = String::from("<BlockList>");
    for (n, part) in bytes.chunks(70_000).enumerate() {
        let id = format!("{n:04}");
        client.request("PUT", &format!("/box/blocks?comp=block&blockid={id}")).body(part).send().is_status(201);
        list.push_str(&format!("<Latest>{id}</Latest>"));
    }
    list.push_str("</BlockList>");
    client.request("PUT", "/box/blocks?comp=blocklist").body(list).send().is_status(201);
    for path in ["/box/whole", "/box/blocks"] {
        for (first, last) in [(0, 0), (69_999, 70_000), (70_000, 139_999), (12_345, 2_345_678), (2_999_999, 2_999_999)]
        {
            let found = client.get(path).header("Range", format!("bytes={first}-{last}")).send();
            found.is_status(206);
            assert!(found.body == bytes[first..=last], "{path} {first}-{last}: {} bytes", found.body.len());
        }
        assert!(client.get(path).send().body == bytes, "{path}");
    }
}
