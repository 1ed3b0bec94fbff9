//! Sets of what a token allows: the letters that each kind of token knows, with their names.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};
use std::str::FromStr;

/// Letters that a set of permissions does not know, or that come twice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected some of the letters '{known}', each once")]
pub struct LettersError {
    known: &'static str,
}

/// Declares a set of letters; they are listed in the order that the service wants them written in.
macro_rules! letters {
    ($(#[$doc:meta])* $type:ident: $($(#[$flag_doc:meta])* $flag:ident = $letter:literal at $bit:literal,)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $type(u16);

        impl $type {
            /// Nothing.
            pub const NONE: Self = Self(0);
            /// All of them.
            pub const ALL: Self = Self(0 $(| 1 << $bit)+);
            $($(#[$flag_doc])* pub const $flag: Self = Self(1 << $bit);)+

            const KNOWN: &'static str = concat!($($letter),+);

            /// Whether all of `other` are in this set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether this set has nothing in it.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }

        /// The letters, in the order that the service wants them in.
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(if self.contains(Self::$flag) {
                    f.write_str($letter)?;
                })+
                Ok(())
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($type))
            }
        }

        /// Reads letters in any order.
        impl FromStr for $type {
            type Err = LettersError;

            fn from_str(text: &str) -> Result<Self, LettersError> {
                let mut set = Self::NONE;
                for letter in text.split("").filter(|letter| !letter.is_empty()) {
                    let flag = match letter {
                        $($letter => Self::$flag,)+
                        _ => return Err(LettersError { known: Self::KNOWN }),
                    };
                    if set.contains(flag) {
                        return Err(LettersError { known: Self::KNOWN });
                    }
                    set |= flag;
                }
                Ok(set)
            }
        }

        impl BitOr for $type {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitOrAssign for $type {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }
    };
}

letters! {
    /// What a token or a stored policy allows on a table's entities.
    ///
    /// ```
    /// use larimar_client::sas::TablePermissions;
    /// let allowed = TablePermissions::READ | TablePermissions::UPDATE;
    /// assert_eq!(allowed.to_string(), "ru");
    /// assert_eq!("ur".parse(), Ok(allowed));
    /// ```
    TablePermissions:
    /// Get and query entities.
    READ = "r" at 0,
    /// Insert entities; an upsert needs `UPDATE` too.
    ADD = "a" at 1,
    /// Replace and merge entities.
    UPDATE = "u" at 2,
    /// Delete entities.
    DELETE = "d" at 3,
}

letters! {
    /// What a token allows on a queue's messages.
    QueuePermissions:
    /// Read the queue's metadata and peek at messages.
    READ = "r" at 0,
    /// Put messages.
    ADD = "a" at 1,
    /// Update messages.
    UPDATE = "u" at 2,
    /// Get and delete messages.
    PROCESS = "p" at 3,
}

letters! {
    /// What a token allows on a container or a blob.
    BlobPermissions:
    /// Read content, properties and metadata.
    READ = "r" at 0,
    /// Append blocks to append blobs.
    ADD = "a" at 1,
    /// Write new blobs, but none that exist.
    CREATE = "c" at 2,
    /// Write new and existing blobs.
    WRITE = "w" at 3,
    /// Delete blobs.
    DELETE = "d" at 4,
    /// List the blobs of a container; means nothing in a token for one blob.
    LIST = "l" at 5,
    /// Read and write tags.
    TAGS = "t" at 6,
}

letters! {
    /// What a stored policy of a container allows; those of accounts with a hierarchical namespace are among them.
    ContainerPermissions:
    /// Read content, properties and metadata.
    READ = "r" at 0,
    /// Append blocks to append blobs.
    ADD = "a" at 1,
    /// Write new blobs, but none that exist.
    CREATE = "c" at 2,
    /// Write new and existing blobs.
    WRITE = "w" at 3,
    /// Delete blobs.
    DELETE = "d" at 4,
    /// Delete versions of blobs.
    DELETE_VERSION = "x" at 5,
    /// Delete snapshots and versions for good.
    PERMANENT_DELETE = "y" at 6,
    /// List the blobs.
    LIST = "l" at 7,
    /// Read and write tags.
    TAGS = "t" at 8,
    /// Find blobs by their tags.
    FIND = "f" at 9,
    /// Move blobs and directories.
    MOVE = "m" at 10,
    /// Read properties and access control lists of directories.
    EXECUTE = "e" at 11,
    /// Change owners.
    OWNERSHIP = "o" at 12,
    /// Change the permissions of files and directories.
    PERMISSIONS = "p" at 13,
    /// Set immutability policies and legal holds.
    SET_IMMUTABILITY_POLICY = "i" at 14,
}

letters! {
    /// What a token allows on an account. The service's reference lists which operation needs which permission;
    /// what means nothing for a kind of resource is passed over.
    AccountPermissions:
    /// Read service properties, entities, blobs and metadata; peek at messages.
    READ = "r" at 0,
    /// Write service properties, blobs and metadata; create tables, queues and containers.
    WRITE = "w" at 1,
    /// Delete tables, entities, queues, containers and blobs.
    DELETE = "d" at 2,
    /// List tables, queues, containers and blobs.
    LIST = "l" at 3,
    /// Insert entities, put messages, append blocks.
    ADD = "a" at 4,
    /// Create tables, queues, containers and new blobs.
    CREATE = "c" at 5,
    /// Replace and merge entities, update messages.
    UPDATE = "u" at 6,
    /// Get and delete messages.
    PROCESS = "p" at 7,
}

letters! {
    /// The services that a token for an account is for.
    Services:
    /// Blobs.
    BLOB = "b" at 0,
    /// Queues.
    QUEUE = "q" at 1,
    /// Tables.
    TABLE = "t" at 2,
    /// Files.
    FILE = "f" at 3,
}

letters! {
    /// The kinds of resources that a token for an account is for.
    ResourceTypes:
    /// The service: its properties, and the lists of queues and containers.
    SERVICE = "s" at 0,
    /// Tables, queues and containers, and the list of tables.
    CONTAINER = "c" at 1,
    /// Entities, messages and blobs.
    OBJECT = "o" at 2,
}
