//! What one request may cost: headers, hosts and filters at their limits and past them, at the wire.

use super::Victim;
use super::slow::figure;
use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{Batch, Client, Request, Sas, encode, entity, exchange};

#[test]
fn d5_metadata_is_limited_by_bytes_and_not_by_entries() {
    let server = TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &["--durability", "async"]);
    let (queues, blobs) = (server.queues(), server.blobs());
    let with = |request: Request<'_>, pairs: usize, value: &str| {
        (0..pairs).fold(request, |request, i| request.also(&format!("x-ms-meta-n{i:04}"), value)).send()
    };
    for (client, create, read) in [
        (&blobs, "/box?restype=container", "/box?restype=container"),
        (&blobs, "/box/blob", "/box/blob"),
        (&queues, "/jobs", "/jobs?comp=metadata"),
    ] {
        let put = || client.request("PUT", create).header("x-ms-blob-type", "BlockBlob").body("");
        with(put(), 400, "value").is_status(201);
        let reply = client.get(read).send();
        reply.is_status(200);
        assert_eq!((reply.header("x-ms-meta-n0000"), reply.header("x-ms-meta-n0399")), (Some("value"), Some("value")));
        // 8 KiB of names and values, in as many pairs as there are.
        let put = || {
            client
                .request("PUT", &create.replace("box?", "full?").replace("jobs", "full"))
                .header("x-ms-blob-type", "BlockBlob")
                .body("")
        };
        with(put(), 1365, "v").is_status(201);
        with(put(), 1366, "v").is_error(400, "MetadataTooLarge");
    }
}

#[test]
fn long_headers_are_refused_with_400() {
    let server = TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &["--durability", "async"]);
    let blobs = server.blobs();
    blobs.request("PUT", "/box?restype=container").send().is_status(201);
    let put = || blobs.request("PUT", "/box/blob").header("x-ms-blob-type", "BlockBlob").body("x");
    for bytes in [100, 5_000, 30_000, 60_000] {
        for name in ["Content-MD5", "x-ms-blob-content-md5"] {
            put().header(name, "A".repeat(bytes)).send().is_error(400, "InvalidMd5");
        }
    }
    // Longer than the head of a request may be, but short enough that the server reads it.
    for bytes in [66_000, 100_000] {
        let reply = put().header("Content-MD5", "A".repeat(bytes)).send();
        assert_eq!((reply.status, reply.header("x-ms-error-code")), (400, Some("InvalidHeaderValue")), "{reply}");
    }
    assert_eq!(blobs.get("/box/blob").send().status, 404, "nothing was stored");
}

#[test]
fn a_host_is_given_once_and_is_not_long() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    let list = || client.get("/Tables").accept("application/json;odata=fullmetadata");
    list().header("Host", "h".repeat(260)).send().is_status(200);
    for host in ["h".repeat(261), "h".repeat(60_000), "a b".to_owned(), "a/b".to_owned(), "a\"b".to_owned()] {
        list().header("Host", host).send().is_error(400, "InvalidHeaderValue");
    }
    list().header("Host", "").send().is_error(400, "HostInformationNotPresent");
    list().also("Host", "other").send().is_error(400, "InvalidHeaderValue");
    list().also("Host", client.address().to_string()).send().is_error(400, "InvalidHeaderValue");
    let without = list().without("Host").header("Connection", "close");
    exchange(client.address(), &without.to_bytes()).expect("an answer").is_error(400, "HostInformationNotPresent");
    let long = list().without("Host").target(&format!("http://{}/devstoreaccount1/Tables", "h".repeat(1000)));
    let reply = exchange(client.address(), &long.header("Connection", "close").to_bytes()).expect("an answer");
    reply.is_error(400, "InvalidHeaderValue");
    victim.check_unharmed();
}

#[test]
fn headers_that_mean_one_thing_are_given_once() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    for (name, value) in [
        ("x-ms-date", "Mon, 01 Jan 2024 00:00:00 GMT"),
        ("x-ms-version", "2019-02-02"),
        ("Content-Type", "application/json"),
        ("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ("Date", "Mon, 01 Jan 2024 00:00:00 GMT"),
        ("If-Match", "*"),
    ] {
        let put = client.put("/tab(PartitionKey='p',RowKey='r')", "{}").header(name, value).also(name, value);
        put.send().is_error(400, "InvalidHeaderValue");
    }
    client.get("/tab()").also("Authorization", "SharedKey a:b").send().is_error(400, "InvalidAuthenticationInfo");
    // A signature in the URL covers no headers.
    let guest =
        |client: &Client, service| client.with_sas(&Sas::account("sco", "rwdlacup").with("ss", service).token());
    let (blobs, queues) = (guest(&victim.server.blobs(), "b"), guest(&victim.server.queues(), "q"));
    let blob = blobs.request("PUT", "/box?restype=container").also("x-ms-blob-public-access", "blob");
    blob.also("x-ms-blob-public-access", "container").send().is_error(400, "InvalidHeaderValue");
    queues.request("PUT", "/jobs").also("x-ms-version", "2024-11-04").send().is_error(400, "InvalidHeaderValue");
    // What HTTP allows to be spread over lines stays allowed.
    client.get("/tab()").also("Cache-Control", "no-cache").also("Cache-Control", "no-store").send().is_status(200);
    victim.check_unharmed();
}

#[test]
fn q6_a_hostile_filter_is_answered() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    let excluded = |count: usize| {
        let parts = |key: &str| (0..count).map(|i| format!("{key} ne '{i:03}'")).collect::<Vec<_>>().join(" and ");
        format!("{} and {}", parts("PartitionKey"), parts("RowKey"))
    };
    // Each of these took from seconds to minutes, and nothing else was answered meanwhile.
    for count in [150, 300, 600] {
        client.get("/tab()").query("$filter", &excluded(count)).send().is_status(200);
    }
    // A request inside a batch is bounded like one by itself.
    let batch = |filter: &str| {
        let url = format!("{}/tab()?$filter={}", client.base(), encode(filter));
        let get = format!("GET {url} HTTP/1.1\r\nAccept: application/json\r\n\r\n");
        let body = format!("--b\r\nContent-Type: application/http\r\n\r\n{get}\r\n--b--\r\n");
        client.request("POST", "/$batch").header("Content-Type", "multipart/mixed; boundary=b").body(body).send()
    };
    batch(&excluded(300)).is_status(202);
    batch(&excluded(6_000)).is_error(400, "InvalidInput");
    batch(&(0..150_000).map(|_| "A eq 1").collect::<Vec<_>>().join(" or ")).is_error(400, "InvalidInput");
    victim.check_unharmed();
}

#[test]
fn q9_answers_are_bounded_however_long_host_and_keys_are() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    let host = "h".repeat(260);
    let full = "application/json;odata=fullmetadata";
    // The longest that a key can become in a link.
    let keys = |i: usize| ("\u{65e5}".repeat(512), format!("{i:03}{}", "\u{65e5}".repeat(509)));
    let batch = (0..100).fold(Batch::new(), |batch, i| {
        let (partition, row) = keys(i);
        let headers = ["Content-Type: application/json", "Accept: application/json;odata=fullmetadata"];
        batch.operation(client, "POST", "/tab", &headers, &entity(&partition, &row, ""))
    });
    let reply = batch.request(client).header("Host", host.as_str()).send();
    reply.is_status(202);
    assert!(reply.text().matches("HTTP/1.1 201").count() == 100, "all were inserted");
    assert!(reply.text().len() < 4 << 20, "{} bytes", reply.text().len());
    let reply = client.get("/tab()").accept(full).header("Host", host.as_str()).send();
    reply.is_status(200);
    assert!(reply.text().len() < 4 << 20, "{} bytes", reply.text().len());
    delete_all(client, &keys);
    victim.check_unharmed();
}

#[test]
fn q9_the_longest_answer_to_a_batch_has_16_mib() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    let keys = |i: usize| ("\u{65e5}".repeat(512), format!("{i:03}{}", "\u{65e5}".repeat(509)));
    let headers = ["Content-Type: application/json", "Accept: application/json;odata=fullmetadata"];
    // What two bytes stand for in the request are six in the answer: nothing else grows more, but for links of keys.
    let text = format!("\"A\":\"{}\"", "\\b".repeat(18_000));
    let batch = (0..100).fold(Batch::new(), |batch, i| {
        let (partition, row) = keys(i);
        batch.operation(client, "POST", "/tab", &headers, &entity(&partition, &row, &text))
    });
    assert!((3_900_000..4 << 20).contains(&batch.body().len()), "as long as a request may be: {}", batch.body().len());
    let reply = batch.request(client).header("Host", "h".repeat(260)).send();
    reply.is_status(202);
    assert_eq!(reply.text().matches("HTTP/1.1 201").count(), 100, "all were inserted");
    assert!((12 << 20..16 << 20).contains(&reply.text().len()), "{} bytes", reply.text().len());
    let peak = figure(&victim, "larimar_in_flight_peak_bytes") as usize;
    assert!(peak > reply.text().len() + 2 * batch.body().len(), "the room was taken before: {peak}");
    delete_all(client, &keys);
    victim.check_unharmed();
}

fn delete_all(client: &Client, keys: &impl Fn(usize) -> (String, String)) {
    for i in 0..100 {
        let (partition, row) = keys(i);
        client.delete(&larimar_testkit::http::entity_path("tab", &partition, &row)).send().is_status(204);
    }
}

#[test]
fn a_listing_with_much_metadata_comes_in_shorter_pages() {
    const ITEMS: usize = 1_150;
    let server = TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &["--durability", "async"]);
    let (queues, blobs) = (server.queues(), server.blobs());
    blobs.request("PUT", "/box?restype=container").send().is_status(201);
    let value = "v".repeat(8_000);
    for i in 0..ITEMS {
        let queue = queues.request("PUT", &format!("/q{i:04}")).header("x-ms-meta-a", value.as_str());
        queue.send().is_status(201);
        let blob = blobs.request("PUT", &format!("/box/b{i:04}")).header("x-ms-blob-type", "BlockBlob").body("");
        blob.header("x-ms-meta-a", value.as_str()).send().is_status(201);
    }
    for (client, list) in
        [(&queues, "/?comp=list&include=metadata"), (&blobs, "/box?restype=container&comp=list&include=metadata")]
    {
        let (mut names, mut marker, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let reply = client.get(list).query("marker", &marker).send();
            reply.is_status(200);
            assert!(reply.text().len() < 12 << 20, "{} bytes", reply.text().len());
            names.extend(reply.elements("Name").into_iter().map(str::to_owned));
            pages += 1;
            match reply.element("NextMarker") {
                Some(next) if !next.is_empty() => marker = next.to_owned(),
                _ => break,
            }
        }
        assert_eq!(pages, 2, "{list}");
        names.dedup();
        assert_eq!(names.len(), ITEMS, "{list}");
    }
}
