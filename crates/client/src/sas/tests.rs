//! C8: tokens are those that the official clients make, and the service's own checks honour them.

use super::*;
use crate::{SharedKey, Timestamp};
use larimar_wire::acl::AccessPolicy;
use larimar_wire::sas::{Circumstances, Grant, Permissions, Resource, SasToken as Parsed, Scope, Service};
use larimar_wire::signature::AccountKey;
use larimar_wire::signature::{DEVELOPMENT_ACCOUNT as ACCOUNT, DEVELOPMENT_KEY as KEY};
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn key() -> SharedKey {
    SharedKey::new(ACCOUNT, KEY).expect("a key")
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn table() -> TableSas {
    TableSas::new("MyTable").permissions(TablePermissions::ALL).expires(time("2022-05-07T00:00:00Z"))
}

fn account_of(services: Services, resources: ResourceTypes) -> AccountSas {
    AccountSas::new(services, resources)
        .permissions(AccountPermissions::READ | AccountPermissions::WRITE)
        .expires(time("2022-05-07T00:00:00Z"))
}

fn verify(token: &SasToken, service: Service, resource: Resource<'_>, policy: Option<&AccessPolicy>) -> Grant {
    let keys = [AccountKey::from_base64(KEY).expect("a key")];
    let circumstances = Circumstances {
        account: ACCOUNT,
        keys: &keys,
        service,
        now: time("2022-05-06T00:00:00Z").inner(),
        peer: [10, 0, 0, 5].into(),
        secure: true,
    };
    let parsed = Parsed::parse(token.as_str(), resource).expect("a token").expect("a signature");
    parsed.verify(&circumstances, policy).expect("a token that is honoured")
}

/// The value of one field of a token, still escaped.
fn field<'a>(token: &'a SasToken, name: &str) -> Option<&'a str> {
    token.as_str().split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

#[test]
fn c8_signatures_are_those_of_the_official_clients() {
    // `azure-data-tables` (Python) made the first, `@azure/data-tables` (JavaScript) the second and the third.
    let token = table()
        .starts(time("2022-05-05T01:02:03Z"))
        .from_key("a'b", "ü +")
        .to_key("z/&", "日")
        .sign(&key())
        .expect("a token");
    assert_eq!(field(&token, "sig"), Some("V%2Fb8cuJLySejKxHYbNU%2FCkIbe0iRWPe3Fl%2Bh2MZdJAY%3D"));
    let token = TableSas::new("MyTable")
        .permissions("ra".parse().expect("letters"))
        .starts(time("2022-05-05T01:02:03Z"))
        .expires(time("2022-05-07T00:00:00Z"))
        .addresses(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9))
        .protocol(SasProtocol::HttpsAndHttp)
        .from_key("a'b", "ü +")
        .sign(&key())
        .expect("a token");
    assert_eq!(field(&token, "sig"), Some("u1NjU2Kng2M78kU6t7GU5uklvmGW%2FMdvc0uZ%2BZSRoyE%3D"));
    let token = AccountSas::new(Services::BLOB | Services::TABLE, ResourceTypes::ALL)
        .permissions(AccountPermissions::READ | AccountPermissions::LIST)
        .expires(time("2022-05-07T00:00:00Z"))
        .sign(&key())
        .expect("a token");
    assert_eq!(field(&token, "sig"), Some("H51o61UgxiDy8Ruk4hYICffjgDu6oFB9j5iAU0knE5w%3D"));
}

#[test]
fn c8_a_stored_policy_completes_a_token() {
    let policy = AccessPolicy {
        start: None,
        expiry: Some(time("2022-05-07T00:00:00Z").inner()),
        permissions: Permissions::parse("ra"),
    };
    let token = TableSas::new("t1x").policy("pol").sign(&key()).expect("a token");
    let grant = verify(&token, Service::Table, Resource::Table, Some(&policy));
    assert_eq!(Some(grant.permissions), policy.permissions);
    // The signature of the same token by another implementation, with the range of addresses that it has.
    let token = TableSas::new("t1x")
        .policy("pol")
        .addresses(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9))
        .protocol(SasProtocol::Https)
        .sign(&key())
        .expect("a token");
    assert_eq!(field(&token, "sig"), Some("hoyHC3yZflaWa0KMwRryeCmDP0iBr6s6ktwBfCBY7PE%3D"));
}

#[test]
fn c8_tokens_for_queues_containers_and_blobs_are_honoured() {
    let expiry = time("2022-05-07T00:00:00Z");
    let queue = QueueSas::new("work").permissions(QueuePermissions::ADD | QueuePermissions::PROCESS).expires(expiry);
    let grant = verify(&queue.sign(&key()).expect("a token"), Service::Queue, Resource::Queue(Some("work")), None);
    assert_eq!(grant.permissions.to_text("raup"), "ap");

    let at = |blob| Resource::Blob { container: Some("logs"), blob, snapshot: None };
    let container = BlobSas::container("logs").permissions(BlobPermissions::ALL).expires(expiry);
    let grant = verify(&container.sign(&key()).expect("a token"), Service::Blob, at(Some("a/b")), None);
    assert_eq!(grant.scope, Scope::Container { container: "logs".to_owned() });
    let blob = BlobSas::blob("logs", "a/ü").permissions(BlobPermissions::READ).expires(expiry);
    let grant = verify(&blob.sign(&key()).expect("a token"), Service::Blob, at(Some("a/ü")), None);
    assert_eq!(grant.permissions.to_text("racwdlt"), "r");
}

#[test]
fn c8_what_no_service_would_honour_is_refused() {
    let expiry = time("2022-05-07T00:00:00Z");
    let half = time("2022-05-06T23:59:59.5Z");
    let read = TablePermissions::READ;
    for (sas, expected) in [
        (TableSas::new("1x").permissions(read).expires(expiry), SasError::Name),
        (TableSas::new("t1x").expires(expiry), SasError::PermissionsMissing),
        (TableSas::new("t1x").permissions(read), SasError::ExpiryMissing),
        (table().starts(expiry), SasError::EndBeforeStart),
        (table().starts(half).expires(time("2022-05-06T23:59:59.9Z")), SasError::EndBeforeStart),
        (table().policy(""), SasError::PolicyId),
        (table().policy("p".repeat(65)), SasError::PolicyId),
        (table().policy("p\nq"), SasError::ControlCharacter),
        (table().from_key("", "r"), SasError::RowWithoutPartition),
        (table().to_partition(""), SasError::EmptyLastKey),
        (table().to_key("p", ""), SasError::EmptyLastKey),
        (table().from_partition("q").to_partition("p"), SasError::KeysReversed),
        (table().from_key("p", "s").to_key("p", "r"), SasError::KeysReversed),
        (table().from_partition("\u{E000}").to_partition("\u{1F600}"), SasError::KeysReversed),
        (table().partition("a\nb"), SasError::ControlCharacter),
        (table().addresses([10, 0, 0, 2], [10, 0, 0, 1]), SasError::Addresses),
        (table().addresses([10, 0, 0, 2], [0u16; 8]), SasError::Addresses),
    ] {
        assert_eq!(sas.sign(&key()), Err(expected), "{sas:?}");
    }
    for (sas, expected) in [
        (
            account_of(Services::TABLE, ResourceTypes::ALL).permissions(AccountPermissions::NONE),
            SasError::PermissionsMissing,
        ),
        (account_of(Services::NONE, ResourceTypes::ALL), SasError::ScopeMissing),
        (account_of(Services::TABLE, ResourceTypes::NONE), SasError::ScopeMissing),
    ] {
        assert_eq!(sas.sign(&key()), Err(expected), "{sas:?}");
    }
    assert_eq!(QueueSas::new("Work").policy("p").sign(&key()), Err(SasError::Name));
    assert_eq!(BlobSas::container("Logs").policy("p").sign(&key()), Err(SasError::Name));
    assert_eq!(BlobSas::blob("logs", "").policy("p").sign(&key()), Err(SasError::Name));
}

#[test]
fn a_first_key_that_is_empty_is_no_bound() {
    for sas in [table().from_partition(""), table().from_key("", "")] {
        assert_eq!(sas.sign(&key()), table().sign(&key()));
    }
}

#[test]
fn letters_come_in_the_order_of_the_service() {
    assert_eq!("dura".parse::<TablePermissions>().map(|set| set.to_string()), Ok("raud".to_owned()));
    assert_eq!(AccountPermissions::ALL.to_string(), "rwdlacup");
    assert_eq!(BlobPermissions::ALL.to_string(), "racwdlt");
    assert!("rr".parse::<TablePermissions>().is_err());
    assert!("rx".parse::<TablePermissions>().is_err());
    assert_eq!("".parse::<Services>(), Ok(Services::NONE));
}

#[test]
fn a_token_is_not_shown() {
    let token = table().sign(&key()).expect("a token");
    assert_eq!(format!("{token:?}"), "SasToken(hidden)");
}

proptest! {
    #[test]
    fn c8_ranges_of_keys_reach_the_service_as_they_are(
        low in "[^\\p{Cc}]{0,8}", low_row in "[^\\p{Cc}]{0,8}", high in "[^\\p{Cc}]{0,8}", high_row in "[^\\p{Cc}]{0,8}",
        letters in 1u8..16,
    ) {
        let permissions: String = "raud".chars().enumerate().filter(|(at, _)| letters >> at & 1 == 1)
            .map(|(_, letter)| letter).collect();
        let sas = table()
            .permissions(permissions.parse().expect("letters"))
            .from_key(low.clone(), low_row.clone())
            .to_key(high.clone(), high_row.clone());
        let Ok(token) = sas.sign(&key()) else { return Ok(()) };
        let grant = verify(&token, Service::Table, Resource::Table, None);
        prop_assert_eq!(grant.permissions.to_text("raud"), permissions);
        let Scope::Table { table, keys } = grant.scope else { panic!("a table's scope") };
        prop_assert_eq!(table, "mytable");
        prop_assert_eq!(keys.start_partition.unwrap_or_default(), low);
        prop_assert_eq!(keys.start_row.unwrap_or_default(), low_row);
        prop_assert_eq!(keys.end_partition, Some(high));
        prop_assert_eq!(keys.end_row, Some(high_row));
    }
}
