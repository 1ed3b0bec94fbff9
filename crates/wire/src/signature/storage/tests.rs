//! Texts to sign are those of the service's reference; what clients sign in other ways verifies too.

use super::*;
use crate::error_code::ErrorCode;
use crate::signature::{self, Authorization, DEVELOPMENT_ACCOUNT as ACCOUNT, DEVELOPMENT_KEY, Mac};
use larimar_model::Service;
use proptest::prelude::*;

const DATE: &str = "Fri, 06 May 2022 00:31:05 GMT";

fn key() -> AccountKey {
    AccountKey::from_base64(DEVELOPMENT_KEY).expect("the well-known key")
}

fn request<'a>(method: &'a str, path: &'a str, query: &'a str, headers: &[(&'a str, &'a str)]) -> RequestHead<'a> {
    RequestHead::new(method, path, query, headers.iter().copied())
}

fn sign(scheme: Scheme, head: &RequestHead<'_>) -> Result<String, SignatureError> {
    signature::sign(Service::Blob, scheme, ACCOUNT, &key(), head)
}

fn check(header: &str, request: &RequestHead<'_>) -> Result<(), SignatureError> {
    let Ok(Authorization::Signed(credentials)) = Authorization::parse(header) else { panic!("{header}") };
    let other = AccountKey::from_base64("b3RoZXI=").expect("a key");
    let now = Timestamp::parse("2022-05-06T00:31:05Z").expect("a time");
    verify(&credentials, ACCOUNT, &[other, key()], request, now)
}

fn header_of_text(text: &str) -> String {
    format!("SharedKey {ACCOUNT}:{}", key().mac_of(text).to_base64())
}

#[test]
fn texts_to_sign_are_those_of_the_reference() {
    let metadata = request(
        "GET",
        "/mycontainer",
        "restype=container&comp=metadata&timeout=20",
        &[("x-ms-version", "2015-02-21"), ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"), ("Content-Length", "0")],
    );
    assert_eq!(
        string_to_sign(Scheme::SharedKey, "myaccount", &metadata).as_deref(),
        Ok("GET\n\n\n\n\n\n\n\n\n\n\n\n\
            x-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
            /myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20")
    );
    let put = request(
        "PUT",
        "/mycontainer/hello.txt",
        "",
        &[
            ("X-Ms-Meta-M1", " v1 "),
            ("x-ms-date", "Sun, 20 Sep 2009 20:36:40 GMT"),
            ("x-ms-meta-m2", "v2"),
            ("Content-Type", "text/plain; charset=UTF-8"),
            ("Content-Length", "11"),
            ("Date", "ignored"),
        ],
    );
    assert_eq!(
        string_to_sign(Scheme::SharedKeyLite, "testaccount1", &put).as_deref(),
        Ok("PUT\n\ntext/plain; charset=UTF-8\n\n\
            x-ms-date:Sun, 20 Sep 2009 20:36:40 GMT\nx-ms-meta-m1:v1\nx-ms-meta-m2:v2\n\
            /testaccount1/mycontainer/hello.txt")
    );
}

#[test]
fn every_line_has_its_place() {
    let all: Vec<(&str, &str)> = LINES.iter().map(|name| (*name, *name)).collect();
    let text = string_to_sign(Scheme::SharedKey, "a", &request("VERB", "/p", "B=2&a=%26&b=1&c", &all));
    assert_eq!(text.as_deref(), Ok(&*format!("VERB\n{}\n/a/p\na:&\nb:1,2\nc:", LINES.join("\n"))));
    let lite = string_to_sign(Scheme::SharedKeyLite, "a", &request("VERB", "/p", "b=2&comp=x%20y", &all));
    assert_eq!(lite.as_deref(), Ok("VERB\ncontent-md5\ncontent-type\ndate\n/a/p?comp=x%20y"));
}

#[test]
fn empty_lengths_and_headers_follow_the_version() {
    for (version, length, header) in
        [("2014-02-14", "0", ""), ("2015-02-21", "", ""), ("2016-05-31", "", "x-ms-meta-a:\n")]
    {
        let headers = [("x-ms-version", version), ("content-length", "0"), ("x-ms-meta-a", "")];
        let text = string_to_sign(Scheme::SharedKey, "a", &request("PUT", "/q", "", &headers));
        let expected = format!("PUT\n\n\n{length}\n\n\n\n\n\n\n\n\n{header}x-ms-version:{version}\n/a/q");
        assert_eq!(text, Ok(expected));
    }
    // A part of a batch has no version of its own.
    let part = request("DELETE", "/c/b", "", &[("content-length", "0"), ("x-ms-meta-a", "")]);
    let text = string_to_sign(Scheme::SharedKey, "a", &part);
    assert_eq!(text, Ok("DELETE\n\n\n\n\n\n\n\n\n\n\n\nx-ms-meta-a:\n/a/c/b".to_owned()));
}

/// Computed with Python's `hmac` from the text in the service's reference.
#[test]
fn s1_signatures_are_as_another_implementation_makes_them() {
    let request = request(
        "PUT",
        "/devstoreaccount1/c/b%20d",
        "comp=block&blockid=QUFB%2B%3D",
        &[("x-ms-date", DATE), ("x-ms-version", "2021-08-06"), ("content-length", "3")],
    );
    assert_eq!(
        sign(Scheme::SharedKey, &request).as_deref(),
        Ok("SharedKey devstoreaccount1:Ld6Nzixmscr6s/DTV70HEHTJYwyMHNfEg7NaBLDyKKM=")
    );
    assert_eq!(
        sign(Scheme::SharedKeyLite, &request).as_deref(),
        Ok("SharedKeyLite devstoreaccount1:JnoQTNK4Hqu9uCGX9LkzWuvOAI2Ri57OVJ/cDVTW8Uc=")
    );
}

#[test]
fn s1_other_orders_and_spellings_verify() {
    let date = format!("x-ms-date:{DATE}\n");
    let start = "GET\n\n\n\n\n\n\n\n\n\n\n\n";
    let base = [("x-ms-date", DATE), ("x-ms-meta-a-c", "1"), ("x-ms-meta-ab", "2  3")];
    for (path, query, text) in [
        // By bytes, and by a collation that passes over hyphens.
        ("/devstoreaccount1/q", "", format!("{date}x-ms-meta-a-c:1\nx-ms-meta-ab:2  3\n/{ACCOUNT}/{ACCOUNT}/q")),
        ("/devstoreaccount1/q", "", format!("{date}x-ms-meta-ab:2  3\nx-ms-meta-a-c:1\n/{ACCOUNT}/{ACCOUNT}/q")),
        ("/devstoreaccount1/q", "", format!("{date}x-ms-meta-a-c:1\nx-ms-meta-ab:2 3\n/{ACCOUNT}/{ACCOUNT}/q")),
        // A plus that is a space to some and a plus to others.
        ("/d", "p=a+b", format!("{date}x-ms-meta-a-c:1\nx-ms-meta-ab:2  3\n/{ACCOUNT}/d\np:a b")),
        ("/d", "p=a+b", format!("{date}x-ms-meta-a-c:1\nx-ms-meta-ab:2  3\n/{ACCOUNT}/d\np:a+b")),
        // Escapes that stacks undo, and the secondary signed with the primary's name.
        ("/d/%41%27", "", format!("{date}x-ms-meta-a-c:1\nx-ms-meta-ab:2  3\n/{ACCOUNT}/d/A'")),
        (
            "/devstoreaccount1-secondary/q",
            "comp=x",
            format!("{date}x-ms-meta-a-c:1\nx-ms-meta-ab:2  3\n/{ACCOUNT}/{ACCOUNT}/q\ncomp:x"),
        ),
        (
            "/devstoreaccount1-secondary/q",
            "",
            format!("{date}x-ms-meta-a-c:1\nx-ms-meta-ab:2  3\n/{ACCOUNT}/{ACCOUNT}-secondary/q"),
        ),
    ] {
        let header = header_of_text(&format!("{start}{text}"));
        assert_eq!(check(&header, &request("GET", path, query, &base)), Ok(()), "{text}");
    }
}

#[test]
fn every_signed_part_counts() {
    let sent = |method, path, query, extra: (&'static str, &'static str)| {
        request(method, path, query, &[("x-ms-date", DATE), ("range", "bytes=0-1"), extra])
    };
    let original = sent("GET", "/d/c", "a=1", ("x-ms-meta-a", "1"));
    let header = sign(Scheme::SharedKey, &original).expect("a query");
    assert_eq!(check(&header, &original), Ok(()));
    for changed in [
        sent("PUT", "/d/c", "a=1", ("x-ms-meta-a", "1")),
        sent("GET", "/d/b", "a=1", ("x-ms-meta-a", "1")),
        sent("GET", "/d/c", "a=2", ("x-ms-meta-a", "1")),
        sent("GET", "/d/c", "a=1&b=", ("x-ms-meta-a", "1")),
        sent("GET", "/d/c", "a=1", ("x-ms-meta-a", "2")),
        sent("GET", "/d/c", "a=1", ("x-ms-meta-b", "1")),
        sent("GET", "/d/c", "a=1", ("if-match", "1")),
        sent("GET", "/d/c", "a=%zz", ("x-ms-meta-a", "1")),
    ] {
        assert_eq!(check(&header, &changed), Err(SignatureError::Mismatch), "{changed:?}");
    }
    let other = request("GET", "/d/c", "", &[]);
    assert_eq!(check(&header, &other), Err(SignatureError::DateMissing));
    let late = request("GET", "/d/c", "", &[("date", "Fri, 06 May 2022 01:31:05 GMT")]);
    assert_eq!(check(&header, &late), Err(SignatureError::DateSkewed));
    assert_eq!(check(&header.replace(ACCOUNT, "other"), &original), Err(SignatureError::Account));
    assert!(Mac::from_base64(header.rsplit(':').next().expect("a signature")).is_some());
}

#[test]
fn a_signed_header_comes_once() {
    for headers in [[("range", "a"), ("Range", "b")], [("x-ms-meta-a", "a"), ("X-Ms-Meta-A", "a")]] {
        assert_eq!(sign(Scheme::SharedKey, &request("GET", "/", "", &headers)), Err(SignatureError::HeaderTwice));
    }
    assert_eq!(SignatureError::HeaderTwice.code(), ErrorCode::InvalidHeaderValue);
    assert!(sign(Scheme::SharedKey, &request("GET", "/", "", &[("accept", "a"), ("accept", "b")])).is_ok());
}

proptest! {
    #[test]
    fn what_is_signed_verifies(
        path in "/[ -~é]{0,20}", query in "([a-cA-C]=[ -%\\x27-~é]{0,4}&){0,4}", value in "[ -~]{0,12}", lite: bool,
    ) {
        let scheme = if lite { Scheme::SharedKeyLite } else { Scheme::SharedKey };
        let headers = [("x-ms-meta-a", &*value), ("x-ms-date", DATE), ("content-type", &*value)];
        let sent = request("GET", &path, &query, &headers);
        if let Ok(header) = sign(scheme, &sent) {
            prop_assert_eq!(check(&header, &sent), Ok(()));
            let unsigned = request("GET", &path, &query, &headers[1..]);
            prop_assert!(check(&header, &unsigned).is_err() || value.trim().is_empty());
        }
    }
}
