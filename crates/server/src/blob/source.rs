//! Copies: Copy Blob, Incremental Copy Blob, and every operation "from URL". Sources are blobs of this server.

use super::BlobCall;
use super::put::overwrite_error;
use super::upload::{ChecksumBuilder, Checksums, Received};
use crate::address::Address;
use crate::auth::{Authenticator, Caller, Policies};
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::http::{Declared, authorize};
use crate::reply::Reply;
use larimar_engine::blob::bytes::{ByteStore, Bytes, READ_BYTES_MAX};
use larimar_engine::blob::{
    AccessConditions, BlobProperties, BlobRef, BlobReject, Container, CopyInspector, CopyRequest, CopySource,
    IncrementalCopyRequest, NewBlob, SourceCondition,
};
use larimar_engine::{Engine, EngineError, Reject};
use larimar_model::Service;
use larimar_model::blob::{BlobName, Conditions, CopyInfo, SnapshotTime};
use larimar_wire::blob::{
    BlobAddress, BlobOperation, BlobRead, BlobRequest, CopyBlob, IncrementalCopyBlob, Source, wrong_tier,
};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::request_head::RequestHead;

/// How an operation reports an error of its source (all recorded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceErrors {
    /// Copy Blob: with the source's own code if the blob is missing or a condition fails.
    Code,
    /// Copy Blob From URL, Put Blob From URL, Put Block From URL: with the source's status and message.
    Message,
    /// Append Block From URL, Put Page From URL: with the source's status alone.
    Status,
}

/// A source that the caller may read.
struct Found {
    container: Container,
    name: BlobName,
    snapshot: Option<SnapshotTime>,
    /// Its account, its container and its name, separated by slashes.
    path: String,
}

impl Found {
    /// The blob as the engine takes it, with the conditions of the request.
    fn copy_source<'a>(&'a self, source: &'a Source) -> CopySource<'a> {
        CopySource {
            at: BlobRef { container: self.container.id, name: &self.name },
            snapshot: self.snapshot,
            conditions: source.conditions,
            if_tags: source.if_tags.as_ref(),
        }
    }
}

/// Computes the checksums of a copy and compares the MD5 with the one in the request.
struct CopyChecksums {
    summing: Option<ChecksumBuilder>,
    expected: Option<[u8; 16]>,
    /// The checksums, if the bytes were read and match.
    sums: Option<Checksums>,
    error: Option<ErrorReply>,
}

impl CopyInspector for CopyChecksums {
    fn piece(&mut self, bytes: &Bytes) {
        if let Some(summing) = &mut self.summing {
            summing.add(bytes);
        }
    }

    fn admits(&mut self, is_seen: bool) -> bool {
        let Some(summing) = self.summing.take() else { return true };
        if !is_seen {
            let unsupported = || ErrorReply::new(ErrorCode::UnsupportedHeader);
            self.error = self.expected.map(|_| unsupported().with_detail("HeaderName", "x-ms-source-content-md5"));
            return self.error.is_none();
        }
        let sums = summing.finish();
        match sums.check_against(self.expected, None) {
            Ok(()) => self.sums = Some(sums),
            Err(error) => self.error = Some(error),
        }
        self.error.is_none()
    }
}

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn copy_blob(&self, at: BlobRef<'_>, copy: &CopyBlob) -> Result<Reply> {
        let errors = if copy.is_sync { SourceErrors::Message } else { SourceErrors::Code };
        let source = self.source(&copy.source, copy.tags.is_none() || copy.source.if_tags.is_some(), errors).await?;
        let from = source.copy_source(&copy.source);
        let request = CopyRequest {
            id: self.call.storage.ids.next(),
            source_url: copy.source.url.as_str().to_owned(),
            metadata: copy.metadata.clone(),
            tags: copy.tags.clone(),
            tier: copy.tier,
            seal: copy.seal,
            rehydrate: (!copy.is_sync).then(|| copy.priority.unwrap_or_default()),
        };
        let (access, creates_only) = self.creating_access(&copy.access)?;
        let _held = self.call.hold(self.copy_bytes()).await?;
        // Only the synchronous copy checks the MD5 of its source and returns checksums (recorded).
        let expected = copy.source.md5.filter(|_| copy.is_sync);
        let with_md5 = expected.is_some() || !self.has_crc64();
        let summing = copy.is_sync.then(|| ChecksumBuilder::new(with_md5));
        let mut sums = CopyChecksums { summing, expected, sums: None, error: None };
        let done = self.blobs.copy_blob_inspected(&from, at, &request, &access, &mut sums, self.now()).await;
        let done = done.map_err(|error| match sums.error.take() {
            Some(refused) => refused.into(),
            None => source_error(error, errors),
        });
        let is_target =
            if copy.is_sync { copy.access.conditions.if_match.is_some() } else { has_conditions(&copy.access) };
        let (written, info) = done.map_err(|error| match copy.tier {
            Some(tier) if error.code(Service::Blob) == ErrorCode::InvalidBlobTier => wrong_tier(tier).into(),
            _ => overwrite_error(target_error(error, is_target), creates_only),
        })?;
        let reply = Reply::empty(202)
            .with_written(written)
            .with("x-ms-copy-id", info.id.to_string())
            .with("x-ms-copy-status", self.copy_status(at, copy).await);
        Ok(match sums.sums {
            Some(sums) if expected.is_some() => reply.with_checksums(&sums, self.both_checksums()),
            Some(sums) => reply.with_checksums(&sums, self.reply_checksum(false)),
            None => reply,
        })
    }

    pub(super) async fn copy_incremental(&self, at: BlobRef<'_>, copy: &IncrementalCopyBlob) -> Result<Reply> {
        let source = self.source(&copy.source, copy.source.if_tags.is_some(), SourceErrors::Code).await?;
        let from = source.copy_source(&copy.source);
        let request = IncrementalCopyRequest {
            id: self.call.storage.ids.next(),
            source_url: copy.source.url.as_str().to_owned(),
            source_blob: source.path.clone(),
        };
        let (access, creates_only) = self.creating_access(&copy.access)?;
        let _held = self.call.hold(self.copy_bytes()).await?;
        let done = self.blobs.copy_incremental(&from, at, &request, &access, self.now()).await;
        let (written, info) = done.map_err(|error| {
            let error =
                target_error(source_error(error, SourceErrors::Code), copy.access.conditions.if_match.is_some());
            match error.code(Service::Blob) {
                // Other operations have a message about the resource instead of the blob (recorded).
                code @ ErrorCode::LeaseIdMissing => ErrorReply::with_message(code, LEASED).into(),
                _ => overwrite_error(error, creates_only),
            }
        })?;
        // The service always answers `pending` (recorded); clients then poll the properties, which say `success`.
        Ok(Reply::empty(202)
            .with_written(written)
            .with("x-ms-copy-id", info.id.to_string())
            .with("x-ms-copy-status", CopyInfo::PENDING))
    }

    /// The status of a copy: pending if its source is being rehydrated.
    async fn copy_status(&self, at: BlobRef<'_>, copy: &CopyBlob) -> &'static str {
        if copy.tier.is_none() || copy.is_sync {
            return CopyInfo::STATUS;
        }
        match self.blobs.properties(at, None, &AccessConditions::default(), self.now()).await {
            Ok(BlobProperties { rehydration: Some(_), .. }) => CopyInfo::PENDING,
            _ => CopyInfo::STATUS,
        }
    }

    /// Put Blob From URL.
    pub(super) async fn put_from(
        &self,
        at: BlobRef<'_>,
        source: &Source,
        (copy_headers, copy_tags): (bool, bool),
        mut new: NewBlob,
        (access, creates_only): (AccessConditions, bool),
    ) -> Result<Reply> {
        let (received, there) = self.take(at, source, (true, copy_tags), SourceErrors::Message).await?;
        if copy_headers {
            new.content = new.content.or(there.content);
        }
        if copy_tags {
            new.tags = there.tags;
        }
        // As with Copy Blob, the metadata of the source unless the request has metadata (recorded).
        if new.metadata.is_empty() {
            new.metadata = there.metadata;
        }
        new.content.md5 = new.content.md5.or(received.sums.md5.map(Vec::from));
        let is_if_match = access.conditions.if_match.is_some();
        let written = self.blobs.put_block_blob(at, received.extent, &new, &access, self.now()).await;
        let written = written.map_err(|error| overwrite_error(target_error(error, is_if_match), creates_only))?;
        Ok(Reply::empty(201)
            .with_written(written)
            .with_checksums(&received.sums, self.reply_checksum(source.md5.is_some()))
            .with("x-ms-request-server-encrypted", "true"))
    }

    /// The memory that a copy needs: its read buffer and the buffers of the store.
    fn copy_bytes(&self) -> u64 {
        READ_BYTES_MAX + self.blobs.bytes().writer_bytes(None)
    }

    /// Copies bytes of another blob into the store.
    pub(super) async fn receive_from(
        &self,
        at: BlobRef<'_>,
        source: &Source,
        errors: SourceErrors,
    ) -> Result<Received> {
        Ok(self.take(at, source, (source.md5.is_some(), false), errors).await?.0)
    }

    async fn take(
        &self,
        at: BlobRef<'_>,
        source: &Source,
        (with_md5, with_tags): (bool, bool),
        errors: SourceErrors,
    ) -> Result<(Received, BlobProperties)> {
        let found = self.source(source, with_tags || source.if_tags.is_some(), errors).await?;
        let from = found.copy_source(source);
        let _held = self.call.hold(self.copy_bytes()).await?;
        let hold = self.blobs.hold(at);
        let mut sums = ChecksumBuilder::new(with_md5 || !self.has_crc64());
        let part = (source.range, source.bytes_max);
        let taken = self.blobs.copy_bytes(&from, part, at, |piece| sums.add(piece), self.now()).await;
        let (extent, properties) = taken.map_err(|error| source_error(error, errors))?;
        let sums = sums.finish();
        if let Err(error) = sums.check_against(source.md5, source.crc64) {
            self.blobs.bytes().discard(extent.into_iter().collect());
            return Err(if errors == SourceErrors::Status { error.without_details() } else { error }.into());
        }
        Ok((Received { extent, sums, hold }, properties))
    }

    /// Finds a source that the caller may read: by a signature in its URL, by public access, or for Copy Blob by the key of
    /// the account if both blobs belong to it. Tags are never public.
    async fn source(&self, source: &Source, with_tags: bool, errors: SourceErrors) -> Result<Found> {
        let url = &source.url;
        let head = &RequestHead::new("GET", url.path(), url.query(), [("host", url.authority())]);
        let Call { storage, service, peer, now, .. } = *self.call;
        let is_known = |label: &str| storage.is_known_host(label);
        let address = Address::parse(url.authority(), head.path, service, &storage.settings.host_suffixes, is_known);
        let served = storage.served(&address).ok_or_else(not_on_this_server)?;
        let account = &served.account;
        let address = Address { account: &account.name, ..address };
        if !self.is_served(&address, url.authority()) {
            return Err(not_on_this_server().into());
        }
        let is_own = errors == SourceErrors::Code && address.account == self.call.account();
        let authenticator = Authenticator { storage, service, account, head, path: address.path, peer, now };
        let authenticate = async |policies| {
            let caller = authenticator.caller(policies).await;
            match caller.map_err(|error| source_refusal(error, errors))? {
                Caller::Anonymous if is_own && matches!(self.call.caller, Caller::Owner) => Ok(Caller::Owner),
                caller => Ok::<_, Failure>(caller),
            }
        };
        let mut caller = authenticate(Policies::Recent).await?;
        head.check_query()?;
        let BlobAddress::Blob(container, name) = BlobAddress::of(head, address.path)? else {
            return Err(not_on_this_server().into());
        };
        let snapshot =
            head.parameter("snapshot").as_deref().map(str::parse).transpose().map_err(|_| not_on_this_server())?;
        let read = |operation| BlobRequest::Blob(container.clone(), name.clone(), operation);
        let access = AccessConditions::default();
        let get_tags = with_tags.then(|| read(BlobOperation::GetTags { snapshot, access: access.clone() }));
        let get = read(BlobOperation::GetProperties(BlobRead { snapshot, access: access.clone() }));
        let (get_tags, get) = (get_tags.as_ref().map(Declared::new), Declared::new(&get));
        let found = loop {
            let call = Call { head, address: &address, caller, ..*self.call };
            let found = async {
                get_tags.as_ref().map(|get_tags| authorize(&call.caller, get_tags)).transpose()?;
                let request = authorize(&call.caller, &get)?;
                BlobCall { call: &call, blobs: self.blobs, request }.find(&container).await
            };
            let found = found.await;
            if found.is_ok() || !call.caller.is_doubtful() {
                break found;
            }
            caller = authenticate(Policies::Now).await?;
        };
        let path = format!("{}/{}/{}", address.account, container.as_str(), name.as_str());
        Ok(Found {
            container: found.map_err(|error| source_refusal(error.into_reply(Service::Blob), errors))?,
            name,
            snapshot,
            path,
        })
    }

    /// Whether this server serves the host of a source's URL.
    fn is_served(&self, address: &Address<'_>, authority: &str) -> bool {
        let host = self.call.head.host();
        match address.prefix {
            Some(_) => host.is_some_and(|host| is_same_host(host, authority)),
            // The Azure CLI sends URLs of the public cloud for blobs of the caller's own account, whatever its endpoint.
            None => {
                address.account == self.call.account()
                    || is_host_of_server(authority, host, &self.call.storage.settings.host_suffixes)
            }
        }
    }
}

const LEASED: &str = "There is currently a lease on the blob and no lease ID was specified in the request.";

/// The error for a source that is not on this server: nothing is fetched from elsewhere.
fn not_on_this_server() -> ErrorReply {
    ErrorReply::new(ErrorCode::CannotVerifyCopySource).with_status(404)
}

/// An error of the source as the operation reports it. Faults of this server are reported unchanged, so that clients
/// retry.
fn source_refusal(error: ErrorReply, errors: SourceErrors) -> ErrorReply {
    let ErrorReply { code, status, message, .. } = &error;
    match errors {
        _ if *status >= 500 => error,
        SourceErrors::Code if matches!(code, ErrorCode::BlobNotFound | ErrorCode::ContainerNotFound) => error,
        SourceErrors::Code | SourceErrors::Message => {
            ErrorReply::with_message(ErrorCode::CannotVerifyCopySource, message.clone()).with_status(*status)
        }
        SourceErrors::Status => ErrorReply::new(ErrorCode::CannotVerifyCopySource).with_status(*status),
    }
}

/// An error of the engine during a copy.
fn source_error(error: EngineError, errors: SourceErrors) -> Failure {
    let EngineError::Reject(Reject::Blob(reject)) = &error else { return error.into() };
    match (reject, errors) {
        (BlobReject::SourceNotFound, _) => source_refusal(ErrorReply::new(ErrorCode::BlobNotFound), errors).into(),
        (BlobReject::SourceConditionNotMet(_), SourceErrors::Code)
        | (BlobReject::SourceConditionNotMet(SourceCondition::IfMatch), SourceErrors::Message) => {
            ErrorCode::SourceConditionNotMet.into()
        }
        (BlobReject::SourceConditionNotMet(SourceCondition::NotModified), _) => {
            ErrorReply::new(ErrorCode::CannotVerifyCopySource).with_status(304).into()
        }
        (BlobReject::SourceConditionNotMet(_), _) => {
            source_refusal(ErrorReply::new(ErrorCode::ConditionNotMet), errors).into()
        }
        _ => error.into(),
    }
}

/// The error if a condition on the destination of a copy fails (recorded). Copy Blob has a code of its own for every
/// condition, the others for `If-Match`, except Append Block From URL.
pub(super) fn target_error(error: impl Into<Failure>, is_target: bool) -> Failure {
    match error.into() {
        Failure::Reply(reply) if is_target && reply.code == ErrorCode::ConditionNotMet && reply.status == 412 => {
            ErrorCode::TargetConditionNotMet.into()
        }
        error => error,
    }
}

/// Whether a request has conditional headers on the destination.
fn has_conditions(access: &AccessConditions) -> bool {
    access.conditions != Conditions::NONE
}

/// Whether a host that names an account belongs to this server: it is below a suffix that the server serves, or below the
/// domain of the request's own host. An account of the same name elsewhere is another account.
fn is_host_of_server(theirs: &str, ours: Option<&str>, suffixes: &[String]) -> bool {
    let domain = |host: &str| {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        name.split_once('.').map(|(_, domain)| domain.to_ascii_lowercase())
    };
    let Some(theirs) = domain(theirs) else { return false };
    ours.and_then(domain).is_some_and(|ours| ours == theirs)
        || suffixes.iter().any(|suffix| suffix.eq_ignore_ascii_case(&theirs))
}

/// Whether two hosts are the same, ignoring ports, as each service has its own. All loopback names are the same.
fn is_same_host(ours: &str, theirs: &str) -> bool {
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
            assert_eq!(is_same_host(ours, theirs), expected, "{theirs} from {ours}");
        }
        let suffixes = ["blob.example.com".to_owned()];
        for (ours, theirs, expected) in [
            (Some("127.0.0.1:10000"), "acct.Blob.example.com", true),
            (Some("one.blob.localhost:10000"), "two.blob.localhost:10000", true),
            (Some("127.0.0.1:10000"), "acct.blob.core.windows.net", false),
            (Some("acct.blob.localhost"), "acct.blob.core.windows.net", false),
            (None, "acct.blob.core.windows.net", false),
        ] {
            assert_eq!(is_host_of_server(theirs, ours, &suffixes), expected, "{theirs} from {ours:?}");
        }
    }
}
