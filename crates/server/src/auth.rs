//! Who a request comes from: an owner of the account's key, or the holder of a shared access signature.
//!
//! The strings to sign and the checks are in `wire`; here they meet the accounts, the clock and the stored
//! policies.

use crate::error;
use crate::service::TableService;
use crate::settings::Account;
use larimar_engine::table::find_table;
use larimar_engine::{Engine, EngineError, KeyRange, Reject};
use larimar_model::{EntityKey, Timestamp};
use larimar_wire::acl::{self, AccessPolicy};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::{Circumstances, Grant, Need, SasToken, Service};
use larimar_wire::signature::{self, Authorization, SignedRequest};
use std::net::IpAddr;

/// Whom a request comes from.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// Somebody with the account's key.
    Owner,
    /// Somebody with a signature that allows some things.
    Guest(Grant),
}

/// What of a request tells who sent it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credentials<'a> {
    pub(crate) authorization: Option<&'a str>,
    pub(crate) query: &'a str,
    pub(crate) signed: SignedRequest<'a>,
    pub(crate) version: Option<&'a str>,
    pub(crate) peer: IpAddr,
    pub(crate) is_tls: bool,
    pub(crate) now: Timestamp,
}

impl Caller {
    /// Checks that the caller may do this.
    pub(crate) fn permits(&self, need: &Need<'_>) -> Result<(), ErrorReply> {
        match self {
            Self::Owner => Ok(()),
            Self::Guest(grant) => grant.permits(need).map_err(ErrorReply::from),
        }
    }

    /// Checks that the caller may touch this entity.
    pub(crate) fn permits_key(&self, key: &EntityKey) -> Result<(), ErrorReply> {
        match self {
            Self::Owner => Ok(()),
            Self::Guest(grant) => grant.permits_key(key.partition.as_str(), key.row.as_str()).map_err(ErrorReply::from),
        }
    }

    /// The rows that the caller may see, if not all.
    pub(crate) fn visible_range(&self) -> Option<KeyRange> {
        match self {
            Self::Owner => None,
            Self::Guest(grant) => {
                let keys = grant.keys().filter(|keys| !keys.is_unlimited())?;
                Some(KeyRange::between(keys.lower(), keys.upper()))
            }
        }
    }
}

impl<E: Engine> TableService<E> {
    /// Finds out who sent a request.
    pub(crate) async fn authenticate(
        &self,
        account: &Account,
        credentials: &Credentials<'_>,
    ) -> Result<Caller, ErrorReply> {
        if let Some(header) = credentials.authorization {
            return check_header(header, account, credentials);
        }
        match SasToken::parse(credentials.query)? {
            Some(token) => Box::pin(self.check_token(&token, account, credentials)).await,
            None => Err(ErrorReply::new(ErrorCode::NoAuthenticationInformation)),
        }
    }

    async fn check_token(
        &self,
        token: &SasToken<'_>,
        account: &Account,
        credentials: &Credentials<'_>,
    ) -> Result<Caller, ErrorReply> {
        let policy = match token.policy_id() {
            Some((table, id)) => self.stored_policy(&account.name, table, id).await?,
            None => None,
        };
        let circumstances = Circumstances {
            account: &account.name,
            keys: &account.keys,
            service: Service::Table,
            now: credentials.now,
            peer: credentials.peer,
            secure: credentials.is_tls,
        };
        token.verify(&circumstances, policy.as_ref()).map(Caller::Guest).map_err(ErrorReply::from)
    }

    /// The stored policy that a token names; none if the table or the policy is gone.
    async fn stored_policy(&self, account: &str, table: &str, id: &str) -> Result<Option<AccessPolicy>, ErrorReply> {
        let Ok(name) = table.parse() else { return Ok(None) };
        match find_table(&*self.engine, account, &name).await {
            Ok(table) => Ok(acl::parse(table.acl.as_bytes()).ok().and_then(|list| acl::find(&list, id).copied())),
            Err(EngineError::Reject(Reject::TableNotFound)) => Ok(None),
            Err(other) => Err(error::engine_error(&other)),
        }
    }
}

fn check_header(header: &str, account: &Account, credentials: &Credentials<'_>) -> Result<Caller, ErrorReply> {
    match Authorization::parse(header)? {
        Authorization::Signed(signed) => {
            signature::verify(&signed, &account.name, &account.keys, &credentials.signed, credentials.now)?;
            Ok(Caller::Owner)
        }
        // Tokens of Entra ID are not served; before 2020-12-06 the Table service had none.
        Authorization::Bearer(_) if credentials.version.is_some_and(|version| version >= "2020-12-06") => {
            Err(ErrorReply::new(ErrorCode::InvalidAuthenticationInfo).with_status(401))
        }
        Authorization::Bearer(_) => Err(ErrorReply::new(ErrorCode::AuthenticationFailed)),
    }
}
