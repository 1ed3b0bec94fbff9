//! C8, S2–S4: tokens and stored policies. The service honours what they say and nothing more.

use crate::suite::unique;
use larimar_client::sas::{
    AccountPermissions, AccountSas, ResourceTypes, SasProtocol, Services, TablePermissions, TableSas,
};
use larimar_client::{Account, DynamicEntity, Error, IfMatch, RetryPolicy, StoredPolicy, Table, Timestamp};
use std::net::Ipv4Addr;
use std::time::Duration;

pub(crate) fn in_an_hour() -> Timestamp {
    Timestamp::now().after(Duration::from_secs(3600))
}

/// A table with some employees.
pub(crate) async fn employees(account: &Account) -> Table {
    let table = account.table(unique("Employees"));
    table.create().await.expect("created");
    for (partition, row) in ALL {
        table.insert(&DynamicEntity::new(partition, row).with("Age", 34)).await.expect("inserted");
    }
    table
}

pub(crate) const ALL: [(&str, &str); 5] =
    [("Marketing", "1"), ("Sales", "1"), ("Sales", "2"), ("Sales", "3"), ("Support", "1")];

/// The account of this table, accessed with this token.
pub(crate) fn holder(table: &Table, token: &str) -> Account {
    let url = table.url();
    let endpoint = url.strip_suffix(table.name()).expect("the table's name comes last");
    let account = Account::builder().table_endpoint(endpoint).sas(token).retry(RetryPolicy::none());
    account.build().expect("an account")
}

pub(crate) async fn can_read(table: &Table, partition: &str, row: &str) -> bool {
    match table.get::<DynamicEntity>(partition, row).await {
        Ok(entity) => entity.is_some(),
        Err(error) => {
            assert_eq!(error.status(), Some(403), "{error}");
            false
        }
    }
}

pub(crate) async fn c8_a_token_allows_what_it_says(account: &Account) {
    let owner = employees(account).await;
    let token = owner
        .sas(|token| token.permissions(TablePermissions::READ | TablePermissions::ADD).expires(in_an_hour()))
        .expect("a token");
    let table = holder(&owner, token.as_str()).table(owner.name());
    assert!(can_read(&table, "Sales", "1").await);
    table.insert(&DynamicEntity::new("Sales", "4")).await.expect("inserted");
    let error = table.delete("Sales", "4", IfMatch::Any).await.expect_err("no delete");
    assert_eq!(error.status(), Some(403), "{error}");
    let error = table.insert_or_replace(&DynamicEntity::new("Sales", "4")).await.expect_err("no update");
    assert_eq!(error.status(), Some(403), "{error}");
    let other = holder(&owner, token.as_str()).table("Managers");
    assert_eq!(other.get::<DynamicEntity>("a", "b").await.expect_err("another table").status(), Some(403));
    let error = holder(&owner, token.as_str()).table("Managers").create().await.expect_err("no tables");
    assert_eq!(error.status(), Some(403));
}

pub(crate) async fn s2_a_token_holds_for_its_time_address_and_protocol(account: &Account) {
    let owner = employees(account).await;
    let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(86_400));
    let now = Timestamp::now();
    type Terms = Box<dyn Fn(TableSas) -> TableSas>;
    let cases: [(Terms, Option<u16>); 5] = [
        (Box::new(move |token| token.starts(now.before(hour)).expires(now.after(hour))), None),
        (Box::new(move |token| token.expires(now.before(hour))), Some(403)),
        (Box::new(move |token| token.starts(now.after(hour)).expires(now.after(day))), Some(403)),
        (
            Box::new(move |token| token.expires(now.after(hour)).addresses(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)),
            None,
        ),
        (Box::new(move |token| token.expires(now.after(hour)).protocol(SasProtocol::Https)), Some(403)),
    ];
    for (at, (terms, refusal)) in cases.into_iter().enumerate() {
        let token = owner.sas(|token| terms(token.permissions(TablePermissions::READ))).expect("a token");
        let read = holder(&owner, token.as_str()).table(owner.name()).get::<DynamicEntity>("Sales", "1").await;
        assert_eq!(read.as_ref().err().and_then(Error::status), refusal, "case {at}");
    }
}

pub(crate) async fn s4_a_stored_policy_can_be_changed_and_revoked(account: &Account) {
    let owner = employees(account).await;
    assert_eq!(owner.policies().await.expect("read"), []);
    let readers = StoredPolicy::new("readers <&>")
        .permissions(TablePermissions::READ)
        .starts("2020-01-01T00:00:00.1234567Z".parse().expect("a time"))
        .expires(in_an_hour());
    let mut writers = readers.clone().permissions(TablePermissions::ALL);
    writers.id = "writers".to_owned();
    owner.set_policies(&[readers.clone(), writers.clone()]).await.expect("set");
    assert_eq!(owner.policies().await.expect("read"), [readers.clone(), writers]);

    let token = owner.sas(|token| token.policy("readers <&>")).expect("a token");
    let table = holder(&owner, token.as_str()).table(owner.name());
    assert!(can_read(&table, "Sales", "1").await);
    owner.set_policies(&[readers.permissions(TablePermissions::ADD)]).await.expect("changed");
    assert!(!can_read(&table, "Sales", "1").await);
    owner.set_policies(&[]).await.expect("removed");
    assert!(!can_read(&table, "Sales", "1").await);
    assert_eq!(table.policies().await.expect_err("not with a token").status(), Some(403));
}

pub(crate) async fn c8_a_token_for_the_account_creates_reads_and_writes(account: &Account) {
    let sas = AccountSas::new(Services::TABLE, ResourceTypes::CONTAINER | ResourceTypes::OBJECT)
        .permissions(AccountPermissions::CREATE | AccountPermissions::ADD | AccountPermissions::READ)
        .expires(in_an_hour());
    let token = account.tables().sas(&sas).expect("a token");
    let name = unique("Employees");
    let held = holder(&account.table(&name), token.as_str());
    let table = held.table(&name);
    table.create().await.expect("created");
    table.insert(&DynamicEntity::new("Sales", "1")).await.expect("inserted");
    assert!(can_read(&table, "Sales", "1").await);
    assert_eq!(table.delete_table().await.expect_err("no delete").status(), Some(403));
    assert_eq!(held.tables().properties().await.expect_err("no service").status(), Some(403));
    assert!(held.tables().sas(&sas).is_err(), "a token signs no other");
    assert!(table.sas(|token| token.policy("p")).is_err(), "a token signs no other");
}

macro_rules! sas_cases {
    ($test:ident) => {
        $test! { sas:
            c8_a_token_allows_what_it_says,
            s2_a_token_holds_for_its_time_address_and_protocol,
            s4_a_stored_policy_can_be_changed_and_revoked,
            c8_a_token_for_the_account_creates_reads_and_writes,
        }
    };
}
pub(crate) use sas_cases;
