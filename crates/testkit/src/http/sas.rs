//! Shared access signatures, made by the letter of the reference and not by the server's own code.

use super::{ACCOUNT, KEY, encode};
use larimar_engine::{Clock as _, SystemClock};
use larimar_wire::signature::AccountKey;
use std::time::Duration;

/// A shared access signature in the making: its query parameters, in order.
#[derive(Clone, Debug)]
pub struct Sas {
    parameters: Vec<(&'static str, String)>,
    account: String,
    /// The queue, container or blob that it is for, with its service before it; tokens for tables name theirs.
    resource: Option<String>,
}

/// What a signature for a table signs, in order, since version 2015-04-05; `CR` is the canonical resource.
const TABLE: [&str; 12] = ["sp", "st", "se", "CR", "si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"];
/// What a signature for a queue signs, in order, since version 2015-04-05.
const QUEUE: [&str; 8] = ["sp", "st", "se", "CR", "si", "sip", "spr", "sv"];
/// What a signature for a container or blob signs, in order, since version 2020-12-06.
const BLOB: [&str; 16] =
    ["sp", "st", "se", "CR", "si", "sip", "spr", "sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct"];
/// What an account's signature signs after the account's name, in order, before version 2020-12-06.
const OF_ACCOUNT: [&str; 8] = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"];

/// The version since which a field of a queue's or blob's signature is signed.
fn signed_since(name: &str) -> &'static str {
    match name {
        "rscc" | "rscd" | "rsce" | "rscl" | "rsct" => "2013-08-15",
        "sip" | "spr" => "2015-04-05",
        "sr" | "snapshot" => "2018-11-09",
        "ses" => "2020-12-06",
        _ => "2012-02-12",
    }
}

impl Sas {
    /// A signature for one table, valid for an hour.
    #[must_use]
    pub fn table(table: &str, permissions: &str) -> Self {
        Self::empty().with("sv", "2019-02-02").with("tn", table).with("sp", permissions).with("se", &in_an_hour())
    }

    /// A signature for one table by a stored policy, with nothing of its own.
    #[must_use]
    pub fn policy(table: &str, id: &str) -> Self {
        Self::empty().with("sv", "2019-02-02").with("tn", table).with("si", id)
    }

    /// A signature for one queue, valid for an hour.
    #[must_use]
    pub fn queue(queue: &str, permissions: &str) -> Self {
        Self::queue_policy(queue, "").without("si").with("sp", permissions).with("se", &in_an_hour())
    }

    /// A signature for one queue by a stored policy, with nothing of its own.
    #[must_use]
    pub fn queue_policy(queue: &str, id: &str) -> Self {
        Self::of_resource(format!("/queue/{ACCOUNT}/{queue}")).with("si", id)
    }

    /// A signature for one container, valid for an hour.
    #[must_use]
    pub fn container(container: &str, permissions: &str) -> Self {
        Self::container_policy(container, "").without("si").with("sp", permissions).with("se", &in_an_hour())
    }

    /// A signature for one container by a stored policy, with nothing of its own.
    #[must_use]
    pub fn container_policy(container: &str, id: &str) -> Self {
        Self::of_resource(format!("/blob/{ACCOUNT}/{container}")).with("sr", "c").with("si", id)
    }

    /// A signature for one blob, valid for an hour.
    #[must_use]
    pub fn blob(container: &str, blob: &str, permissions: &str) -> Self {
        let sas = Self::of_resource(format!("/blob/{ACCOUNT}/{container}/{blob}")).with("sr", "b");
        sas.with("sp", permissions).with("se", &in_an_hour())
    }

    fn of_resource(resource: String) -> Self {
        Self { resource: Some(resource), ..Self::empty() }.with("sv", "2021-06-08")
    }

    /// A signature for the account's table service, valid for an hour.
    #[must_use]
    pub fn account(resource_types: &str, permissions: &str) -> Self {
        let sas = Self::empty().with("sv", "2019-02-02").with("ss", "t").with("srt", resource_types);
        sas.with("sp", permissions).with("se", &in_an_hour())
    }

    fn empty() -> Self {
        Self { parameters: Vec::new(), account: ACCOUNT.to_owned(), resource: None }
    }

    /// Sets a parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self = self.without(name);
        self.parameters.push((name, value.to_owned()));
        self
    }

    /// Leaves a parameter out.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.parameters.retain(|(found, _)| *found != name);
        self
    }

    /// The text that is signed.
    #[must_use]
    pub fn string_to_sign(&self) -> String {
        let value = |name: &str| {
            self.parameters.iter().find(|(found, _)| *found == name).map_or("", |(_, value)| value.as_str())
        };
        if !value("ss").is_empty() {
            let lines: Vec<&str> = OF_ACCOUNT.iter().map(|name| value(name)).collect();
            let scope = if value("sv") >= "2020-12-06" { "\n" } else { "" };
            return format!("{}\n{}\n{scope}", self.account, lines.join("\n"));
        }
        if let Some(resource) = &self.resource {
            let fields = if value("sr").is_empty() { QUEUE.as_slice() } else { BLOB.as_slice() };
            // Before, the service's name was not part of the resource.
            let start = if value("sv") >= "2015-02-21" { 0 } else { resource[1..].find('/').map_or(0, |at| at + 1) };
            let line = |name: &&str| if *name == "CR" { &resource[start..] } else { value(name) };
            let fields = fields.iter().filter(|name| value("sv") >= signed_since(name));
            return fields.map(line).collect::<Vec<_>>().join("\n");
        }
        let table = format!("{}/{}", self.account, value("tn").to_lowercase());
        let resource = if value("sv") >= "2015-02-21" { format!("/table/{table}") } else { format!("/{table}") };
        let is_old = value("sv") < "2015-04-05";
        let fields = TABLE.iter().filter(|name| !(is_old && matches!(**name, "sip" | "spr")));
        let lines: Vec<&str> = fields.map(|name| if *name == "CR" { resource.as_str() } else { value(name) }).collect();
        lines.join("\n")
    }

    /// The query string, signed with the development account's key.
    #[must_use]
    pub fn token(&self) -> String {
        self.token_signed_with(KEY)
    }

    /// The query string, signed with another key.
    #[must_use]
    pub fn token_signed_with(&self, key: &str) -> String {
        let key = AccountKey::from_base64(key).expect("a key in base64");
        let signature = key.mac_of(&self.string_to_sign()).to_base64();
        let pairs = self.parameters.iter().map(|(name, value)| format!("{name}={}", encode(value)));
        let pairs: Vec<String> = pairs.chain([format!("sig={}", encode(&signature))]).collect();
        pairs.join("&")
    }
}

fn in_an_hour() -> String {
    let text = SystemClock.now().after(Duration::from_secs(3600)).to_string();
    let seconds = text.split('.').next().unwrap_or(&text).trim_end_matches('Z');
    format!("{seconds}Z")
}
