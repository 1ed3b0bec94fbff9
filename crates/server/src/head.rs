//! The head of a request as hyper parsed it becomes ours.

use crate::spelling::Spellings;
use hyper::http::request::Parts;
use larimar_wire::request_head::RequestHead;
use larimar_wire::uri::query_pairs;

/// Collects the head of a request. Names of metadata are as the client spelt them.
pub(crate) fn collect<'a>(parts: &'a Parts, spellings: Option<&'a Spellings>) -> RequestHead<'a> {
    let spell = |name: &'a str| spellings.map_or(name, |spellings| spellings.spell(name));
    let headers = parts.headers.iter().map(|(name, value)| (spell(name.as_str()), value));
    let (uri, authority) = (&parts.uri, parts.uri.authority().map(|authority| authority.as_str()));
    RequestHead::new(parts.method.as_str(), uri.path(), uri.query().unwrap_or(""), headers).with_authority(authority)
}

/// What the query asks for, for the log: the parameters that choose an operation, and the names of options. Nothing that
/// could be secret.
pub(crate) fn outline(query: &str) -> String {
    let mut outline = String::new();
    for pair in query_pairs(query).flatten().take(OUTLINE_PARAMETERS_MAX) {
        let is_option = pair.name.starts_with('$');
        let value = match &*pair.name {
            "comp" | "restype" => pair.raw_value,
            _ if is_option => "",
            _ => continue,
        };
        if !outline.is_empty() {
            outline.push('&');
        }
        outline.extend(pair.name.chars().take(OUTLINE_CHARS_MAX));
        if !is_option {
            outline.push('=');
            outline.extend(value.chars().take(OUTLINE_CHARS_MAX));
        }
    }
    if outline.is_empty() { "unknown".to_owned() } else { outline }
}

/// Parameters, and characters of each, that a line of the log shows.
const OUTLINE_PARAMETERS_MAX: usize = 16;
const OUTLINE_CHARS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outline_of_a_request_has_no_values_but_the_operation_s() {
        assert_eq!(outline("comp=undelete&sig=secret&se=2020&restype=container"), "comp=undelete&restype=container");
        assert_eq!(outline("$orderby=Name&%24skip=1&x=y"), "$orderby&$skip");
        assert_eq!(outline(""), "unknown");
        assert!(outline(&format!("comp={}&{}", "x".repeat(5000), "$a&".repeat(100))).len() < 200);
    }

    #[test]
    fn an_absolute_target_has_an_authority() {
        let request = hyper::Request::get("http://h:1/a?b=c").header("Host", "i").header("cookie", &b"\xfc"[..]);
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let head = collect(&parts, None);
        assert_eq!((head.method, head.authority, head.path, head.query), ("GET", Some("h:1"), "/a", "b=c"));
        assert!(head.headers().eq([("host", "i")]));
    }
}
