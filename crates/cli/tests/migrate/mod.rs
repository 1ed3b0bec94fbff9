//! `larimar migrate` as users run it: stores copied, served from the copy, interrupted, refused.

#[cfg(feature = "test-postgres")]
mod backed_up;
pub(crate) mod every_kind;
mod interrupted;
mod local;
#[cfg(feature = "test-postgres")]
mod postgres;

use larimar_testkit::http::{Batch, Client, entity_path};
use larimar_testkit::{Launch, Server};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

/// A server on an embedded store.
fn launch(data: &Path) -> Launch {
    Launch::new(EXE, data).engine("local")
}

/// The command with nothing of ours in its environment.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(EXE);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LARIMAR_") || name == "AZURITE_ACCOUNTS" {
            command.env_remove(name);
        }
    }
    command.arg("migrate").args(arguments).stdin(Stdio::null());
    command
}

fn migrate(from: &str, to: &str, more: &[&str]) -> Output {
    let arguments = [&["--from", from, "--to", to], more].concat();
    command(&arguments).output().expect("the binary runs")
}

/// A migration that must come to a good end; what it printed.
#[track_caller]
fn migrated(from: &str, to: &str, more: &[&str]) -> String {
    let output = migrate(from, to, more);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A migration that must be refused; what it said.
#[track_caller]
fn refused(from: &str, to: &str, more: &[&str]) -> String {
    let output = migrate(from, to, more);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

/// The lines of a report without the last one, which names the stores: parts, items, bytes and checksums. The tables of
/// metrics are left out, as the server writes them when it likes.
fn report(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().filter(|line| !line.contains("/$metrics")).map(str::to_owned).collect();
    lines.pop();
    lines
}

/// Two tables, one with an access control list, entities of odd keys, and service properties.
fn fill(client: &Client) {
    client.request("PUT", "/?restype=service&comp=properties").xml(PROPERTIES).send().is_status(202);
    client.create_table("People");
    client.create_table("orders");
    for (partition, row) in KEYS {
        client.insert("people", partition, row, r#""Name":"Ada","Age":36,"Score":1.5,"Id@odata.type":"Edm.Guid","Id":"c9da6455-213d-42c9-9a79-3e9149a57833""#);
    }
    client.insert("orders", "p", "r", r#""Note":"one""#);
    client.request("PUT", "/people?comp=acl").xml(ACL).send().is_status(204);
}

/// What clients see of a filled store: entities with etags and timestamps, the list, the properties.
fn seen(client: &Client) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for (partition, row) in KEYS {
        let reply = client.get(&entity_path("people", partition, row)).send();
        reply.is_status(200);
        let etag = reply.header("ETag").expect("an etag").to_owned();
        let json = reply.json();
        seen.push(format!("{etag} {} {} {}", json["Timestamp"], json["Name"], json["Id"]));
    }
    for path in ["/people?comp=acl", "/?restype=service&comp=properties"] {
        seen.push(client.get(path).send().text().to_owned());
    }
    seen.extend(client.get("/Tables").send().column("TableName"));
    seen
}

/// Many entities, by transactions.
fn fill_many(client: &Client, table: &str, transactions: usize) {
    client.create_table(table);
    for partition in 0..transactions {
        let batch = (0..100).fold(Batch::new(), |batch, row| {
            batch.insert(client, table, &format!("p{partition:05}"), &format!("{row:03}"), r#""Text":"some text""#)
        });
        assert!(batch.send(client).statuses().iter().all(|status| *status == 204));
    }
}

/// Ends a server in order.
fn stop(server: Server) {
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0));
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

const KEYS: [(&str, &str); 4] = [("sales", "42"), ("sales", "it's"), ("\u{1F600}", ""), ("", "\u{e000}")];

pub(crate) const ACL: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>readers</Id>\
                   <AccessPolicy><Start>2026-01-01T00:00:00Z</Start><Expiry>2030-01-01T00:00:00Z</Expiry>\
                   <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";

/// Without metrics, since they change whenever a server runs.
const PROPERTIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><HourMetrics>\
                          <Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled>\
                          </RetentionPolicy></HourMetrics><Cors><CorsRule>\
                          <AllowedOrigins>http://example.com</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
                          <AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
                          <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
