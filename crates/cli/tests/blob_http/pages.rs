//! Page blobs: pages written and cleared, the ranges that hold something, length and sequence number.

use super::{content, header, properties, serve_container};
use larimar_testkit::http::{Client, Response};

fn make(client: &Client, path: &str, length: &str) -> Response {
    let request = client.request("PUT", path).header("x-ms-blob-type", "PageBlob");
    request.header("x-ms-blob-content-length", length).body("").send()
}

fn write(client: &Client, path: &str, range: &str, byte: u8, headers: &[(&str, &str)]) -> Response {
    let (first, last) = range.split_once('-').expect("a range");
    let length = last.parse::<usize>().expect("a number") + 1 - first.parse::<usize>().expect("a number");
    let request = client.request("PUT", &format!("{path}?comp=page")).header("x-ms-page-write", "update");
    let request = request.header("x-ms-range", format!("bytes={range}")).body(vec![byte; length]);
    headers.iter().fold(request, |request, (name, value)| request.header(name, *value)).send()
}

fn clear(client: &Client, path: &str, range: &str) -> Response {
    let request = client.request("PUT", &format!("{path}?comp=page")).header("x-ms-page-write", "clear");
    request.header("Range", format!("bytes={range}")).body("").send()
}

/// The ranges of a page list: written and cleared.
fn ranges(client: &Client, path: &str, query: &str) -> (String, String) {
    let reply = client.get(&format!("{path}?comp=pagelist{query}")).send();
    reply.is_status(200);
    let of = |element: &str| {
        let range = |text: &&str| text.replace("<Start>", "").replace("</Start><End>", "-").replace("</End>", "");
        reply.elements(element).iter().map(range).collect::<Vec<_>>().join(" ")
    };
    (of("PageRange"), of("ClearRange"))
}

#[test]
fn x2_pages_are_written_cleared_and_told() {
    let server = serve_container();
    let client = server.blobs();
    make(&client, "/box/disk", "4096").is_status(201);
    assert_eq!(content(&client, "/box/disk"), [0; 4096]);
    assert_eq!(ranges(&client, "/box/disk", ""), (String::new(), String::new()));
    let written = write(&client, "/box/disk", "512-1535", b'a', &[]);
    written.is_status(201);
    assert_eq!(written.header("x-ms-blob-sequence-number"), Some("0"));
    assert!(written.header("ETag").is_some() && written.header("x-ms-content-crc64").is_some());
    write(&client, "/box/disk", "3584-4095", b'b', &[]).is_status(201);
    assert_eq!(ranges(&client, "/box/disk", "").0, "512-1535 3584-4095");
    clear(&client, "/box/disk", "1024-2047").is_status(201);
    assert_eq!(ranges(&client, "/box/disk", "").0, "512-1023 3584-4095");
    let mut expected = vec![0; 4096];
    expected[512..1024].fill(b'a');
    expected[3584..].fill(b'b');
    assert_eq!(content(&client, "/box/disk"), expected);
    let part = client.get("/box/disk").header("Range", "bytes=1000-1030").send();
    assert_eq!((part.status, part.body), (206, expected[1000..=1030].to_vec()));
    let list = client.get("/box/disk?comp=pagelist").send();
    assert_eq!(list.header("x-ms-blob-content-length"), Some("4096"));
    assert!(list.header("ETag").is_some());
    let some = client.get("/box/disk?comp=pagelist").header("Range", "bytes=0-1023").send();
    assert_eq!(some.elements("Start"), ["512"], "{some}");
    let answer = properties(&client, "/box/disk");
    assert_eq!((answer.header("x-ms-blob-type"), answer.header("Content-Length")), (Some("PageBlob"), Some("4096")));
    assert_eq!(answer.header("x-ms-blob-sequence-number"), Some("0"));
    client.get("/box/none?comp=pagelist").send().is_error(404, "BlobNotFound");
}

#[test]
fn x2_pages_begin_and_end_at_multiples_of_512_inside_the_blob() {
    let server = serve_container();
    let client = server.blobs();
    for length in ["100", "513", "-512", "x", "8796093022720"] {
        make(&client, "/box/disk", length).is_error(400, "InvalidHeaderValue");
    }
    let without = client.request("PUT", "/box/disk").header("x-ms-blob-type", "PageBlob").body("").send();
    without.is_error(400, "MissingRequiredHeader");
    make(&client, "/box/disk", "1024").is_status(201);
    for range in ["0-510", "1-512", "256-767"] {
        write(&client, "/box/disk", range, 1, &[]).is_error(416, "InvalidPageRange");
    }
    write(&client, "/box/disk", "1024-1535", 1, &[]).is_error(416, "InvalidPageRange");
    write(&client, "/box/disk", "512-1535", 1, &[]).is_error(416, "InvalidPageRange");
    clear(&client, "/box/disk", "1024-1535").is_error(416, "InvalidPageRange");
    let page = |range: Option<&str>, action: Option<&str>, body: &[u8]| {
        let mut request = client.request("PUT", "/box/disk?comp=page").body(body);
        if let Some(range) = range {
            request = request.header("Range", range);
        }
        if let Some(action) = action {
            request = request.header("x-ms-page-write", action);
        }
        request.send()
    };
    page(None, Some("update"), &[1; 512]).is_error(400, "MissingRequiredHeader");
    page(Some("bytes=0-511"), None, &[1; 512]).is_error(400, "MissingRequiredHeader");
    page(Some("bytes=0-511"), Some("erase"), &[]).is_error(400, "InvalidHeaderValue");
    page(Some("bytes=0-511"), Some("update"), &[1; 511]).is_error(400, "InvalidHeaderValue");
    page(Some("bytes=0-511"), Some("clear"), &[1; 512]).is_error(400, "InvalidHeaderValue");
    page(Some("bytes=0-"), Some("update"), &[1; 512]).is_error(416, "InvalidPageRange");
    page(Some("nonsense"), Some("update"), &[1; 512]).is_error(416, "InvalidPageRange");
    make(&client, "/box/large", "8388608").is_status(201);
    write(&client, "/box/large", "0-4194303", 1, &[]).is_status(201);
    write(&client, "/box/large", "0-4194815", 1, &[]).is_error(413, "RequestBodyTooLarge");
    assert_eq!(content(&client, "/box/disk"), [0; 1024]);
}

#[test]
fn x2_sequence_numbers_guard_pages() {
    let server = serve_container();
    let client = server.blobs();
    let request = client.request("PUT", "/box/disk").header("x-ms-blob-type", "PageBlob");
    let request = request.header("x-ms-blob-content-length", "512").header("x-ms-blob-sequence-number", "5");
    request.body("").send().is_status(201);
    let write = |condition: &str, number: &str| write(&client, "/box/disk", "0-511", 1, &[(condition, number)]);
    let refused = (412, "SequenceNumberConditionNotMet");
    for (condition, number, is_met) in [
        ("x-ms-if-sequence-number-le", "4", false),
        ("x-ms-if-sequence-number-le", "5", true),
        ("x-ms-if-sequence-number-lt", "5", false),
        ("x-ms-if-sequence-number-lt", "6", true),
        ("x-ms-if-sequence-number-eq", "4", false),
        ("x-ms-if-sequence-number-eq", "5", true),
    ] {
        let reply = write(condition, number);
        if is_met { reply.is_status(201) } else { reply.is_error(refused.0, refused.1) }
    }
    write("x-ms-if-sequence-number-eq", "five").is_error(400, "InvalidHeaderValue");
    // Recordings of the service: a number below zero has another code, but not from a URL.
    for name in ["x-ms-if-sequence-number-lt", "x-ms-if-sequence-number-le"] {
        write(name, "-1").is_error(400, "InvalidInput");
        let clear = client.request("PUT", "/box/disk?comp=page").header("x-ms-page-write", "clear");
        clear.header("x-ms-range", "bytes=0-511").header(name, "-1").send().is_error(400, "InvalidInput");
        let url = client.request("PUT", "/box/disk?comp=page").header("x-ms-page-write", "update");
        let url = url.header("x-ms-range", "bytes=0-511").header("x-ms-source-range", "bytes=0-511").header(name, "-1");
        let source = format!("{}/box/disk", client.base());
        url.header("x-ms-copy-source", source).body("").send().is_error(400, "InvalidHeaderValue");
    }
    let number = |action: &str, number: Option<&str>| {
        let request = client.request("PUT", "/box/disk?comp=properties").header("x-ms-sequence-number-action", action);
        number.map_or(request.clone(), |number| request.header("x-ms-blob-sequence-number", number)).send()
    };
    for (action, value, answer) in
        [("max", Some("3"), "5"), ("max", Some("9"), "9"), ("update", Some("7"), "7"), ("increment", None, "8")]
    {
        let reply = number(action, value);
        reply.is_status(200);
        assert_eq!(header(&reply, "x-ms-blob-sequence-number"), answer, "{action}");
    }
    number("increment", Some("1")).is_error(400, "InvalidHeaderValue");
    number("update", None).is_error(400, "MissingRequiredHeader");
    number("double", Some("1")).is_error(400, "InvalidHeaderValue");
    number("update", Some("9223372036854775807")).is_status(200);
    number("increment", None).is_error(409, "SequenceNumberIncrementTooLarge");
}

#[test]
fn x2_a_page_blob_grows_and_shrinks() {
    let server = serve_container();
    let client = server.blobs();
    make(&client, "/box/disk", "1024").is_status(201);
    write(&client, "/box/disk", "0-1023", b'a', &[]).is_status(201);
    client.request("PUT", "/box/disk?comp=properties").header("x-ms-blob-content-type", "x/y").send().is_status(200);
    let resize = |length: &str| {
        client.request("PUT", "/box/disk?comp=properties").header("x-ms-blob-content-length", length).send()
    };
    resize("512").is_status(200);
    assert_eq!(content(&client, "/box/disk"), [b'a'; 512]);
    resize("1536").is_status(200);
    let mut expected = vec![b'a'; 512];
    expected.resize(1536, 0);
    assert_eq!(content(&client, "/box/disk"), expected, "what was cut off does not come back");
    assert_eq!(properties(&client, "/box/disk").header("Content-Type"), Some("x/y"), "a new length is not a new type");
    resize("1000").is_error(400, "InvalidHeaderValue");
    super::put(&client, "/box/block", "x");
    let other = client.request("PUT", "/box/block?comp=properties").header("x-ms-blob-content-length", "512").send();
    other.is_error(409, "InvalidBlobType");
}

#[test]
fn x2_pages_are_compared_with_an_earlier_snapshot() {
    let server = serve_container();
    let client = server.blobs();
    make(&client, "/box/disk", "4096").is_status(201);
    write(&client, "/box/disk", "0-1023", b'a', &[]).is_status(201);
    let snapshot = |client: &Client| {
        let reply = client.request("PUT", "/box/disk?comp=snapshot").send();
        reply.is_status(201);
        header(&reply, "x-ms-snapshot").to_owned()
    };
    let first = snapshot(&client);
    write(&client, "/box/disk", "2048-2559", b'b', &[]).is_status(201);
    clear(&client, "/box/disk", "0-511").is_status(201);
    let second = snapshot(&client);
    write(&client, "/box/disk", "3584-4095", b'c', &[]).is_status(201);
    let since = |of: &str| format!("&prevsnapshot={of}");
    let both = |written: &str, cleared: &str| (written.to_owned(), cleared.to_owned());
    assert_eq!(ranges(&client, "/box/disk", &since(&first)), both("2048-2559 3584-4095", "0-511"));
    assert_eq!(ranges(&client, "/box/disk", &since(&second)), both("3584-4095", ""));
    let between = format!("&snapshot={second}&prevsnapshot={first}");
    assert_eq!(ranges(&client, "/box/disk", &between), both("2048-2559", "0-511"));
    assert_eq!(ranges(&client, "/box/disk", &format!("&snapshot={first}")), both("0-1023", ""));
    assert_eq!(content(&client, &format!("/box/disk?snapshot={first}"))[2048..2560], [0; 512]);
    let backwards = client.get(&format!("/box/disk?comp=pagelist&snapshot={first}&prevsnapshot={second}")).send();
    assert!((400..500).contains(&backwards.status), "{backwards}");
    let missing = client.get("/box/disk?comp=pagelist&prevsnapshot=2020-01-01T00:00:00.0000000Z").send();
    missing.is_error(409, "PreviousSnapshotNotFound");
}

/// Recordings of the service: written and cleared ranges are mixed, in the order of their offsets.
#[test]
fn changes_since_a_snapshot_come_in_the_order_of_their_offsets() {
    let server = serve_container();
    let client = server.blobs();
    make(&client, "/box/disk", "4096").is_status(201);
    write(&client, "/box/disk", "512-1535", 1, &[]).is_status(201);
    let taken = client.request("PUT", "/box/disk?comp=snapshot").send();
    write(&client, "/box/disk", "0-511", 2, &[]).is_status(201);
    clear(&client, "/box/disk", "512-1023").is_status(201);
    write(&client, "/box/disk", "2048-2559", 2, &[]).is_status(201);
    let diff = |query: &str| {
        let at = header(&taken, "x-ms-snapshot");
        client.get(&format!("/box/disk?comp=pagelist&prevsnapshot={at}{query}")).send()
    };
    let range = |kind: &str, start: u64| format!("<{kind}><Start>{start}</Start><End>{}</End></{kind}>", start + 511);
    let all = [range("PageRange", 0), range("ClearRange", 512), range("PageRange", 2048)];
    let answer = diff("");
    assert!(answer.text().ends_with(&format!("<PageList>{}</PageList>", all.concat())), "{answer}");
    let (mut seen, mut marker) = (String::new(), String::new());
    for _ in 0..3 {
        let page = diff(&format!("&maxresults=1&marker={marker}"));
        let text = page.text().split_once("<PageList>").and_then(|(_, rest)| rest.split_once("<NextMarker"));
        seen.push_str(text.expect("a page").0);
        marker = page.element("NextMarker").unwrap_or_default().to_owned();
    }
    assert_eq!((seen, marker), (all.concat(), String::new()));
}

#[test]
fn x2_page_ranges_come_in_pages() {
    let server = serve_container();
    let client = server.blobs();
    make(&client, "/box/disk", "16384").is_status(201);
    for n in 0..8 {
        write(&client, "/box/disk", &format!("{}-{}", n * 2048, n * 2048 + 511), 1, &[]).is_status(201);
    }
    let (mut seen, mut marker) = (Vec::new(), String::new());
    for round in 0..3 {
        let page = client.get(&format!("/box/disk?comp=pagelist&maxresults=3&marker={marker}")).send();
        page.is_status(200);
        seen.extend(page.elements("Start").iter().map(|start| start.parse::<u64>().expect("a number")));
        marker = page.element("NextMarker").unwrap_or_default().to_owned();
        assert_eq!(marker.is_empty(), round == 2, "{page}");
    }
    assert_eq!(seen, (0..8).map(|n| n * 2048).collect::<Vec<u64>>());
    // Recordings of the service: an empty marker ends pages that were asked for, and nothing an answer that is whole.
    let whole = |query: &str| client.get(&format!("/box/disk?comp=pagelist{query}")).send();
    assert!(whole("&maxresults=8").text().ends_with("<NextMarker /></PageList>"));
    assert!(whole("").text().ends_with("</PageRange></PageList>"));
    // A range that begins or ends inside a page touches all of it.
    let part = client.get("/box/disk?comp=pagelist").header("x-ms-range", "bytes=2050-4097").send();
    assert_eq!((part.elements("Start"), part.elements("End")), (vec!["2048", "4096"], vec!["2559", "4607"]), "{part}");
    client.get("/box/disk?comp=pagelist&maxresults=3&marker=nonsense").send().is_error(400, "OutOfRangeInput");
}
