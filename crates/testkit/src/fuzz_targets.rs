//! What the fuzz targets in `fuzz/` run, also run as plain tests over their corpus (`tests/corpus.rs`).
//!
//! Each takes any bytes and panics where a parser does, or where what it accepted does not hold together: a filter
//! written anew means the same, an entity written as JSON reads back equal, no made-up signature verifies. Those of
//! the Queue and Blob services are in `fuzz_targets/storage.rs`.

mod storage;

pub use storage::{
    blob_batch, blob_request, block_list, list_marker, queue_message, queue_request, storage_signature, tag_filter,
    tags,
};

use crate::http::{ACCOUNT, KEY, encode};
use larimar_engine::table::Plan;
use larimar_model::filter::Row;
use larimar_model::{BodyBuilder, Entity, EntityBody, Filter, Timestamp, ValueRef};
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::{Circumstances, Resource, SasError, SasToken, Service};
use larimar_wire::signature::{self, AccountKey, Authorization};
use larimar_wire::table::{
    EntityWriter, MetadataLevel, Select, TableRequest, batch, decode_token, encode_token, entity_json,
};
use larimar_wire::{acl, service_properties, uri};
use std::net::{IpAddr, Ipv4Addr};

/// A target's function.
pub type Target = fn(&[u8]);

/// Every target with the name of its corpus.
pub const ALL: &[(&str, Target)] = &[
    ("filter", filter),
    ("route", route),
    ("batch", batch),
    ("entity", entity),
    ("sas", sas),
    ("signature", signature),
    ("xml", xml),
    ("token", token),
    ("queue_request", queue_request),
    ("queue_message", queue_message),
    ("blob_request", blob_request),
    ("block_list", block_list),
    ("tags", tags),
    ("tag_filter", tag_filter),
    ("blob_batch", blob_batch),
    ("list_marker", list_marker),
    ("storage_signature", storage_signature),
];

const NOW: Timestamp = Timestamp::from_ticks(638_500_000_000_000_000);
const METHODS: [&str; 8] = ["GET", "PUT", "POST", "MERGE", "PATCH", "DELETE", "OPTIONS", "BREW"];

/// `$filter`: what parses is written anew with the same meaning, is planned, and is true or false of a row.
pub fn filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(filter) = Filter::parse(text) else { return };
    let written = filter.to_string();
    let again = Filter::parse(&written).unwrap_or_else(|error| panic!("{written:?}: {error}"));
    assert_eq!(again.to_string(), written);
    let plan = Plan::new(Some(&filter));
    assert!(plan.ranges.iter().all(|range| !range.is_empty()), "{plan}");
    for pair in plan.ranges.windows(2) {
        assert!(pair[0].end.as_ref().is_some_and(|end| *end <= pair[1].start), "{plan}");
    }
    let mut body = BodyBuilder::new();
    body.push("A", ValueRef::Int32(1)).expect("a good property");
    body.push("B", ValueRef::String("x")).expect("a good property");
    let bytes = body.into_bytes();
    let row = Row { partition: "p", row: "r", version: NOW, body: EntityBody::from_trusted(&bytes) };
    assert_eq!(filter.admits(&row), again.admits(&row), "{written}");
}

/// A request's line and headers: the path's key predicate, the options, the conditions. Lines of the input are the
/// path, the query, `Accept`, `Content-Type`, `If-Match` and `Prefer`.
pub fn route(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or("");
    let (path, query) = (line(), line());
    let headers = ["accept", "content-type", "if-match", "prefer"].map(|name| (name, line()));
    let mut headers: Vec<_> = headers.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    headers.push(("x-ms-version", "2019-02-02"));
    for method in METHODS {
        let head = RequestHead::new(method, path, query, headers.iter().copied());
        let _ = (head.check(), TableRequest::parse(&head, ACCOUNT, path));
        let tunnelled = headers.iter().copied().chain([("x-http-method", method)]);
        let _ = TableRequest::parse(&RequestHead::new("POST", path, query, tunnelled), ACCOUNT, path);
    }
}

/// The body of `$batch`, and each request inside.
pub fn batch(data: &[u8]) {
    for content_type in ["multipart/mixed; boundary=b", "multipart/mixed; charset=\"utf-8\"; boundary=\"batch_1\""] {
        let parts = match batch::parse(content_type, data) {
            Ok(batch::Batch::Changeset(parts)) => parts,
            Ok(batch::Batch::Query(part)) => vec![part],
            Err(_) => continue,
        };
        assert!(!parts.is_empty(), "a batch has operations");
        for part in parts {
            let _ = (part.head.check_readable(), TableRequest::parse_part(&part.head, ACCOUNT, part.head.path));
            let _ = entity_json::parse_new(part.body.as_bytes());
        }
    }
}

/// An entity's JSON: what is accepted is written at full metadata and reads back equal.
pub fn entity(data: &[u8]) {
    let Ok(entity) = entity_json::parse_new(data) else { return };
    let row = Row {
        partition: entity.key.partition.as_str(),
        row: entity.key.row.as_str(),
        version: NOW,
        body: entity.body(),
    };
    for level in [MetadataLevel::Minimal, MetadataLevel::Full] {
        let writer = EntityWriter {
            base: "http://127.0.0.1:10002/devstoreaccount1",
            account: ACCOUNT,
            table: "Table",
            level,
            select: &Select::All,
        };
        let mut json = Vec::new();
        writer.write_single(&mut json, &row);
        let again = entity_json::parse_new(&json);
        let again = again.unwrap_or_else(|error| panic!("{error:?}: {}", String::from_utf8_lossy(&json)));
        assert_eq!(again.key, entity.key);
        // Bytes, since a NaN is not equal to itself.
        assert_eq!(again.body().as_bytes(), entity.body().as_bytes(), "{}", String::from_utf8_lossy(&json));
    }
    let _ = entity_json::parse_existing(data, Entity::clone(&entity).key);
}

/// A shared access signature in a query string: one that was made up is refused for its signature, and the same
/// token signed with the key for anything but that.
pub fn sas(data: &[u8]) {
    let Ok(query) = std::str::from_utf8(data) else { return };
    let Ok(Some(token)) = SasToken::parse(query, Resource::Table) else { return };
    let key = AccountKey::from_base64(KEY).expect("the well-known key");
    let circumstances = Circumstances {
        account: ACCOUNT,
        keys: std::slice::from_ref(&key),
        service: Service::Table,
        now: NOW,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        secure: false,
    };
    let policy = acl::AccessPolicy::default();
    assert_eq!(token.verify(&circumstances, Some(&policy)).err(), Some(SasError::Signature), "{query}");
    let signature = key.mac_of(&token.fields().string_to_sign(ACCOUNT)).to_base64();
    let others = query.split('&').filter(|pair| !uri::query_pairs(pair).flatten().any(|pair| pair.name == "sig"));
    let signed: Vec<String> = others.map(str::to_owned).chain([format!("sig={}", encode(&signature))]).collect();
    let signed = signed.join("&");
    let token = SasToken::parse(&signed, Resource::Table).ok().flatten().unwrap_or_else(|| panic!("{signed}"));
    assert_ne!(token.verify(&circumstances, Some(&policy)).err(), Some(SasError::Signature), "{signed}");
}

/// An `Authorization` header, then a path on the next line: one that was made up does not verify, one that the key
/// makes for the path does.
pub fn signature(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (header, path) = text.split_once('\n').unwrap_or((text, "/"));
    let key = AccountKey::from_base64(KEY).expect("the well-known key");
    let date = signature::http_date(NOW);
    let head = RequestHead::new("GET", path, "", [("x-ms-date", &*date)]);
    let verify = |header: &str| match Authorization::parse(header) {
        Ok(Authorization::Signed(credentials)) => {
            signature::verify(Service::Table, &credentials, ACCOUNT, std::slice::from_ref(&key), &head, NOW).is_ok()
        }
        Ok(Authorization::Bearer(_)) | Err(_) => false,
    };
    assert!(!verify(header), "{header}");
    for scheme in [signature::Scheme::SharedKey, signature::Scheme::SharedKeyLite] {
        let header = signature::sign(Service::Table, scheme, ACCOUNT, &key, &head);
        assert!(header.is_ok_and(|header| verify(&header)), "{path:?}");
    }
}

/// The XML of access policies and service properties: what is accepted is written and reads back equal.
pub fn xml(data: &[u8]) {
    if let Ok(list) = acl::parse(data, acl::TABLE_PERMISSIONS) {
        let mut out = Vec::new();
        acl::write(&mut out, &list, acl::TABLE_PERMISSIONS);
        assert_eq!(acl::parse(&out, acl::TABLE_PERMISSIONS).ok(), Some(list), "{}", String::from_utf8_lossy(&out));
    }
    let defaults = service_properties::ServiceProperties::default();
    if let Ok(properties) = defaults.updated(data, Service::Blob) {
        let mut out = Vec::new();
        properties.write(&mut out, Service::Blob);
        assert_eq!(defaults.updated(&out, Service::Blob).ok(), Some(properties), "{}", String::from_utf8_lossy(&out));
    }
}

/// A continuation token: what decodes encodes to a token that decodes to the same.
pub fn token(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert_eq!(decode_token(&encode_token(text)).ok().as_deref(), Some(text));
    if let Ok(key) = decode_token(text) {
        assert_eq!(decode_token(&encode_token(&key)).ok(), Some(key));
    }
}
