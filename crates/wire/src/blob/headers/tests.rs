//! Headers are read as the service's reference has them, and refused with its codes.

use super::*;
use larimar_model::blob::BlobETag;
use larimar_model::{Guid, Timestamp};
use proptest::prelude::*;

const ID: &str = "c9da6455-213d-42c9-9a79-3e9149a57833";

fn head<'a>(headers: &[(&'a str, &'a str)]) -> RequestHead<'a> {
    RequestHead::new("PUT", "/", "", headers.iter().copied())
}

fn lease_id() -> LeaseId {
    LeaseId(Guid::parse(ID).expect("a Guid"))
}

#[test]
fn conditions_are_read_also_those_on_sources() {
    let date = "Fri, 06 May 2022 00:31:05 GMT";
    let time = Timestamp::parse("2022-05-06T00:31:05Z").expect("a time");
    let etag = BlobETag(time);
    let text = etag.to_string();
    let head = head(&[
        ("If-Match", &text),
        ("If-None-Match", "*"),
        ("If-Modified-Since", date),
        ("x-ms-source-if-unmodified-since", date),
        ("x-ms-source-if-match", "other"),
        ("x-ms-lease-id", ID),
    ]);
    let expected = Conditions {
        if_match: Some(ETagCondition::Is(etag)),
        if_none_match: Some(ETagCondition::Any),
        if_modified_since: Some(time),
        if_unmodified_since: None,
    };
    assert_eq!(
        access(&head),
        Ok(AccessConditions { conditions: expected, lease: Some(lease_id()), ..AccessConditions::default() })
    );
    let source =
        Conditions { if_match: Some(ETagCondition::Foreign), if_unmodified_since: Some(time), ..Conditions::NONE };
    assert_eq!(conditions(&head, "x-ms-source-"), Ok(source));
    assert_eq!(
        container_access(&head).map_err(|error| error.code),
        Err(ErrorCode::ConditionHeadersNotSupported),
        "containers know only times"
    );
    for (name, value) in [("if-modified-since", "soon"), ("x-ms-lease-id", "x")] {
        let error = access(&self::head(&[(name, value)])).expect_err("no such value");
        assert_eq!((error.code, error.details[1].1.as_str()), (ErrorCode::InvalidHeaderValue, value));
    }
}

#[test]
fn x2_lease_actions_have_what_they_need() {
    let other = "00000000-0000-0000-0000-000000000001";
    let read = |action, more: &[(&'static str, &'static str)]| {
        let headers: Vec<_> = std::iter::once(("x-ms-lease-action", action)).chain(more.iter().copied()).collect();
        lease_action(&head(&headers)).map_err(|error| error.code)
    };
    let (id, proposed) = (lease_id(), LeaseId::parse(other).expect("an id"));
    let own = ("x-ms-lease-id", ID);
    let other = ("x-ms-proposed-lease-id", other);
    assert_eq!(
        read("Acquire", &[("x-ms-lease-duration", "-1")]),
        Ok(LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: None })
    );
    assert_eq!(
        read("acquire", &[("x-ms-lease-duration", "15"), other]),
        Ok(LeaseAction::Acquire { duration: LeaseDuration::Seconds(15), proposed: Some(proposed) })
    );
    assert_eq!(read("renew", &[own]), Ok(LeaseAction::Renew { id }));
    assert_eq!(read("change", &[own, other]), Ok(LeaseAction::Change { id, proposed }));
    assert_eq!(read("release", &[own]), Ok(LeaseAction::Release { id }));
    assert_eq!(read("break", &[]), Ok(LeaseAction::Break { period: None }));
    let period = BreakPeriod::new(60).ok();
    assert_eq!(read("break", &[("x-ms-lease-break-period", "60")]), Ok(LeaseAction::Break { period }));
    for (action, more, code) in [
        ("acquire", vec![], ErrorCode::MissingRequiredHeader),
        ("acquire", vec![("x-ms-lease-duration", "14")], ErrorCode::InvalidHeaderValue),
        ("acquire", vec![("x-ms-lease-duration", "61")], ErrorCode::InvalidHeaderValue),
        (
            "acquire",
            vec![("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", "x")],
            ErrorCode::InvalidHeaderValue,
        ),
        ("renew", vec![], ErrorCode::MissingRequiredHeader),
        ("renew", vec![("x-ms-lease-id", "x")], ErrorCode::InvalidHeaderValue),
        ("change", vec![own], ErrorCode::MissingRequiredHeader),
        ("break", vec![("x-ms-lease-break-period", "61")], ErrorCode::InvalidHeaderValue),
        ("steal", vec![], ErrorCode::InvalidHeaderValue),
        ("", vec![], ErrorCode::MissingRequiredHeader),
    ] {
        assert_eq!(read(action, &more), Err(code), "{action} {more:?}");
    }
}

#[test]
fn plain_content_headers_count_where_there_are_no_others() {
    let md5 = "Q2hlY2sgSW50ZWdyaXR5IQ==";
    let headers = [
        ("Content-Type", "text/plain"),
        ("x-ms-blob-content-type", "text/html"),
        ("Content-Encoding", "gzip"),
        ("x-ms-blob-content-md5", md5),
        ("x-ms-blob-cache-control", "no-cache"),
        ("x-ms-blob-content-disposition", "attachment"),
    ];
    let put = put_content_headers(&head(&headers)).expect("headers");
    let expected = ContentHeaders {
        content_type: Some("text/html".to_owned()),
        encoding: Some("gzip".to_owned()),
        language: None,
        md5: Some(b"Check Integrity!".to_vec()),
        disposition: Some("attachment".to_owned()),
        cache_control: Some("no-cache".to_owned()),
    };
    assert_eq!(put, expected);
    assert_eq!(format_md5(b"Check Integrity!"), md5);
    let set = content_headers(&head(&headers)).expect("headers");
    assert_eq!(set, ContentHeaders { encoding: None, ..expected });
    let plain = put_content_headers(&head(&headers[..1])).expect("headers");
    assert_eq!(plain.content_type.as_deref(), Some("text/plain"));
}

#[test]
fn bodies_have_lengths_within_their_limits_and_checks() {
    let length = ("content-length", "5");
    let (md5, crc64) = (("content-md5", "Q2hlY2sgSW50ZWdyaXR5IQ=="), ("x-ms-content-crc64", "AAECAwQFBgc="));
    let checks = |headers: &[(&'static str, &'static str)]| body_checks(&head(headers), 5).map_err(|error| error.code);
    let none = BodyChecks { length: 5, md5: None, crc64: None };
    assert_eq!(checks(&[length, md5]), Ok(BodyChecks { md5: Some(*b"Check Integrity!"), ..none }));
    assert_eq!(checks(&[length, crc64]), Ok(BodyChecks { crc64: Some([0, 1, 2, 3, 4, 5, 6, 7]), ..none }));
    assert_eq!(checks(&[length, md5, crc64]), Err(ErrorCode::BothCrc64AndMd5HeaderPresent));
    let too_large = body_checks(&head(&[length]), 4).expect_err("too large");
    assert_eq!((too_large.code, too_large.status), (ErrorCode::RequestBodyTooLarge, 413));
    assert_eq!(too_large.details, [("MaxLimit", "4".to_owned())]);
    for (headers, code) in [
        (vec![], ErrorCode::MissingContentLengthHeader),
        (vec![("content-length", "-1")], ErrorCode::InvalidHeaderValue),
        (vec![("content-length", "1"), ("content-md5", "AAAA")], ErrorCode::InvalidMd5),
        (vec![("content-length", "1"), ("content-md5", "?")], ErrorCode::InvalidMd5),
        (vec![("content-length", "1"), ("x-ms-content-crc64", "AAAA")], ErrorCode::InvalidHeaderValue),
        (vec![("content-length", "0")], ErrorCode::InvalidHeaderValue),
    ] {
        assert_eq!(filled_body(&head(&headers), 10).map_err(|error| error.code), Err(code), "{headers:?}");
    }
    assert_eq!(empty_body(&head(&[("content-length", "0")])), Ok(BodyChecks::default()));
    assert_eq!(empty_body(&head(&[])), Ok(BodyChecks::default()));
    assert!(empty_body(&head(&[("content-length", "1")])).is_err());
}

#[test]
fn tags_come_as_a_query() {
    let read = |text| tags(&head(&[("x-ms-tags", text)])).map_err(|error| error.code);
    let two = read("b=2&a%20a=1%2B+2").expect("tags").expect("tags");
    assert_eq!(two.iter().collect::<Vec<_>>(), [("a a", "1+ 2"), ("b", "2")]);
    assert_eq!(tags(&head(&[])), Ok(None));
    for (text, code) in [
        ("=1", ErrorCode::EmptyTagName),
        ("a=%C3%A9", ErrorCode::InvalidTag),
        ("a=1&a=2", ErrorCode::DuplicateTagNames),
        ("a=%zz", ErrorCode::InvalidHeaderValue),
        ("a&b&c&d&e&f&g&h&i&j&k", ErrorCode::TagsTooLarge),
    ] {
        assert_eq!(read(text), Err(code), "{text}");
    }
}

#[test]
fn sources_are_absolute_urls() {
    let long = format!("http://h/{}", "a".repeat(2040));
    for (text, parts) in [
        (
            "http://127.0.0.1:10000/acct/c/b%20c?snapshot=x&sig=y",
            Some(("127.0.0.1:10000", "/acct/c/b%20c", "snapshot=x&sig=y")),
        ),
        ("HTTPS://acct.blob.example.com/c/b#part", Some(("acct.blob.example.com", "/c/b", ""))),
        ("http://host", Some(("host", "", ""))),
        ("http://host?a", Some(("host", "", "a"))),
        ("/acct/c/b", None),
        ("ftp://host/c", None),
        ("http:///c/b", None),
        ("http://", None),
        ("http://h/a b", None),
        ("", None),
        (&*long, None),
    ] {
        let source = CopySource::parse(text);
        let seen = source.as_ref().map(|source| (source.authority(), source.path(), source.query()));
        assert_eq!(seen, parts, "{text}");
    }
    let error = source(&head(&[("x-ms-copy-source", "/c/b")]), 9).expect_err("no URL");
    assert_eq!(error.code, ErrorCode::InvalidHeaderValue);
    let full = source(
        &head(&[
            ("x-ms-copy-source", "http://h/c/b"),
            ("x-ms-source-range", "bytes=5-9"),
            ("x-ms-source-content-md5", "Q2hlY2sgSW50ZWdyaXR5IQ=="),
            ("x-ms-source-if-none-match", "*"),
        ]),
        9,
    );
    let full = full.expect("a source").expect("a source");
    assert_eq!(full.url.as_str(), "http://h/c/b");
    assert_eq!((full.range, full.bytes_max), (Some(ByteRange { start: 5, last: Some(9) }), 9));
    assert_eq!((full.md5, full.conditions.if_none_match), (Some(*b"Check Integrity!"), Some(ETagCondition::Any)));
    assert!(source(&head(&[("x-ms-copy-source", "http://h/c/b"), ("x-ms-source-range", "all")]), 9).is_err());
}

#[test]
fn features_that_are_not_there_are_refused() {
    for (name, value, expected) in [
        ("x-ms-encryption-key", "k", Err(ErrorCode::UnsupportedHeader)),
        ("x-ms-legal-hold", "true", Err(ErrorCode::UnsupportedHeader)),
        ("x-ms-legal-hold", "false", Ok(())),
        ("x-ms-encryption-scope", "", Ok(())),
        ("x-ms-encryption-algorithm", "AES256", Ok(())),
    ] {
        assert_eq!(refuse_unsupported(&head(&[(name, value)])).map_err(|error| error.code), expected, "{name}");
    }
}

proptest! {
    #[test]
    fn any_source_is_read_or_refused(text in "(http|https|ftp)?(://)?[a-z:/?#% é]{0,20}") {
        if let Some(source) = CopySource::parse(&text) {
            let query = if source.query().is_empty() { String::new() } else { format!("?{}", source.query()) };
            let again = format!("{}{}{query}", source.authority(), source.path());
            let url = source.as_str();
            let without_query = url.strip_suffix('?').unwrap_or(url);
            prop_assert!(url.ends_with(&again) || without_query.ends_with(&again), "{} {}", text, again);
        }
    }

    #[test]
    fn any_headers_are_read_or_refused(
        name in "x-ms-(lease-(id|action|duration)|tags|copy-source|content-crc64|source-if-match|source-range)",
        value in "\\PC{0,20}",
    ) {
        let head = head(&[(&name, &value), ("content-length", "1")]);
        let _ = (access(&head), lease_action(&head), tags(&head), source(&head, 9), body_checks(&head, 10));
    }
}
