//! What the server must know about an operation before it runs it.
//!
//! Each service declares the [`Facts`] of its operations in one `match` next to the enum, every variant by name, so that
//! an operation without a name, a permission or a body limit does not compile. The server's request pipeline applies
//! them: it checks the endpoint, authorises the caller and reads the body before a handler runs.

use crate::sas::Need;

/// A request to one of the services, as far as it is parsed before its body is read.
pub trait Operation {
    /// What the server must know about the operation before it runs it.
    fn facts(&self) -> Facts<'_>;
}

/// What the server must know about an operation before it runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The name in metrics, logs and storage analytics.
    pub name: &'static str,
    /// How storage analytics classify it. `None`: by the method of the request ([`Kind::of_method`]).
    pub kind: Option<Kind>,
    /// The endpoints that serve it.
    pub endpoint: Endpoint,
    /// What a shared access signature must allow, checked in this order.
    pub needs: [Option<Need<'a>>; 2],
    /// What a container's public access must allow to callers without credentials. `None`: they are refused.
    pub public: Option<Public>,
    /// Whether only the service itself may do this, as with the tables of storage analytics.
    pub is_reserved: bool,
    /// How the body is read.
    pub body: BodyLimit,
    /// The format of a successful response.
    pub format: Format,
    /// Which scalability target strict mode counts it against.
    pub rate: Rate,
}

/// How storage analytics classify an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Reads.
    Read,
    /// Creates or changes.
    Write,
    /// Deletes.
    Delete,
}

/// The endpoints that serve an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The primary only: the operation changes something.
    Primary,
    /// The primary and the read-only secondary.
    Both,
    /// The secondary only: its replication stats.
    Secondary,
}

/// What a container's public access must allow to callers without credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Public {
    /// Reading blobs.
    Read,
    /// Reading the container: its properties, and the list of its blobs.
    List,
}

/// How the body of a request is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLimit {
    /// Not at all: the operation takes no body.
    None,
    /// Whole, up to these bytes.
    Bytes(usize),
    /// Whole, up to the server's setting `body_bytes_max`.
    Configured,
    /// By the handler, which checks it as it arrives.
    Streamed,
}

/// The format of a successful response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// No body.
    Empty,
    /// JSON in the form that `Accept` asks for.
    Json,
    /// XML. In the Table service also errors are XML by default.
    Xml,
    /// A MIME document with one response per part.
    Multipart,
    /// The bytes of a blob.
    Stream,
}

/// Which scalability target strict mode counts an operation against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// The account's.
    Account,
    /// The account's and the partition's, which the handler knows once it has found the table.
    Partition,
}

impl<'a> Facts<'a> {
    /// An operation that reads: both endpoints serve it.
    #[must_use]
    pub const fn read(name: &'static str, need: Need<'a>) -> Self {
        Self::new(name, Some(Kind::Read), Endpoint::Both, Some(need))
    }

    /// An operation that creates or changes something.
    #[must_use]
    pub const fn write(name: &'static str, need: Need<'a>) -> Self {
        Self::new(name, Some(Kind::Write), Endpoint::Primary, Some(need))
    }

    /// An operation that deletes something.
    #[must_use]
    pub const fn delete(name: &'static str, need: Need<'a>) -> Self {
        Self::new(name, Some(Kind::Delete), Endpoint::Primary, Some(need))
    }

    /// A batch, whose parts are authorised and counted one by one.
    #[must_use]
    pub const fn batch(name: &'static str) -> Self {
        let whole = Self::new(name, Some(Kind::Write), Endpoint::Both, None);
        whole.body(BodyLimit::Configured).answers(Format::Multipart).counted_by_partition()
    }

    /// A request that is refused after the table it names has been found, which only a caller with this permission learns.
    #[must_use]
    pub const fn refused(need: Need<'a>) -> Self {
        Self::new(UNKNOWN_OPERATION, None, Endpoint::Both, Some(need)).counted_by_partition()
    }

    const fn new(name: &'static str, kind: Option<Kind>, endpoint: Endpoint, need: Option<Need<'a>>) -> Self {
        Self {
            name,
            kind,
            endpoint,
            needs: [need, None],
            public: None,
            is_reserved: false,
            body: BodyLimit::None,
            format: Format::Empty,
            rate: Rate::Account,
        }
    }

    /// Also needs this, which is checked after the other need.
    #[must_use]
    pub const fn and(mut self, need: Option<Need<'a>>) -> Self {
        self.needs[1] = need;
        self
    }

    /// Callers without credentials may do it where the container's public access allows this.
    #[must_use]
    pub const fn public(mut self, public: Public) -> Self {
        self.public = Some(public);
        self
    }

    /// Only the service itself may do it if `is_reserved`.
    #[must_use]
    pub const fn reserved_if(mut self, is_reserved: bool) -> Self {
        self.is_reserved = is_reserved;
        self
    }

    /// These endpoints serve it.
    #[must_use]
    pub const fn on(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// The body is read like this.
    #[must_use]
    pub const fn body(mut self, body: BodyLimit) -> Self {
        self.body = body;
        self
    }

    /// A successful response has this format.
    #[must_use]
    pub const fn answers(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Strict mode also counts it against the target of a partition.
    #[must_use]
    pub const fn counted_by_partition(mut self) -> Self {
        self.rate = Rate::Partition;
        self
    }

    /// Whether the operation changes nothing, so that it can be repeated and its response dropped.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        matches!(self.kind, Some(Kind::Read)) && !matches!(self.endpoint, Endpoint::Primary)
    }
}

impl Kind {
    /// Every kind, in the order in which the metadata of a log names them.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Delete];

    /// The kind of an unknown operation, by the method of its request.
    #[must_use]
    pub fn of_method(method: &str) -> Self {
        match method {
            "GET" | "HEAD" | "OPTIONS" => Self::Read,
            "DELETE" => Self::Delete,
            _ => Self::Write,
        }
    }

    /// The word in the metadata of a log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }
}

/// The name of an operation that is not known, or not yet.
pub const UNKNOWN_OPERATION: &str = "Unknown";

/// Bytes of the XML of service properties and access control lists, far more than five rules or policies need.
pub const SETTINGS_BODY_BYTES_MAX: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_the_primary_only_is_not_repeated() {
        let read = Facts::read("GetMessages", Need::process_messages("q"));
        assert!(read.is_read_only());
        assert!(!read.on(Endpoint::Primary).is_read_only(), "messages that were read are hidden");
        assert!(!Facts::write("PutMessage", Need::put_message("q")).is_read_only());
    }

    #[test]
    fn unknown_operations_are_classified_by_their_method() {
        for (method, kind) in
            [("HEAD", Kind::Read), ("OPTIONS", Kind::Read), ("DELETE", Kind::Delete), ("PATCH", Kind::Write)]
        {
            assert_eq!(Kind::of_method(method), kind, "{method}");
        }
    }
}
