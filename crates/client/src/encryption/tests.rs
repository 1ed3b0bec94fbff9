//! S5: what is sealed opens to what it was, the service learns nothing of it, and every change to it is noticed.

use super::*;
use crate::{BoxError, BoxFuture, DynamicEntity, EncryptedProperty, Value};
use base64::Engine as _;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const TABLE: &str = "Employees";
const MARKED: &[EncryptedProperty] =
    &[EncryptedProperty::new("Email", Some("EmailHash")), EncryptedProperty::new("Salary", None)];

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn encryption() -> Encryption {
    Encryption::new(KeyRing::new(LocalKey::new("k1", [1; 32]))).with_hash_key(HashKey::new([9; 32]))
}

fn employee() -> DynamicEntity {
    DynamicEntity::new("Sales", "000123")
        .with("FirstName", "Don")
        .with("Email", "don.hall@contoso.com")
        .with("Salary", "60000")
        .with("Photo", vec![1u8, 2, 3])
        .with("Age", 34)
}

fn sealed() -> DynamicEntity {
    let mut entity = marked(employee());
    run(encryption().seal(TABLE, &mut entity)).expect("sealed");
    entity
}

/// An entity of a type that marks properties.
fn marked(mut entity: DynamicEntity) -> DynamicEntity {
    entity.marks.add(MARKED);
    entity
}

fn open(entity: &DynamicEntity) -> Result<DynamicEntity, EncryptionError> {
    let mut entity = entity.clone();
    run(encryption().open(TABLE, &mut entity, MARKED, None))?;
    Ok(entity)
}

fn bytes(entity: &DynamicEntity, property: &str) -> Vec<u8> {
    entity.get(property).expect("bytes")
}

fn metadata(entity: &DynamicEntity) -> String {
    entity.get(METADATA).expect("metadata")
}

#[test]
fn s5_chosen_text_is_stored_as_binary_with_its_metadata_and_opens_to_what_it_was() {
    let stored = sealed();
    for name in ["Email", "Salary", "EmailHash"] {
        assert_eq!(stored.value(name).map(Value::type_name), Some("Edm.Binary"), "{name}");
    }
    assert_eq!(bytes(&stored, "Email").len(), "don.hall@contoso.com".len() + 28);
    assert_eq!(stored.value("FirstName"), Some(&Value::from("Don")));
    let text = metadata(&stored);
    assert!(
        text.starts_with(r#"{"version":1,"algorithm":"A256GCM","key":{"id":"k1","algorithm":"A256KW","wrapped":""#)
    );
    assert!(text.contains(r#""properties":[{"name":"Email","hashed_as":"EmailHash"},{"name":"Salary"}]"#), "{text}");
    assert_eq!(open(&stored).expect("opened"), employee());
}

#[test]
fn every_write_has_its_own_key_and_nonces() {
    let (one, other) = (sealed(), sealed());
    assert_ne!(bytes(&one, "Email"), bytes(&other, "Email"));
    assert_ne!(metadata(&one), metadata(&other));
    assert_eq!(bytes(&one, "EmailHash"), bytes(&other, "EmailHash"), "look-ups need equal hashes");
}

#[test]
fn s5_every_byte_of_a_ciphertext_is_guarded() {
    let stored = sealed();
    for name in ["Email", "Salary", "EmailHash"] {
        let original = bytes(&stored, name);
        for at in 0..original.len() {
            for bit in 0..8 {
                let mut changed = original.clone();
                changed[at] ^= 1 << bit;
                let error = open(&stored.clone().with(name, changed)).expect_err("noticed");
                assert!(matches!(&error, EncryptionError::Tampered { property } if property == name), "{error:?}");
            }
        }
        for length in 0..original.len() {
            let error = open(&stored.clone().with(name, &original[..length])).expect_err("noticed");
            assert!(matches!(error, EncryptionError::Tampered { .. }), "{error:?}");
        }
        let error = open(&stored.clone().with(name, "text")).expect_err("noticed");
        assert!(matches!(error, EncryptionError::Tampered { .. }), "{error:?}");
    }
}

#[test]
fn s5_every_byte_of_the_metadata_is_guarded() {
    let stored = sealed();
    let original = metadata(&stored);
    for at in 0..original.len() {
        for bit in 0..7 {
            let mut changed = original.clone().into_bytes();
            changed[at] ^= 1 << bit;
            let changed = String::from_utf8(changed).expect("ASCII");
            assert!(open(&stored.clone().with(METADATA, changed.as_str())).is_err(), "{changed}");
        }
        let mut shorter = original.clone();
        shorter.remove(at);
        assert!(open(&stored.clone().with(METADATA, shorter.as_str())).is_err(), "{shorter}");
    }
    for changed in [
        original.replace(":1,", ": 1,"),
        format!("{original} "),
        original.replace(r#"{"name":"Salary"}"#, r#"{"name":"Salary","hashed_as":""}"#),
        original.replace(r#"{"name":"Salary"}"#, r#"{"name":"Salary","hashed_as":null}"#),
    ] {
        assert_ne!(changed, original);
        let error = open(&stored.clone().with(METADATA, changed)).expect_err("another spelling");
        assert!(matches!(error, EncryptionError::Metadata(_)), "{error:?}");
    }
}

#[test]
fn s5_ciphertexts_stay_where_they_were_written() {
    let stored = sealed();
    // Two properties of one entity, each genuine where it was.
    let swapped = stored.clone().with("Email", bytes(&stored, "Salary")).with("Salary", bytes(&stored, "Email"));
    assert!(matches!(open(&swapped), Err(EncryptionError::Tampered { .. })));
    // A whole entity under another key, or in another table.
    for (partition, row) in [("Sales", "000124"), ("Marketing", "000123"), ("Sales0", "00123"), ("000123", "Sales")] {
        let mut moved = stored.clone();
        (moved.partition_key, moved.row_key) = (partition.into(), row.into());
        assert!(matches!(open(&moved), Err(EncryptionError::MetadataTampered)), "{partition} {row}");
    }
    let mut moved = stored.clone();
    let error = run(encryption().open("Managers", &mut moved, MARKED, None)).expect_err("another table");
    assert!(matches!(error, EncryptionError::MetadataTampered), "{error:?}");
    assert_eq!(moved, stored, "what does not open stays as it was");
    run(encryption().open("EMPLOYEES", &mut moved, MARKED, None)).expect("names of tables have no case");
    // Properties of one version of an entity, metadata of another.
    let mixed = sealed().with(METADATA, metadata(&stored));
    assert!(matches!(open(&mixed), Err(EncryptionError::Tampered { .. })));
}

#[test]
fn s5_properties_neither_vanish_nor_appear() {
    for name in ["Email", "Salary", "EmailHash"] {
        let mut stored = sealed();
        stored.remove(name);
        let error = open(&stored).expect_err("noticed");
        assert!(matches!(&error, EncryptionError::Missing { property } if property == name), "{error:?}");
    }
    // Without the metadata too.
    let mut stored = sealed();
    for name in ["Email", "Salary", "EmailHash", METADATA] {
        stored.remove(name);
    }
    assert!(matches!(open(&stored), Err(EncryptionError::MetadataMissing)));
    let plain = stored.with("Email", "mallory@contoso.com");
    let mut untyped = plain.clone();
    let chooses = encryption().choose(|_, _, name| name == "Email");
    let error = run(chooses.open(TABLE, &mut untyped, &[], None)).expect_err("plain");
    assert!(matches!(&error, EncryptionError::Plain { property } if property == "Email"), "{error:?}");
    // A type whose optional property was absent when it was written.
    let mut absent = marked(DynamicEntity::new("Sales", "000124").with("Email", "a@b"));
    run(encryption().seal(TABLE, &mut absent)).expect("sealed");
    absent.set("Salary", "1000000");
    let error = open(&absent).expect_err("plain");
    assert!(matches!(&error, EncryptionError::Plain { property } if property == "Salary"), "{error:?}");
}

#[test]
fn plain_text_from_before_is_read_if_it_is_accepted() {
    let accepts = encryption().accept_plain();
    let mut entity = employee();
    run(accepts.open(TABLE, &mut entity, MARKED, None)).expect("accepted");
    assert_eq!(entity, employee());
    let mut stored = sealed();
    run(accepts.open(TABLE, &mut stored, MARKED, None)).expect("opened");
    assert_eq!(stored, employee());
    let forged = sealed().with("Email", vec![0u8; 48]);
    assert!(run(accepts.open(TABLE, &mut forged.clone(), MARKED, None)).is_err());
}

#[test]
fn s5_projections_open_what_they_have() {
    let mut stored = sealed();
    for name in ["Salary", "EmailHash", "FirstName", "Photo", "Age"] {
        stored.remove(name);
    }
    let columns = ["Email", METADATA];
    let mut entity = stored.clone();
    run(encryption().open(TABLE, &mut entity, MARKED, Some(&columns))).expect("opened");
    assert_eq!(entity, DynamicEntity::new("Sales", "000123").with("Email", "don.hall@contoso.com"));
    // A selected one that is gone is noticed all the same.
    let mut entity = stored.clone();
    let error = run(encryption().open(TABLE, &mut entity, MARKED, Some(&["Email", "Salary", METADATA])));
    assert!(matches!(&error, Err(EncryptionError::Missing { property }) if property == "Salary"), "{error:?}");
    let mut keys = DynamicEntity::new("Sales", "000123");
    run(encryption().open(TABLE, &mut keys, MARKED, Some(&["PartitionKey", "RowKey"]))).expect("nothing to open");
}

#[test]
fn projections_ask_for_the_metadata_where_it_may_be_needed() {
    for (mut columns, expected) in [
        (vec!["Email"], vec!["Email", "PartitionKey", "RowKey", METADATA]),
        (vec!["PartitionKey", "RowKey", "Timestamp"], vec!["PartitionKey", "RowKey", "Timestamp"]),
        (vec!["RowKey", "Email", METADATA], vec!["RowKey", "Email", METADATA, "PartitionKey"]),
        (vec![], vec![]),
    ] {
        Encryption::columns_with_metadata(&mut columns);
        assert_eq!(columns, expected);
    }
}

#[test]
fn s5_a_resolver_chooses_by_keys_and_name() {
    let chooses = Encryption::new(KeyRing::new(LocalKey::new("k1", [1; 32])))
        .choose(|partition, row, name| partition == "Sales" && row != "0" && name == "Email");
    for (partition, row, is_encrypted) in [("Sales", "1", true), ("Sales", "0", false), ("Other", "1", false)] {
        let original = DynamicEntity::new(partition, row).with("Email", "a@b").with("Name", "c");
        let mut entity = original.clone();
        run(chooses.seal(TABLE, &mut entity)).expect("sealed");
        assert_eq!(entity.value(METADATA).is_some(), is_encrypted);
        assert_eq!(entity.value("Email") != Some(&Value::from("a@b")), is_encrypted);
        assert_eq!(entity.value("Name"), Some(&Value::from("c")));
        run(chooses.open(TABLE, &mut entity, &[], None)).expect("opened");
        assert_eq!(entity, original);
    }
}

#[test]
fn s5_what_was_decrypted_is_never_written_plain() {
    // Read without its type, by a table that has keys but no resolver, and written back.
    let mut entity = sealed();
    run(encryption().open(TABLE, &mut entity, &[], None)).expect("opened");
    assert!(matches!(entity.marks.check_plain(), Err(EncryptionError::NotConfigured { .. })));
    entity.set("Email", "don@contoso.com");
    run(encryption().seal(TABLE, &mut entity)).expect("sealed");
    assert!(entity.marks.check_plain().is_ok(), "nothing of it is plain");
    assert_eq!(
        bytes(&entity, "EmailHash"),
        encryption().lookup_hash(TABLE, "Email", "don@contoso.com").expect("a hash")
    );
    assert_eq!(open(&entity).expect("opened"), employee().with("Email", "don@contoso.com"));
    // A type with encrypted properties, by a table without keys.
    let error = marked(employee()).marks.check_plain().expect_err("refused");
    assert!(matches!(&error, EncryptionError::NotConfigured { property } if property == "Email"), "{error:?}");
    assert!(employee().marks.check_plain().is_ok());
}

#[test]
fn what_cannot_be_sealed_is_refused_and_left_as_it_is() {
    let keyless = Encryption::new(KeyRing::new(LocalKey::new("k1", [1; 32])));
    let largest = "x".repeat(64 * 1024 - 28);
    for (encryption, entity, expected) in [
        (
            encryption(),
            employee().with("Salary", 60_000),
            "expected text to encrypt in property 'Salary', found Edm.Int32",
        ),
        (
            encryption(),
            employee().with("Salary", format!("{largest}x")),
            "expected property 'Salary' to fit into 64 KiB when encrypted",
        ),
        (
            encryption(),
            employee().with(METADATA, "{}"),
            "expected no property '_ClientEncryptionMetadata1', which encryption sets",
        ),
        (encryption(), employee().with("EmailHash", "x"), "expected no property 'EmailHash', which encryption sets"),
        (keyless, employee(), "expected a hash key, as property 'Email' has a companion hash"),
    ] {
        let mut changed = marked(entity.clone());
        let error = run(encryption.seal(TABLE, &mut changed)).expect_err("refused");
        assert_eq!(error.to_string(), expected);
        assert_eq!(changed, entity);
    }
    let mut entity = marked(employee().with("Salary", largest));
    run(encryption().seal(TABLE, &mut entity)).expect("sealed");
    assert_eq!(bytes(&entity, "Salary").len(), 64 * 1024);
}

#[test]
fn s5_keys_are_rotated_without_touching_properties() {
    let stored = sealed();
    let rotated = || KeyRing::new(LocalKey::new("k2", [2; 32])).with_older(LocalKey::new("k1", [1; 32]));
    let both = Encryption::new(rotated()).with_hash_key(HashKey::new([9; 32]));
    let newest = Encryption::new(KeyRing::new(LocalKey::new("k2", [2; 32]))).with_hash_key(HashKey::new([9; 32]));

    run(both.open(TABLE, &mut stored.clone(), MARKED, None)).expect("an older key opens");
    let error = run(newest.open(TABLE, &mut stored.clone(), MARKED, None)).expect_err("no key");
    assert!(matches!(&error, EncryptionError::UnknownKey { id } if id == "k1"), "{error:?}");

    let patch = run(both.rewrap(TABLE, &stored)).expect("rewrapped").expect("something to merge");
    assert_eq!(patch.properties().map(|(name, _)| name).collect::<Vec<_>>(), [METADATA]);
    let mut merged = stored.clone().with(METADATA, metadata(&patch));
    assert!(run(both.rewrap(TABLE, &merged)).expect("nothing to do").is_none());
    run(newest.open(TABLE, &mut merged, MARKED, None)).expect("the new key opens");
    assert_eq!(merged, employee());

    assert!(run(both.rewrap(TABLE, &employee())).expect("nothing to do").is_none());
    assert!(matches!(run(both.rewrap(TABLE, &merged)), Err(EncryptionError::MetadataMissing)), "it was decrypted");
    assert!(matches!(run(both.rewrap("Other", &stored)), Err(EncryptionError::MetadataTampered)));
}

#[test]
fn a_key_of_the_same_name_does_not_open() {
    let other = Encryption::new(KeyRing::new(LocalKey::new("k1", [7; 32])));
    let error = run(other.open(TABLE, &mut sealed(), MARKED, None)).expect_err("another key");
    assert!(matches!(&error, EncryptionError::Key { id, .. } if id == "k1"), "{error:?}");
}

/// A key that lives elsewhere: it answers later, and may fail.
struct Vault {
    local: LocalKey,
    calls: Arc<AtomicUsize>,
    is_down: bool,
}

impl KeyEncryptionKey for Vault {
    fn id(&self) -> &str {
        self.local.id()
    }

    fn wrap<'a>(&'a self, key: &'a ContentKey) -> BoxFuture<'a, Result<WrappedKey, BoxError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.calls.fetch_add(1, Ordering::Relaxed);
            if self.is_down { Err("the vault is down".into()) } else { self.local.wrap(key).await }
        })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> BoxFuture<'a, Result<ContentKey, BoxError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.local.unwrap(wrapped).await
        })
    }
}

#[test]
fn s5_a_key_vault_wraps_once_a_write_and_its_failure_is_told() {
    for is_down in [false, true] {
        let calls = Arc::new(AtomicUsize::new(0));
        let vault = Vault { local: LocalKey::new("vault", [3; 32]), calls: Arc::clone(&calls), is_down };
        let encryption = Encryption::new(KeyRing::new(vault)).with_hash_key(HashKey::new([9; 32]));
        let mut entity = marked(employee());
        let result = run(encryption.seal(TABLE, &mut entity));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        if is_down {
            let error = result.expect_err("down");
            assert_eq!(
                std::error::Error::source(&error).map(ToString::to_string).as_deref(),
                Some("the vault is down")
            );
            assert_eq!(entity, employee());
        } else {
            result.expect("sealed");
            run(encryption.open(TABLE, &mut entity, MARKED, None)).expect("opened");
            assert_eq!(entity, employee());
        }
    }
}

#[test]
fn hashes_differ_by_table_property_value_and_key() {
    let hash = |encryption: &Encryption, table: &str, property: &str, value: &str| {
        encryption.lookup_hash(table, property, value).expect("a hash")
    };
    let encryption = encryption();
    let other = Encryption::new(KeyRing::new(LocalKey::new("k1", [1; 32]))).with_hash_key(HashKey::new([8; 32]));
    let one = hash(&encryption, TABLE, "Email", "a");
    assert_eq!(one, hash(&encryption, "employees", "Email", "a"));
    for different in [
        hash(&encryption, TABLE, "Email", "b"),
        hash(&encryption, TABLE, "Emai", "la"),
        hash(&encryption, "EmployeesE", "mail", "a"),
        hash(&other, TABLE, "Email", "a"),
    ] {
        assert_ne!(one, different);
    }
}

#[test]
fn secrets_are_not_shown() {
    let shown = format!("{:?} {:?} {:?}", encryption(), HashKey::new([77; 32]), ContentKey::new([77; 32]));
    assert!(!shown.contains("77"), "{shown}");
    assert!(!format!("{:?}", LocalKey::new("k", [77; 32])).contains("77"));
}

#[test]
fn a_resolver_may_choose_everything_beside_a_companion_hash() {
    let all = encryption().choose(|_, _, _| true);
    let original = DynamicEntity::new("Sales", "1").with("Email", "a@b").with("Name", "c");
    let mut entity = marked(original.clone());
    run(all.seal(TABLE, &mut entity)).expect("sealed");
    run(all.open(TABLE, &mut entity, MARKED, None)).expect("opened");
    assert_eq!(entity, original);
}

/// RFC 3394, 4.6: 256 bits of key data wrapped with a 256-bit key.
#[test]
fn a_local_key_wraps_as_the_standard_says() {
    let hex = |text: &str| -> Vec<u8> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex"))
            .collect()
    };
    let kek = hex("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F");
    let data = hex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F");
    let expected = hex("28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21");
    let key = LocalKey::new("k", kek.try_into().expect("32 bytes"));
    let wrapped = run(key.wrap(&ContentKey::new(data.clone().try_into().expect("32 bytes")))).expect("wrapped");
    assert_eq!(wrapped, WrappedKey::new("A256KW", expected));
    assert_eq!(run(key.unwrap(&wrapped)).expect("unwrapped").as_bytes().as_slice(), data);
}

/// An entity that was stored by the first release with this format. Another implementation, written from
/// `docs/decisions/0009-client-encryption.md`, decrypts it as well.
#[test]
fn what_was_stored_stays_readable() {
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    let stored = employee()
        .with("Email", decode("FXbu2YoSsYnjMuc1oiXuGIz1CkWEL7UcaUTt2Oc7PA6MV+0TmEKrD2VXKacuMhas"))
        .with("Salary", decode("7AKVGN3QdushfplJSHXHXNu9uI+k2ZNqmGnW0dWpW3QP"))
        .with("EmailHash", decode("enPiP/nbQLMebjRk7UvuMDEPCDcBMUMyL8pQabLgk0w="))
        .with(
            METADATA,
            concat!(
                r#"{"version":1,"algorithm":"A256GCM","key":{"id":"k1","algorithm":"A256KW","#,
                r#""wrapped":"1NYoQp2HrxBTNQOOvCEjRL5PV860/jiCpEIXbZraInhpWHB2crRRNA=="},"#,
                r#""properties":[{"name":"Email","hashed_as":"EmailHash"},{"name":"Salary"}],"#,
                r#""proof":"6WwdzBIT6POLrMNNXvjOXhFgz21hbe9kgp8MCg=="}"#,
            ),
        );
    assert_eq!(open(&stored).expect("opened"), employee());
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        ".{0,40}".prop_map(Value::String),
        any::<i64>().prop_map(Value::Int64),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Binary),
        any::<bool>().prop_map(Value::Boolean),
    ]
}

proptest! {
    #[test]
    fn s5_sealing_and_opening_is_identity_and_ciphertexts_do_not_hold_the_text(
        partition in ".{0,10}", row in ".{0,10}",
        secrets in proptest::collection::btree_map("[A-Z][a-z]{0,8}", ".{0,60}", 0..6),
        others in proptest::collection::btree_map("_[a-z]{1,8}", value(), 0..6),
    ) {
        let mut original = DynamicEntity::new(partition, row);
        for (name, text) in &secrets {
            original.set(name, text.as_str());
        }
        for (name, value) in others {
            original.set(name, value);
        }
        let chooses = encryption().choose(|_, _, name| name.starts_with(|first: char| first.is_ascii_uppercase()));
        let mut entity = original.clone();
        run(chooses.seal(TABLE, &mut entity)).expect("sealed");
        for (name, text) in &secrets {
            let stored = bytes(&entity, name);
            prop_assert_eq!(stored.len(), text.len() + 28);
            // Short texts may well occur by chance.
            prop_assert!(text.len() < 6 || !stored.windows(text.len()).any(|window| window == text.as_bytes()));
        }
        run(chooses.open(TABLE, &mut entity, &[], None)).expect("opened");
        prop_assert_eq!(entity, original);
    }

    #[test]
    fn metadata_of_any_text_is_read_or_refused(text in ".{0,200}") {
        let mut entity = sealed().with(METADATA, text);
        prop_assert!(run(encryption().open(TABLE, &mut entity, MARKED, None)).is_err());
    }
}
