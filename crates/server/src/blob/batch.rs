//! Blob Batch: many deletes or changes of tier in one request, each with its own signature and its own response.

use super::{BlobCall, BlobService};
use crate::address::Address;
use crate::auth::{Authenticator, Policies};
use crate::body::RequestBody;
use crate::call::{Call, Lookups};
use crate::error::Result;
use crate::http::{self, Declared, Protocol, RequestTrace, authorize};
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::blob::BlobRef;
use larimar_engine::blob::bytes::ByteStore;
use larimar_model::Service;
use larimar_model::blob::ContainerName;
use larimar_wire::blob::batch::{BatchAnswer, SubRequest, parse};
use larimar_wire::blob::{BlobOperation, BlobRequest};
use larimar_wire::error_code::ErrorCode;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn batch(&self, container: Option<&ContainerName>, body: &RequestBody) -> Result<Reply> {
        let body = body.whole();
        let content_type = self.call.head.raw_header("content-type").unwrap_or("");
        if !content_type.to_ascii_lowercase().starts_with("multipart/mixed") {
            return Err(ErrorCode::InvalidInput.into());
        }
        let storage = self.call.storage;
        let mut answer = BatchAnswer::new(&storage.ids.next().to_string());
        let parts = match parse(content_type, &body) {
            Ok(parts) => parts,
            Err(error) => {
                // The response to a batch that cannot be parsed has a single part with the error; nothing is executed.
                self.add_part(&mut answer, None, Err(error.into()), &storage.ids.next().to_string());
                let content_type = answer.content_type();
                return Ok(Reply { body: answer.finish(), ..Reply::empty(202) }.with("content-type", content_type));
            }
        };
        // Taken before anything is changed. The response to a part may repeat some of the part.
        let held = self.call.hold_answer(body.len() + parts.len() * PART_BYTES_MAX)?;
        for part in &parts {
            let request_id = storage.ids.next().to_string();
            let done = self.part(part, container, &request_id).await;
            self.add_part(&mut answer, part.content_id, done, &request_id);
        }
        let content_type = answer.content_type();
        Ok(Reply { body: answer.finish(), held, ..Reply::empty(202) }.with("content-type", content_type))
    }

    /// Adds the response to one part, which has the version of the batch (recorded).
    fn add_part(&self, answer: &mut BatchAnswer, content_id: Option<&str>, done: Result<Reply>, request_id: &str) {
        let (head, now) = (self.call.head, self.now());
        let reply = done.unwrap_or_else(|error| {
            let error = error.into_reply(Service::Blob);
            let reply = BlobService::<E, B>::error_reply(&error, head, &RequestTrace::default(), request_id, now);
            reply.with("x-ms-error-code", error.code.as_str())
        });
        let reply = reply
            .with("x-ms-request-id", request_id)
            .with_some("x-ms-version", head.raw_header("x-ms-version"))
            .with("server", "Windows-Azure-Blob/1.0");
        let headers = reply.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        answer.part(content_id, (reply.status, reply.reason.as_deref()), headers, &reply.body);
    }

    /// Runs one part: it is authenticated and authorised like a request.
    async fn part(&self, part: &SubRequest<'_>, container: Option<&ContainerName>, request_id: &str) -> Result<Reply> {
        if !part.has_valid_url() {
            return Err(ErrorCode::InvalidInput.into());
        }
        let head = &part.head;
        let Call { storage, service, peer, now, .. } = *self.call;
        http::check_head(head, storage.strict.is_some())?;
        let host = self.call.head.host().unwrap_or("");
        let is_known = |label: &str| storage.is_known_host(label);
        let address = Address::parse(host, head.path, service, &storage.settings.host_suffixes, is_known);
        self.call.check_authority(head.authority)?;
        self.call.check_authority(head.raw_header("host"))?;
        let served = storage.served(&address);
        let account =
            served.as_deref().map(|served| &served.account).filter(|account| account.name == self.call.account());
        let account = account.ok_or(ErrorCode::ResourceNotFound)?;
        let address = Address { account: &account.name, ..address };
        if address.is_secondary {
            return Err(ErrorCode::InsufficientAccountPermissions.into());
        }
        let authenticator = Authenticator { storage, service, account, head, path: address.path, peer, now };
        let mut caller = authenticator.caller(Policies::Recent).await?;
        let request = BlobRequest::parse(head, address.path)?;
        let BlobRequest::Blob(of, _, operation) = &request else { return Err(ErrorCode::InvalidInput.into()) };
        let is_batched = matches!(operation, BlobOperation::Delete { .. } | BlobOperation::SetTier { .. });
        if !is_batched || container.is_some_and(|container| container != of) {
            return Err(ErrorCode::InvalidInput.into());
        }
        let (request, lookups) = (Declared::new(&request), &Lookups::default());
        loop {
            let call = Call { head, address: &address, caller, lookups, request_id, ..*self.call };
            let done = match authorize(&call.caller, &request) {
                Ok(request) => BlobCall { call: &call, blobs: self.blobs, request }.run_part().await,
                Err(error) => Err(error.into()),
            };
            // As for a request: the cached container or stored policy may be outdated.
            caller = match &done {
                Err(_) if call.caller.is_doubtful() => authenticator.caller(Policies::Now).await?,
                Err(error) if lookups.is_outdated(error.code(Service::Blob)) => {
                    lookups.repeat();
                    call.caller
                }
                _ => return done,
            };
        }
    }

    /// Runs the operation of a part.
    async fn run_part(&self) -> Result<Reply> {
        let BlobRequest::Blob(container, name, operation) = self.request.operation() else {
            return Err(ErrorCode::InvalidInput.into());
        };
        let at = BlobRef { container: self.find(container).await?.id, name };
        match operation {
            BlobOperation::Delete { snapshot, snapshots, access } => {
                self.delete_blob(at, *snapshot, *snapshots, access).await
            }
            BlobOperation::SetTier { tier, priority, snapshot, access } => {
                self.set_tier(at, (*tier, *priority), *snapshot, access).await
            }
            _ => Err(ErrorCode::InvalidInput.into()),
        }
    }
}

/// The maximum size of the response to a part, without what it repeats of the part.
const PART_BYTES_MAX: usize = 4 << 10;
