//! The host that a request addresses.

use super::RequestHead;
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::uri::is_unreserved;
use larimar_model::limits;

impl<'a> RequestHead<'a> {
    /// The host that the client addresses. It becomes part of links in responses, so it is bounded, and two different
    /// hosts are refused.
    ///
    /// # Errors
    /// No host, more than one, or one that is too long or has other characters than a host.
    pub fn checked_host(&self) -> Result<&'a str, ErrorReply> {
        let host = self.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| ErrorReply::new(ErrorCode::HostInformationNotPresent))?;
        // A proxy may have used the other one.
        let is_same = self.authority.is_none_or(|authority| is_same_host(authority, host));
        let is_single = self.raw_headers("host").nth(1).is_none();
        if !is_single || !is_same || host.len() > limits::HOST_BYTES_MAX || !host.bytes().all(is_host_byte) {
            return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "Host", host));
        }
        Ok(host)
    }

    /// The host that the client addresses, not checked.
    #[must_use]
    pub fn host(&self) -> Option<&'a str> {
        self.raw_header("host").or(self.authority)
    }
}

/// Whether two hosts are the same, with or without the default port of HTTP and HTTPS.
fn is_same_host(one: &str, other: &str) -> bool {
    let without_port = |host| ["80", "443"].iter().find_map(|port| strip_port(host, port)).unwrap_or(host);
    one.eq_ignore_ascii_case(other) || without_port(one).eq_ignore_ascii_case(without_port(other))
}

fn strip_port<'a>(host: &'a str, port: &str) -> Option<&'a str> {
    host.strip_suffix(port)?.strip_suffix(':')
}

/// Whether RFC 3986 allows a byte in a host with a port.
const fn is_host_byte(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(
            byte,
            b'%' | b':' | b'[' | b']' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
        )
}
