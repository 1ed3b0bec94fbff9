//! List Blobs: flat and by hierarchy, prefixes, pages and markers, further properties, and names of every kind.

use super::{block_blob, content, header, make_container, put, serve_container};
use larimar_testkit::http::{Client, Response, Sas, encode};

fn list(client: &Client, query: &str) -> Response {
    let reply = client.get(&format!("/box?restype=container&comp=list{query}")).send();
    reply.is_status(200);
    reply
}

/// The lines of a listing in their order; prefixes end with `*`.
fn lines(reply: &Response) -> Vec<String> {
    let parts: Vec<&str> = reply.text().split("<Name>").collect();
    let line = |pair: &[&str]| {
        let (name, _) = pair[1].split_once("</Name>").expect("a name");
        let star = if pair[0].ends_with("<BlobPrefix>") { "*" } else { "" };
        format!("{name}{star}")
    };
    parts.windows(2).map(line).collect()
}

/// All lines, page by page, and how many pages there were.
fn pages(client: &Client, query: &str, size: usize) -> (Vec<String>, usize) {
    let (mut found, mut marker) = (Vec::new(), String::new());
    for count in 1..=100 {
        let page = list(client, &format!("{query}&maxresults={size}&marker={}", encode(&marker)));
        let answer = lines(&page);
        assert!(answer.len() <= size, "{page}");
        found.extend(answer);
        marker = page.element("NextMarker").unwrap_or_default().to_owned();
        if marker.is_empty() {
            return (found, count);
        }
    }
    panic!("no end after 100 pages");
}

const NAMES: [&str; 9] = ["a", "a/b", "a/b/c", "a/d", "b", "c/", "c/x", "c/x/y", "d.txt"];

fn fill(client: &Client) {
    for name in NAMES {
        put(client, &format!("/box/{name}"), name);
    }
}

#[test]
fn x2_blobs_are_listed_in_order_with_what_is_known_of_them() {
    let server = serve_container();
    let client = server.blobs();
    fill(&client);
    let made = block_blob(&client, "/box/a", "Hello World").header("x-ms-blob-content-type", "text/plain").send();
    let reply = list(&client, "");
    assert_eq!(lines(&reply), NAMES);
    assert_eq!(reply.header("Content-Type"), Some("application/xml"));
    let opening = format!("<EnumerationResults ServiceEndpoint=\"{}/\" ContainerName=\"box\">", client.base());
    assert!(reply.text().contains(&opening), "{reply}");
    assert!(reply.text().ends_with("</Blobs><NextMarker /></EnumerationResults>"), "{reply}");
    for (element, value) in [
        ("Last-Modified", header(&made, "Last-Modified")),
        ("Etag", header(&made, "ETag").trim_matches('"')),
        ("Content-Length", "11"),
        ("Content-Type", "text/plain"),
        ("Content-MD5", super::HELLO_MD5),
        ("BlobType", "BlockBlob"),
        ("AccessTier", "Hot"),
        ("AccessTierInferred", "true"),
        ("LeaseStatus", "unlocked"),
        ("LeaseState", "available"),
        ("ServerEncrypted", "true"),
    ] {
        assert_eq!(reply.element(element), Some(value), "{element}: {reply}");
    }
    assert!(reply.element("Creation-Time").is_some());
    assert!(reply.element("Metadata").is_none() && reply.element("Tags").is_none());
    let empty = list(&client, "&prefix=none");
    assert!(empty.text().contains("<Prefix>none</Prefix>") && empty.text().contains("<Blobs />"), "{empty}");
}

#[test]
fn x2_a_prefix_narrows_and_a_delimiter_folds() {
    let server = serve_container();
    let client = server.blobs();
    fill(&client);
    for (query, expected) in [
        ("&prefix=a", "a a/b a/b/c a/d"),
        ("&prefix=a/", "a/b a/b/c a/d"),
        ("&prefix=c/x", "c/x c/x/y"),
        ("&prefix=%61%2Fb%2F", "a/b/c"),
        ("&prefix=B", ""),
        ("&delimiter=/", "a a/* b c/* d.txt"),
        ("&delimiter=/&prefix=a", "a a/*"),
        ("&delimiter=/&prefix=a/", "a/b a/b/* a/d"),
        ("&delimiter=/&prefix=c/", "c/ c/x c/x/*"),
        ("&delimiter=.", "a a/b a/b/c a/d b c/ c/x c/x/y d.*"),
        ("&delimiter=b/", "a a/b a/b/* a/d b c/ c/x c/x/y d.txt"),
        ("&startFrom=b", "b c/ c/x c/x/y d.txt"),
    ] {
        assert_eq!(lines(&list(&client, query)).join(" "), expected, "{query}");
    }
    let folded = list(&client, "&delimiter=/&prefix=a/");
    assert!(folded.text().contains("<Prefix>a/</Prefix>") && folded.text().contains("<Delimiter>/</Delimiter>"));
}

#[test]
fn x2_pages_of_every_size_tell_the_same() {
    let server = serve_container();
    let client = server.blobs();
    fill(&client);
    for query in ["", "&prefix=a", "&delimiter=/", "&delimiter=/&prefix=a/", "&delimiter=/&prefix=c"] {
        let whole = lines(&list(&client, query));
        for size in 1..=10 {
            let (found, count) = pages(&client, query, size);
            assert_eq!(found, whole, "{query} in pages of {size}");
            assert_eq!(count, whole.len().div_ceil(size), "{query} in pages of {size}");
        }
    }
    // A marker stays good when what it names is gone.
    let page = list(&client, "&maxresults=2");
    let marker = page.element("NextMarker").expect("more").to_owned();
    client.request("DELETE", "/box/a/b/c").send().is_status(202);
    put(&client, "/box/a/c", "new");
    let rest = list(&client, &format!("&marker={}", encode(&marker)));
    assert_eq!(lines(&rest).first().map(String::as_str), Some("a/c"), "{rest}");
    assert_eq!(lines(&list(&client, "&maxresults=1000000")).len(), 9);
    let refused = |query: &str, code: &str| {
        client.get(&format!("/box?restype=container&comp=list&{query}")).send().is_error(400, code);
    };
    refused("maxresults=0", "OutOfRangeQueryParameterValue");
    refused("maxresults=-1", "OutOfRangeQueryParameterValue");
    refused("maxresults=ten", "InvalidQueryParameterValue");
    refused("marker=nonsense", "OutOfRangeInput");
    refused("include=weather", "InvalidQueryParameterValue");
}

#[test]
fn x2_listings_tell_more_on_demand() {
    let server = serve_container();
    let client = server.blobs();
    let made =
        block_blob(&client, "/box/a", "x").header("x-ms-meta-key", "a & b").header("x-ms-tags", "t=1&u=2").send();
    made.is_status(201);
    let copied = client.request("PUT", "/box/b").header("x-ms-copy-source", format!("{}/box/a", client.base())).send();
    copied.is_status(202);
    client.request("PUT", "/box/open?comp=block&blockid=AAAA").body("x").send().is_status(201);
    let plain = list(&client, "");
    assert_eq!(lines(&plain), ["a", "b"]);
    assert!(plain.element("CopyId").is_none() && plain.element("Metadata").is_none());
    assert_eq!(plain.element("TagCount"), Some("2"));
    let metadata = list(&client, "&include=metadata");
    assert!(metadata.text().contains("<Metadata><key>a &amp; b</key></Metadata>"), "{metadata}");
    let tags = list(&client, "&include=tags");
    let set =
        "<Tags><TagSet><Tag><Key>t</Key><Value>1</Value></Tag><Tag><Key>u</Key><Value>2</Value></Tag></TagSet></Tags>";
    assert!(tags.text().contains(set), "{tags}");
    let copies = list(&client, "&include=copy");
    assert_eq!(copies.element("CopyId"), copied.header("x-ms-copy-id"));
    assert_eq!((copies.element("CopyStatus"), copies.element("CopyProgress")), (Some("success"), Some("1/1")));
    let open = list(&client, "&include=uncommittedblobs");
    assert_eq!(lines(&open), ["a", "b", "open"]);
    assert_eq!(open.elements("Content-Length").last(), Some(&"0"));
    let all = list(&client, "&include=snapshots,metadata,uncommittedblobs,copy,deleted,tags,versions");
    assert_eq!(lines(&all), ["a", "b", "open"]);
}

/// The .NET clients write the words of `include` in capitals; recordings of the service answer them.
#[test]
fn words_of_a_query_have_no_case() {
    let server = serve_container();
    let client = server.blobs();
    block_blob(&client, "/box/a", "x").header("x-ms-meta-key", "v").header("x-ms-tags", "t=1").send().is_status(201);
    client.request("PUT", "/box/a?comp=snapshot").send().is_status(201);
    client.request("PUT", "/box/open?COMP=Block&BlockId=AAAA").body("x").send().is_status(201);
    let all = list(&client, "&include=Metadata,SNAPSHOTS,Tags,Uncommittedblobs,Copy,Deleted,Versions");
    assert_eq!(all.elements("Name"), ["a", "a", "open"], "{all}");
    assert_eq!(all.elements("key"), ["v", "v"], "{all}");
    let open = all.text().split("<Name>open</Name>").nth(1).expect("the open blob");
    // What recordings tell of a blob with nothing but uncommitted blocks.
    let answer = "<Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier>\
                <AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus>\
                <LeaseState>available</LeaseState><ServerEncrypted>false</ServerEncrypted></Properties>";
    assert!(open.starts_with(answer), "{open}");
    let containers = client.get("/?comp=LIST&include=Metadata,System").send();
    containers.is_status(200);
    client.get("/box?ResType=Container&comp=Metadata").send().is_status(200);
}

/// Microsoft's own tests: a name with a backslash is the name with a slash. A prefix stays what it is.
#[test]
fn a_backslash_in_a_name_is_a_slash() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/Central%5C1", "x");
    assert_eq!(content(&client, "/box/Central/1"), b"x");
    assert_eq!(content(&client, "/box/Central%5C1"), b"x");
    let names = |prefix: &str| list(&client, prefix).elements("Name").join(" ");
    assert_eq!((&*names("&prefix=Central/"), &*names("&prefix=Central%5C")), ("Central/1", ""));
    let copied =
        client.request("PUT", "/box/b%5Cc").header("x-ms-copy-source", format!("{}/box/Central%5C1", client.base()));
    copied.send().is_status(202);
    let token = Sas::blob("box", "b/c", "r").token();
    assert_eq!(content(&client.with_sas(&token), "/box/b/c"), b"x");
    let token = Sas::blob("box", "b\\c", "r").token();
    assert_eq!(content(&client.with_sas(&token), "/box/b%5Cc"), b"x");
    client.with_sas(&token).get("/box/b%5Cd").send().is_status(403);
    client.request("DELETE", "/box/Central%5C1").send().is_status(202);
    client.get("/box/Central/1").send().is_error(404, "BlobNotFound");
}

/// Microsoft's own tests: the root container has no folders.
#[test]
fn names_of_the_root_container_have_no_slash() {
    let server = serve_container();
    let client = server.blobs();
    make_container(&client, "$root");
    put(&client, "/$root/a", "x");
    for name in ["a/b", "a%2Fb", "a%5Cb"] {
        block_blob(&client, &format!("/$root/{name}"), "x").send().is_status(400);
    }
}

#[test]
fn x2_types_and_leases_are_listed() {
    let server = serve_container();
    let client = server.blobs();
    client.request("PUT", "/box/append").header("x-ms-blob-type", "AppendBlob").body("").send().is_status(201);
    put(&client, "/box/block", "x");
    let page = client.request("PUT", "/box/page").header("x-ms-blob-type", "PageBlob");
    page.header("x-ms-blob-content-length", "512").body("").send().is_status(201);
    let lease = client.request("PUT", "/box/block?comp=lease").header("x-ms-lease-action", "acquire");
    lease.header("x-ms-lease-duration", "-1").send().is_status(201);
    let reply = list(&client, "");
    assert_eq!(reply.elements("BlobType"), ["AppendBlob", "BlockBlob", "PageBlob"]);
    assert_eq!(reply.elements("LeaseState"), ["available", "leased", "available"]);
    assert_eq!(reply.elements("LeaseDuration"), ["infinite"]);
    assert_eq!(reply.elements("x-ms-blob-sequence-number"), ["0"]);
}

#[test]
fn x2_names_of_every_kind_come_back_as_they_were() {
    let server = serve_container();
    let client = server.blobs();
    let names = [
        "a&b<c>\"d\"'e'",
        "spaces and  more ",
        "ünïcödé",
        "日本語/ファイル",
        "😀/😀",
        "%41%2F",
        "a+b=c;d,e:f@g",
        "#?",
        "~a.b-c_d",
        "..",
        "a//b",
        "tail/",
    ];
    for name in names {
        put(&client, &format!("/box/{}", encode(name).replace("%2F", "/")), name);
    }
    for name in names {
        let found = client.get(&format!("/box/{}", encode(name))).send();
        found.is_status(200);
        assert_eq!(found.text(), name);
    }
    let unescape = |text: &String| {
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&apos;", "'")
            .replace("&amp;", "&")
    };
    let reply = list(&client, "");
    let mut answer: Vec<String> = lines(&reply).iter().map(unescape).collect();
    let mut expected: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    answer.sort();
    expected.sort();
    assert_eq!(answer, expected);
    for name in names {
        let found = list(&client, &format!("&prefix={}", encode(name)));
        assert!(lines(&found).iter().map(unescape).any(|answer| answer == name), "{name}: {found}");
    }
    assert_eq!(pages(&client, "", 1).0.len(), names.len());
}

#[test]
fn x2_names_that_xml_cannot_say_are_escaped_and_said_to_be() {
    let server = serve_container();
    let client = server.blobs();
    for path in ["/box/a%01b", "/box/dir%EF%BF%BF/x", "/box/z"] {
        put(&client, path, "x");
        assert_eq!(super::content(&client, path), b"x");
    }
    let reply = list(&client, "");
    assert!(reply.text().contains("<Name Encoded=\"true\">a%01b</Name>"), "{reply}");
    assert!(reply.text().contains("<Name Encoded=\"true\">dir%EF%BF%BF%2Fx</Name>"), "{reply}");
    assert_eq!(reply.elements("Name"), ["z"]);
    let folded = list(&client, "&delimiter=/");
    assert!(
        folded.text().contains("<BlobPrefix><Name Encoded=\"true\">dir%EF%BF%BF%2F</Name></BlobPrefix>"),
        "{folded}"
    );
    let narrowed = list(&client, "&prefix=a%01");
    assert!(narrowed.text().contains("<Prefix Encoded=\"true\">a%01</Prefix>"), "{narrowed}");
    let page = list(&client, "&maxresults=1");
    let next = list(&client, &format!("&marker={}", encode(page.element("NextMarker").expect("more"))));
    assert!(next.text().contains("dir%EF%BF%BF%2Fx"), "{next}");
}
