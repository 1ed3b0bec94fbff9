//! A small HTTP/1.1 client over a plain socket that signs as the SDKs do.
//!
//! It shows every byte that a test wants to see and sends any byte that a test wants to send, which the usual
//! client libraries do not. [`Client`] knows an account; a [`Request`] begins with the headers of a current
//! SDK and each can be changed; a [`Response`] is what came back.

mod batch;
mod request;
mod response;
mod sas;
mod socket;

pub use batch::{Batch, BatchReply, Part};
pub use request::Request;
pub use response::Response;
pub use sas::Sas;
pub use socket::{exchange, read_response};

use larimar_wire::sas::Service;
use larimar_wire::signature::{AccountKey, Scheme};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;

/// The account of development set-ups and its key.
pub use larimar_wire::signature::{DEVELOPMENT_ACCOUNT as ACCOUNT, DEVELOPMENT_KEY as KEY};

/// How a client proves who it is.
#[derive(Clone, Debug)]
enum Credential {
    Key(Scheme, AccountKey),
    Sas(String),
    None,
}

/// A client of one account. It keeps one connection open between requests.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    /// Which service is there.
    service: Service,
    /// Whose key signs.
    account: String,
    /// The first segment of every path.
    segment: String,
    credential: Credential,
    idle: Mutex<Option<TcpStream>>,
}

impl Client {
    /// A client of the development account that signs with Shared Key.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self::of_service(address, Service::Table)
    }

    /// A client of the development account at one of the services.
    #[must_use]
    pub fn of_service(address: SocketAddr, service: Service) -> Self {
        let key = AccountKey::from_base64(KEY).expect("the well-known key");
        Self::with(address, service, ACCOUNT, Credential::Key(Scheme::SharedKey, key))
    }

    /// The same server, with an account and key of one's own.
    #[must_use]
    pub fn of_account(&self, account: &str, key: &str) -> Self {
        let key = AccountKey::from_base64(key).expect("a key in base64");
        Self::with(self.address, self.service, account, Credential::Key(Scheme::SharedKey, key))
    }

    /// The same, signing with Shared Key Lite.
    #[must_use]
    pub fn lite(&self) -> Self {
        let Credential::Key(_, key) = &self.credential else { panic!("only a key signs") };
        Self::with(self.address, self.service, &self.account, Credential::Key(Scheme::SharedKeyLite, key.clone()))
    }

    /// The same, with a shared access signature in place of the key.
    #[must_use]
    pub fn with_sas(&self, token: &str) -> Self {
        Self::with(self.address, self.service, &self.account, Credential::Sas(token.to_owned()))
    }

    /// The same on the read-only secondary endpoint.
    #[must_use]
    pub fn secondary(&self) -> Self {
        let mut client = Self::with(self.address, self.service, &self.account, self.credential.clone());
        client.segment.push_str("-secondary");
        client
    }

    /// The same, with nothing to prove who it is.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        Self::with(self.address, self.service, &self.account, Credential::None)
    }

    fn with(address: SocketAddr, service: Service, account: &str, credential: Credential) -> Self {
        let (account, segment) = (account.to_owned(), account.to_owned());
        Self { address, service, account, segment, credential, idle: Mutex::new(None) }
    }

    /// Where the server listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the account, as links in answers begin.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://{}/{}", self.address, self.account)
    }

    /// A request on a path below the account, such as `/Tables`; a query string may follow.
    pub fn request(&self, method: &str, path: &str) -> Request<'_> {
        Request::new(self, method, path)
    }

    /// A GET.
    pub fn get(&self, path: &str) -> Request<'_> {
        self.request("GET", path)
    }

    /// A POST of a JSON body.
    pub fn post(&self, path: &str, body: impl Into<Vec<u8>>) -> Request<'_> {
        self.request("POST", path).json(body)
    }

    /// A PUT of a JSON body.
    pub fn put(&self, path: &str, body: impl Into<Vec<u8>>) -> Request<'_> {
        self.request("PUT", path).json(body)
    }

    /// A MERGE of a JSON body.
    pub fn merge(&self, path: &str, body: impl Into<Vec<u8>>) -> Request<'_> {
        self.request("MERGE", path).json(body)
    }

    /// A DELETE with `If-Match: *`.
    pub fn delete(&self, path: &str) -> Request<'_> {
        self.request("DELETE", path).header("If-Match", "*")
    }

    /// Creates a table, which must be new.
    pub fn create_table(&self, table: &str) {
        let reply = self.post("/Tables", format!(r#"{{"TableName":"{table}"}}"#)).send();
        assert_eq!(reply.status, 201, "{reply}");
    }

    /// Inserts an entity of these further properties, given as JSON members, and returns its etag.
    pub fn insert(&self, table: &str, partition: &str, row: &str, members: &str) -> String {
        let reply = self.post(&format!("/{table}"), entity(partition, row, members)).send();
        assert_eq!(reply.status, 201, "{reply}");
        reply.header("ETag").expect("an insert has an etag").to_owned()
    }
}

/// The JSON of an entity: its keys, then further members.
#[must_use]
pub fn entity(partition: &str, row: &str, members: &str) -> String {
    let text = |value: &str| serde_json::Value::from(value).to_string();
    let comma = if members.is_empty() { "" } else { "," };
    format!(r#"{{"PartitionKey":{},"RowKey":{}{comma}{members}}}"#, text(partition), text(row))
}

/// The path of an entity, escaped as the SDKs do.
#[must_use]
pub fn entity_path(table: &str, partition: &str, row: &str) -> String {
    let escaped = |key: &str| encode(&key.replace('\'', "''"));
    format!("/{table}(PartitionKey='{}',RowKey='{}')", escaped(partition), escaped(row))
}

/// Text with everything escaped that a query string or a key in a path needs escaped.
#[must_use]
pub fn encode(text: &str) -> String {
    let mut out = String::new();
    larimar_wire::uri::encode(&mut out, text, larimar_wire::uri::is_unreserved);
    out
}
