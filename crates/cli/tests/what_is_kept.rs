//! `docs/what-is-kept.md`: a server is filled with everything, each tool moves it into another server, and what clients see
//! there is compared with the table of the page.

use crate::copy::connection_string;
use crate::migrate::ACL;
use crate::migrate::every_kind::{Claimed, fill_blobs, fill_queues, handle};
use crate::output::succeeded;
use crate::single_restore::larimar;
use larimar_testkit::http::{Client, entity_path};
use larimar_testkit::{Launch, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const KEY: &str = "d2hhdC1pcy1rZXB0LXRlc3RzLW9ubHk=";
const PAGE: &str = "../../docs/what-is-kept.md";
/// The columns of the page's table.
const TOOLS: [&str; 5] =
    ["`backup`, `restore --data`", "`restore --into-server`", "`migrate`", "`copy`", "`export`, `import`"];
const RECEIPTS: &str = "messages: pop receipts that consumers hold";
const PROPERTIES: &str = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read>\
                          <Write>true</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><Cors>\
                          <CorsRule><AllowedOrigins>http://example.com</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
                          <AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
                          <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

/// A row of the page's table, and what clients see of it.
type Row = (&'static str, fn(&Server) -> String);

/// The rows but for receipts, which can be used once.
const ROWS: &[Row] = &[
    ("tables: names, as they are spelled", |server| {
        server.client().get("/Tables").send().column("TableName").join(",")
    }),
    ("tables: stored access policies", |server| body(&server.client(), "/People?comp=acl")),
    ("entities: keys, values and types", entity),
    ("entities: ETag", |server| header(&server.client(), PERSON, "ETag")),
    ("entities: Timestamp", |server| server.client().get(PERSON).send().json()["Timestamp"].to_string()),
    ("queues: names and metadata", |server| {
        elements(&server.queues(), "/?comp=list&include=metadata", "Name") + &header(&server.queues(), JOBS, TEAM)
    }),
    ("queues: stored access policies", |server| body(&server.queues(), "/jobs?comp=acl")),
    ("messages: text", |server| sorted(&elements(&server.queues(), PEEK, "MessageText"))),
    ("messages: time of expiry", |server| {
        // The day: of a message that is put again, the protocol takes a span in whole seconds.
        let times = elements(&server.queues(), PEEK, "ExpirationTime");
        sorted(&times.split(';').map(|time| time.get(..16).unwrap_or_default()).collect::<Vec<_>>().join(";"))
    }),
    ("messages: id", |server| elements(&server.queues(), PEEK, "MessageId")),
    ("messages: insertion time", |server| elements(&server.queues(), PEEK, "InsertionTime")),
    ("messages: dequeue count", |server| elements(&server.queues(), PEEK, "DequeueCount")),
    ("messages: hidden ones, claimed or delayed, still hidden", |server| {
        let visible = elements(&server.queues(), PEEK, "MessageId").split(';').count();
        format!("{} with {visible} visible", header(&server.queues(), JOBS, "x-ms-approximate-messages-count"))
    }),
    ("containers: names and metadata", |server| {
        let names = elements(&server.blobs(), "/?comp=list", "Name");
        names + &header(&server.blobs(), "/photos?restype=container", TEAM)
    }),
    ("containers: public access and stored access policies", |server| {
        let path = "/photos?restype=container&comp=acl";
        body(&server.blobs(), path) + &header(&server.blobs(), path, "x-ms-blob-public-access")
    }),
    ("containers: ETag and Last-Modified", |server| versions(server, "/photos?restype=container")),
    ("containers: lease", |server| header(&server.blobs(), "/bare?restype=container", "x-ms-lease-state")),
    ("blobs: type, content and content headers", contents),
    ("blobs: metadata", |server| header(&server.blobs(), "/photos/plain", "x-ms-meta-name")),
    ("blobs: tags, and finding blobs by them", |server| {
        let found = elements(&server.blobs(), "/?comp=blobs&where=colour%3D'red'", "Name");
        found + &body(&server.blobs(), "/photos/plain?comp=tags")
    }),
    ("blobs: ETag and Last-Modified", |server| versions(server, "/photos/plain")),
    ("blobs: creation time", |server| header(&server.blobs(), "/photos/plain", "x-ms-creation-time")),
    ("blobs: access tier", |server| {
        let properties = server.blobs().request("HEAD", "/photos/plain").send();
        properties.header("x-ms-access-tier").unwrap_or_default().to_owned()
    }),
    ("blobs: lease", |server| header(&server.blobs(), "/bare/held", "x-ms-lease-state")),
    ("blobs: snapshots", |server| {
        elements(&server.blobs(), "/photos?restype=container&comp=list&include=snapshots", "Snapshot")
    }),
    ("blobs: division into blocks", |server| blocks(server, "committed")),
    ("blobs: uncommitted blocks", |server| blocks(server, "uncommitted")),
    ("blobs: sequence number of a page blob", |server| {
        header(&server.blobs(), "/photos/numbered", "x-ms-blob-sequence-number")
    }),
    ("blobs: seal of an append blob", |server| header(&server.blobs(), "/photos/log", "x-ms-blob-sealed")),
    ("blobs: copy id, source and status", |server| {
        ["x-ms-copy-id", "x-ms-copy-source", "x-ms-copy-status"]
            .map(|name| header(&server.blobs(), "/photos/copied", name))
            .concat()
    }),
    ("service properties: CORS, logging, metrics", |server| {
        let read = |client: Client| body(&client, "/?restype=service&comp=properties");
        read(server.client()) + &read(server.queues()) + &read(server.blobs())
    }),
    ("storage analytics: logs", |server| {
        let names = elements(&server.blobs(), "/$logs?restype=container&comp=list&prefix=table/", "Name");
        let first = names.split(';').next().unwrap_or_default().to_owned();
        let text = body(&server.blobs(), &format!("/$logs/{first}"));
        format!("{first} {}", text.matches(";CreateTable;Success;201;").count())
    }),
    ("storage analytics: metrics", |server| {
        let path = "/$MetricsHourPrimaryTransactionsTable()";
        let read = server.client().get(path).query("$filter", "RowKey eq 'user;CreateTable'").send();
        if read.status == 200 { read.column("TotalRequests").join(";") } else { String::new() }
    }),
    ("accounts and their keys", |server| {
        server.client().of_account("other", KEY).get("/Tables").send().status.to_string()
    }),
];

const PERSON: &str = "/People(PartitionKey='sales',RowKey='42')";
const JOBS: &str = "/jobs?comp=metadata";
const PEEK: &str = "/jobs/messages?peekonly=true&numofmessages=32";
const CONTENT_HEADERS: [&str; 5] =
    ["Content-Type", "Content-Language", "Content-Encoding", "Content-Disposition", "Cache-Control"];
const TEAM: &str = "x-ms-meta-team";

/// A body without the address of the server; nothing if there is none.
fn body(client: &Client, path: &str) -> String {
    let reply = client.get(path).send();
    if reply.status != 200 {
        return String::new();
    }
    String::from_utf8_lossy(&reply.body).replace(&client.base(), "")
}

fn header(client: &Client, path: &str, name: &str) -> String {
    client.get(path).send().header(name).unwrap_or_default().to_owned()
}

fn elements(client: &Client, path: &str, name: &str) -> String {
    client.get(path).send().elements(name).join(";")
}

fn sorted(list: &str) -> String {
    list.split(';').collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(";")
}

fn versions(server: &Server, path: &str) -> String {
    ["ETag", "Last-Modified"].map(|name| header(&server.blobs(), path, name)).join(" ")
}

fn blocks(server: &Server, kind: &str) -> String {
    body(&server.blobs(), &format!("/photos/blocks?comp=blocklist&blocklisttype={kind}"))
}

fn entity(server: &Server) -> String {
    let mut json = server.client().get(PERSON).accept("application/json;odata=fullmetadata").send().json();
    let members = json.as_object_mut().expect("an object");
    members.retain(|name, _| !name.starts_with("odata.") && !name.starts_with("Timestamp"));
    json.to_string()
}

fn contents(server: &Server) -> String {
    let blobs = server.blobs();
    let mut seen = body(&blobs, "/photos/disk?comp=pagelist");
    for path in ["/bare/held", "/photos/plain", "/photos/large", "/photos/blocks", "/photos/log", "/photos/disk"] {
        let reply = blobs.get(path).header("x-ms-range", "bytes=0-1048575").send();
        let headers = CONTENT_HEADERS.map(|name| reply.header(name).unwrap_or_default().to_owned());
        let kind = [reply.header("x-ms-blob-type"), reply.header("Content-Range")];
        seen += &format!("{path} {kind:?} {headers:?} {}\n", String::from_utf8_lossy(&reply.body));
    }
    seen
}

/// What clients see, by the rows of the table.
fn seen(server: &Server) -> BTreeMap<&'static str, String> {
    ROWS.iter().map(|(row, look)| (*row, look(server))).collect()
}

fn launch(folder: &Path, name: &str) -> Launch {
    // A server writes its own logs and metrics at its end only.
    Launch::new(EXE, folder.join(name)).engine("local").argument("--analytics-flush").argument("1h")
}

/// Everything that a store can have, and a message that its consumer has claimed.
fn fill(server: &Server) -> Claimed {
    let (tables, queues, blobs) = (server.client(), server.queues(), server.blobs());
    for client in [&tables, &queues, &blobs] {
        client.put("/?restype=service&comp=properties", PROPERTIES).send().is_status(202);
    }
    tables.create_table("People");
    let values = r#""Name":"Ada","Age":36,"Score":1.5,"Long@odata.type":"Edm.Int64","Long":"9223372036854775807",
        "When@odata.type":"Edm.DateTime","When":"2026-01-31T12:00:00.1234567Z","Bytes@odata.type":"Edm.Binary","Bytes":"AP8=",
        "Id@odata.type":"Edm.Guid","Id":"c9da6455-213d-42c9-9a79-3e9149a57833""#;
    tables.insert("People", "sales", "42", values);
    assert_eq!(entity_path("People", "sales", "42"), PERSON);
    tables.request("PUT", "/People?comp=acl").xml(ACL).send().is_status(204);
    let claimed = fill_queues(&queues);
    let message = |text: &str| format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    queues.request("POST", "/jobs/messages?messagettl=259200").body(message("short")).send().is_status(201);
    // A message that was received once and given back.
    let second = handle(&queues.get("/jobs/messages?visibilitytimeout=600").send());
    queues.request("PUT", &format!("{second}&visibilitytimeout=0")).body(message("again")).send().is_status(204);
    fill_blobs(&blobs);
    let put = |path: &str| blobs.request("PUT", path);
    let held = put("/bare/held").header("x-ms-blob-type", "BlockBlob").body("text");
    let held = CONTENT_HEADERS.into_iter().fold(held, |held, name| held.header(&format!("x-ms-blob-{name}"), "a/b"));
    held.send().is_status(201);
    let lease = put("/bare/held?comp=lease").header("x-ms-lease-action", "acquire");
    lease.header("x-ms-lease-duration", "-1").send().is_status(201);
    let numbered = put("/photos/numbered").header("x-ms-blob-type", "PageBlob");
    numbered
        .header("x-ms-blob-content-length", "512")
        .header("x-ms-blob-sequence-number", "7")
        .body("")
        .send()
        .is_status(201);
    let source = format!("{}/photos/plain", blobs.base());
    put("/photos/copied").header("x-ms-copy-source", source).send().is_status(202);
    claimed
}

/// A command on the data of an account.
fn on_account(folder: &Path, server: &Server, arguments: &[&str]) -> Output {
    let mut command = Command::new(EXE);
    command.args(arguments).current_dir(folder);
    command.env("AZURE_STORAGE_CONNECTION_STRING", connection_string(server)).output().expect("the binary runs")
}

/// The rows of the page's table: what it says of each tool.
fn page() -> BTreeMap<String, Vec<String>> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).expect("the page");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut lines = page.lines().filter(|line| line.starts_with('|')).map(cells);
    assert_eq!(lines.next().expect("a header")[1..], TOOLS);
    let rows: BTreeMap<_, _> = lines.skip(1).map(|cells| (cells[0].clone(), cells[1..].to_vec())).collect();
    for cell in rows.values().flatten() {
        assert!(page.contains(&format!("\n- **{cell}**: ")), "the page explains {cell}");
    }
    rows
}

/// Compares what a tool kept with its column of the page.
fn compare(tool: usize, server: &Server, claimed: &Claimed, expected: &BTreeMap<&str, String>) {
    let mut found = seen(server);
    found.insert(RECEIPTS, server.queues().delete(&claimed.0).send().status.to_string());
    let page = page();
    assert_eq!(page.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "the rows of the page");
    let is_wrong = |row: &&&str| (page[**row][tool] == "kept") != (found[**row] == expected[**row]);
    let wrong: Vec<String> = expected
        .keys()
        .filter(is_wrong)
        .map(|row| {
            format!("{row}: the page says {:?}\n  {:.500}\n  {:.500}", page[*row][tool], expected[row], found[row])
        })
        .collect();
    assert!(wrong.is_empty(), "{}\n{}", TOOLS[tool], wrong.join("\n"));
}

#[test]
fn each_tool_keeps_what_the_page_says() {
    let folder = larimar_testkit::memory_directory();
    let path = folder.path();
    let accounts = format!("{};other:{KEY}", crate::single_restore::DEVELOPMENT);
    let server = launch(path, "from").environment("LARIMAR_ACCOUNTS", &accounts).start();
    let claimed = fill(&server);
    // Times have whole seconds: none that a tool sets later is the same. The stop writes logs and metrics.
    std::thread::sleep(Duration::from_millis(1_100));
    let from = server.stop().0.start();
    let mut expected = seen(&from);
    expected.insert(RECEIPTS, "204".to_owned());

    let [single, copy, import] = ["single", "copy", "import"].map(|name| launch(path, name).start());
    for (row, empty) in seen(&single) {
        assert_ne!(empty, expected[row], "{row}: an empty server shows the same");
    }
    succeeded(larimar(&from, path, &["backup", "place", "--rate", "max"]));
    let spaces = ["table:People", "queue:jobs", "queue:empty", "container:photos", "container:bare"];
    let place = path.join("place");
    let line = ["restore", place.to_str().expect("text"), "--into-server", "--rate", "max"];
    succeeded(larimar(&single, path, &[&line[..], &spaces].concat()));
    compare(1, &single, &claimed, &expected);

    let connections = ["copy", &connection_string(&from), &connection_string(&copy)];
    let output = on_account(path, &from, &connections);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("hidden") && !said.contains("\\n"), "{said}");
    compare(3, &copy, &claimed, &expected);

    succeeded(on_account(path, &from, &["export", "--all", "--to", "files"]));
    succeeded(on_account(path, &import, &["import", "People", "files/People.jsonl"]));
    compare(4, &import, &claimed, &expected);

    from.stop();
    let restore = ["restore", "place", "--data", "restored"];
    let migrate = ["migrate", "--from", "from", "--to", "migrated"];
    let run = |tool: usize, arguments: &[&str], name: &str| {
        succeeded(Command::new(EXE).args(arguments).current_dir(path).output().expect("the binary runs"));
        compare(tool, &launch(path, name).start(), &claimed, &expected);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(0, &restore, "restored"));
        scope.spawn(|| run(2, &migrate, "migrated"));
    });
}
