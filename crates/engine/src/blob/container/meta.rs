//! The meta bytes of a container's space: its settings and its lease (drawn in docs/format.md).

use super::Container;
use crate::blob::codec::{Reader, damaged, put_metadata, put_time, take_metadata};
use crate::blob::conditions::{Purpose, check};
use crate::blob::lease::Lease;
use crate::blob::reject::BlobReject;
use crate::contract::SpaceId;
use crate::error::Fault;
use larimar_model::blob::{AccessConditions, PublicAccess};
use larimar_model::{Metadata, Timestamp};

/// The settings of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) changed: Timestamp,
    pub(super) public_access: PublicAccess,
    pub(super) lease: Lease,
    pub(super) metadata: Metadata,
    pub(super) acl: String,
}

impl Meta {
    /// The bytes of a change that a request may make. The lease need not be named: it guards only the deletion.
    pub(super) fn admitted(self, access: &AccessConditions, now: Timestamp) -> Result<Self, BlobReject> {
        check(&access.conditions, Some(self.changed), Purpose::Write)?;
        self.lease.admit_read(access.lease, now).map_err(BlobReject::ContainerLease)?;
        let changed = now.max(Timestamp::from_ticks(self.changed.ticks() + 1));
        Ok(Self { changed, ..self })
    }

    pub(super) fn into_container(self, id: SpaceId, name: String, now: Timestamp) -> Container {
        Container {
            id,
            name,
            last_modified: self.changed,
            public_access: self.public_access,
            metadata: self.metadata,
            acl: self.acl,
            lease: self.lease.view(now),
        }
    }

    /// A format byte, the time of the last change, the public access, the lease, the metadata; the rest is the ACL.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        put_time(&mut out, self.changed);
        out.push(match self.public_access {
            PublicAccess::None => 0,
            PublicAccess::Blob => 1,
            PublicAccess::Container => 2,
        });
        self.lease.encode(&mut out);
        put_metadata(&mut out, &self.metadata);
        out.extend_from_slice(self.acl.as_bytes());
        out
    }

    pub(super) fn decode(meta: &[u8]) -> Result<Self, Fault> {
        let read = || {
            let mut reader = Reader(meta);
            if reader.byte()? != FORMAT {
                return None;
            }
            let changed = reader.time()?;
            let public_access = match reader.byte()? {
                0 => PublicAccess::None,
                1 => PublicAccess::Blob,
                2 => PublicAccess::Container,
                _ => return None,
            };
            let lease = Lease::decode(&mut reader.0)?;
            let metadata = take_metadata(&mut reader)?;
            let acl = std::str::from_utf8(reader.0).ok()?.to_owned();
            Some(Self { changed, public_access, lease, metadata, acl })
        };
        read().ok_or_else(|| damaged("a container's description"))
    }
}

const FORMAT: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_model::Guid;
    use larimar_model::blob::{LeaseDuration, LeaseId};

    #[test]
    fn descriptions_are_read_as_they_were_written() {
        let mut metadata = Metadata::new();
        metadata.insert("a", "b").expect("metadata");
        let lease = Lease::Held { id: LeaseId(Guid([1; 16])), duration: LeaseDuration::Infinite, until: None };
        for (public_access, lease, acl) in [
            (PublicAccess::None, Lease::None, ""),
            (PublicAccess::Blob, lease, "<SignedIdentifiers/>"),
            (PublicAccess::Container, lease, "x"),
        ] {
            let meta =
                Meta { changed: Timestamp::MAX, public_access, lease, metadata: metadata.clone(), acl: acl.to_owned() };
            assert_eq!(Meta::decode(&meta.encode()), Ok(meta));
        }
        assert!(Meta::decode(&[2]).is_err());
        assert!(Meta::decode(&[]).is_err());
    }
}
