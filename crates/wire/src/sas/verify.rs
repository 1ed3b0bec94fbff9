//! The checks of a token that do not depend on the operation, in the service's order: signature, time,
//! address, protocol, service.

use super::{
    BlobSasScope, Grant, KeyLimits, Permissions, ResourceType, SasError, SasFields, SasKind, SasToken, Scope, TableSas,
};
use crate::acl::AccessPolicy;
use crate::signature::{AccountKey, Mac};
use larimar_model::{Service, Timestamp};
use std::net::IpAddr;

/// What a token is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The account that the request addresses.
    pub account: &'a str,
    /// That account's keys.
    pub keys: &'a [AccountKey],
    /// The service that the request came to.
    pub service: Service,
    /// The time.
    pub now: Timestamp,
    /// Where the request comes from.
    pub peer: IpAddr,
    /// Whether it came over TLS.
    pub secure: bool,
}

impl SasToken<'_> {
    /// Checks the token. `policy` is the stored policy that [`SasToken::policy_id`] names, if the table,
    /// queue or container has it.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn verify(&self, circumstances: &Circumstances<'_>, policy: Option<&AccessPolicy>) -> Result<Grant, SasError> {
        self.check_signature(circumstances)?;
        let fields = &self.fields;
        let policy = match (self.policy_id(), policy) {
            (None, _) => AccessPolicy::default(),
            (Some(_), Some(policy)) => *policy,
            (Some(_), None) => return Err(SasError::PolicyUnknown),
        };
        let permissions = fields.permissions.as_deref();
        let permissions = permissions.map(|text| Permissions::parse(text).ok_or(SasError::Malformed("sp")));
        let permissions = merge("sp", permissions.transpose()?, policy.permissions)?.ok_or(SasError::Missing("sp"))?;
        fields.check_time(&policy, circumstances.now)?;
        fields.check_ip(circumstances.peer)?;
        fields.check_protocol(circumstances.secure)?;
        let scope = fields.scope(circumstances.service)?;
        let overrides = match &fields.kind {
            // What is not signed may have been added by anybody.
            SasKind::Blob(blob) if fields.is_since(super::RESPONSE_OVERRIDES) => blob.overrides(),
            SasKind::Blob(_) | SasKind::Table(_) | SasKind::Queue(_) | SasKind::Account(_) => None,
        };
        Ok(Grant { permissions, scope, overrides, hides_refusals: !fields.is_since(super::IP_AND_PROTOCOL) })
    }

    fn check_signature(&self, circumstances: &Circumstances<'_>) -> Result<(), SasError> {
        // A plus that was not escaped has been read as a space, and base64 has no spaces.
        let claimed = Mac::from_base64(&self.signature.replace(' ', "+")).ok_or(SasError::Signature)?;
        let text = self.fields.string_to_sign(circumstances.account);
        if circumstances.keys.iter().any(|key| key.mac_of(&text).equals(&claimed)) {
            Ok(())
        } else {
            Err(SasError::Signature)
        }
    }
}

impl SasFields<'_> {
    fn check_time(&self, policy: &AccessPolicy, now: Timestamp) -> Result<(), SasError> {
        let time = |name, text: Option<&str>| {
            text.map(|text| Timestamp::parse(text).map_err(|_| SasError::Malformed(name))).transpose()
        };
        let start = merge("st", time("st", self.start.as_deref())?, policy.start)?;
        let expiry = merge("se", time("se", self.expiry.as_deref())?, policy.expiry)?.ok_or(SasError::Missing("se"))?;
        if start.is_some_and(|start| now < start) {
            return Err(SasError::NotYetValid);
        }
        if now >= expiry { Err(SasError::Expired) } else { Ok(()) }
    }

    fn check_ip(&self, peer: IpAddr) -> Result<(), SasError> {
        let Some(text) = self.ip.as_deref() else { return Ok(()) };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let address = |text: &str| {
            text.trim().parse().map(|ip: IpAddr| ip.to_canonical()).map_err(|_| SasError::Malformed("sip"))
        };
        let (first, last, peer) = (address(first)?, address(last)?, peer.to_canonical());
        // Addresses of the two families never compare: one is not within a range of the other.
        let same_family = first.is_ipv4() == last.is_ipv4();
        if !same_family || first > last {
            return Err(SasError::Malformed("sip"));
        }
        if peer.is_ipv4() == first.is_ipv4() && (first..=last).contains(&peer) {
            Ok(())
        } else {
            Err(SasError::SourceIp(peer))
        }
    }

    fn check_protocol(&self, secure: bool) -> Result<(), SasError> {
        match self.protocol.as_deref() {
            None | Some("https,http" | "http,https") => Ok(()),
            Some("https") if secure => Ok(()),
            Some("https") => Err(SasError::Protocol),
            Some(_) => Err(SasError::Malformed("spr")),
        }
    }

    fn scope(&self, service: Service) -> Result<Scope, SasError> {
        match &self.kind {
            SasKind::Table(_) if service != Service::Table => Err(SasError::Service),
            SasKind::Queue(_) if service != Service::Queue => Err(SasError::Service),
            SasKind::Blob(_) if service != Service::Blob => Err(SasError::Service),
            SasKind::Queue(queue) => Ok(Scope::Queue { queue: queue.queue.to_string() }),
            SasKind::Blob(fields) => {
                let container = fields.container.to_string();
                Ok(match &fields.scope {
                    BlobSasScope::Container => Scope::Container { container },
                    BlobSasScope::Blob(blob) => Scope::Blob { container, blob: named(blob), snapshot: None },
                    BlobSasScope::Snapshot { blob, snapshot } => {
                        Scope::Blob { container, blob: named(blob), snapshot: Some(snapshot.to_string()) }
                    }
                })
            }
            SasKind::Table(table) => {
                Ok(Scope::Table { table: table.table.to_ascii_lowercase(), keys: table.key_limits()? })
            }
            SasKind::Account(fields) => {
                let services = Permissions::parse_strict(&fields.services, "bqtf").ok_or(SasError::Malformed("ss"))?;
                let types =
                    Permissions::parse_strict(&fields.resource_types, "sco").ok_or(SasError::Malformed("srt"))?;
                if !services.contains(service_letter(service)) {
                    return Err(SasError::Service);
                }
                let all = [ResourceType::Service, ResourceType::Container, ResourceType::Object];
                Ok(Scope::Account { types: all.into_iter().filter(|kind| types.contains(kind.letter())).collect() })
            }
        }
    }
}

impl TableSas<'_> {
    fn key_limits(&self) -> Result<KeyLimits, SasError> {
        if self.start_row.is_some() && self.start_partition.is_none() {
            return Err(SasError::Malformed("srk"));
        }
        if self.end_row.is_some() && self.end_partition.is_none() {
            return Err(SasError::Malformed("erk"));
        }
        let owned = |field: &Option<std::borrow::Cow<'_, str>>| field.as_deref().map(str::to_owned);
        Ok(KeyLimits {
            start_partition: owned(&self.start_partition),
            start_row: owned(&self.start_row),
            end_partition: owned(&self.end_partition),
            end_row: owned(&self.end_row),
        })
    }
}

/// The letter of a service in the field `ss` of an account token.
const fn service_letter(service: Service) -> u8 {
    match service {
        Service::Blob => b'b',
        Service::Queue => b'q',
        Service::Table => b't',
    }
}

/// A field comes from the token or from its policy; in both, it would be unclear which one rules.
fn merge<T>(name: &'static str, token: Option<T>, policy: Option<T>) -> Result<Option<T>, SasError> {
    match (token, policy) {
        (Some(_), Some(_)) => Err(SasError::PolicyOverlap(name)),
        (token, policy) => Ok(token.or(policy)),
    }
}

/// The blob that a name stands for: a `\` is a `/`, as in addresses.
fn named(blob: &str) -> String {
    blob.replace('\\', "/")
}
