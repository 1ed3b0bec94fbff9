//! The targets of the Queue and Blob services: requests with their headers, bodies, batches, markers, signatures.

use super::NOW;
use crate::http::{ACCOUNT, KEY};
use larimar_model::Guid;
use larimar_model::blob::{TagCondition, TagQuery, Tags};
use larimar_wire::blob::{
    self, BlobAddress, BlobRequest, ListMarker, parse_block_list, parse_tags, write_block_list, write_tags,
};
use larimar_wire::operation::Operation as _;
use larimar_wire::queue::{MessageXml, QueueOperation, parse_message, parse_message_update, write_messages};
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::{Circumstances, SasError, SasToken, Service};
use larimar_wire::signature::{self, AccountKey, Authorization, Scheme, SignatureError};
use larimar_wire::xml::Element;
use larimar_wire::{marker, uri};
use std::net::{IpAddr, Ipv4Addr};

const METHODS: [&str; 6] = ["GET", "HEAD", "PUT", "POST", "DELETE", "BREW"];

/// The lines of an input: a path, a query, and headers with a colon between name and value.
fn request(text: &str) -> (&str, &str, Vec<(&str, &str)>) {
    let mut lines = text.split('\n');
    let (path, query) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    (path, query, lines.filter_map(|line| line.split_once(':')).collect())
}

/// A request to the Queue service: whatever is read has a name.
pub fn queue_request(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (path, query, headers) = request(text);
    for method in METHODS {
        let head = RequestHead::new(method, path, query, headers.iter().copied());
        if let Ok(operation) = QueueOperation::parse(&head, path) {
            assert!(!operation.facts().name.is_empty());
        }
    }
}

/// The body of a message: a text that is accepted comes back as it was.
pub fn queue_message(data: &[u8]) {
    let update = parse_message_update(data);
    let Ok(text) = parse_message(data) else { return };
    assert_eq!(update.ok().flatten().as_deref(), Some(&*text), "an update reads the same text");
    let id = Guid::parse("5974b586-0df3-4e2d-ad0c-18e3892bfca2").expect("a Guid");
    let message = MessageXml { id, inserted: NOW, expires: None, receipt: None, content: Some((1, &text)) };
    let mut out = Vec::new();
    write_messages(&mut out, [message]);
    let list = Element::parse(&out).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)));
    let listed = list.children[0].children.iter().find(|child| child.name == "MessageText").expect("a text");
    assert_eq!(listed.text, text);
}

/// A request to the Blob service with its headers: what is read addresses what its path does.
pub fn blob_request(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (path, query, headers) = request(text);
    for method in METHODS {
        let head = RequestHead::new(method, path, query, headers.iter().copied());
        let Ok(request) = BlobRequest::parse(&head, path) else { continue };
        assert!(!request.facts().name.is_empty());
        assert!(BlobAddress::of(&head, path).is_ok());
    }
}

/// A list of blocks: each block that was read is listed as it was.
pub fn block_list(data: &[u8]) {
    let Ok(list) = parse_block_list(data) else { return };
    let blocks = || list.iter().map(|entry| blob::ListedBlock { id: entry.id(), size: 1 });
    let mut out = Vec::new();
    write_block_list(&mut out, larimar_model::blob::BlockListKind::All, blocks(), []);
    let root = Element::parse_up_to(&out, 4 * list.len() + 4).expect("XML");
    let listed: Vec<&str> = root.children[0].children.iter().map(|block| block.children[0].text.as_str()).collect();
    let read: Vec<&str> = list.iter().map(|entry| entry.id().as_str()).collect();
    assert_eq!(listed, read);
}

/// Tags as XML: what is accepted is written and reads back equal.
pub fn tags(data: &[u8]) {
    let Ok(tags) = parse_tags(data) else { return };
    let mut out = Vec::new();
    write_tags(&mut out, &tags);
    assert_eq!(parse_tags(&out).ok(), Some(tags), "{}", String::from_utf8_lossy(&out));
}

/// A blob batch, and each request inside.
pub fn blob_batch(data: &[u8]) {
    for content_type in ["multipart/mixed; boundary=b", "multipart/mixed; boundary=\"batch_1\""] {
        let Ok(requests) = blob::batch::parse(content_type, data) else { continue };
        assert!((1..=blob::batch::BATCH_REQUESTS_MAX).contains(&requests.len()));
        for request in requests {
            let _ = (request.has_valid_url(), request.head.check());
            let _ = BlobRequest::parse(&request.head, request.head.path);
        }
    }
}

/// A marker of a listing: what decodes encodes to the same.
pub fn list_marker(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert_eq!(marker::decode(&marker::encode(text)).ok().as_deref(), Some(text));
    if let Ok(place) = marker::decode(text) {
        assert_eq!(marker::encode(&place), text);
    }
    if let Ok(place) = ListMarker::decode(text) {
        assert_eq!(ListMarker::decode(&place.encode()).ok(), Some(place));
    }
}

/// A request to the Queue or Blob service whose first header is `Authorization`: one that was made up does not
/// verify, and neither does a token in its query; one that the key makes does.
pub fn storage_signature(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (path, query, mut headers) = request(text);
    let key = AccountKey::from_base64(KEY).expect("the well-known key");
    let keys = std::slice::from_ref(&key);
    let circumstances = Circumstances {
        account: ACCOUNT,
        keys,
        service: Service::Blob,
        now: NOW,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        secure: true,
    };
    if let Ok(address) = BlobAddress::parse(path, false)
        && let Ok(Some(token)) = SasToken::parse(query, address.resource(None))
    {
        let verified = token.verify(&circumstances, None);
        assert_eq!(verified.err(), Some(SasError::Signature), "{query}");
    }
    let date = signature::http_date(NOW);
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("x-ms-date"));
    headers.push(("x-ms-date", &date));
    let head = RequestHead::new("PUT", path, query, headers.iter().copied());
    if signature::sign(Service::Blob, Scheme::SharedKey, ACCOUNT, &key, &head) == Err(SignatureError::HeaderTwice) {
        return;
    }
    let verify = |header: &str| match Authorization::parse(header) {
        Ok(Authorization::Signed(credentials)) => {
            signature::verify(Service::Blob, &credentials, ACCOUNT, keys, &head, NOW).is_ok()
        }
        Ok(Authorization::Bearer(_)) | Err(_) => false,
    };
    assert!(!headers.iter().any(|(_, value)| verify(value)), "{text}");
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        match signature::sign(Service::Blob, scheme, ACCOUNT, &key, &head) {
            Ok(header) => assert!(verify(&header), "{text}"),
            Err(_) => assert!(uri::query_pairs(query).any(|pair| pair.and_then(|pair| pair.value()).is_err())),
        }
    }
}

/// Conditions on tags and searches for them: what both accept means the same, and a query has comparisons to look up.
pub fn tag_filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (condition, query) = (TagCondition::parse(text), TagQuery::parse(text));
    let mut found = Tags::new();
    found.insert("a", "1").expect("a tag");
    if let Ok(query) = &query {
        assert!(!query.comparisons.is_empty(), "{text:?}");
        for comparison in &query.comparisons {
            let _ = found.insert(&comparison.key, &comparison.value);
        }
    }
    if let (Ok(condition), Ok(query)) = (&condition, &query) {
        assert_eq!(condition.admits(&found), query.admits(&found), "{text:?}");
    }
}
