//! Block blobs in steps: blocks, the lists that commit them, and how both are listed.

use super::{HELLO_MD5, content, header, properties, put, serve_container};
use larimar_testkit::http::{Client, Response, encode};

/// The id of a block.
fn id(name: &str) -> String {
    // Four letters are three bytes of base64.
    assert_eq!(name.len() % 4, 0);
    name.to_owned()
}

#[track_caller]
fn stage(client: &Client, path: &str, name: &str, bytes: &str) -> Response {
    let reply = client.request("PUT", &format!("{path}?comp=block&blockid={}", encode(&id(name)))).body(bytes).send();
    reply.is_status(201);
    reply
}

/// Commits blocks, each as `kind:id`.
fn commit(client: &Client, path: &str, list: &[&str]) -> Response {
    let entry = |entry: &&str| {
        let (kind, id) = entry.split_once(':').expect("a kind");
        format!("<{kind}>{id}</{kind}>")
    };
    let list: String = list.iter().map(entry).collect();
    let body = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{list}</BlockList>");
    client.request("PUT", &format!("{path}?comp=blocklist")).xml(body).send()
}

/// Ids of blocks with their sizes.
type Blocks = Vec<(String, String)>;

/// Committed and uncommitted blocks.
fn block_lists(client: &Client, path: &str) -> (Blocks, Blocks) {
    let reply = client.get(&format!("{path}?comp=blocklist&blocklisttype=all")).send();
    reply.is_status(200);
    let (committed, uncommitted) = reply.text().split_once("<UncommittedBlocks").expect("both kinds");
    let pairs = |text: &str| {
        let part = Response { body: text.as_bytes().to_vec(), ..reply.clone() };
        let (names, sizes) = (part.elements("Name"), part.elements("Size"));
        names.iter().zip(sizes).map(|(name, size)| ((*name).to_owned(), size.to_owned())).collect()
    };
    (pairs(committed), pairs(uncommitted))
}

fn pairs(list: &[(&str, &str)]) -> Blocks {
    list.iter().map(|(name, size)| ((*name).to_owned(), (*size).to_owned())).collect()
}

#[test]
fn x2_blocks_are_committed_in_the_order_of_the_list() {
    let server = serve_container();
    let client = server.blobs();
    let staged = stage(&client, "/box/a", "AAAA", "one,");
    assert!(staged.header("ETag").is_none() && staged.header("x-ms-content-crc64").is_some(), "{staged}");
    stage(&client, "/box/a", "BBBB", "two,");
    stage(&client, "/box/a", "CCCC", "three,");
    client.get("/box/a").send().is_error(404, "BlobNotFound");
    assert_eq!(block_lists(&client, "/box/a"), (vec![], pairs(&[("AAAA", "4"), ("BBBB", "4"), ("CCCC", "6")])));
    let list = client.get("/box/a?comp=blocklist&blocklisttype=all").send();
    assert!(list.header("ETag").is_none() && list.header("x-ms-blob-content-length").is_none(), "{list}");
    let done = commit(&client, "/box/a", &["Latest:CCCC", "Uncommitted:AAAA", "Latest:AAAA"]);
    done.is_status(201);
    assert_eq!(content(&client, "/box/a"), b"three,one,one,");
    assert_eq!(block_lists(&client, "/box/a"), (pairs(&[("CCCC", "6"), ("AAAA", "4"), ("AAAA", "4")]), vec![]));
    let list = client.get("/box/a?comp=blocklist").send();
    assert_eq!(list.header("ETag"), done.header("ETag"));
    assert_eq!(list.header("x-ms-blob-content-length"), Some("14"));
    assert!(!list.text().contains("UncommittedBlocks"), "{list}");
    assert_eq!(list.header("Content-Type"), Some("application/xml"));
    let open = client.get("/box/a?comp=blocklist&blocklisttype=uncommitted").send();
    assert!(!open.text().contains("<CommittedBlocks"), "{open}");
    client.get("/box/a?comp=blocklist&blocklisttype=some").send().is_error(400, "InvalidQueryParameterValue");
    client.get("/box/none?comp=blocklist").send().is_error(404, "BlobNotFound");
}

#[test]
fn x2_committed_and_staged_blocks_of_one_name_are_told_apart() {
    let server = serve_container();
    let client = server.blobs();
    stage(&client, "/box/a", "AAAA", "old a,");
    stage(&client, "/box/a", "BBBB", "old b,");
    commit(&client, "/box/a", &["Latest:AAAA", "Latest:BBBB"]).is_status(201);
    stage(&client, "/box/a", "AAAA", "new a,");
    stage(&client, "/box/a", "CCCC", "new c,");
    let mixed = ["Committed:AAAA", "Uncommitted:AAAA", "Latest:AAAA", "Latest:BBBB", "Uncommitted:CCCC"];
    commit(&client, "/box/a", &mixed).is_status(201);
    assert_eq!(content(&client, "/box/a"), b"old a,new a,new a,old b,new c,");
    // A staged block that the list does not name is gone.
    stage(&client, "/box/a", "AAAA", "never,");
    commit(&client, "/box/a", &["Committed:BBBB"]).is_status(201);
    assert_eq!(content(&client, "/box/a"), b"old b,");
    commit(&client, "/box/a", &["Latest:AAAA"]).is_error(400, "InvalidBlockList");
    // A block that is staged again is replaced.
    stage(&client, "/box/a", "DDDD", "first,");
    stage(&client, "/box/a", "DDDD", "second,");
    commit(&client, "/box/a", &["Latest:DDDD", "Committed:BBBB"]).is_status(201);
    assert_eq!(content(&client, "/box/a"), b"second,old b,");
}

#[test]
fn x2_a_list_with_an_unknown_block_is_refused_whole() {
    let server = serve_container();
    let client = server.blobs();
    stage(&client, "/box/a", "AAAA", "a");
    commit(&client, "/box/a", &["Latest:AAAA"]).is_status(201);
    stage(&client, "/box/a", "BBBB", "b");
    for list in [
        &["Latest:BBBB", "Latest:XXXX"][..],
        &["Committed:BBBB"],
        &["Uncommitted:AAAA"],
        &["Committed:AAAA", "Uncommitted:XXXX"],
    ] {
        commit(&client, "/box/a", list).is_error(400, "InvalidBlockList");
    }
    assert_eq!(content(&client, "/box/a"), b"a");
    assert_eq!(
        block_lists(&client, "/box/a"),
        (pairs(&[("AAAA", "1")]), pairs(&[("BBBB", "1")])),
        "nothing was dropped"
    );
    commit(&client, "/box/none", &["Latest:AAAA"]).is_error(400, "InvalidBlockList");
    client.get("/box/none").send().is_error(404, "BlobNotFound");
    commit(&client, "/box/a", &["Latest:BBBB"]).is_status(201);
    // The blocks of Put Blob have no names.
    put(&client, "/box/whole", "whole");
    assert_eq!(block_lists(&client, "/box/whole"), (vec![], vec![]));
    commit(&client, "/box/whole", &[]).is_status(201);
    assert_eq!(content(&client, "/box/whole"), b"");
}

#[test]
fn x2_a_list_that_is_none_is_refused() {
    let server = serve_container();
    let client = server.blobs();
    stage(&client, "/box/a", "AAAA", "a");
    let send = |body: &str| client.request("PUT", "/box/a?comp=blocklist").xml(body).send();
    for body in [
        "",
        "x",
        "<BlockList>",
        "<Blocks/>",
        "<BlockList><Newest>AAAA</Newest></BlockList>",
        "<BlockList>AAAA</BlockList>",
        "<BlockList><Latest><Id>AAAA</Id></Latest></BlockList>",
    ] {
        let refused = send(body);
        assert_eq!(refused.status, 400, "{body}: {refused}");
    }
    for id in ["A", "", "*", "AAAA=AAA"] {
        let refused = send(&format!("<BlockList><Latest>{id}</Latest></BlockList>"));
        assert_eq!(refused.status, 400, "{id}: {refused}");
    }
    let checked = |name: &str, value: &str| {
        let request = client.request("PUT", "/box/a?comp=blocklist").header(name, value);
        request.body("<BlockList/>").send()
    };
    checked("Content-MD5", HELLO_MD5).is_error(400, "Md5Mismatch");
    checked("x-ms-content-crc64", "AAAAAAAAAAA=").is_error(400, "Crc64Mismatch");
    client.get("/box/a").send().is_error(404, "BlobNotFound");
}

#[test]
fn x2_a_list_brings_all_that_is_told_of_the_blob() {
    let server = serve_container();
    let client = server.blobs();
    let made = put(&client, "/box/a", "x");
    client.request("PUT", "/box/a?comp=metadata").header("x-ms-meta-old", "1").send().is_status(200);
    stage(&client, "/box/a", "AAAA", "Hello World");
    let done = client
        .request("PUT", "/box/a?comp=blocklist")
        .header("Content-Type", "application/xml")
        .header("x-ms-blob-content-type", "text/plain")
        .header("x-ms-blob-content-md5", HELLO_MD5)
        .header("x-ms-meta-new", "2")
        .header("x-ms-access-tier", "Cool")
        .body("<BlockList><Latest>AAAA</Latest></BlockList>")
        .send();
    done.is_status(201);
    assert_ne!(done.header("Content-MD5"), Some(HELLO_MD5), "that is the sum of the list");
    let answer = properties(&client, "/box/a");
    for (name, value) in [
        ("Content-Type", Some("text/plain")),
        ("Content-MD5", Some(HELLO_MD5)),
        ("x-ms-meta-new", Some("2")),
        ("x-ms-meta-old", None),
        ("x-ms-access-tier", Some("Cool")),
        ("x-ms-creation-time", made.header("Last-Modified")),
        ("ETag", done.header("ETag")),
    ] {
        assert_eq!(answer.header(name), value, "{name}: {answer}");
    }
    // Without one no sum is made up: the service has never seen the bytes in one piece.
    commit(&client, "/box/a", &["Committed:AAAA"]).is_status(201);
    let answer = properties(&client, "/box/a");
    assert_eq!((answer.header("Content-MD5"), answer.header("Content-Type")), (None, Some("application/octet-stream")));
}

#[test]
fn x2_ids_of_blocks_have_one_length_and_at_most_64_bytes() {
    let server = serve_container();
    let client = server.blobs();
    let put = |path: &str, id: &str| {
        client.request("PUT", &format!("{path}?comp=block&blockid={}", encode(id))).body("x").send()
    };
    stage(&client, "/box/a", "AAAA", "a");
    put("/box/a", "AAAAAAAA").is_error(400, "InvalidBlobOrBlock");
    put("/box/a", "AAA=").is_status(201);
    // 64 bytes are 88 characters, the last two of them padding.
    put("/box/long", &format!("{}==", "A".repeat(86))).is_status(201);
    put("/box/long2", &format!("{}=", "A".repeat(87))).is_error(400, "InvalidQueryParameterValue");
    for id in ["A", "AAAAA", "AA-A", "ä", "===="] {
        put("/box/b", id).is_error(400, "InvalidQueryParameterValue");
    }
    // The reason of recorded answers.
    assert_eq!(put("/box/b", "test-block").element("Reason"), Some("Not a valid base64 string."));
    let missing = client.request("PUT", "/box/b?comp=block").body("x").send();
    missing.is_error(400, "MissingRequiredQueryParameter");
    let empty = client.request("PUT", "/box/b?comp=block&blockid=AAAA").body("").send();
    empty.is_error(400, "InvalidHeaderValue");
    // Once all are committed, others may have another length.
    commit(&client, "/box/a", &["Latest:AAAA"]).is_status(201);
    put("/box/a", "AAAAAAAA").is_status(201);
    // A plus and a slash are part of the alphabet, and come escaped or not.
    let raw = client.request("PUT", "/box/c?comp=block&blockid=a%2Bb/").body("plus").send();
    raw.is_status(201);
    commit(&client, "/box/c", &["Latest:a+b/"]).is_status(201);
    assert_eq!(content(&client, "/box/c"), b"plus");
}

#[test]
fn x2_put_blob_and_delete_drop_what_was_staged() {
    let server = serve_container();
    let client = server.blobs();
    stage(&client, "/box/a", "AAAA", "staged");
    put(&client, "/box/a", "whole");
    assert_eq!(block_lists(&client, "/box/a"), (vec![], vec![]));
    commit(&client, "/box/a", &["Latest:AAAA"]).is_error(400, "InvalidBlockList");
    stage(&client, "/box/a", "AAAAAAAA", "staged");
    client.request("DELETE", "/box/a").send().is_status(202);
    commit(&client, "/box/a", &["Latest:AAAAAAAA"]).is_error(400, "InvalidBlockList");
    stage(&client, "/box/b", "AAAA", "only staged");
    client.request("DELETE", "/box/b").send().is_error(404, "BlobNotFound");
    client.request("HEAD", "/box/b").send().is_error(404, "BlobNotFound");
    assert_eq!(block_lists(&client, "/box/b").1.len(), 1);
}

#[test]
fn x2_fifty_thousand_blocks_make_a_blob_and_one_more_do_not() {
    let server = serve_container();
    let client = server.blobs();
    stage(&client, "/box/a", "AAAA", "a");
    stage(&client, "/box/a", "BBBB", "b");
    let list = |count: usize| {
        let entries = (0..count).map(|n| if n % 1000 == 7 { "<Latest>BBBB</Latest>" } else { "<Latest>AAAA</Latest>" });
        format!("<BlockList>{}</BlockList>", entries.collect::<String>())
    };
    let send = |count: usize| client.request("PUT", "/box/a?comp=blocklist").xml(list(count)).send();
    send(50_001).is_error(400, "BlockListTooLong");
    client.get("/box/a").send().is_error(404, "BlobNotFound");
    send(50_000).is_status(201);
    let found = content(&client, "/box/a");
    assert_eq!(found.len(), 50_000);
    assert!(found.iter().enumerate().all(|(n, byte)| (*byte == b'b') == (n % 1000 == 7)));
    let part = client.get("/box/a").header("Range", "bytes=40006-40008").send();
    assert_eq!((part.status, part.text()), (206, "aba"));
    let reply = client.get("/box/a?comp=blocklist").send();
    assert_eq!(reply.elements("Name").len(), 50_000);
    assert_eq!(header(&reply, "x-ms-blob-content-length"), "50000");
    commit(&client, "/box/a", &["Committed:BBBB", "Latest:AAAA", "Committed:BBBB"]).is_status(201);
    assert_eq!(content(&client, "/box/a"), b"bab");
}
