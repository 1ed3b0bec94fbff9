//! Checksums: which of them a write answers with, the error for a mismatch, and those of ranges. The rules are those of
//! recordings of the service.

use super::{HELLO_CRC64, HELLO_MD5, header, put, serve_container};
use larimar_testkit::http::{Client, Request, Response, Sas};

const MD5: &str = "Content-MD5";
const CRC64: &str = "x-ms-content-crc64";
const WRONG_MD5: &str = "AAAAAAAAAAAAAAAAAAAAAA==";
const WRONG_CRC64: &str = "AAAAAAAAAAA=";
/// A page that begins with `Hello World`.
fn page() -> Vec<u8> {
    let mut page = b"Hello World".to_vec();
    page.resize(512, 0);
    page
}

/// The names of the checksums of an answer.
fn checksum_headers(reply: &Response) -> String {
    assert!(matches!(reply.status, 201 | 202), "{reply}");
    let names = [(MD5, "md5"), (CRC64, "crc64")].into_iter().filter(|(name, _)| reply.header(name).is_some());
    names.map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}

fn source(client: &Client) -> String {
    format!("{}/box/page?{}", client.base(), Sas::blob("box", "page", "r").token())
}

fn make_targets(client: &Client) {
    put(client, "/box/page", page());
    client.request("PUT", "/box/log").header("x-ms-blob-type", "AppendBlob").body("").send().is_status(201);
    let disk = client.request("PUT", "/box/disk").header("x-ms-blob-type", "PageBlob");
    disk.header("x-ms-blob-content-length", "512").body("").send().is_status(201);
}

/// Every write that takes bytes of a body.
fn write<'c>(client: &'c Client, operation: &str) -> Request<'c> {
    let list = "<BlockList><Latest>AAAA</Latest></BlockList>";
    match operation {
        "Put Blob" => client.request("PUT", "/box/b").header("x-ms-blob-type", "BlockBlob").body(page()),
        "Put Block" => client.request("PUT", "/box/b?comp=block&blockid=AAAA").body(page()),
        "Put Block List" => client.request("PUT", "/box/b?comp=blocklist").xml(list),
        "Append Block" => client.request("PUT", "/box/log?comp=appendblock").body(page()),
        "Put Page" => pages(client).body(page()),
        other => panic!("no operation {other}"),
    }
}

fn pages(client: &Client) -> Request<'_> {
    let write = client.request("PUT", "/box/disk?comp=page").header("x-ms-page-write", "update");
    write.header("x-ms-range", "bytes=0-511")
}

/// Every write that takes bytes of a URL.
fn write_from<'c>(client: &'c Client, operation: &str) -> Request<'c> {
    let request = match operation {
        "Put Blob From URL" => client.request("PUT", "/box/b").header("x-ms-blob-type", "BlockBlob"),
        "Put Block From URL" => client.request("PUT", "/box/b?comp=block&blockid=AAAA"),
        "Append Block From URL" => client.request("PUT", "/box/log?comp=appendblock"),
        "Put Page From URL" => pages(client).header("x-ms-source-range", "bytes=0-511"),
        "Copy Blob From URL" => client.request("PUT", "/box/c").header("x-ms-requires-sync", "true"),
        "Copy Blob" => client.request("PUT", "/box/c"),
        other => panic!("no operation {other}"),
    };
    request.header("x-ms-copy-source", source(client)).body("")
}

#[test]
fn a_write_answers_with_the_checksum_that_it_was_checked_against() {
    let server = serve_container();
    let client = server.blobs();
    make_targets(&client);
    let sums = put(&client, "/box/sums", page());
    let (md5, crc64) = (header(&sums, MD5), header(&sums, CRC64));
    for (operation, plain, with_md5, with_crc64, before) in [
        ("Put Blob", "md5 crc64", "md5 crc64", "md5 crc64", "md5"),
        ("Put Block", "crc64", "md5", "crc64", "md5"),
        ("Append Block", "crc64", "md5", "crc64", "md5"),
        ("Put Page", "crc64", "md5", "crc64", "md5"),
    ] {
        let with = |name: &str, value: &str| checksum_headers(&write(&client, operation).header(name, value).send());
        assert_eq!(checksum_headers(&write(&client, operation).send()), plain, "{operation}");
        assert_eq!(with(MD5, md5), with_md5, "{operation}");
        assert_eq!(with(CRC64, crc64), with_crc64, "{operation}");
        assert_eq!(with("x-ms-version", "2018-11-09"), before, "{operation}");
    }
    for (version, expected) in [("2019-02-02", "crc64"), ("2018-11-09", "md5")] {
        write(&client, "Put Block").send().is_status(201);
        let committed = write(&client, "Put Block List").header("x-ms-version", version).send();
        assert_eq!(checksum_headers(&committed), expected, "Put Block List");
    }
    for (operation, plain, with_md5, before) in [
        ("Put Blob From URL", "crc64", "md5", "md5"),
        ("Put Block From URL", "crc64", "md5", "md5"),
        ("Append Block From URL", "crc64", "md5", "md5"),
        ("Put Page From URL", "crc64", "md5", "md5"),
        ("Copy Blob From URL", "crc64", "md5 crc64", "md5"),
        ("Copy Blob", "", "", ""),
    ] {
        let with =
            |name: &str, value: &str| checksum_headers(&write_from(&client, operation).header(name, value).send());
        assert_eq!(checksum_headers(&write_from(&client, operation).send()), plain, "{operation}");
        assert_eq!(with("x-ms-source-content-md5", md5), with_md5, "{operation}");
        assert_eq!(with("x-ms-version", "2018-11-09"), before, "{operation}");
    }
    let copied = write_from(&client, "Copy Blob From URL").header("x-ms-source-content-md5", md5).send();
    assert_eq!((header(&copied, MD5), header(&copied, CRC64)), (md5, crc64));
}

#[test]
fn a_mismatch_tells_both_checksums() {
    let server = serve_container();
    let client = server.blobs();
    make_targets(&client);
    let sums = put(&client, "/box/sums", page());
    let (md5, crc64) = (header(&sums, MD5), header(&sums, CRC64));
    let md5_told = [("UserSpecifiedMd5", Some(WRONG_MD5)), ("ServerCalculatedMd5", Some(md5))];
    let crc64_told = [("UserSpecifiedCrc", Some(WRONG_CRC64)), ("ServerCalculatedCrc", Some(crc64))];
    let check = |reply: &Response, code: &str, elements: [(&str, Option<&str>); 2]| {
        reply.is_error(400, code);
        for (element, value) in elements {
            assert_eq!(reply.element(element), value, "{reply}");
        }
    };
    for operation in ["Put Blob", "Put Block", "Append Block", "Put Page"] {
        check(&write(&client, operation).header(MD5, WRONG_MD5).send(), "Md5Mismatch", md5_told);
        check(&write(&client, operation).header(CRC64, WRONG_CRC64).send(), "Crc64Mismatch", crc64_told);
    }
    let list = write(&client, "Put Block List").header(MD5, WRONG_MD5).send();
    list.is_error(400, "Md5Mismatch");
    assert_eq!(list.element("UserSpecifiedMd5"), Some(WRONG_MD5), "{list}");
    let (of_md5, of_crc64) = ("x-ms-source-content-md5", "x-ms-source-content-crc64");
    for operation in ["Put Blob From URL", "Put Block From URL"] {
        check(&write_from(&client, operation).header(of_md5, WRONG_MD5).send(), "Md5Mismatch", md5_told);
        check(&write_from(&client, operation).header(of_crc64, WRONG_CRC64).send(), "Crc64Mismatch", crc64_told);
        let both = write_from(&client, operation).header(of_md5, md5).header(of_crc64, crc64).send();
        both.is_status(400);
        write_from(&client, operation).header(of_crc64, crc64).send().is_status(201);
    }
    check(&write_from(&client, "Copy Blob From URL").header(of_md5, WRONG_MD5).send(), "Md5Mismatch", md5_told);
    client.get("/box/c").send().is_error(404, "BlobNotFound");
    // The service's answers for these two have no details.
    for operation in ["Append Block From URL", "Put Page From URL"] {
        let refused = write_from(&client, operation).header(of_md5, WRONG_MD5).send();
        check(&refused, "Md5Mismatch", [("UserSpecifiedMd5", None), ("ServerCalculatedMd5", None)]);
    }
}

#[test]
fn a_range_has_its_crc64_on_demand() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "xHello Worldx");
    let get = |headers: &[(&str, &str)]| {
        let request = client.get("/box/a");
        headers.iter().fold(request, |request, (name, value)| request.header(name, *value)).send()
    };
    let (of_crc64, of_md5) = (("x-ms-range-get-content-crc64", "true"), ("x-ms-range-get-content-md5", "true"));
    let range = ("x-ms-range", "bytes=1-11");
    let summed = get(&[range, of_crc64]);
    assert_eq!((summed.status, summed.header(CRC64), summed.header(MD5)), (206, Some(HELLO_CRC64), None), "{summed}");
    assert_eq!(summed.text(), "Hello World");
    let summed = get(&[range, of_md5]);
    assert_eq!((summed.status, summed.header(CRC64), summed.header(MD5)), (206, None, Some(HELLO_MD5)), "{summed}");
    get(&[range, of_crc64, of_md5]).is_status(400);
    get(&[of_crc64]).is_error(400, "InvalidHeaderValue");
    get(&[("x-ms-range", "bytes=0-4194304"), of_crc64]).is_error(400, "InvalidHeaderValue");
    put(&client, "/box/a", vec![b'x'; 4 * 1024 * 1024 + 1]);
    get(&[("x-ms-range", "bytes=0-"), of_crc64]).is_error(400, "InvalidHeaderValue");
}
