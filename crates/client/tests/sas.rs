//! C8, S2–S4: tokens and stored policies against a server, which honours what they say and nothing more.

use larimar_client::sas::{AccountPermissions, AccountSas, ResourceTypes, SasProtocol, Services, TablePermissions};
use larimar_client::{Account, DynamicEntity, IfMatch, RetryPolicy, StoredPolicy, Table, Timestamp};
use larimar_embedded::Larimar;
use std::net::Ipv4Addr;
use std::time::Duration;

fn in_an_hour() -> Timestamp {
    Timestamp::now().after(Duration::from_secs(3600))
}

async fn owned(server: &Larimar) -> Table {
    let table = Account::connect(&server.connection_string()).expect("an account").table("Employees");
    table.create().await.expect("created");
    for (partition, row) in [("Marketing", "1"), ("Sales", "1"), ("Sales", "2"), ("Sales", "3"), ("Support", "1")] {
        table.insert(&DynamicEntity::new(partition, row).with("Age", 34)).await.expect("inserted");
    }
    table
}

/// The account as whoever has this token sees it.
fn holder(server: &Larimar, token: &str) -> Account {
    let account = Account::builder().table_endpoint(server.table_endpoint()).sas(token).retry(RetryPolicy::none());
    account.build().expect("an account")
}

async fn can_read(table: &Table, partition: &str, row: &str) -> bool {
    match table.get::<DynamicEntity>(partition, row).await {
        Ok(entity) => entity.is_some(),
        Err(error) => {
            assert_eq!(error.status(), Some(403), "{error}");
            false
        }
    }
}

#[tokio::test]
async fn c8_a_token_allows_what_it_says() {
    let server = Larimar::ephemeral().await.expect("a server");
    let owner = owned(&server).await;
    let token = owner
        .sas(|token| token.permissions(TablePermissions::READ | TablePermissions::ADD).expires(in_an_hour()))
        .expect("a token");
    let table = holder(&server, token.as_str()).table("employees");
    assert!(can_read(&table, "Sales", "1").await);
    table.insert(&DynamicEntity::new("Sales", "4")).await.expect("inserted");
    let error = table.delete("Sales", "4", IfMatch::Any).await.expect_err("no delete");
    assert_eq!(error.code(), Some("AuthorizationPermissionMismatch"));
    let error = table.insert_or_replace(&DynamicEntity::new("Sales", "4")).await.expect_err("no update");
    assert_eq!(error.status(), Some(403), "{error}");
    let other = holder(&server, token.as_str()).table("Managers");
    assert_eq!(other.get::<DynamicEntity>("a", "b").await.expect_err("another table").status(), Some(403));
    let error = holder(&server, token.as_str()).table("Managers").create().await.expect_err("no tables");
    assert_eq!(error.status(), Some(403));
}

#[tokio::test]
async fn s3_a_token_reaches_its_range_of_keys() {
    let server = Larimar::ephemeral().await.expect("a server");
    let owner = owned(&server).await;
    let all = [("Marketing", "1"), ("Sales", "1"), ("Sales", "2"), ("Sales", "3"), ("Support", "1")];
    type Terms = fn(larimar_client::sas::TableSas) -> larimar_client::sas::TableSas;
    let cases: [(Terms, [bool; 5]); 5] = [
        (|token| token.partition("Sales"), [false, true, true, true, false]),
        (|token| token.from_key("Sales", "2"), [false, false, true, true, true]),
        (|token| token.to_key("Sales", "2"), [true, true, true, false, false]),
        (|token| token.from_key("Sales", "2").to_key("Sales", "2"), [false, false, true, false, false]),
        (|token| token.from_partition("").to_partition("Sales"), [true, true, true, true, false]),
    ];
    for (terms, expected) in cases {
        let token =
            owner.sas(|token| terms(token.permissions(TablePermissions::READ).expires(in_an_hour()))).expect("a token");
        let table = holder(&server, token.as_str()).table("Employees");
        for ((partition, row), is_within) in all.into_iter().zip(expected) {
            assert_eq!(can_read(&table, partition, row).await, is_within, "{partition} {row} of {expected:?}");
        }
    }
}

#[tokio::test]
async fn s2_a_token_holds_for_its_time_address_and_protocol() {
    let server = Larimar::ephemeral().await.expect("a server");
    let owner = owned(&server).await;
    let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(86_400));
    let now = Timestamp::now();
    type Terms = Box<dyn Fn(larimar_client::sas::TableSas) -> larimar_client::sas::TableSas>;
    let cases: [(Terms, Option<&str>); 6] = [
        (Box::new(move |token| token.starts(now.before(hour)).expires(now.after(hour))), None),
        (Box::new(move |token| token.expires(now.before(hour))), Some("AuthenticationFailed")),
        (Box::new(move |token| token.starts(now.after(hour)).expires(now.after(day))), Some("AuthenticationFailed")),
        (
            Box::new(move |token| token.expires(now.after(hour)).addresses(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)),
            None,
        ),
        (
            Box::new(move |token| token.expires(now.after(hour)).addresses([10, 0, 0, 1], [10, 0, 0, 9])),
            Some("AuthorizationSourceIPMismatch"),
        ),
        (
            Box::new(move |token| token.expires(now.after(hour)).protocol(SasProtocol::Https)),
            Some("AuthorizationProtocolMismatch"),
        ),
    ];
    for (at, (terms, refusal)) in cases.into_iter().enumerate() {
        let token = owner.sas(|token| terms(token.permissions(TablePermissions::READ))).expect("a token");
        let read = holder(&server, token.as_str()).table("Employees").get::<DynamicEntity>("Sales", "1").await;
        assert_eq!(read.as_ref().err().and_then(larimar_client::Error::code), refusal, "case {at}");
    }
}

#[tokio::test]
async fn s4_a_stored_policy_can_be_changed_and_revoked() {
    let server = Larimar::ephemeral().await.expect("a server");
    let owner = owned(&server).await;
    assert_eq!(owner.policies().await.expect("read"), []);
    let readers = StoredPolicy::new("readers <&>")
        .permissions(TablePermissions::READ)
        .starts("2020-01-01T00:00:00.1234567Z".parse().expect("a time"))
        .expires(in_an_hour());
    let empty = StoredPolicy::new("empty");
    owner.set_policies(&[readers.clone(), empty.clone()]).await.expect("set");
    assert_eq!(owner.policies().await.expect("read"), [readers.clone(), empty]);

    let token = owner.sas(|token| token.policy("readers <&>")).expect("a token");
    let table = holder(&server, token.as_str()).table("Employees");
    assert!(can_read(&table, "Sales", "1").await);
    owner.set_policies(&[readers.permissions(TablePermissions::ADD)]).await.expect("changed");
    assert!(!can_read(&table, "Sales", "1").await);
    owner.set_policies(&[]).await.expect("removed");
    assert!(!can_read(&table, "Sales", "1").await);
    assert_eq!(table.policies().await.expect_err("not with a token").status(), Some(403));

    let before = server.requests().table;
    let many: Vec<StoredPolicy> = (0..6).map(|number| StoredPolicy::new(number.to_string())).collect();
    let twice = [StoredPolicy::new("a"), StoredPolicy::new("a")];
    for refused in [&many[..], &twice, &[StoredPolicy::new("")], &[StoredPolicy::new("p".repeat(65))]] {
        let error = owner.set_policies(refused).await.expect_err("refused");
        assert!(matches!(error, larimar_client::Error::Invalid(_)), "{error:?}");
    }
    assert_eq!(server.requests().table, before, "nothing of it was sent");
}

#[tokio::test]
async fn c8_a_token_for_the_account_creates_reads_and_writes() {
    let server = Larimar::ephemeral().await.expect("a server");
    let owner = Account::connect(&server.connection_string()).expect("an account");
    let sas = AccountSas::new(Services::TABLE, ResourceTypes::CONTAINER | ResourceTypes::OBJECT)
        .permissions(AccountPermissions::CREATE | AccountPermissions::ADD | AccountPermissions::READ)
        .expires(in_an_hour());
    let token = owner.tables().sas(&sas).expect("a token");
    let held = holder(&server, token.as_str());
    let table = held.table("Employees");
    table.create().await.expect("created");
    table.insert(&DynamicEntity::new("Sales", "1")).await.expect("inserted");
    assert!(can_read(&table, "Sales", "1").await);
    assert_eq!(table.delete_table().await.expect_err("no delete").code(), Some("AuthorizationPermissionMismatch"));
    assert_eq!(
        held.tables().properties().await.expect_err("no service").code(),
        Some("AuthorizationResourceTypeMismatch")
    );
    assert!(held.tables().sas(&sas).is_err(), "a token signs no other");
    assert!(table.sas(|token| token.policy("p")).is_err(), "a token signs no other");
}
