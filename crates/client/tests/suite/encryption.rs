//! S5: encrypted entities, whichever server keeps them.

use crate::suite::unique;
use larimar_client::encryption::{Encryption, HashKey, KeyRing, LocalKey, METADATA};
use larimar_client::{Account, BulkOperation, Column, DynamicEntity, IfMatch, Value};
use std::sync::Arc;

fn employee(row: &str, email: &str) -> DynamicEntity {
    DynamicEntity::new("Sales", row).with("Name", "Don").with("Email", email).with("Age", 34)
}

pub(crate) async fn s5_encrypted_entities_are_kept_by_any_server(account: &Account) {
    let plain = account.table(unique("Employees"));
    plain.create().await.expect("created");
    let keys = || KeyRing::new(LocalKey::new("k1", [1; 32]));
    let encryption = Encryption::new(keys()).choose(|_, _, name| name == "Email");
    let table = plain.encrypted(Arc::new(encryption));
    // Empty and beyond ASCII: what is stored is Binary, of 28 bytes at least.
    let entities = [employee("1", "don@contoso.com"), employee("2", ""), employee("3", "日本@例え.jp")];
    for entity in &entities {
        table.insert(entity).await.expect("inserted");
    }
    let stored = plain.query::<DynamicEntity>().all().await.expect("read");
    for (entity, stored) in entities.iter().zip(stored) {
        let text: String = entity.get("Email").expect("text");
        assert_eq!(stored.get::<Vec<u8>>("Email").expect("bytes").len(), text.len() + 28);
        assert!(stored.value(METADATA).is_some());
    }
    let emails = |entities: Vec<DynamicEntity>| -> Vec<Option<Value>> {
        entities.iter().map(|entity| entity.value("Email").cloned()).collect()
    };
    let expected = emails(entities.to_vec());
    assert_eq!(emails(table.query().all().await.expect("read")), expected);
    assert_eq!(emails(table.query().select(["Email"]).all().await.expect("read")), expected);

    let mut transaction = table.transaction();
    transaction.insert_or_replace(&employee("1", "hall@contoso.com")).expect("added");
    transaction.delete("Sales", "2", IfMatch::Any).expect("added");
    transaction.submit().await.expect("submitted");
    let changed: DynamicEntity = table.get("Sales", "1").await.expect("read").expect("found");
    assert_eq!(changed.get::<String>("Email").expect("text"), "hall@contoso.com");

    // A client with other keys cannot read it.
    let other = Encryption::new(KeyRing::new(LocalKey::new("k1", [2; 32])));
    assert!(plain.encrypted(Arc::new(other)).get::<DynamicEntity>("Sales", "1").await.is_err());
}

pub(crate) async fn s5_a_companion_hash_is_looked_up_in_any_server(account: &Account) {
    let table = account.table(unique("Employees"));
    table.create().await.expect("created");
    let keys = KeyRing::new(LocalKey::new("k1", [1; 32]));
    let encryption = Encryption::new(keys).with_hash_key(HashKey::new([9; 32]));
    for (row, email) in [("1", "a@contoso.com"), ("2", "b@contoso.com"), ("3", "a@contoso.com")] {
        let hash = encryption.lookup_hash(table.name(), "Email", email).expect("a hash");
        table.insert(&DynamicEntity::new("Sales", row).with("EmailHash", hash)).await.expect("inserted");
    }
    let hash = encryption.lookup_hash(table.name(), "Email", "a@contoso.com").expect("a hash");
    let column: Column<Vec<u8>> = Column::named("EmailHash");
    let found = table.query::<DynamicEntity>().filter(column.eq(hash)).all().await.expect("read");
    assert_eq!(found.iter().map(|entity| entity.row_key.as_str()).collect::<Vec<_>>(), ["1", "3"]);
}

pub(crate) async fn s5_many_large_entities_are_split_by_their_size_when_encrypted(account: &Account) {
    let plain = account.table(unique("Employees"));
    plain.create().await.expect("created");
    let keys = KeyRing::new(LocalKey::new("k1", [1; 32]));
    let table = plain.encrypted(Arc::new(Encryption::new(keys).choose(|_, _, name| name.starts_with("Secret"))));
    // About 3.2 MiB, which one transaction would take, and 4.3 MiB once they are encrypted.
    let large = |row: usize| {
        let text = "x".repeat(30 * 1024);
        (0..3).fold(DynamicEntity::new("Sales", format!("{row:02}")), |entity, number| {
            entity.with(format!("Secret{number}"), text.as_str())
        })
    };
    let operations = (0..36).map(|row| BulkOperation::insert(&large(row)).expect("an operation"));
    let report = table.bulk().submit(operations).await;
    assert!(report.is_success(), "{report:?}");
    let stored = plain.query::<DynamicEntity>().select([METADATA]).all().await.expect("read");
    assert_eq!(stored.iter().filter(|entity| entity.value(METADATA).is_some()).count(), 36);
    let last: DynamicEntity = table.get("Sales", "35").await.expect("read").expect("found");
    assert_eq!(last.properties().collect::<Vec<_>>(), large(35).properties().collect::<Vec<_>>());
}

macro_rules! encryption_cases {
    ($test:ident) => {
        $test! { encryption:
            s5_encrypted_entities_are_kept_by_any_server,
            s5_a_companion_hash_is_looked_up_in_any_server,
            s5_many_large_entities_are_split_by_their_size_when_encrypted,
        }
    };
}
pub(crate) use encryption_cases;
