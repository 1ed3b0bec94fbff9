//! Malformed input to the Queue and Blob services: requests of random words, damaged bodies, markers,
//! tokens and batches, and bytes that are no requests. Never a 5xx other than "not implemented", never a panic, never
//! silence, and afterwards everything works.

use larimar_testkit::http::{Client, Request, Response, Sas, encode, exchange};
use larimar_testkit::{Dice, TemporaryServer};

/// A server whose queues and blobs must come through unharmed.
struct Victim {
    server: TemporaryServer,
    queues: Client,
    blobs: Client,
}

impl Victim {
    fn new() -> Self {
        let arguments = ["--durability", "async", "--log-level", "warn"];
        let server = TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &arguments);
        let (queues, blobs) = (server.queues(), server.blobs());
        queues.request("PUT", "/jobs").send().is_status(201);
        let container = blobs.request("PUT", "/box?restype=container");
        container.header("x-ms-blob-public-access", "container").send().is_status(201);
        Self { server, queues, blobs }
    }

    /// Owners whose signature does not depend on how the query is spelled.
    fn guests(&self) -> [Client; 2] {
        [(&self.queues, "q"), (&self.blobs, "b")]
            .map(|(client, service)| client.with_sas(&Sas::account("sco", "rwdxylacuptf").with("ss", service).token()))
    }

    /// Asks whether all is well: nothing panicked, everything still works.
    #[track_caller]
    fn check_unharmed(self) {
        let message = "<QueueMessage><MessageText>well</MessageText></QueueMessage>";
        self.queues.request("PUT", "/after").send().is_status(201);
        self.queues.request("POST", "/after/messages").body(message).send().is_status(201);
        assert_eq!(self.queues.get("/after/messages").send().element("MessageText"), Some("well"));
        self.blobs.request("PUT", "/after?restype=container").send().is_status(201);
        let put = self.blobs.request("PUT", "/after/blob").header("x-ms-blob-type", "BlockBlob").body("well");
        put.send().is_status(201);
        assert_eq!(self.blobs.get("/after/blob").send().text(), "well");
        assert_eq!(self.blobs.get("/after?restype=container&comp=list").send().elements("Name"), ["blob"]);
        let said = self.server.output();
        assert!(!said.contains("panicked"), "{said}");
    }
}

/// The service answers, and the answer is a refusal. Bytes that are not HTTP never reach the service.
#[track_caller]
fn is_sane(reply: &Response, what: &str) {
    assert!(reply.status < 500 || reply.status == 501, "{what}: {reply}");
    let is_http = reply.status != 400 || reply.header("x-ms-request-id").is_some();
    if reply.status >= 400 && is_http {
        assert!(reply.header("x-ms-error-code").is_some_and(|code| !code.is_empty()), "{what}: {reply}");
    }
}

/// The answer refuses.
#[track_caller]
fn is_refusal(reply: &Response, what: &str) {
    is_sane(reply, what);
    assert!(reply.status >= 400, "{what}: {reply}");
}

fn dice() -> Dice {
    let seed = Dice::seed("LARIMAR_INPUT_SEED");
    println!("LARIMAR_INPUT_SEED={seed}");
    Dice::new(seed)
}

/// Damages bytes here and there.
fn damage(dice: &mut Dice, bytes: &mut Vec<u8>) {
    for _ in 0..=dice.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = dice.below(bytes.len() as u64) as usize;
        match dice.below(5) {
            0 => bytes.truncate(at),
            1 => bytes[at] = dice.next() as u8,
            2 => drop(bytes.drain(at..(at + dice.below(20) as usize).min(bytes.len()))),
            3 => bytes.insert(at, *dice.pick(b"<>&\"';/=-\r\n\0\xff")),
            _ => {
                let piece = bytes[at..(at + 30).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece).for_each(drop);
            }
        }
    }
}

const METHODS: [&str; 8] = ["GET", "GET", "HEAD", "PUT", "PUT", "POST", "DELETE", "PATCH"];

const PATHS: [&str; 16] = [
    "/",
    "/jobs",
    "/jobs/messages",
    "/jobs/messages/11111111-2222-3333-4444-555555555555",
    "/box",
    "/box/a",
    "/box/b/c",
    "/box/%F0%9F%98%80",
    "/$root/a",
    "/$logs/a",
    "/%",
    "/%00",
    "/box/%2e%2e/%ff",
    "//",
    "/box/",
    "/a",
];

const PARAMETERS: [&str; 20] = [
    "comp",
    "comp",
    "comp",
    "restype",
    "restype",
    "marker",
    "maxresults",
    "prefix",
    "delimiter",
    "include",
    "blockid",
    "blocklisttype",
    "snapshot",
    "prevsnapshot",
    "timeout",
    "numofmessages",
    "visibilitytimeout",
    "messagettl",
    "popreceipt",
    "peekonly",
];

const HEADERS: [&str; 36] = [
    "x-ms-blob-type",
    "x-ms-blob-type",
    "x-ms-range",
    "Range",
    "x-ms-range-get-content-md5",
    "x-ms-lease-id",
    "x-ms-lease-action",
    "x-ms-lease-duration",
    "x-ms-lease-break-period",
    "x-ms-proposed-lease-id",
    "If-Match",
    "If-None-Match",
    "If-Modified-Since",
    "If-Unmodified-Since",
    "Content-MD5",
    "Content-Type",
    "x-ms-content-crc64",
    "x-ms-tags",
    "x-ms-access-tier",
    "x-ms-copy-source",
    "x-ms-source-range",
    "x-ms-source-if-match",
    "x-ms-requires-sync",
    "x-ms-blob-content-length",
    "x-ms-blob-content-type",
    "x-ms-blob-content-md5",
    "x-ms-blob-sequence-number",
    "x-ms-sequence-number-action",
    "x-ms-if-sequence-number-le",
    "x-ms-page-write",
    "x-ms-blob-condition-appendpos",
    "x-ms-delete-snapshots",
    "x-ms-blob-public-access",
    "x-ms-meta-a",
    "x-ms-meta-",
    "x-ms-copy-action",
];

const VALUES: [&str; 60] = [
    "",
    "x",
    "-1",
    "0",
    "1",
    "15",
    "512",
    "5000",
    "99999999999999999999",
    "true",
    "*",
    "\"0x8D\"",
    "metadata",
    "list",
    "lease",
    "block",
    "blocklist",
    "appendblock",
    "page",
    "pagelist",
    "tags",
    "tier",
    "acl",
    "properties",
    "snapshot",
    "copy",
    "batch",
    "stats",
    "container",
    "service",
    "account",
    "BlockBlob",
    "AppendBlob",
    "PageBlob",
    "acquire",
    "break",
    "renew",
    "update",
    "clear",
    "include",
    "only",
    "Cool",
    "P10",
    "bytes=0-",
    "bytes=0-511",
    "bytes=-1",
    "bytes=18446744073709551615-18446744073709551615",
    "AAAA",
    "1B2M2Y8AsgTpgAmY7PhCfg==",
    "11111111-2222-3333-4444-555555555555",
    "2020-01-01T00:00:00.0000000Z",
    "Sat, 01 Jan 2000 00:00:00 GMT",
    "http://127.0.0.1/devstoreaccount1/box/a",
    "http://[",
    "a=b&c=d",
    "snapshots,metadata,tags",
    "\u{fc}\u{65e5}",
    "a\tb\u{7f}",
    "%00%zz",
    "Archive",
];

const BODIES: [&str; 8] = [
    "",
    "x",
    "<QueueMessage><MessageText>x</MessageText></QueueMessage>",
    "<BlockList><Latest>AAAA</Latest></BlockList>",
    "<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>",
    "<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier></SignedIdentifiers>",
    "<StorageServiceProperties><Cors/></StorageServiceProperties>",
    "<a><b><c>",
];

/// Requests that make sense: method, target, headers, body.
type Operation = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

const OF_QUEUES: [Operation; 9] = [
    ("PUT", "/jobs", &[("x-ms-meta-a", "1")], ""),
    ("GET", "/jobs?comp=metadata", &[], ""),
    ("GET", "/?comp=list&include=metadata&maxresults=5", &[], ""),
    ("POST", "/jobs/messages?visibilitytimeout=0&messagettl=60", &[], BODIES[2]),
    ("GET", "/jobs/messages?numofmessages=32&visibilitytimeout=1", &[], ""),
    ("GET", "/jobs/messages?peekonly=true", &[], ""),
    ("PUT", "/jobs/messages/11111111-2222-3333-4444-555555555555?popreceipt=AAAA&visibilitytimeout=1", &[], BODIES[2]),
    ("DELETE", "/jobs/messages/11111111-2222-3333-4444-555555555555?popreceipt=AAAA", &[], ""),
    ("DELETE", "/jobs/messages", &[], ""),
];

const OF_BLOBS: [Operation; 26] = [
    ("PUT", "/box?restype=container", &[], ""),
    ("GET", "/box?restype=container&comp=list&include=snapshots,metadata,uncommittedblobs&maxresults=3", &[], ""),
    ("GET", "/box?restype=container&comp=list&delimiter=/&prefix=b", &[], ""),
    ("PUT", "/box/a", &[("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "a=b")], "content"),
    ("PUT", "/box/log", &[("x-ms-blob-type", "AppendBlob")], ""),
    ("PUT", "/box/disk", &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "4096")], ""),
    ("GET", "/box/a", &[("Range", "bytes=1-3")], ""),
    ("HEAD", "/box/a", &[("If-None-Match", "*")], ""),
    ("PUT", "/box/a?comp=metadata", &[("x-ms-meta-a", "1")], ""),
    ("PUT", "/box/a?comp=properties", &[("x-ms-blob-content-type", "text/plain")], ""),
    ("PUT", "/box/disk?comp=properties", &[("x-ms-blob-content-length", "2048")], ""),
    ("PUT", "/box/a?comp=snapshot", &[], ""),
    ("PUT", "/box/a?comp=lease", &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")], ""),
    ("PUT", "/box/a?comp=lease", &[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")], ""),
    ("PUT", "/box/b?comp=block&blockid=AAAA", &[], "block"),
    ("PUT", "/box/b?comp=blocklist", &[], BODIES[3]),
    ("GET", "/box/b?comp=blocklist&blocklisttype=all", &[], ""),
    ("PUT", "/box/log?comp=appendblock", &[("x-ms-blob-condition-maxsize", "5000")], "line"),
    ("PUT", "/box/disk?comp=page", &[("x-ms-page-write", "clear"), ("x-ms-range", "bytes=0-511")], ""),
    ("GET", "/box/disk?comp=pagelist&maxresults=2", &[], ""),
    ("PUT", "/box/a?comp=tags", &[], BODIES[4]),
    ("GET", "/box/a?comp=tags", &[], ""),
    ("PUT", "/box/a?comp=tier", &[("x-ms-access-tier", "Cool")], ""),
    ("PUT", "/box/c", &[("x-ms-copy-source", "http://127.0.0.1/devstoreaccount1/box/a")], ""),
    ("DELETE", "/box/a", &[("x-ms-delete-snapshots", "include")], ""),
    ("DELETE", "/box/b", &[], ""),
];

/// A request of random words, or one that makes sense with a few random words in it.
fn random_request<'c>(dice: &mut Dice, client: &'c Client, operations: &[Operation]) -> (Request<'c>, String) {
    let (mut method, target, headers, body) = *dice.pick(operations);
    let (mut target, mut headers, mut body) = (target.to_owned(), headers.to_vec(), body.as_bytes().to_vec());
    let is_wild = dice.below(4) == 0;
    if is_wild {
        (method, target) = (*dice.pick(&METHODS), (*dice.pick(&PATHS)).to_owned());
        headers.clear();
    }
    for _ in 0..dice.below(if is_wild { 6 } else { 3 }) {
        let value = *dice.pick(&VALUES);
        match dice.below(4) {
            0 => {
                let value = if dice.below(4) == 0 { value.replace([' ', '\t', '\u{7f}'], "") } else { encode(value) };
                let separator = if target.contains('?') { '&' } else { '?' };
                target.push_str(&format!("{separator}{}={value}", dice.pick(&PARAMETERS)));
            }
            1 if !headers.is_empty() => {
                let at = dice.below(headers.len() as u64) as usize;
                headers[at].1 = value;
            }
            2 => damage(dice, &mut body),
            _ => headers.push((*dice.pick(&HEADERS), value)),
        }
    }
    // A URL is written in ASCII.
    target.retain(|c| c.is_ascii());
    let request = client.request(method, &target).body(body.clone());
    let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
    (request, format!("{method} {target}\n{headers:?}\n{}", String::from_utf8_lossy(&body)))
}

#[test]
fn requests_of_random_words() {
    let victim = Victim::new();
    let guests = victim.guests();
    let mut dice = dice();
    for round in 0..3000 {
        let (client, operations) =
            if dice.below(3) == 0 { (&guests[0], OF_QUEUES.as_slice()) } else { (&guests[1], OF_BLOBS.as_slice()) };
        let (request, sent) = random_request(&mut dice, client, operations);
        // Some are no HTTP at all: they get an answer or lose their connection.
        match request.try_send() {
            Ok(reply) => is_sane(&reply, &format!("round {round}: {sent}")),
            Err(error) => assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "round {round}: {sent}"),
        }
    }
    victim.check_unharmed();
}

#[test]
fn damaged_bodies() {
    let victim = Victim::new();
    let (queues, blobs) = (&victim.queues, &victim.blobs);
    blobs.request("PUT", "/box/a").header("x-ms-blob-type", "BlockBlob").body("x").send().is_status(201);
    let properties = "/?restype=service&comp=properties";
    let policy = "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start>2020-01-01T00:00:00Z</Start>\
                  <Expiry>2120-01-01</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    let settings = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read>\
                    <Write>false</Write><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>\
                    <Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
                    <MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/></CorsRule></Cors>\
                    </StorageServiceProperties>";
    let targets = [
        (queues, "POST", "/jobs/messages", BODIES[2]),
        (queues, "PUT", "/jobs?comp=acl", policy),
        (queues, "PUT", properties, settings),
        (blobs, "PUT", "/box?restype=container&comp=acl", policy),
        (
            blobs,
            "PUT",
            "/box/b?comp=blocklist",
            "<BlockList><Latest>AAAA</Latest><Committed>BBBB</Committed></BlockList>",
        ),
        (blobs, "PUT", "/box/a?comp=tags", BODIES[4]),
        (blobs, "PUT", properties, settings),
    ];
    let mut dice = dice();
    for round in 0..700 {
        let (client, method, path, good) = *dice.pick(&targets);
        let mut body = good.as_bytes().to_vec();
        damage(&mut dice, &mut body);
        let sent = format!("round {round}: {method} {path}\n{}", String::from_utf8_lossy(&body));
        is_sane(&client.request(method, path).xml(body).send(), &sent);
    }
    let deep = format!("{}{}", "<a>".repeat(50_000), "</a>".repeat(50_000));
    let wide = format!("<BlockList>{}</BlockList>", "<Latest>AAAA</Latest>".repeat(200_000));
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><BlockList>&b;</BlockList>";
    for (client, method, path, _) in targets {
        for body in [deep.as_str(), &wide, bomb, "<", "\u{0}", "<?xml version=\"1.0\" encoding=\"utf-16\"?><a/>"] {
            is_refusal(&client.request(method, path).xml(body).send(), &format!("{path} {:.60}", body));
        }
    }
    victim.check_unharmed();
}

#[test]
fn damaged_markers_and_tokens() {
    let victim = Victim::new();
    let blobs = &victim.blobs;
    for name in ["a", "b", "c"] {
        blobs.request("PUT", &format!("/{name}aa?restype=container")).send().is_status(201);
        victim.queues.request("PUT", &format!("/{name}aa")).send().is_status(201);
        blobs
            .request("PUT", &format!("/box/{name}"))
            .header("x-ms-blob-type", "BlockBlob")
            .body("x")
            .send()
            .is_status(201);
    }
    let mut dice = dice();
    for (client, path) in
        [(&victim.queues, "/?comp=list"), (blobs, "/?comp=list"), (blobs, "/box?restype=container&comp=list")]
    {
        let page = client.get(&format!("{path}&maxresults=1")).send();
        let marker = page.element("NextMarker").filter(|marker| !marker.is_empty()).expect("more").to_owned();
        for _ in 0..100 {
            let mut bytes = marker.clone().into_bytes();
            damage(&mut dice, &mut bytes);
            let damaged = String::from_utf8_lossy(&bytes).into_owned();
            is_sane(&client.get(path).query("marker", &damaged).send(), &format!("{path} {damaged}"));
        }
    }
    let token = Sas::container("box", "r").with("rsct", "text/plain").with("spr", "https,http").token();
    let account = Sas::account("sco", "rwdl").with("ss", "bq").token();
    for round in 0..300 {
        let mut bytes = dice.pick(&[&token, &account]).as_bytes().to_vec();
        damage(&mut dice, &mut bytes);
        bytes.retain(|byte| byte.is_ascii_graphic() && *byte != b'#');
        let damaged = String::from_utf8(bytes).expect("ASCII");
        let client = if round % 3 == 0 { &victim.queues } else { blobs };
        let path = if round % 3 == 0 { "/jobs?comp=metadata" } else { "/box/a" };
        is_sane(&client.with_sas(&damaged).get(path).send(), &damaged);
    }
    victim.check_unharmed();
}

#[test]
fn damaged_batches() {
    let victim = Victim::new();
    let blobs = &victim.blobs;
    let part = |name: &str| {
        let head = "--batch_x\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n";
        let inner = blobs.request("DELETE", &format!("/box/{name}")).body("").to_bytes();
        format!("{head}{}\r\n", String::from_utf8(inner).expect("text"))
    };
    let good = format!("{}{}--batch_x--\r\n", part("a"), part("b"));
    let mut dice = dice();
    let send = |body: Vec<u8>| {
        let request = blobs.request("POST", "/?comp=batch").header("Content-Type", "multipart/mixed; boundary=batch_x");
        request.body(body).send()
    };
    assert_eq!(send(good.clone().into_bytes()).text().matches("HTTP/1.1 404").count(), 2);
    for round in 0..300 {
        let mut body = good.clone().into_bytes();
        damage(&mut dice, &mut body);
        let sent = format!("round {round}: {}", String::from_utf8_lossy(&body));
        let reply = send(body);
        is_sane(&reply, &sent);
        assert!(!String::from_utf8_lossy(&reply.body).contains("HTTP/1.1 5"), "{sent}: {reply}");
    }
    // As recorded: a batch that cannot be read is refused inside its answer, by one part.
    for body in [b"--batch_x\r\n".repeat(100_000), vec![b'x'; 1_000_000]] {
        let reply = send(body);
        assert_eq!(reply.status, 202, "{reply}");
        assert_eq!(reply.text().matches("HTTP/1.1 ").count(), 1, "{reply}");
        assert_eq!(reply.text().matches("HTTP/1.1 400 ").count(), 1, "{reply}");
    }
    victim.check_unharmed();
}

#[test]
fn random_bytes_and_damaged_requests() {
    let victim = Victim::new();
    let (queues, blobs) = (&victim.queues, &victim.blobs);
    blobs.request("PUT", "/box/a").header("x-ms-blob-type", "BlockBlob").body("content").send().is_status(201);
    let mut dice = dice();
    for round in 0..300 {
        // Reads of what is public need no signature, so that damaged ones still reach their operation.
        let mut bytes = match dice.below(4) {
            0 => (0..dice.below(2000)).map(|_| dice.next() as u8).collect(),
            1 => blobs.get("/box/a").header("Range", "bytes=1-3").unsigned().to_bytes(),
            2 => blobs.get("/box?restype=container&comp=list&prefix=a&delimiter=/").unsigned().to_bytes(),
            _ => queues.request("POST", "/jobs/messages").unsigned().body(BODIES[2]).to_bytes(),
        };
        damage(&mut dice, &mut bytes);
        let client = if dice.below(3) == 0 { queues } else { blobs };
        if let Ok(reply) = exchange(client.address(), &bytes) {
            assert!(reply.status < 500 || [501, 505].contains(&reply.status), "round {round}: {reply}");
        }
    }
    victim.check_unharmed();
}
