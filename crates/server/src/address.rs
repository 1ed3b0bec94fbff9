//! The account that a request addresses, and the path below that account.

use larimar_wire::sas::Service;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    /// The account's name, without `-secondary`.
    pub(crate) account: &'a str,
    /// Whether the read-only secondary is addressed.
    pub(crate) is_secondary: bool,
    /// The path below the account, still escaped.
    pub(crate) path: &'a str,
    /// The first segment of the path, when it names the account.
    pub(crate) prefix: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Reads an address. Host style needs a host below one of the suffixes, or one that reads
    /// `{account}.{service}.…` for an account that is known; anything else is path style.
    pub(crate) fn parse(
        host: &'a str,
        path: &'a str,
        service: Service,
        suffixes: &[String],
        is_known: impl Fn(&str) -> bool,
    ) -> Self {
        if let Some(label) = host_label(host, service, suffixes, is_known) {
            let (account, is_secondary) = split_host_secondary(label);
            return Address { account, is_secondary, path, prefix: None };
        }
        let trimmed = path.trim_start_matches('/');
        let (segment, rest) = match trimmed.find('/') {
            Some(slash) => trimmed.split_at(slash),
            None => (trimmed, ""),
        };
        let (account, is_secondary) = split_secondary(segment);
        Address { account, is_secondary, path: rest, prefix: Some(segment) }
    }
}

/// The URL of an account, as the client spells it.
pub(crate) fn base_url(is_tls: bool, host: &str, prefix: Option<&str>) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    match prefix {
        Some(prefix) => format!("{scheme}://{host}/{prefix}"),
        None => format!("{scheme}://{host}"),
    }
}

/// Which account a host names by itself, with `-secondary` if it has that.
pub(crate) fn host_label<'a>(
    host: &'a str,
    service: Service,
    suffixes: &[String],
    is_known: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let (label, rest) = name.split_once('.')?;
    let is_below_suffix = suffixes.iter().any(|suffix| rest.eq_ignore_ascii_case(suffix));
    let (first, _) = rest.split_once('.')?;
    let is_host_of_service = first.eq_ignore_ascii_case(service.name());
    (is_below_suffix || is_host_of_service && is_known(split_host_secondary(label).0)).then_some(label)
}

/// An account's name, and whether its secondary is named.
pub(crate) fn split_secondary(name: &str) -> (&str, bool) {
    match name.strip_suffix("-secondary") {
        Some(primary) => (primary, true),
        None => (name, false),
    }
}

/// As [`split_secondary`], for the first label of a host name, which has no case.
pub(crate) fn split_host_secondary(label: &str) -> (&str, bool) {
    let end = label.len().saturating_sub("-secondary".len());
    match label.split_at_checked(end) {
        Some((primary, suffix)) if suffix.eq_ignore_ascii_case("-secondary") => (primary, true),
        _ => (label, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_in_the_path_or_the_host() {
        let suffixes = ["tables.example.com".to_owned()];
        for (host, path, account, is_secondary, below) in [
            ("127.0.0.1:10002", "/acct/Tables", "acct", false, "/Tables"),
            ("localhost:10002", "/acct", "acct", false, ""),
            ("localhost", "//acct//T()", "acct", false, "//T()"),
            ("azurite:10002", "/acct-secondary/", "acct", true, "/"),
            ("[::1]:10002", "/acct/T", "acct", false, "/T"),
            ("acct.table.core.windows.net", "/T", "acct", false, "/T"),
            ("acct-secondary.table.local:10002", "/", "acct", true, "/"),
            ("acct-Secondary.TABLE.local:10002", "/", "acct", true, "/"),
            ("other.tables.example.com:443", "/T", "other", false, "/T"),
            ("my.host.example.com", "/acct/T", "acct", false, "/T"),
            ("unknown.table.local", "/acct/T", "acct", false, "/T"),
        ] {
            let address = Address::parse(host, path, Service::Table, &suffixes, |name| name == "acct");
            assert_eq!(
                (address.account, address.is_secondary, address.path),
                (account, is_secondary, below),
                "{host}{path}"
            );
        }
    }
}
