//! Who may send an admin request: the holder of the admin token, or of an account's key; for `/insights`, `/advice`,
//! `/advice/dismissals`, `/requests` and `/design` also of a shared access signature for the account (`access/sas.rs`).
//!
//! A web page that a user of this machine visits must not reach the endpoint. Its requests carry its own `Origin`, and a
//! page whose name was made to resolve to this machine (DNS rebinding) sends its own name as `Host`; both are refused
//! before the credentials are read. Neither can send the `Authorization` header without a preflight, which is refused too.

mod sas;

use super::AdminSettings;
use crate::handler::Peer;
use crate::head;
use crate::storage::Storage;
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use larimar_engine::Engine;
use larimar_wire::sas::Service;
use larimar_wire::signature::{self, AccountKey, Authorization, Credentials, DEVELOPMENT_KEY};
use std::net::IpAddr;

/// Who sent an admin request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AdminCaller {
    /// The holder of the admin token: may do everything.
    Operator,
    /// The holder of a key of this account: may do what concerns this account alone.
    Owner(String),
    /// The holder of a shared access signature for these services of this account: may watch their requests.
    Guest(String, Vec<Service>),
}

impl AdminCaller {
    /// Whether the caller may see that there is an account. To the holder of an account's key, other accounts do not exist.
    pub(super) fn sees<E: Engine>(&self, storage: &Storage<E>, account: &str) -> bool {
        match self {
            Self::Operator => storage.is_known(account),
            Self::Owner(own) | Self::Guest(own, _) => own == account,
        }
    }
}

/// A request that is refused: the status, and a line for the user.
pub(super) type Refusal = (StatusCode, &'static str);

/// Finds out who sent a request.
pub(super) fn check<E: Engine>(
    storage: &Storage<E>,
    settings: &AdminSettings,
    parts: &Parts,
    peer: Peer,
) -> Result<AdminCaller, Refusal> {
    check_origin(settings, parts, peer)?;
    let unknown = (StatusCode::UNAUTHORIZED, UNAUTHORIZED);
    let header = match single(parts, AUTHORIZATION) {
        Ok(None) if is_open_to_signatures(parts.uri.path()) => {
            return sas::owner(storage, settings, parts, peer).ok_or(unknown);
        }
        Ok(None) if parts.uri.path() == "/requests" => {
            let services = [Service::Table, Service::Queue, Service::Blob].into_iter();
            let reads = |service| sas::permitted(storage, settings, parts, peer, (service, "rl"));
            let seen = services.filter_map(|service| reads(service).map(|account| (account, service)));
            let (accounts, services): (Vec<_>, Vec<_>) = seen.unzip();
            let account = accounts.into_iter().next().ok_or(unknown)?;
            return Ok(AdminCaller::Guest(account, services));
        }
        header => header.ok().flatten().ok_or(unknown)?,
    };
    let caller = match Authorization::parse(header) {
        Ok(Authorization::Bearer(text)) => {
            settings.token.as_ref().filter(|token| token.is(text)).map(|_| AdminCaller::Operator)
        }
        Ok(Authorization::Signed(signed)) if is_signed(storage, settings, parts, &signed, peer) => {
            Some(AdminCaller::Owner(signed.account.to_owned()))
        }
        _ => None,
    };
    caller.ok_or(unknown)
}

/// Whether a shared access signature for the account may open this; `/requests` has a rule of its own.
fn is_open_to_signatures(path: &str) -> bool {
    matches!(path, "/insights" | "/advice" | "/advice/dismissals" | "/design" | "/design/trial")
}

/// Refuses requests of web pages: a `Host` that is not the endpoint's, or an `Origin` that is not.
pub(super) fn check_origin(settings: &AdminSettings, parts: &Parts, peer: Peer) -> Result<(), Refusal> {
    let refused = (StatusCode::FORBIDDEN, FORBIDDEN_HOST);
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let host = single(parts, HOST).map_err(|()| refused)?.or(authority).ok_or(refused)?;
    if authority.is_some_and(|authority| authority != host) || !is_own_host(settings, host) {
        return Err(refused);
    }
    let scheme = if peer.is_tls { "https" } else { "http" };
    let is_own = |origin: &str| origin.eq_ignore_ascii_case(&format!("{scheme}://{host}"));
    match single(parts, ORIGIN) {
        Ok(None) => Ok(()),
        Ok(Some(origin)) if is_own(origin) => Ok(()),
        _ => Err((StatusCode::FORBIDDEN, FORBIDDEN_ORIGIN)),
    }
}

/// Whether a `Host` header, with or without a port, names this endpoint. The port may differ: a container's is mapped.
fn is_own_host(settings: &AdminSettings, host: &str) -> bool {
    let Some(name) = without_port(host) else { return false };
    match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        // A page cannot make its name look like an address, so a server on all addresses accepts each of them.
        Ok(address) => {
            let (address, bound) = (address.to_canonical(), settings.bound.ip().to_canonical());
            address.is_loopback() || address == bound || bound.is_unspecified()
        }
        Err(_) => {
            let is_named = |own: &String| own.eq_ignore_ascii_case(name);
            name.eq_ignore_ascii_case("localhost") || settings.names.iter().any(is_named)
        }
    }
}

/// Whether a `Host` header, with or without a port, is `localhost` or a loopback address.
pub(super) fn is_loopback_host(host: &str) -> bool {
    let Some(name) = without_port(host) else { return false };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or_else(|_| name.eq_ignore_ascii_case("localhost"), |address| address.to_canonical().is_loopback())
}

/// The name or address of a `Host` header; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> Option<&str> {
    let name_end = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(name_end);
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_valid = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    is_valid.then_some(name)
}

/// Whether a key of the account that is named signed the request. The text to sign is that of the Blob and Queue
/// services, which covers the query and all `x-ms-` headers.
fn is_signed<E: Engine>(
    storage: &Storage<E>,
    settings: &AdminSettings,
    parts: &Parts,
    signed: &Credentials<'_>,
    peer: Peer,
) -> bool {
    let Some(served) = storage.account(signed.account) else { return false };
    let (head, now) = (head::collect(parts, None), storage.clock.now());
    let is_by =
        |keys: &[AccountKey]| signature::verify(Service::Blob, signed, signed.account, keys, &head, now).is_ok();
    if !is_by(&served.account.keys) {
        return false;
    }
    counts(settings, peer, is_by)
}

/// Whether a signature proves something.
fn counts(settings: &AdminSettings, peer: Peer, is_by: impl Fn(&[AccountKey]) -> bool) -> bool {
    let well_known = AccountKey::from_base64(DEVELOPMENT_KEY).expect("the constant is Base64");
    counts_well_known_key(settings, peer) || !is_by(&[well_known])
}

/// Whether a signature with the well-known key proves something: it is public, so from another machine it does not.
pub(super) fn counts_well_known_key(settings: &AdminSettings, peer: Peer) -> bool {
    is_loopback(peer) || settings.allow_well_known_key
}

/// Whether a request came from this machine.
pub(super) fn is_loopback(peer: Peer) -> bool {
    peer.address.ip().to_canonical().is_loopback()
}

/// The text of a header that may be there once: an error if it is there twice or is no text.
pub(super) fn single(parts: &Parts, name: HeaderName) -> Result<Option<&str>, ()> {
    let mut values = parts.headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

const UNAUTHORIZED: &str = "expected the admin token (Authorization: Bearer TOKEN) or the key of an account \
                            (Authorization: SharedKey ACCOUNT:SIGNATURE)\n";
const FORBIDDEN_HOST: &str = "expected a Host header with localhost, an address of this server, or a name from the \
                              settings admin_host and admin_names\n";
const FORBIDDEN_ORIGIN: &str = "requests of web pages from other origins are refused\n";

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;
    use std::net::SocketAddr;

    fn settings(bound: &str) -> AdminSettings {
        let bound = bound.parse().expect("an address");
        AdminSettings { names: vec!["admin.example.com".to_owned()], ..AdminSettings::new(bound) }
    }

    #[test]
    fn hosts_are_loopback_the_bound_address_or_a_configured_name() {
        for (bound, host, expected) in [
            ("127.0.0.1:10003", "127.0.0.1:10003", true),
            ("127.0.0.1:10003", "127.0.0.1", true),
            ("127.0.0.1:10003", "127.5.6.7:1", true),
            ("127.0.0.1:10003", "localhost:10003", true),
            ("127.0.0.1:10003", "LOCALHOST", true),
            ("127.0.0.1:10003", "[::1]:10003", true),
            ("127.0.0.1:10003", "[::ffff:127.0.0.1]:10003", true),
            ("127.0.0.1:10003", "admin.example.com", true),
            ("127.0.0.1:10003", "Admin.Example.com:80", true),
            ("127.0.0.1:10003", "evil.example:10003", false),
            ("127.0.0.1:10003", "localhost.evil.example", false),
            ("127.0.0.1:10003", "127.0.0.1.evil.example", false),
            ("127.0.0.1:10003", "127.0.0.1@evil.example", false),
            ("127.0.0.1:10003", "localhost:10003:evil", false),
            ("127.0.0.1:10003", "localhost:evil", false),
            ("127.0.0.1:10003", "[::1]evil", false),
            ("127.0.0.1:10003", "[::1", false),
            ("127.0.0.1:10003", "", false),
            ("127.0.0.1:10003", "10.0.0.5:10003", false),
            ("10.0.0.5:10003", "10.0.0.5:10003", true),
            ("10.0.0.5:10003", "10.0.0.6:10003", false),
            ("0.0.0.0:10003", "10.0.0.6:10003", true),
            ("[::]:10003", "[2001:db8::1]:10003", true),
            ("0.0.0.0:10003", "pod.evil.example:10003", false),
        ] {
            assert_eq!(is_own_host(&settings(bound), host), expected, "{bound} {host}");
        }
    }

    #[test]
    fn origins_other_than_the_endpoint_s_own_are_refused() {
        for (is_tls, origins, expected) in [
            (false, vec![], true),
            (false, vec!["http://localhost:10003"], true),
            (true, vec!["https://localhost:10003"], true),
            (true, vec!["http://localhost:10003"], false),
            (false, vec!["https://localhost:10003"], false),
            (false, vec!["http://localhost:8080"], false),
            (false, vec!["http://127.0.0.1:10003"], false),
            (false, vec!["http://evil.example"], false),
            (false, vec!["null"], false),
            (false, vec![""], false),
            (false, vec!["http://localhost:10003", "http://localhost:10003"], false),
        ] {
            let request = Request::post("/reset").header("host", "localhost:10003");
            let request = origins.iter().fold(request, |request, origin| request.header("origin", *origin));
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            let peer = Peer::new(SocketAddr::from(([127, 0, 0, 1], 1)), is_tls);
            let checked = check_origin(&settings("127.0.0.1:10003"), &parts, peer);
            assert_eq!(checked.is_ok(), expected, "{is_tls} {origins:?}");
        }
    }

    #[test]
    fn requests_without_one_host_are_refused() {
        let peer = Peer::new(SocketAddr::from(([127, 0, 0, 1], 1)), false);
        for (target, hosts, expected) in [
            ("/reset", vec![], false),
            ("/reset", vec!["localhost", "localhost"], false),
            ("/reset", vec!["localhost", "evil.example"], false),
            ("http://localhost/reset", vec!["localhost"], true),
            ("http://evil.example/reset", vec!["localhost"], false),
            ("http://localhost/reset", vec!["evil.example"], false),
        ] {
            let request = hosts.iter().fold(Request::post(target), |request, host| request.header("host", *host));
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            let checked = check_origin(&settings("127.0.0.1:10003"), &parts, peer);
            assert_eq!(checked.is_ok(), expected, "{target} {hosts:?}");
        }
    }
}
