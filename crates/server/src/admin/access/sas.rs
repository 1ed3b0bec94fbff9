//! Shared access signatures at the admin endpoint: only those for a whole account, and only for `/insights`, `/advice`,
//! `/advice/dismissals`, `/requests` and `/design`.

use super::{AdminCaller, counts};
use crate::admin::AdminSettings;
use crate::handler::Peer;
use crate::storage::Storage;
use hyper::Method;
use hyper::http::request::Parts;
use larimar_engine::Engine;
use larimar_wire::sas::{Circumstances, Letters, Need, Resource, ResourceType, SasToken, Service, Target};
use larimar_wire::signature::AccountKey;
use larimar_wire::uri::query_pairs;

/// The account of a signature in the query, if it holds for the account that the query names, for its tables, and for reading
/// and listing entities, or for writing or deleting them, as the method is.
pub(super) fn owner<E: Engine>(
    storage: &Storage<E>,
    settings: &AdminSettings,
    parts: &Parts,
    peer: Peer,
) -> Option<AdminCaller> {
    let letters = match parts.method {
        Method::PUT => "w",
        Method::DELETE => "d",
        _ => "rl",
    };
    permitted(storage, settings, parts, peer, (Service::Table, letters)).map(AdminCaller::Owner)
}

/// The account of a signature in the query, if it holds for the account that the query names, for all objects of a service,
/// and for all of these letters.
pub(super) fn permitted<E: Engine>(
    storage: &Storage<E>,
    settings: &AdminSettings,
    parts: &Parts,
    peer: Peer,
    (service, letters): (Service, &'static str),
) -> Option<String> {
    let query = parts.uri.query().unwrap_or("");
    let mut named = query_pairs(query).filter_map(Result::ok).filter(|pair| pair.name == "account");
    let account = named.next()?.value().ok()?.into_owned();
    let served = storage.account(&account)?;
    let token = SasToken::parse(query, Resource::of(service, "", None, None)).ok()??;
    if storage.settings.sas_version_min.as_deref().is_some_and(|oldest| token.version() < oldest) {
        return None;
    }
    // A signature for one table does not cover the account.
    let need = Need { types: &[ResourceType::Object], letters: Letters::All(letters), target: Target::Account };
    let (now, peer_ip) = (storage.clock.now(), peer.address.ip());
    let is_by = |keys: &[AccountKey]| {
        let checked = Circumstances { account: &account, keys, service, now, peer: peer_ip, secure: peer.is_tls };
        token.verify(&checked, None).is_ok_and(|grant| grant.permits(&need).is_ok())
    };
    (is_by(&served.account.keys) && counts(settings, peer, is_by)).then_some(account)
}
