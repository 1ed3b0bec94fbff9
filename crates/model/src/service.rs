//! The storage services of an account.

/// A storage service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Blobs.
    Blob,
    /// Queues.
    Queue,
    /// Tables.
    Table,
}

impl Service {
    /// The service's name in hosts, settings and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
        }
    }
}
