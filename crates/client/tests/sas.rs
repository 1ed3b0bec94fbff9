//! Tokens and stored policies over a server of their own.

use crate::suite::sas::{ALL, can_read, employees, holder, in_an_hour};
use crate::suite::{self, over_larimar, sas};
use larimar_client::sas::{SasProtocol, TablePermissions, TableSas};
use larimar_client::{DynamicEntity, Error, StoredPolicy};
use larimar_embedded::Larimar;

sas::sas_cases!(over_larimar);

/// Azurite does not look at the range.
#[tokio::test]
async fn s3_a_token_reaches_its_range_of_keys() {
    let server = Larimar::ephemeral().await.expect("a server");
    let owner = employees(&suite::connect(&server.connection_string())).await;
    type Terms = fn(TableSas) -> TableSas;
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
        let table = holder(&owner, token.as_str()).table(owner.name());
        for ((partition, row), is_within) in ALL.into_iter().zip(expected) {
            assert_eq!(can_read(&table, partition, row).await, is_within, "{partition} {row} of {expected:?}");
        }
    }
}

#[tokio::test]
async fn s2_every_refusal_of_a_token_has_its_code() {
    let server = Larimar::ephemeral().await.expect("a server");
    let owner = employees(&suite::connect(&server.connection_string())).await;
    type Terms = fn(TableSas) -> TableSas;
    let cases: [(Terms, &str); 4] = [
        (|token| token.expires("2020-01-01T00:00:00Z".parse().expect("a time")), "AuthenticationFailed"),
        (|token| token.addresses([10, 0, 0, 1], [10, 0, 0, 9]), "AuthorizationSourceIPMismatch"),
        (|token| token.protocol(SasProtocol::Https), "AuthorizationProtocolMismatch"),
        (|token| token.permissions(TablePermissions::DELETE), "AuthorizationPermissionMismatch"),
    ];
    for (terms, code) in cases {
        let token = owner.sas(|token| terms(token.permissions(TablePermissions::READ).expires(in_an_hour())));
        let table = holder(&owner, token.expect("a token").as_str()).table(owner.name().to_lowercase());
        let error = table.get::<DynamicEntity>("Sales", "1").await.expect_err(code);
        assert_eq!(error.code(), Some(code));
    }
}

/// Azurite takes only policies that say everything.
#[tokio::test]
async fn s4_a_policy_need_not_say_everything() {
    let server = Larimar::ephemeral().await.expect("a server");
    let owner = employees(&suite::connect(&server.connection_string())).await;
    let policies = [
        StoredPolicy::new("nothing"),
        StoredPolicy::new("permissions").permissions(TablePermissions::READ),
        StoredPolicy::new("expiry").expires(in_an_hour()),
    ];
    owner.set_policies(&policies).await.expect("set");
    assert_eq!(owner.policies().await.expect("read"), policies);
    let token = owner.sas(|token| token.policy("permissions").expires(in_an_hour())).expect("a token");
    assert!(can_read(&holder(&owner, token.as_str()).table(owner.name()), "Sales", "1").await);
    let token = owner.sas(|token| token.policy("permissions")).expect("a token");
    assert!(!can_read(&holder(&owner, token.as_str()).table(owner.name()), "Sales", "1").await, "it has no end");
}

#[tokio::test]
async fn policies_that_the_service_would_refuse_are_not_sent() {
    let server = Larimar::ephemeral().await.expect("a server");
    let table = suite::connect(&server.connection_string()).table("Employees");
    let many: Vec<StoredPolicy> = (0..6).map(|number| StoredPolicy::new(number.to_string())).collect();
    let twice = [StoredPolicy::new("a"), StoredPolicy::new("a")];
    for refused in [&many[..], &twice, &[StoredPolicy::new("")], &[StoredPolicy::new("p".repeat(65))]] {
        let error = table.set_policies(refused).await.expect_err("refused");
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    }
    assert_eq!(server.requests().table, 0, "nothing of it was sent");
}
