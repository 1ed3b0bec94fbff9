//! Other blobs as sources of bytes: Copy Blob, and every operation "from URL". Sources are blobs of this server.

use super::permit::overwrite_error;
use super::upload::{Received, Summing};
use super::{Ask, access, blob_ref};
use crate::address::Address;
use crate::auth::{self, Caller, Policies};
use crate::call::Call;
use crate::error;
use crate::head::Head;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::{ByteStore, READ_BYTES_MAX};
use larimar_engine::blob::{Access, BlobRef, Container, CopyRequest, CopySource, NewBlob};
use larimar_model::blob::{BlobName, ContainerName, CopyInfo, SnapshotTime};
use larimar_wire::blob::{BlobAddress, CopyBlob, Source};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Need;
use larimar_wire::storage_head::StorageHead;

/// A blob of this server whose bytes the caller may take.
struct Found {
    container: Container,
    name: BlobName,
    snapshot: Option<SnapshotTime>,
}

impl<E: Engine, B: ByteStore> Ask<'_, E, B> {
    pub(super) async fn copy_blob(
        &self,
        container: &ContainerName,
        name: &BlobName,
        copy: &CopyBlob,
    ) -> Result<Reply, ErrorReply> {
        let found = self.creatable(container, name, copy.tags.as_ref().is_none_or(|tags| !tags.is_empty())).await?;
        let source = self.source(&copy.source, copy.tags.is_none() || copy.source.if_tags.is_some()).await?;
        let from = CopySource {
            at: blob_ref(&source.container, &source.name),
            snapshot: source.snapshot,
            conditions: copy.source.conditions,
            if_tags: copy.source.if_tags.as_ref(),
        };
        let request = CopyRequest {
            id: self.call.storage.ids.next(),
            source_url: copy.source.url.as_str().to_owned(),
            metadata: copy.metadata.clone(),
            tags: copy.tags.clone(),
            tier: copy.tier,
        };
        let (access, creates_only) = self.creating_access(&access(&copy.guard))?;
        let _held = self.call.hold(self.copy_bytes()).await?;
        let done = self.blobs.copy_blob(&from, blob_ref(&found, name), &request, &access, self.now()).await;
        let (written, info) = done.map_err(|error| overwrite_error(error::engine_error(&error), creates_only))?;
        Ok(Reply::empty(202)
            .with_written(written)
            .with("x-ms-copy-id", info.id.to_string())
            .with("x-ms-copy-status", CopyInfo::STATUS))
    }

    /// Put Blob From URL.
    pub(super) async fn put_from(
        &self,
        found: &Container,
        name: &BlobName,
        source: &Source,
        copy_headers: bool,
        mut new: NewBlob,
        (access, creates_only): (Access, bool),
    ) -> Result<Reply, ErrorReply> {
        let at = blob_ref(found, name);
        let (received, content) = self.take(at, source, true).await?;
        if copy_headers {
            new.content = content;
        }
        new.content.md5 = new.content.md5.or(received.sums.md5);
        let written = self.blobs.put_block_blob(at, received.extent, &new, &access, self.now()).await;
        let written = written.map_err(|error| overwrite_error(error::engine_error(&error), creates_only))?;
        Ok(Reply::empty(201)
            .with_written(written)
            .with_sums(&received.sums)
            .with("x-ms-request-server-encrypted", "true"))
    }

    /// What a copy holds in memory: what it reads at once, and the buffers of the store.
    fn copy_bytes(&self) -> u64 {
        READ_BYTES_MAX + self.blobs.bytes().writer_bytes(None)
    }

    /// Bytes of another blob for this one.
    pub(super) async fn receive_from(&self, at: BlobRef<'_>, source: &Source) -> Result<Received, ErrorReply> {
        Ok(self.take(at, source, source.md5.is_some()).await?.0)
    }

    async fn take(
        &self,
        at: BlobRef<'_>,
        source: &Source,
        with_md5: bool,
    ) -> Result<(Received, larimar_model::blob::ContentHeaders), ErrorReply> {
        let found = self.source(source, source.if_tags.is_some()).await?;
        let from = CopySource {
            at: blob_ref(&found.container, &found.name),
            snapshot: found.snapshot,
            conditions: source.conditions,
            if_tags: source.if_tags.as_ref(),
        };
        let _held = self.call.hold(self.copy_bytes()).await?;
        let hold = self.blobs.hold(at);
        let mut sums = Summing::new(with_md5);
        let part = (source.range, source.bytes_max);
        let taken = self.blobs.copy_bytes(&from, part, at, |piece| sums.add(piece), self.now()).await;
        let (extent, properties) = taken.map_err(|error| error::engine_error(&error))?;
        let sums = sums.finish();
        if source.md5.is_some() && sums.md5 != source.md5 {
            self.blobs.bytes().discard(extent.into_iter().collect());
            return Err(ErrorReply::new(ErrorCode::Md5Mismatch));
        }
        Ok((Received { extent, sums, hold }, properties.content))
    }

    /// Finds a source and makes sure that the caller may read it: by a token in its URL, by owning the account that both
    /// blobs are of, or because it is public. Its tags are never public.
    async fn source(&self, source: &Source, with_tags: bool) -> Result<Found, ErrorReply> {
        let url = &source.url;
        let request = hyper::Request::get(format!("{}?{}", url.path(), url.query())).body(());
        let (mut parts, ()) = request.map_err(|_| unverified(404))?.into_parts();
        let host = url.authority().parse().map_err(|_| unverified(404))?;
        parts.headers.insert(hyper::header::HOST, host);
        let head = Head::new(&parts, self.call.head.peer, self.now());
        let storage = self.call.storage;
        let is_known = |name: &str| storage.account(name).is_some();
        let address =
            Address::parse(url.authority(), head.path, self.call.service, &storage.settings.host_suffixes, is_known);
        let is_here = match address.prefix {
            Some(_) => self.call.head.host.is_some_and(|host| is_same(host, url.authority())),
            // The Azure CLI spells blobs of the caller's own account as those of the public cloud, whatever its endpoint.
            None => {
                address.account == self.call.account()
                    || is_below(url.authority(), self.call.head.host, &storage.settings.host_suffixes)
            }
        };
        let account = storage.account(address.account).filter(|_| is_here).ok_or_else(|| unverified(404))?;
        let authenticate = async |policies| {
            let caller = auth::authenticate(storage, self.call.service, account, &head, address.path, policies).await;
            match caller.map_err(|error| unverified(error.status))? {
                Caller::Anonymous
                    if matches!(self.call.caller, Caller::Owner) && address.account == self.call.account() =>
                {
                    Ok::<_, ErrorReply>(Caller::Owner)
                }
                caller => Ok(caller),
            }
        };
        let mut caller = authenticate(Policies::Recent).await?;
        let parsed = StorageHead::new("GET", address.path, head.query, head.texts())?;
        let BlobAddress::Blob(container, name) = BlobAddress::of(&parsed)? else { return Err(unverified(404)) };
        let snapshot = parsed.parameter("snapshot").map(str::parse).transpose().map_err(|_| unverified(404))?;
        let tags = Need::tag_blob(container.as_str(), name.as_str(), parsed.parameter("snapshot"));
        let found = loop {
            let call = Call { head: &head, address: &address, caller, ..*self.call };
            let ask = Ask { call: &call, blobs: self.blobs };
            let permitted = if with_tags { ask.permit(&tags) } else { Ok(()) };
            let found = match permitted {
                Ok(()) => ask.readable(&container, &name, snapshot).await,
                Err(error) => Err(error),
            };
            if found.is_ok() || !call.caller.is_doubtful() {
                break found;
            }
            caller = authenticate(Policies::Now).await?;
        };
        Ok(Found { container: found.map_err(|error| unverified(error.status))?, name, snapshot })
    }
}

/// The source's own refusal, as the copy tells it.
fn unverified(status: u16) -> ErrorReply {
    let status = if status == 403 { 403 } else { 404 };
    ErrorReply::new(ErrorCode::CannotVerifyCopySource).with_status(status)
}

/// Whether a host that names an account is one of this server: below a suffix that it serves, or below the same domain as
/// the host that the client came to. An account of the same name elsewhere is another account.
fn is_below(theirs: &str, ours: Option<&str>, suffixes: &[String]) -> bool {
    let domain = |host: &str| {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        name.split_once('.').map(|(_, domain)| domain.to_ascii_lowercase())
    };
    let Some(theirs) = domain(theirs) else { return false };
    ours.and_then(domain).is_some_and(|ours| ours == theirs)
        || suffixes.iter().any(|suffix| suffix.eq_ignore_ascii_case(&theirs))
}

/// Whether two hosts are the same to a client on one machine, whatever the port: services differ in theirs.
fn is_same(ours: &str, theirs: &str) -> bool {
    let name = |host: &str| host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
    let (ours, theirs) = (name(ours), name(theirs));
    let is_loopback = |name: &str| matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    ours == theirs || is_loopback(&ours) && is_loopback(&theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_sources_are_of_this_server_or_refused() {
        for (ours, theirs, expected) in [
            ("127.0.0.1:10000", "localhost:10000", true),
            ("127.0.0.1:10000", "127.0.0.1", true),
            ("blobs.example.com", "Blobs.Example.com:10000", true),
            ("127.0.0.1:10000", "example.com:10000", false),
            ("127.0.0.1:10000", "169.254.169.254", false),
        ] {
            assert_eq!(is_same(ours, theirs), expected, "{theirs} from {ours}");
        }
        let suffixes = ["blob.example.com".to_owned()];
        for (ours, theirs, expected) in [
            (Some("127.0.0.1:10000"), "acct.Blob.example.com", true),
            (Some("one.blob.localhost:10000"), "two.blob.localhost:10000", true),
            (Some("127.0.0.1:10000"), "acct.blob.core.windows.net", false),
            (Some("acct.blob.localhost"), "acct.blob.core.windows.net", false),
            (None, "acct.blob.core.windows.net", false),
        ] {
            assert_eq!(is_below(theirs, ours, &suffixes), expected, "{theirs} from {ours:?}");
        }
    }
}
