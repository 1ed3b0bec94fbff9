//! Metadata: pairs that travel as headers.

use crate::pipeline::Call;
use crate::{Error, Result};
use http::{HeaderMap, HeaderName};
use larimar_model::Metadata;
use std::collections::BTreeMap;

const PREFIX: &str = "x-ms-meta-";

/// The pairs as the service keeps them, names in lower case, if it would take them.
pub(crate) fn checked(pairs: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let mut known = Metadata::new();
    let mut lowered = BTreeMap::new();
    for (name, value) in pairs {
        known.insert(name, value).map_err(|error| Error::Invalid(format!("metadata '{name}': {error}")))?;
        if value.trim() != value {
            // White space around the value of a header is not part of it.
            return Err(Error::Invalid(format!("metadata '{name}': expected no white space around the value")));
        }
        lowered.insert(name.to_ascii_lowercase(), value.clone());
    }
    Ok(lowered)
}

/// The call with these pairs, which were checked.
pub(crate) fn put_on(mut call: Call, pairs: &BTreeMap<String, String>) -> Result<Call> {
    for (name, value) in pairs {
        let header = HeaderName::from_bytes([PREFIX, name].concat().as_bytes());
        let header = header.map_err(|_| Error::Invalid(format!("metadata '{name}': no name of a header")))?;
        call = call.header_text(header, value)?;
    }
    Ok(call)
}

/// The pairs of an answer.
pub(crate) fn read(headers: &HeaderMap) -> BTreeMap<String, String> {
    let pairs = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(PREFIX)?;
        Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, value: &str) -> bool {
        checked(&BTreeMap::from([(name.to_owned(), value.to_owned())])).is_err()
    }

    #[test]
    fn x2_metadata_that_would_change_on_its_way_is_refused() {
        for (name, value) in [("a-b", "c"), ("1a", "c"), ("", "c"), ("a", "ü"), ("a", "b\r\nc: d"), ("a", " b")] {
            assert!(refused(name, value), "{name}: {value}");
        }
        assert!(!refused("First_Entry2", "a \"b\" <c>"));
        let twice = [("a", "1"), ("A", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert!(checked(&BTreeMap::from(twice)).is_err());
    }
}
