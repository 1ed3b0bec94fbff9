//! Parameters, headers, metadata and hosts are read as the service reads them.

use super::*;
use proptest::prelude::*;

fn head<'a>(query: &'a str, headers: &[(&'a str, &'a str)]) -> RequestHead<'a> {
    RequestHead::new("GET", "/", query, headers.iter().copied())
}

#[test]
fn parameters_and_headers_have_no_case_and_no_empty_values() {
    let head = head("Comp=LIST&prefix=&a=%20b", &[("X-Ms-Version", " 2019-02-02 "), ("range", "")]);
    assert_eq!(
        (head.parameter("comp").as_deref(), head.parameter("prefix"), head.parameter("a").as_deref()),
        (Some("list"), None, Some(" b"))
    );
    assert_eq!((head.header("x-ms-version"), head.header("Range")), (Some("2019-02-02"), None));
    assert!(head.has_header("Range") && !head.has_header("date"));
    assert!(head.is_since("2019-02-02") && !head.is_since("2019-02-03"));
    assert!(self::head("", &[]).is_since("2026-01-01"));
    assert!(!self::head("sv=2018-11-09", &[]).is_since("2019-02-02"));
}

#[test]
fn numbers_and_dates_are_read_or_refused_with_their_details() {
    let head = head(
        "n=7&big=33&bad=x",
        &[("content-length", "12"), ("x", "-1"), ("d", "Fri, 06 May 2022 00:31:05 GMT"), ("e", "soon")],
    );
    assert_eq!(head.number_parameter("n", 1..=32), Ok(Some(7)));
    assert_eq!(head.number_parameter("other", 1..=32), Ok(None));
    let out_of_range = head.number_parameter("big", 1..=32).expect_err("too much");
    assert_eq!(out_of_range.code, ErrorCode::OutOfRangeQueryParameterValue);
    assert_eq!(out_of_range.details[3], ("MaximumAllowed", "32".to_owned()));
    assert_eq!(
        head.number_parameter("bad", 1..=32).expect_err("no number").code,
        ErrorCode::InvalidQueryParameterValue
    );
    assert_eq!(head.content_length(), Ok(12));
    assert_eq!(head.number_header("x").expect_err("no number").code, ErrorCode::InvalidHeaderValue);
    assert_eq!(head.date_header("d"), Ok(Timestamp::parse("2022-05-06T00:31:05Z").ok()));
    assert_eq!(head.date_header("e").expect_err("no date").details[0].1, "e");
    assert_eq!(head.required_header("f").expect_err("none").code, ErrorCode::MissingRequiredHeader);
    assert_eq!(head.required_parameter("f").expect_err("none").code, ErrorCode::MissingRequiredQueryParameter);
    assert_eq!(self::head("", &[]).content_length().expect_err("none").status, 411);
    assert!(self::head("a=%zz", &[]).check_query().is_err() && self::head("a=%20", &[]).check_query().is_ok());
}

#[test]
fn metadata_is_what_headers_of_its_prefix_say() {
    let two =
        head("", &[("X-Ms-Meta-Color", " red "), ("x-ms-meta-empty", ""), ("x-ms-date", "x"), ("x-ms-meta", "y")]);
    let metadata = two.metadata().expect("metadata");
    assert_eq!(metadata.iter().collect::<Vec<_>>(), [("Color", "red"), ("empty", "")]);
    let large = "v".repeat(8192);
    for (name, value, code) in [
        ("x-ms-meta-", "v", ErrorCode::EmptyMetadataKey),
        ("x-ms-meta-a-b", "v", ErrorCode::InvalidMetadata),
        ("x-ms-meta-a", &*large, ErrorCode::MetadataTooLarge),
    ] {
        assert_eq!(head("", &[(name, value)]).metadata().map_err(|error| error.code), Err(code), "{name}");
    }
    assert_eq!(head("", &[("X-Ms-Meta-a", "é")]).check().map_err(|error| error.code), Err(ErrorCode::InvalidMetadata));
    let twice = head("", &[("x-ms-meta-a", "1"), ("x-ms-meta-A", "1")]);
    assert_eq!(twice.metadata().map_err(|error| error.code), Err(ErrorCode::InvalidMetadata));
}

#[test]
fn headers_that_matter_and_are_not_visible_ascii_are_refused() {
    for (name, is_refused) in
        [("If-Match", true), ("x-ms-meta-a", true), ("range", true), ("user-agent", false), ("cookie", false)]
    {
        for value in [&b"\xfc"[..], b"\xc3\xa9", b"\x7f", b"a\nb"] {
            let headers = [("x-ms-date", &b"now"[..]), (name, value)];
            let head = RequestHead::new("GET", "/", "", headers);
            assert_eq!(head.check().is_err(), is_refused, "{name} {value:?}");
            assert!(!head.has_header(name), "{name}");
            assert_eq!(head.header_bytes(), 16 + name.len() + value.len() + 4);
        }
    }
    assert!(head("", &[("if-match", " a\t~")]).check().is_ok());
}

#[test]
fn headers_with_one_value_are_sent_once() {
    for (one, other, code) in [
        ("if-match", "If-Match", Some(ErrorCode::InvalidHeaderValue)),
        ("x-ms-date", "x-ms-date", Some(ErrorCode::InvalidHeaderValue)),
        ("authorization", "Authorization", Some(ErrorCode::InvalidAuthenticationInfo)),
        ("accept", "accept", None),
        // Metadata is refused with an error of its own.
        ("x-ms-meta-a", "x-ms-meta-a", None),
        ("x-ms-date", "x-ms-dat2", None),
    ] {
        let head = head("", &[(one, "a"), ("x-ms-lease", "b"), (other, "c")]);
        assert_eq!(head.check().map_err(|error| error.code).err(), code, "{one} {other}");
        assert_eq!(
            (head.raw_header(one), head.raw_headers(one).count()),
            (Some("a"), if one == "x-ms-date" && other != one { 1 } else { 2 })
        );
    }
}

#[test]
fn versions_are_dates() {
    assert!(is_version("2019-02-02") && is_version("2099-01-01"));
    assert!(!is_version("2019-2-2") && !is_version("latest") && !is_version(""));
    assert!(head("", &[("x-ms-version", "latest")]).check().is_err());
    assert!(head("", &[("x-ms-version", "")]).check().is_err());
}

proptest! {
    #[test]
    fn any_metadata_is_read_or_refused(name in "\\PC{0,12}", value in "\\PC{0,12}") {
        let name = format!("x-ms-meta-{name}");
        let head = head("", &[(&name, &value)]);
        if let (Ok(()), Ok(metadata)) = (head.check(), head.metadata()) {
            prop_assert_eq!(metadata.iter().len(), 1);
        }
    }
}
