//! Authentication: finds out who sent a request, by the account's key or by a shared access signature.
//!
//! The strings to sign and the checks are in `wire`; here they meet the accounts, the clock and the stored
//! policies.

use crate::error;
use crate::handler::{Entrance, Peer};
use crate::settings::Account;
use crate::storage::Storage;
use larimar_engine::blob::{find_container_acl, read_container_acl};
use larimar_engine::queue::{find_queue, read_queue};
use larimar_engine::table::{find_table, read_table};
use larimar_engine::{Engine, EngineError, KeyRange};
use larimar_model::{EntityKey, Timestamp};
use larimar_wire::acl::{self, AccessPolicy};
use larimar_wire::analytics::Authentication;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::{Circumstances, Grant, Need, Resource, SasError, SasToken, Service};
use larimar_wire::signature::{self, AccountKey, Authorization, SignatureError};
use larimar_wire::uri::{decode_path, query_pairs};
use std::borrow::Cow;
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
    /// then to be run again for the caller that [`Authenticator`] finds by [`Policies::Now`].
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
pub(crate) fn refusal_of_strangers(error: ErrorReply, service: Service, head: &RequestHead<'_>) -> ErrorReply {
    match error.code {
        ErrorCode::NoAuthenticationInformation if service != Service::Table && !is_since(head, "2019-12-12") => {
            ErrorReply::new(ErrorCode::ResourceNotFound)
        }
        _ => error,
    }
}

/// Whether the request has this version or a later one.
fn is_since(head: &RequestHead<'_>, version: &str) -> bool {
    head.version().is_some_and(|own| *own >= *version)
}

/// Finds out who sent a request, or a part of a batch.
pub(crate) struct Authenticator<'a, E> {
    pub(crate) storage: &'a Storage<E>,
    pub(crate) service: Service,
    /// The account that the request addresses.
    pub(crate) account: &'a Account,
    pub(crate) head: &'a RequestHead<'a>,
    /// The path below the account, still escaped.
    pub(crate) path: &'a str,
    pub(crate) peer: Peer,
    pub(crate) now: Timestamp,
}

impl<E: Engine> Authenticator<'_, E> {
    /// The caller.
    ///
    /// A signature is refused only by the policy that is stored now. If the caller is refused something later, see
    /// [`Caller::is_doubtful`].
    pub(crate) async fn caller(&self, policies: Policies) -> Result<Caller, ErrorReply> {
        if let Some(header) = self.head.raw_header("authorization") {
            return self.check_header(header);
        }
        let invalid = |_| ErrorReply::new(ErrorCode::InvalidUri);
        let path = match self.service {
            // Tokens for tables name their table.
            Service::Table => "".into(),
            Service::Queue | Service::Blob => {
                query_pairs(self.head.query).try_for_each(|pair| pair.map(drop)).map_err(invalid)?;
                decode_path(self.path.trim_start_matches('/')).map_err(invalid)?
            }
        };
        let (restype, snapshot) = (self.head.parameter("restype"), self.head.parameter("snapshot"));
        let resource = Resource::of(self.service, &path, restype.as_deref(), snapshot.as_deref());
        match SasToken::parse(self.head.query, resource)? {
            Some(token) if policies == Policies::Recent => {
                match Box::pin(self.check_token(&token, Policies::Recent)).await {
                    Err(_) if token.policy_id().is_some() => Box::pin(self.check_token(&token, Policies::Now)).await,
                    checked => checked,
                }
            }
            Some(token) => Box::pin(self.check_token(&token, Policies::Now)).await,
            // Blobs may be public; whether this one is, its handler finds out.
            None if self.service == Service::Blob => Ok(Caller::Anonymous),
            None => Err(ErrorReply::new(ErrorCode::NoAuthenticationInformation)),
        }
    }

    /// The keys whose signatures count. The well-known key is public, so at the console it may not count for a client of
    /// another machine.
    fn keys(&self) -> Cow<'_, [AccountKey]> {
        let keys = &self.account.keys;
        match self.peer.entrance {
            Entrance::Console { counts_well_known_key: false } => {
                keys.iter().filter(|key| !key.is_well_known()).cloned().collect()
            }
            Entrance::Port | Entrance::Console { counts_well_known_key: true } => Cow::Borrowed(keys),
        }
    }

    async fn check_token(&self, token: &SasToken<'_>, policies: Policies) -> Result<Caller, ErrorReply> {
        let Self { storage, service, account, peer, now, .. } = *self;
        // Versions are dates, so that they compare as texts.
        if let Some(oldest) = storage.settings.sas_version_min.as_deref().filter(|oldest| token.version() < *oldest) {
            let detail =
                format!("expected a shared access signature with sv {oldest} or later, not {}", token.version());
            let refused = ErrorReply::new(ErrorCode::AuthenticationFailed);
            return Err(refused.with_detail("AuthenticationErrorDetail", &detail));
        }
        let policy = match token.policy_id() {
            Some((name, id)) => stored_policy(storage, service, &account.name, (name, id), policies).await?,
            None => None,
        };
        let circumstances = Circumstances {
            account: &account.name,
            keys: &self.keys(),
            service,
            now,
            peer: peer.address.ip(),
            secure: peer.is_tls,
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

    fn check_header(&self, header: &str) -> Result<Caller, ErrorReply> {
        let Self { service, account, head, now, .. } = *self;
        match Authorization::parse(header)? {
            Authorization::Signed(signed) => {
                signature::verify(service, &signed, &account.name, &self.keys(), head, now).map_err(|error| {
                    let text = || signature::string_to_sign(service, signed.scheme, &account.name, head);
                    mismatch(error, || text().unwrap_or_default())
                })?;
                Ok(Caller::Owner)
            }
            // Tokens of Entra ID are not served; before 2020-12-06 the Table service had none.
            Authorization::Bearer(_) if service != Service::Table || is_since(head, "2020-12-06") => {
                Err(ErrorReply::new(ErrorCode::InvalidAuthenticationInfo).with_status(401))
            }
            Authorization::Bearer(_) => Err(ErrorReply::new(ErrorCode::AuthenticationFailed)),
        }
    }
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
