//! Tokens for queues, containers, blobs and snapshots verify for what they are for, by the letters they have.
//! The signatures of the known tokens were computed with another implementation of HMAC from the texts in the
//! service's reference.

use super::*;
use crate::acl::AccessPolicy;
use crate::error_code::ErrorCode;
use crate::sas::{Circumstances, Grant, Need, Permissions, SasFields, SasToken, Scope, Service, Target};
use crate::signature::{AccountKey, DEVELOPMENT_ACCOUNT as ACCOUNT, DEVELOPMENT_KEY as KEY};
use larimar_model::Timestamp;
use proptest::prelude::*;

const SNAPSHOT: &str = "2022-05-05T01:02:03.1234567Z";

fn key() -> AccountKey {
    AccountKey::from_base64(KEY).expect("a key")
}

fn blob(container: &'static str, blob: Option<&'static str>, snapshot: Option<&'static str>) -> Resource<'static> {
    Resource::Blob { container: Some(container), blob, snapshot }
}

fn verify(query: &str, resource: Resource<'_>) -> Result<Grant, SasError> {
    let policy = AccessPolicy {
        expiry: Timestamp::parse("2022-05-07").ok(),
        permissions: Permissions::parse("rl"),
        ..AccessPolicy::default()
    };
    let keys = [key()];
    let service = match resource {
        Resource::Table => Service::Table,
        Resource::Queue(_) => Service::Queue,
        Resource::Blob { .. } => Service::Blob,
    };
    let circumstances = Circumstances {
        account: ACCOUNT,
        keys: &keys,
        service,
        now: Timestamp::parse("2022-05-06T00:00:00Z").expect("a time"),
        peer: [10, 0, 0, 5].into(),
        secure: true,
    };
    SasToken::parse(query, resource)?.expect("a signature").verify(&circumstances, Some(&policy))
}

fn fields(letters: &'static str, kind: SasKind<'static>) -> SasFields<'static> {
    SasFields {
        version: "2021-08-06".into(),
        permissions: Some(letters.into()),
        expiry: Some("2022-05-07".into()),
        kind,
        ..SasFields::default()
    }
}

fn queue_token(letters: &'static str) -> String {
    let kind = SasKind::Queue(QueueSas { queue: "q1".into(), policy_id: None });
    fields(letters, kind).to_query(ACCOUNT, &key())
}

fn blob_token(letters: &'static str, scope: BlobSasScope<'static>) -> String {
    let kind = SasKind::Blob(Box::new(BlobSas { container: "c1".into(), scope, ..BlobSas::default() }));
    fields(letters, kind).to_query(ACCOUNT, &key())
}

#[test]
fn x2_a_token_is_for_what_the_path_names() {
    let blob = |container, blob| Resource::Blob { container, blob, snapshot: None };
    for (path, restype, expected) in [
        ("", None, blob(None, None)),
        ("box", Some("container"), blob(Some("box"), None)),
        ("box", Some("account"), blob(Some("box"), None)),
        ("box/a b/c", None, blob(Some("box"), Some("a b/c"))),
        ("page.html", None, blob(Some("$root"), Some("page.html"))),
        ("$root/page.html", None, blob(Some("$root"), Some("page.html"))),
    ] {
        assert_eq!(Resource::of(Service::Blob, path, restype, None), expected, "{path}");
    }
    assert_eq!(Resource::of(Service::Queue, "jobs/messages", None, None), Resource::Queue(Some("jobs")));
    assert_eq!(Resource::of(Service::Table, "T()", None, None), Resource::Table);
}

#[test]
fn s2_known_tokens_of_every_version_verify() {
    for (query, resource) in [
        (
            "sv=2012-02-12&sp=raup&se=2022-05-07&sig=%2BMxsIjau5VUtx%2Fqy4vW1R1YL0nsGm6Y%2B9FC2UQL7BKQ%3D",
            Resource::Queue(Some("q1")),
        ),
        (
            "sv=2015-02-21&sp=p&se=2022-05-07&sig=H1bJ7V0k5vlUmcNcCMX0P%2BXQukvSGZHazFBDTDkRvjA%3D",
            Resource::Queue(Some("q1")),
        ),
        (
            "sv=2021-08-06&si=pol&sip=10.0.0.5&spr=https&sig=PTY6ZPcP4GP0e9McxHV9P9yGAR2WHl7x7rtZxT83EBg%3D",
            Resource::Queue(Some("q1")),
        ),
        (
            "sv=2012-02-12&sr=c&sp=r&se=2022-05-07&sig=S2M56D%2F1RCmfJ80WH0TSVfJ8LA6mYemLuCsSC1I1oMA%3D",
            blob("c1", Some("b"), None),
        ),
        (
            "sv=2013-08-15&sr=b&sp=r&se=2022-05-07&rsct=a%2Fb&sig=Rbc58JzvmvCSnn4bYlPrSN4V8sUkOXGTT%2BhA88kLMu0%3D",
            blob("c1", Some("x/y"), None),
        ),
        (
            "sv=2015-04-05&sr=b&sp=rw&se=2022-05-07&spr=https,http&sig=KLOkldH8%2FTVzwGJ4FKn9oPbg5WJG6AN%2BSVyi%2Fr8stWM%3D",
            blob("c1", Some("x y"), None),
        ),
        (
            "sv=2018-11-09&sr=bs&sp=r&se=2022-05-07&rscc=n&sig=ny7zA1bWjcolMAhZWiyREBbtclxDz25E93%2F3%2F1ldadE%3D",
            blob("c1", Some("b"), Some(SNAPSHOT)),
        ),
        (
            "sv=2020-12-06&sr=c&sp=racwdl&st=2022-05-05&se=2022-05-07&ses=sc&rscd=d&rsce=e&rscl=l&sig=ViahxptIiLwQKBYsfslEMAUQ6F2SYoicXTBJQOZSSxw%3D",
            blob("c1", None, None),
        ),
    ] {
        let grant = verify(query, resource).unwrap_or_else(|error| panic!("{query}: {error}"));
        let token = SasToken::parse(query, resource).expect("a token").expect("a signature");
        let again = token.fields().to_query(ACCOUNT, &key());
        assert_eq!(verify(&again, resource), Ok(grant), "{query}");
    }
}

#[test]
fn s2_a_token_is_for_what_it_was_signed_for() {
    let queue = queue_token("r");
    assert_eq!(
        verify(&queue, Resource::Queue(Some("q1"))).map(|grant| grant.scope),
        Ok(Scope::Queue { queue: "q1".to_owned() })
    );
    assert_eq!(verify(&queue, Resource::Queue(Some("q2"))), Err(SasError::Signature));
    assert_eq!(verify(&queue, Resource::Queue(None)), Err(SasError::Malformed("ss with srt")));
    assert_eq!(verify(&queue, Resource::Table), Err(SasError::Malformed("tn, or ss with srt")));
    assert_eq!(verify(&queue, blob("q1", None, None)), Err(SasError::Malformed("sr")));

    let one = blob_token("r", BlobSasScope::Blob("a/b".into()));
    assert!(verify(&one, blob("c1", Some("a/b"), None)).is_ok());
    assert!(verify(&one, blob("c1", Some("a/b"), Some(SNAPSHOT))).is_ok());
    assert_eq!(verify(&one, blob("c1", Some("a/c"), None)), Err(SasError::Signature));
    assert_eq!(verify(&one, blob("c1", None, None)), Err(SasError::ResourceLevel));
    assert_eq!(verify(&one, blob("c1", Some("a\nb"), None)), Err(SasError::Malformed("sr")));

    let snapshot = blob_token("r", BlobSasScope::Snapshot { blob: "b".into(), snapshot: SNAPSHOT.into() });
    assert!(verify(&snapshot, blob("c1", Some("b"), Some(SNAPSHOT))).is_ok());
    assert_eq!(
        verify(&snapshot, blob("c1", Some("b"), Some("2022-05-05T01:02:03.1234568Z"))),
        Err(SasError::Signature)
    );
    assert_eq!(verify(&snapshot, blob("c1", Some("b"), None)), Err(SasError::ResourceLevel));

    let whole = blob_token("r", BlobSasScope::Container);
    assert!(verify(&whole, blob("c1", Some("any"), None)).is_ok());
    assert_eq!(verify(&whole, blob("c2", Some("any"), None)), Err(SasError::Signature));
    assert_eq!(verify(&whole.replace("sr=c", "sr=d"), blob("c1", Some("b"), None)), Err(SasError::Malformed("sr")));
    let nothing = Resource::Blob { container: None, blob: None, snapshot: None };
    assert_eq!(verify(&whole, nothing), Err(SasError::ResourceLevel));
    let delegated = format!("{whole}&skoid=x");
    assert_eq!(verify(&delegated, blob("c1", None, None)), Err(SasError::UserDelegation));
}

#[test]
fn s4_a_policy_completes_its_tokens() {
    let kind =
        SasKind::Blob(Box::new(BlobSas { container: "c1".into(), policy_id: Some("p".into()), ..BlobSas::default() }));
    let query = SasFields { permissions: None, expiry: None, ..fields("", kind) }.to_query(ACCOUNT, &key());
    let resource = blob("c1", Some("b"), None);
    let token = SasToken::parse(&query, resource).expect("a token").expect("a signature");
    assert_eq!(token.policy_id(), Some(("c1", "p")));
    let grant = verify(&query, resource).expect("a grant");
    assert_eq!(grant.permits(&Need::read_blob("c1", "b", None)), Ok(()));
    assert_eq!(grant.permits(&Need::delete_blob("c1", "b", None)), Err(SasError::Permission));
}

#[test]
fn the_headers_to_answer_with_come_with_the_grant() {
    let kind = BlobSas {
        container: "c1".into(),
        content_type: Some("text/x".into()),
        cache_control: Some("no-store".into()),
        ..BlobSas::default()
    };
    let query = fields("r", SasKind::Blob(Box::new(kind))).to_query(ACCOUNT, &key());
    let overrides = verify(&query, blob("c1", Some("b"), None)).expect("a grant").overrides;
    let expected = ResponseOverrides {
        content_type: Some("text/x".to_owned()),
        cache_control: Some("no-store".to_owned()),
        ..ResponseOverrides::default()
    };
    assert_eq!(overrides.as_deref(), Some(&expected));
    assert_eq!(verify(&query.replace("text%2Fx", "text%2Fy"), blob("c1", None, None)), Err(SasError::Signature));
    assert_eq!(verify(&queue_token("r"), Resource::Queue(Some("q1"))).expect("a grant").overrides, None);
}

#[test]
fn s2_a_queue_token_allows_its_letters_on_its_queue() {
    for (letters, need, expected) in [
        ("r", Need::get_queue_metadata("q1"), Ok(())),
        ("r", Need::peek_messages("q1"), Ok(())),
        ("r", Need::peek_messages("q2"), Err(SasError::Scope)),
        ("aup", Need::peek_messages("q1"), Err(SasError::Permission)),
        ("a", Need::put_message("q1"), Ok(())),
        ("u", Need::update_message("q1"), Ok(())),
        ("p", Need::process_messages("q1"), Ok(())),
        ("rau", Need::process_messages("q1"), Err(SasError::Permission)),
        ("raupdw", Need::CLEAR_MESSAGES, Err(SasError::Scope)),
        ("raupdw", Need::SET_QUEUE_METADATA, Err(SasError::Scope)),
        ("raupdw", Need::DELETE_QUEUE, Err(SasError::Scope)),
        ("raupdw", Need::ACL, Err(SasError::Scope)),
    ] {
        let grant = verify(&queue_token(letters), Resource::Queue(Some("q1"))).expect("a grant");
        assert_eq!(grant.permits(&need), expected, "{letters} {need:?}");
    }
}

#[test]
fn s2_a_blob_token_allows_its_letters_on_its_blobs() {
    let container = || BlobSasScope::Container;
    let one = || BlobSasScope::Blob("b".into());
    for (scope, letters, need, expected) in [
        (container(), "r", Need::read_blob("c1", "b", None), Ok(())),
        (container(), "r", Need::read_blob("c1", "b", SNAPSHOT.parse().ok()), Ok(())),
        (container(), "r", Need::read_blob("c2", "b", None), Err(SasError::Scope)),
        (container(), "l", Need::list_blobs("c1"), Ok(())),
        (one(), "l", Need::list_blobs("c1"), Err(SasError::Scope)),
        (container(), "f", Need::find_blobs("c1"), Ok(())),
        (container(), "racwdl", Need::READ_CONTAINER, Err(SasError::Scope)),
        (container(), "racwdl", Need::DELETE_CONTAINER, Err(SasError::Scope)),
        (one(), "r", Need::read_blob("c1", "b", None), Ok(())),
        (one(), "r", Need::read_blob("c1", "other", None), Err(SasError::Scope)),
        (one(), "c", Need::create_blob("c1", "b"), Ok(())),
        (one(), "c", Need::write_blob("c1", "b"), Err(SasError::Permission)),
        (one(), "c", Need::snapshot_blob("c1", "b"), Ok(())),
        (one(), "w", Need::write_blob("c1", "b"), Ok(())),
        (one(), "a", Need::append_block("c1", "b"), Ok(())),
        (one(), "a", Need::create_blob("c1", "b"), Err(SasError::Permission)),
        (one(), "d", Need::break_blob_lease("c1", "b"), Ok(())),
        (one(), "d", Need::delete_blob("c1", "b", None), Ok(())),
        (one(), "t", Need::tag_blob("c1", "b", None), Ok(())),
        (one(), "d", Need::anything(Target::Blob { container: "c1", blob: "b", snapshot: None }), Ok(())),
    ] {
        let grant = verify(&blob_token(letters, scope), blob("c1", Some("b"), None)).expect("a grant");
        assert_eq!(grant.permits(&need), expected, "{letters} {need:?}");
    }
    let snapshot = blob_token("rd", BlobSasScope::Snapshot { blob: "b".into(), snapshot: SNAPSHOT.into() });
    let grant = verify(&snapshot, blob("c1", Some("b"), Some(SNAPSHOT))).expect("a grant");
    assert_eq!(grant.permits(&Need::read_blob("c1", "b", SNAPSHOT.parse().ok())), Ok(()));
    assert_eq!(grant.permits(&Need::delete_blob("c1", "b", None)), Err(SasError::Scope));
}

#[test]
fn s2_the_letter_c_does_not_overwrite() {
    for (letters, expected) in [("c", Err(SasError::Overwrite)), ("w", Ok(())), ("cw", Ok(()))] {
        let grant = verify(&blob_token(letters, BlobSasScope::Container), blob("c1", None, None)).expect("a grant");
        assert_eq!(grant.permits_overwrite(), expected, "{letters}");
    }
    assert_eq!(SasError::Overwrite.code(), ErrorCode::UnauthorizedBlobOverwrite);
}

proptest! {
    #[test]
    fn any_query_is_read_or_refused(
        query in "((sig|sv|sr|ss|srt|sp|se|si|ses|rscc|rsct)=(x|2019-02-02|b|c|bs|%41|%|é|\\+)?&){0,8}",
    ) {
        for resource in [Resource::Queue(Some("q")), blob("c", Some("b"), Some("s")), blob("c", None, None)] {
            if let Ok(Some(token)) = SasToken::parse(&query, resource) {
                prop_assert!(!token.fields().version.is_empty());
            }
        }
    }

    #[test]
    fn what_is_signed_verifies_for_its_blob_only(name in "[^\n]{1,12}", other in "[^\n]{1,12}") {
        let scope = BlobSasScope::Blob(name.as_str().into());
        let kind = SasKind::Blob(Box::new(BlobSas { container: "c".into(), scope, ..BlobSas::default() }));
        let query = SasFields { kind, ..fields("r", SasKind::default()) }.to_query(ACCOUNT, &key());
        let at = |blob| Resource::Blob { container: Some("c"), blob: Some(blob), snapshot: None };
        prop_assert!(verify(&query, at(&name)).is_ok());
        prop_assert!(name == other || verify(&query, at(&other)) == Err(SasError::Signature));
    }
}
