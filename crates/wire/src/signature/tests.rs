//! Signatures made elsewhere verify here, and nothing else does. The expected codes were computed with
//! another implementation of HMAC.

use super::{DEVELOPMENT_ACCOUNT as ACCOUNT, DEVELOPMENT_KEY as KEY, *};
use proptest::prelude::*;

const DATE: &str = "Fri, 06 May 2022 00:31:05 GMT";

fn key() -> AccountKey {
    AccountKey::from_base64(KEY).expect("the well-known key")
}

fn other_key() -> AccountKey {
    AccountKey::from_base64("b3RoZXI=").expect("a key")
}

fn now() -> Timestamp {
    Timestamp::parse("2022-05-06T00:31:05Z").expect("a time")
}

fn request(path: &str) -> RequestHead<'_> {
    head("GET", path, "", &[("x-ms-date", DATE)])
}

fn head<'a>(method: &'a str, path: &'a str, query: &'a str, headers: &[(&'a str, &'a str)]) -> RequestHead<'a> {
    RequestHead::new(method, path, query, headers.iter().copied())
}

fn sign(scheme: Scheme, account: &str, key: &AccountKey, head: &RequestHead<'_>) -> String {
    super::sign(Service::Table, scheme, account, key, head).expect("requests to tables can always be signed")
}

fn check(header: &str, request: &RequestHead<'_>) -> Result<(), SignatureError> {
    let Ok(Authorization::Signed(credentials)) = Authorization::parse(header) else { panic!("{header}") };
    verify(Service::Table, &credentials, ACCOUNT, &[key(), other_key()], request, now())
}

/// The header a client makes that signs `signed` instead of the path it sends.
fn header_for(scheme: Scheme, signed: &str) -> String {
    sign(scheme, ACCOUNT, &key(), &request(signed))
}

#[test]
fn s1_signatures_are_as_another_implementation_makes_them() {
    let json = [("x-ms-date", DATE), ("Content-Type", "application/json;odata=nometadata")];
    let create = head("POST", "/devstoreaccount1/Tables", "", &json);
    let xml = [("x-ms-date", DATE), ("Content-MD5", "md5=="), ("Content-Type", "application/xml")];
    let set_properties = head("PUT", "/devstoreaccount1/", "restype=service&comp=properties", &xml);
    for (scheme, request, signature) in [
        (Scheme::SharedKey, create, "ahNTYKv4XyDxYsdmHdLU1nfE08r/ZyQqVAUSz3YYWfo="),
        (
            Scheme::SharedKeyLite,
            request("/devstoreaccount1/T(PartitionKey='a',RowKey='b')"),
            "TxpG1Z176WpKG/MJ4VNHbK5ev6FkG0xGupk/NtARKqM=",
        ),
        (Scheme::SharedKey, set_properties, "xpifrHbOnAIoufiN/0NBhjepgTJQilDBWD9/9ZOwdcQ="),
        // Host style: the path does not name the account.
        (Scheme::SharedKeyLite, request("/T()"), "7XlV/B5+KY4psEQZGaa4ygOBlKri1j1MYbd7JMp+93w="),
    ] {
        let header = format!("{} {ACCOUNT}:{signature}", scheme.as_str());
        assert_eq!(sign(scheme, ACCOUNT, &key(), &request), header);
        assert_eq!(check(&header, &request), Ok(()));
    }
}

#[test]
fn texts_to_sign_are_those_of_the_reference() {
    let request = head("GET", "/acct/T", "comp=acl", &[("x-ms-date", DATE), ("content-type", "application/xml")]);
    let text = |scheme| string_to_sign(Service::Table, scheme, "acct", &request);
    assert_eq!(text(Scheme::SharedKey), Ok(format!("GET\n\napplication/xml\n{DATE}\n/acct/acct/T?comp=acl")));
    assert_eq!(text(Scheme::SharedKeyLite), Ok(format!("{DATE}\n/acct/acct/T?comp=acl")));
}

#[test]
fn s1_either_key_signs() {
    let request = request("/devstoreaccount1/T()");
    assert_eq!(check(&sign(Scheme::SharedKey, ACCOUNT, &other_key(), &request), &request), Ok(()));
    let stranger = AccountKey::from_base64("c3RyYW5nZXI=").expect("a key");
    assert_eq!(check(&sign(Scheme::SharedKey, ACCOUNT, &stranger, &request), &request), Err(SignatureError::Mismatch));
}

#[test]
fn headers_are_read_or_refused() {
    let signed = |scheme, account, signature| Ok(Authorization::Signed(Credentials { scheme, account, signature }));
    for (header, expected) in [
        ("SharedKey a:b=", signed(Scheme::SharedKey, "a", "b=")),
        ("SharedKeyLite a:b", signed(Scheme::SharedKeyLite, "a", "b")),
        ("sharedkey  a:b ", signed(Scheme::SharedKey, "a", "b")),
        ("Bearer ey.x.y", Ok(Authorization::Bearer("ey.x.y"))),
        ("", Err(AuthorizationError)),
        ("SharedKey", Err(AuthorizationError)),
        ("SharedKey ", Err(AuthorizationError)),
        ("SharedKey a", Err(AuthorizationError)),
        ("SharedKey :b", Err(AuthorizationError)),
        ("SharedKey a:", Err(AuthorizationError)),
        ("Basic a:b", Err(AuthorizationError)),
        ("Bearer ", Err(AuthorizationError)),
    ] {
        assert_eq!(Authorization::parse(header), expected, "{header:?}");
    }
}

#[test]
fn dates_may_be_fifteen_minutes_off() {
    for (x_ms_date, date, expected) in [
        (Some("Fri, 06 May 2022 00:16:05 GMT"), None, Ok(())),
        (Some("Fri, 06 May 2022 00:46:05 GMT"), None, Ok(())),
        (Some("Fri, 06 May 2022 00:16:04 GMT"), None, Err(SignatureError::DateSkewed)),
        (Some("Fri, 06 May 2022 00:46:06 GMT"), None, Err(SignatureError::DateSkewed)),
        (None, Some(DATE), Ok(())),
        (Some(DATE), Some("Fri, 06 May 2011 00:31:05 GMT"), Ok(())),
        (Some("Fri, 06 May 2011 00:31:05 GMT"), Some(DATE), Err(SignatureError::DateSkewed)),
        (Some(""), Some(DATE), Ok(())),
        (None, None, Err(SignatureError::DateMissing)),
        (Some("yesterday"), None, Err(SignatureError::DateInvalid)),
        (None, Some(""), Err(SignatureError::DateInvalid)),
    ] {
        let headers = [x_ms_date.map(|date| ("x-ms-date", date)), date.map(|date| ("date", date))];
        let headers: Vec<_> = headers.into_iter().flatten().collect();
        let request = head("GET", "/devstoreaccount1/T()", "", &headers);
        let header = sign(Scheme::SharedKeyLite, ACCOUNT, &key(), &request);
        assert_eq!(check(&header, &request), expected, "{x_ms_date:?} {date:?}");
    }
}

#[test]
fn other_spellings_of_the_path_verify() {
    for (sent, signed) in [
        (
            "/devstoreaccount1/T(PartitionKey='a''b')",
            "/devstoreaccount1/T(PartitionKey='a%27%27b')".replace('\'', "%27"),
        ),
        ("/devstoreaccount1/T(PartitionKey=%27a%20b%27)", "/devstoreaccount1/T(PartitionKey='a%20b')".to_owned()),
        ("/devstoreaccount1/T(PartitionKey='a%2Bb%27%40')", "/devstoreaccount1/T(PartitionKey='a+b'@')".to_owned()),
        ("/devstoreaccount1/T(PartitionKey='a%2bb%27')", "/devstoreaccount1/T(PartitionKey='a%2Bb'')".to_owned()),
        ("/devstoreaccount1/T(PartitionKey='日')", "/devstoreaccount1/T(PartitionKey='%E6%97%A5')".to_owned()),
        ("/devstoreaccount1/T(PartitionKey='a')", "/devstoreaccount1/T%28PartitionKey%3D%27a%27%29".to_owned()),
        ("/devstoreaccount1-secondary/Tables", "/devstoreaccount1/Tables".to_owned()),
        ("/devstoreaccount1-secondary/Tables", "/devstoreaccount1-secondary/Tables".to_owned()),
        ("/devstoreaccount1-secondary", "/devstoreaccount1".to_owned()),
        ("/devstoreaccount1-secondary/T(%27a%27)", "/devstoreaccount1/T('a')".to_owned()),
    ] {
        for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
            assert_eq!(check(&header_for(scheme, &signed), &request(sent)), Ok(()), "{sent} signed as {signed}");
        }
    }
}

#[test]
fn another_resource_does_not_verify() {
    for (sent, signed) in [
        ("/devstoreaccount1/T", "/devstoreaccount1/t"),
        ("/devstoreaccount1/a%2Fb", "/devstoreaccount1/a/b"),
        ("/devstoreaccount1-secondaryX/T", "/devstoreaccount1X/T"),
        ("/devstoreaccount1/T", "/devstoreaccount1-secondary/T"),
        ("/devstoreaccount1/%", "/devstoreaccount1/%25"),
    ] {
        let header = header_for(Scheme::SharedKeyLite, signed);
        assert_eq!(check(&header, &request(sent)), Err(SignatureError::Mismatch), "{sent} signed as {signed}");
    }
}

#[test]
fn every_signed_part_counts() {
    let headers = |date, content_type, md5| [("x-ms-date", date), ("content-type", content_type), ("content-md5", md5)];
    let all = headers(DATE, "a", "b");
    let sent = head("GET", "/d", "comp=c", &all);
    let header = sign(Scheme::SharedKey, ACCOUNT, &key(), &sent);
    assert_eq!(check(&header, &sent), Ok(()));
    for changed in [
        head("PUT", "/d", "comp=c", &all),
        head("GET", "/e", "comp=c", &all),
        head("GET", "/d", "", &all),
        head("GET", "/d", "comp=", &all),
        head("GET", "/d", "comp=c", &all[..2]),
        head("GET", "/d", "comp=c", &headers(DATE, "ab", "b")),
        head("GET", "/d", "comp=c", &headers("Fri, 06 May 2022 00:31:06 GMT", "a", "b")),
    ] {
        assert_eq!(check(&header, &changed), Err(SignatureError::Mismatch), "{changed:?}");
    }
    let lite = header.replace("SharedKey ", "SharedKeyLite ");
    assert_eq!(check(&lite, &sent), Err(SignatureError::Mismatch));
    let stranger = header.replace(ACCOUNT, "devstoreaccount2");
    assert_eq!(check(&stranger, &sent), Err(SignatureError::Account));
}

#[test]
fn dates_are_written_as_they_are_read() {
    assert_eq!(http_date(now()), DATE);
}

proptest! {
    #[test]
    fn any_header_is_read_or_refused(header: String, path: String) {
        if let Ok(Authorization::Signed(credentials)) = Authorization::parse(&header) {
            prop_assert!(verify(Service::Table, &credentials, ACCOUNT, &[key()], &request(&path), now()).is_err());
        }
    }

    #[test]
    fn what_is_signed_verifies_until_a_byte_changes(
        method in "[A-Z]{1,8}", path in "/[ -~]{0,40}", comp in proptest::option::of("[a-z]{0,10}"),
        content_type in proptest::option::of("[ -~]{0,30}"), lite: bool, at: proptest::sample::Index, bit in 0..8u8,
    ) {
        let scheme = if lite { Scheme::SharedKeyLite } else { Scheme::SharedKey };
        let query = comp.map(|comp| format!("comp={comp}")).unwrap_or_default();
        let content_type = content_type.as_deref().map(|content_type| ("content-type", content_type));
        let headers: Vec<_> = [("x-ms-date", DATE)].into_iter().chain(content_type).collect();
        let sent = head(&method, &path, &query, &headers);
        let header = sign(scheme, ACCOUNT, &key(), &sent);
        prop_assert_eq!(check(&header, &sent), Ok(()));

        let (claim, signature) = header.rsplit_once(':').expect("account:signature");
        let mut mac: Vec<u8> = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, signature)
            .expect("base64");
        mac[at.index(32)] ^= 1 << bit;
        let flipped = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, mac);
        prop_assert_eq!(check(&format!("{claim}:{flipped}"), &sent), Err(SignatureError::Mismatch));
    }
}
