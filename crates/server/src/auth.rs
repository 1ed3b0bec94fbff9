//! Authentication: finds out who sent a request, by the account's key or by a shared access signature.
//!
//! The strings to sign and the checks are in `wire`; here they meet the accounts, the clock and the stored
//! policies.

use crate::error;
use crate::head::Head;
use crate::settings::Account;
use crate::storage::Storage;
use larimar_engine::blob::{find_container_acl, read_container_acl};
use larimar_engine::queue::{find_queue, read_queue};
use larimar_engine::table::{find_table, read_table};
use larimar_engine::{Engine, EngineError, KeyRange};
use larimar_model::EntityKey;
use larimar_model::blob::ContainerName;
use larimar_wire::acl::{self, AccessPolicy};
use larimar_wire::analytics::Authentication;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::{Circumstances, Grant, Need, Resource, SasError, SasToken, Service};
use larimar_wire::signature::{self, Authorization, SignatureError, StorageRequest};
use larimar_wire::uri::{decode_path, query_pairs};
use std::sync::atomic::{AtomicBool, Ordering};

/// Who sent a request.
#[derive(Debug)]
pub(crate) enum Caller {
    /// Signed with the account's key: may do everything.
    Owner,
    /// A shared access signature: may do what it allows.
    Guest(Guest),
    /// No credentials: only public blobs can be read.
    Anonymous,
}

/// The holder of a signature.
#[derive(Debug)]
pub(crate) struct Guest {
    grant: Grant,
    /// The stored policy that completes the signature, if it names one.
    policy: Option<Policies>,
    /// Whether something was refused to the guest.
    is_refused: AtomicBool,
}

/// How stored policies are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policies {
    /// As they were up to a second ago, where several servers share a store. They may allow a request; before they refuse
    /// one, the policies stored now are checked.
    Recent,
    /// As they are now.
    Now,
}

impl Guest {
    pub(crate) const fn grant(&self) -> &Grant {
        &self.grant
    }

    fn check(&self, checked: Result<(), SasError>) -> Result<(), ErrorReply> {
        checked.map_err(|error| {
            self.is_refused.store(true, Ordering::Relaxed);
            ErrorReply::from(error)
        })
    }
}

impl Caller {
    /// Whether the caller was refused something by a policy that may have changed since it was looked up. The request is
    /// then to be run again for the caller that [`authenticate`] finds by [`Policies::Now`].
    pub(crate) fn is_doubtful(&self) -> bool {
        match self {
            Self::Guest(guest) => guest.policy == Some(Policies::Recent) && guest.is_refused.load(Ordering::Relaxed),
            Self::Owner | Self::Anonymous => false,
        }
    }

    /// Whether the caller may overwrite a blob. A body cannot be read again, so a caller that a possibly outdated policy
    /// refuses gets the error at once, before the body is read.
    pub(crate) fn permits_overwrite(&self) -> Result<bool, ErrorReply> {
        match self {
            Self::Guest(guest) => match guest.check(guest.grant.permits_overwrite()) {
                Err(error) if self.is_doubtful() => Err(error),
                checked => Ok(checked.is_ok()),
            },
            Self::Owner | Self::Anonymous => Ok(true),
        }
    }

    /// Checks that the caller may do this.
    pub(crate) fn permits(&self, need: &Need<'_>) -> Result<(), ErrorReply> {
        match self {
            Self::Owner => Ok(()),
            Self::Guest(guest) => guest.check(guest.grant.permits(need)),
            Self::Anonymous => Err(ErrorReply::new(ErrorCode::NoAuthenticationInformation)),
        }
    }

    /// Checks that the caller may touch this entity.
    pub(crate) fn permits_key(&self, key: &EntityKey) -> Result<(), ErrorReply> {
        match self {
            Self::Owner => Ok(()),
            Self::Guest(guest) => guest.check(guest.grant.permits_key(key.partition.as_str(), key.row.as_str())),
            Self::Anonymous => Err(ErrorReply::new(ErrorCode::NoAuthenticationInformation)),
        }
    }

    /// How analytics class the caller.
    pub(crate) const fn authentication(&self) -> Authentication {
        match self {
            Self::Owner => Authentication::Key,
            Self::Guest(_) => Authentication::Sas,
            Self::Anonymous => Authentication::Anonymous,
        }
    }

    /// The rows that the caller may see, if not all.
    pub(crate) fn visible_range(&self) -> Option<KeyRange> {
        match self {
            Self::Owner | Self::Anonymous => None,
            Self::Guest(guest) => {
                let keys = guest.grant.keys().filter(|keys| !keys.is_unlimited())?;
                Some(KeyRange::between(keys.lower(), keys.upper()))
            }
        }
    }
}

/// The error for a request without credentials that needs some. Before version 2019-12-12 the Blob and Queue services
/// answered `ResourceNotFound` (recorded).
pub(crate) fn refusal_of_strangers(error: ErrorReply, service: Service, head: &Head<'_>) -> ErrorReply {
    let is_told = service == Service::Table || head.version().is_some_and(|version| version >= "2019-12-12");
    match error.code {
        ErrorCode::NoAuthenticationInformation if !is_told => ErrorReply::new(ErrorCode::ResourceNotFound),
        _ => error,
    }
}

/// Finds out who sent a request to a service, for what `path` names below the account.
///
/// A signature is refused only by the policy that is stored now. If the caller is refused something later, see
/// [`Caller::is_doubtful`].
pub(crate) async fn authenticate<E: Engine>(
    storage: &Storage<E>,
    service: Service,
    account: &Account,
    head: &Head<'_>,
    path: &str,
    policies: Policies,
) -> Result<Caller, ErrorReply> {
    if let Some(header) = head.authorization {
        return check_header(header, service, account, head);
    }
    let addressed = Addressed::read(service, path, head.query)?;
    match SasToken::parse(head.query, addressed.resource(service))? {
        Some(token) if policies == Policies::Recent => {
            match Box::pin(check_token(storage, &token, service, account, head, Policies::Recent)).await {
                Err(_) if token.policy_id().is_some() => {
                    Box::pin(check_token(storage, &token, service, account, head, Policies::Now)).await
                }
                checked => checked,
            }
        }
        Some(token) => Box::pin(check_token(storage, &token, service, account, head, Policies::Now)).await,
        // Blobs may be public; whether this one is, its handler finds out.
        None if service == Service::Blob => Ok(Caller::Anonymous),
        None => Err(ErrorReply::new(ErrorCode::NoAuthenticationInformation)),
    }
}

async fn check_token<E: Engine>(
    storage: &Storage<E>,
    token: &SasToken<'_>,
    service: Service,
    account: &Account,
    head: &Head<'_>,
    policies: Policies,
) -> Result<Caller, ErrorReply> {
    // Versions are dates, so that they compare as texts.
    if let Some(oldest) = storage.settings.sas_version_min.as_deref().filter(|oldest| token.version() < *oldest) {
        let detail = format!("expected a shared access signature with sv {oldest} or later, not {}", token.version());
        let refused = ErrorReply::new(ErrorCode::AuthenticationFailed);
        return Err(refused.with_detail("AuthenticationErrorDetail", &detail));
    }
    let policy = match token.policy_id() {
        Some((name, id)) => stored_policy(storage, service, &account.name, (name, id), policies).await?,
        None => None,
    };
    let circumstances = Circumstances {
        account: &account.name,
        keys: &account.keys,
        service,
        now: head.now,
        peer: head.peer.address.ip(),
        secure: head.peer.is_tls,
    };
    let grant = token.verify(&circumstances, policy.as_ref()).map_err(|error| match error {
        SasError::Signature => ErrorReply::from(error).with_string_to_sign(
            "Signature did not match. String to sign used was ",
            &token.fields().string_to_sign(&account.name),
        ),
        _ => error.into(),
    })?;
    let policy = policy.map(|_| policies);
    Ok(Caller::Guest(Guest { grant, policy, is_refused: AtomicBool::new(false) }))
}

/// The stored policy that a token names, by what it is for and its id; none if one of them is gone.
async fn stored_policy<E: Engine>(
    storage: &Storage<E>,
    service: Service,
    account: &str,
    (name, id): (&str, &str),
    policies: Policies,
) -> Result<Option<AccessPolicy>, ErrorReply> {
    let engine = &*storage.engine;
    let (acl, letters) = match service {
        Service::Table => {
            let Ok(name) = name.parse() else { return Ok(None) };
            let table = match policies {
                Policies::Recent => find_table(engine, account, &name).await,
                Policies::Now => read_table(engine, account, &name).await,
            };
            (table.map(|table| table.acl), acl::TABLE_PERMISSIONS)
        }
        Service::Queue => {
            let Ok(name) = name.parse() else { return Ok(None) };
            let queue = match policies {
                Policies::Recent => find_queue(engine, account, &name).await,
                Policies::Now => read_queue(engine, account, &name).await,
            };
            (queue.map(|queue| queue.acl), acl::QUEUE_PERMISSIONS)
        }
        Service::Blob => {
            let Ok(name) = name.parse() else { return Ok(None) };
            let acl = match policies {
                Policies::Recent => find_container_acl(engine, account, &name).await,
                Policies::Now => read_container_acl(engine, account, &name).await,
            };
            (acl, acl::CONTAINER_PERMISSIONS)
        }
    };
    match acl {
        Ok(acl) => Ok(acl::parse(acl.as_bytes(), letters).ok().and_then(|list| acl::find(&list, id).copied())),
        Err(EngineError::Reject(_)) => Ok(None),
        Err(other) => Err(error::engine_error(&other)),
    }
}

/// What a request names below the account, decoded.
#[derive(Debug, Default)]
struct Addressed {
    /// A table, queue or container.
    name: Option<String>,
    blob: Option<String>,
    snapshot: Option<String>,
}

impl Addressed {
    fn read(service: Service, path: &str, query: &str) -> Result<Self, ErrorReply> {
        if service == Service::Table {
            return Ok(Self::default());
        }
        let invalid = |_| ErrorReply::new(ErrorCode::InvalidUri);
        let path = decode_path(path.trim_start_matches('/')).map_err(invalid)?;
        let (first, rest) = path.split_once('/').unwrap_or((&path, ""));
        let mut addressed = Self {
            name: Some(first.to_owned()).filter(|name| !name.is_empty()),
            blob: Some(rest.to_owned()).filter(|blob| !blob.is_empty()),
            snapshot: None,
        };
        let mut is_container = false;
        for pair in query_pairs(query) {
            let pair = pair.map_err(invalid)?;
            match &*pair.name {
                name if name.eq_ignore_ascii_case("snapshot") => {
                    addressed.snapshot = Some(pair.value().map_err(invalid)?.into_owned());
                }
                name if name.eq_ignore_ascii_case("restype") => {
                    is_container =
                        ["container", "account"].iter().any(|kind| pair.raw_value.eq_ignore_ascii_case(kind));
                }
                _ => {}
            }
        }
        // A name alone is a blob of the root container, where the query does not say that it is a container.
        if service == Service::Blob && !is_container && addressed.name.is_some() && addressed.blob.is_none() {
            addressed.blob = addressed.name.replace(ContainerName::ROOT.to_owned());
        }
        Ok(addressed)
    }

    fn resource(&self, service: Service) -> Resource<'_> {
        let name = self.name.as_deref();
        match service {
            Service::Table => Resource::Table,
            Service::Queue => Resource::Queue(name),
            Service::Blob => {
                Resource::Blob { container: name, blob: self.blob.as_deref(), snapshot: self.snapshot.as_deref() }
            }
        }
    }
}

fn check_header(header: &str, service: Service, account: &Account, head: &Head<'_>) -> Result<Caller, ErrorReply> {
    match Authorization::parse(header)? {
        Authorization::Signed(signed) => {
            match service {
                Service::Table => {
                    let verified = signature::verify(&signed, &account.name, &account.keys, &head.signed(), head.now);
                    verified.map_err(|error| {
                        mismatch(error, || signature::string_to_sign(signed.scheme, &account.name, &head.signed()))
                    })?;
                }
                Service::Queue | Service::Blob => {
                    let request = StorageRequest::new(head.method, head.path, head.query, head.texts())?;
                    let verified = signature::verify_storage(&signed, &account.name, &account.keys, &request, head.now);
                    verified.map_err(|error| {
                        let text = || signature::storage_string_to_sign(signed.scheme, &account.name, &request);
                        mismatch(error, || text().unwrap_or_default())
                    })?;
                }
            }
            Ok(Caller::Owner)
        }
        // Tokens of Entra ID are not served; before 2020-12-06 the Table service had none.
        Authorization::Bearer(_)
            if service != Service::Table || head.version().is_some_and(|version| version >= "2020-12-06") =>
        {
            Err(ErrorReply::new(ErrorCode::InvalidAuthenticationInfo).with_status(401))
        }
        Authorization::Bearer(_) => Err(ErrorReply::new(ErrorCode::AuthenticationFailed)),
    }
}

/// The error for a refused signature. If it does not match, the error has the server's string to sign, which users
/// compare with that of their client.
fn mismatch(error: SignatureError, text: impl FnOnce() -> String) -> ErrorReply {
    match error {
        SignatureError::Mismatch => ErrorReply::from(error).with_string_to_sign(
            "The MAC signature found in the HTTP request is not the same as any computed signature. Server used following \
             string to sign: ",
            &text(),
        ),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_a_token_is_for_what_the_path_names() {
        let blob = |container, blob| Resource::Blob { container, blob, snapshot: None };
        for (path, query, expected) in [
            ("/", "comp=list", blob(None, None)),
            ("/box", "restype=container", blob(Some("box"), None)),
            ("/box", "restype=account&comp=properties", blob(Some("box"), None)),
            ("/box/a%20b/c", "", blob(Some("box"), Some("a b/c"))),
            ("/page.html", "", blob(Some("$root"), Some("page.html"))),
            ("/$root/page.html", "", blob(Some("$root"), Some("page.html"))),
        ] {
            let addressed = Addressed::read(Service::Blob, path, query).expect("a path");
            assert_eq!(addressed.resource(Service::Blob), expected, "{path}?{query}");
        }
        let queue = Addressed::read(Service::Queue, "/jobs/messages", "").expect("a path");
        assert_eq!(queue.resource(Service::Queue), Resource::Queue(Some("jobs")));
    }
}
