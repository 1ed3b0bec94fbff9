//! S5: client-side encryption over a server. The service never sees what is encrypted, and what it does to it is
//! noticed.

use crate::suite::{encryption, over_larimar};
use bytes::Bytes;
use larimar_client::encryption::{Encryption, HashKey, KeyRing, LocalKey, METADATA};
use larimar_client::{
    Account, BoxFuture, DynamicEntity, EncryptionError, Entity, EntityEnum, Error, HttpTransport, IfMatch, Table,
    Transport, TransportError, Value,
};
use larimar_embedded::Larimar;
use std::sync::{Arc, Mutex};

encryption::encryption_cases!(over_larimar);

#[derive(Clone, Debug, PartialEq, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    number: String,
    name: String,
    #[entity(encrypt, hashed = "EmailHash")]
    email: String,
    #[entity(encrypt)]
    salary: Option<String>,
}

/// What a directory needs of an employee.
#[derive(Debug, PartialEq, Entity)]
struct Contact {
    name: String,
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    number: String,
    #[entity(encrypt)]
    email: String,
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct Department {
    #[entity(partition_key)]
    name: String,
    #[entity(row_key)]
    key: String,
    budget: i64,
}

#[derive(Debug, PartialEq, EntityEnum)]
enum Record {
    #[entity(row_key_prefix = "department")]
    Department(Department),
    #[entity(row_key_prefix = "employee_")]
    Employee(Employee),
}

const SECRETS: [&str; 2] = ["don.hall@contoso.com", "60000-secret"];

fn don() -> Employee {
    Employee {
        department: "Sales".to_owned(),
        number: "employee_1".to_owned(),
        name: "Don".to_owned(),
        email: SECRETS[0].to_owned(),
        salary: Some(SECRETS[1].to_owned()),
    }
}

/// Keeps a copy of everything that is sent.
#[derive(Debug)]
struct Recorder {
    inner: HttpTransport,
    sent: Mutex<Vec<u8>>,
}

impl Transport for Recorder {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        let mut sent = self.sent.lock().expect("not poisoned");
        sent.extend_from_slice(request.uri().to_string().as_bytes());
        sent.extend_from_slice(request.body());
        drop(sent);
        self.inner.send(request)
    }
}

struct Fixture {
    _server: Larimar,
    recorder: Arc<Recorder>,
    encryption: Arc<Encryption>,
    plain: Table,
    table: Table,
}

async fn fixture() -> Fixture {
    let server = Larimar::ephemeral().await.expect("a server");
    let recorder = Arc::new(Recorder { inner: HttpTransport::new(), sent: Mutex::new(Vec::new()) });
    let account = Account::builder()
        .connection_string(server.connection_string())
        .transport(Arc::clone(&recorder) as Arc<dyn Transport>)
        .build()
        .expect("an account");
    let plain = account.table("Employees");
    plain.create().await.expect("created");
    let keys = KeyRing::new(LocalKey::new("k1", [1; 32]));
    let encryption = Arc::new(Encryption::new(keys).with_hash_key(HashKey::new([9; 32])));
    let table = plain.encrypted(Arc::clone(&encryption));
    Fixture { _server: server, recorder, encryption, plain, table }
}

impl Fixture {
    /// The entity as the service has it.
    async fn stored(&self) -> DynamicEntity {
        self.plain.get("Sales", "employee_1").await.expect("read").expect("found")
    }

    fn assert_nothing_leaked(&self) {
        let sent = self.recorder.sent.lock().expect("not poisoned");
        assert!(sent.windows(5).any(|window| window == b"\"Don\""), "what is not encrypted was recorded");
        for secret in SECRETS {
            assert!(!sent.windows(secret.len()).any(|window| window == secret.as_bytes()), "'{secret}' was sent");
        }
    }
}

fn refusal(error: Error) -> EncryptionError {
    match error {
        Error::Encryption(error) => error,
        other => panic!("expected an error of encryption, found {other:?}"),
    }
}

#[tokio::test]
async fn s5_what_is_encrypted_is_binary_to_the_service_and_text_to_the_client() {
    let f = fixture().await;
    f.table.insert(&don()).await.expect("inserted");
    let stored = f.stored().await;
    for property in ["Email", "Salary", "EmailHash"] {
        assert_eq!(stored.value(property).map(Value::type_name), Some("Edm.Binary"), "{property}");
    }
    assert!(stored.value(METADATA).is_some());
    assert_eq!(stored.get::<String>("Name").expect("plain"), "Don");
    assert_eq!(f.table.get::<Employee>("Sales", "employee_1").await.expect("read"), Some(don()));

    let raise = Employee { salary: None, ..don() };
    f.table.replace(&raise, IfMatch::Any).await.expect("replaced");
    assert_eq!(f.table.get::<Employee>("Sales", "employee_1").await.expect("read"), Some(raise));
    f.table.insert_or_replace(&don()).await.expect("replaced");
    assert_eq!(f.table.query::<Employee>().all().await.expect("read"), [don()]);
    f.table.delete("Sales", "employee_1", IfMatch::Any).await.expect("deleted");
    f.assert_nothing_leaked();
}

#[tokio::test]
async fn s5_projections_decrypt_what_they_ask_for() {
    let f = fixture().await;
    f.table.insert(&don()).await.expect("inserted");
    let Employee { department, number, name, email, .. } = don();
    let expected = Contact { name, department, number, email };
    assert_eq!(f.table.query::<Employee>().project::<Contact>().all().await.expect("read"), [expected]);
    let contact = f.table.get_projection::<Contact>("Sales", "employee_1").await.expect("read").expect("found");
    assert_eq!(contact.email, SECRETS[0]);
    let selected = f.table.query::<DynamicEntity>().select(["Salary"]).all().await.expect("read");
    assert_eq!(selected[0].properties().collect::<Vec<_>>(), [("Salary", &Value::from(SECRETS[1]))]);
    let names = f.table.query::<DynamicEntity>().select(["Name"]).all().await.expect("read");
    assert_eq!(names[0].properties().collect::<Vec<_>>(), [("Name", &Value::from("Don"))]);
}

#[tokio::test]
async fn s5_an_encrypted_value_is_looked_up_by_its_hash() {
    let f = fixture().await;
    f.table.insert(&don()).await.expect("inserted");
    let other = Employee { number: "employee_2".to_owned(), email: "jun@contoso.com".to_owned(), ..don() };
    f.table.insert(&other).await.expect("inserted");
    let hash = |value| f.encryption.lookup_hash(f.table.name(), "Email", value).expect("a hash");
    for (value, expected) in
        [(SECRETS[0], vec![don()]), ("jun@contoso.com", vec![other]), ("nobody@contoso.com", vec![])]
    {
        let query = f.table.query::<Employee>().filter(Employee::email_hash().eq(hash(value)));
        assert_eq!(query.all().await.expect("read"), expected, "{value}");
    }
    f.assert_nothing_leaked();
}

#[tokio::test]
async fn s5_merges_and_plain_writes_are_refused_before_they_are_sent() {
    let f = fixture().await;
    f.table.insert(&don()).await.expect("inserted");
    let read: DynamicEntity = f.table.get("Sales", "employee_1").await.expect("read").expect("found");
    let before = f.recorder.sent.lock().expect("not poisoned").len();
    for error in [
        f.table.merge(&don(), IfMatch::Any).await.expect_err("a merge"),
        f.table.insert_or_merge(&don()).await.expect_err("a merge"),
        f.table.merge(&DynamicEntity::new("Sales", "employee_1"), IfMatch::Any).await.expect_err("a merge"),
    ] {
        assert!(matches!(refusal(error), EncryptionError::Merge));
    }
    for error in [
        f.plain.insert_or_replace(&don()).await.expect_err("no key"),
        f.plain.merge(&don(), IfMatch::Any).await.expect_err("no key"),
        f.plain.replace(&read, IfMatch::Any).await.expect_err("it was decrypted"),
        f.plain.insert(&Record::Employee(don())).await.expect_err("no key"),
    ] {
        assert!(matches!(refusal(error), EncryptionError::NotConfigured { .. }));
    }
    assert_eq!(f.recorder.sent.lock().expect("not poisoned").len(), before, "nothing was sent");
    // What was decrypted without its type is encrypted again.
    f.table.replace(&read, IfMatch::Any).await.expect("replaced");
    assert_eq!(f.table.get::<Employee>("Sales", "employee_1").await.expect("read"), Some(don()));
    f.assert_nothing_leaked();
    let error = f.plain.get::<Employee>("Sales", "employee_1").await.expect_err("no key");
    assert!(matches!(refusal(error), EncryptionError::NotConfigured { .. }));
}

#[tokio::test]
async fn s5_transactions_encrypt_too() {
    let f = fixture().await;
    let employees: Vec<Employee> =
        (1..=100).map(|number| Employee { number: format!("employee_{number:03}"), ..don() }).collect();
    let mut transaction = f.table.transaction();
    for employee in &employees {
        transaction.insert(employee).expect("added");
    }
    let etags = transaction.submit().await.expect("submitted");
    assert_eq!(f.table.query::<Employee>().all().await.expect("read"), employees);
    let mut transaction = f.table.transaction();
    let raise = Employee { salary: None, ..employees[0].clone() };
    transaction.replace(&raise, etags[0].clone().expect("an ETag")).expect("added");
    transaction.delete("Sales", "employee_002", IfMatch::Any).expect("added");
    transaction.submit().await.expect("submitted");
    assert_eq!(f.table.get("Sales", "employee_001").await.expect("read"), Some(raise));
    assert_eq!(f.table.get::<Employee>("Sales", "employee_002").await.expect("read"), None);
    f.assert_nothing_leaked();

    let mut transaction = f.table.transaction();
    assert!(transaction.merge(&don(), IfMatch::Any).is_err(), "a merge");
    assert!(transaction.insert_or_merge(&don()).is_err(), "a merge");
    assert!(f.plain.transaction().insert(&don()).is_err(), "no key");
    assert!(transaction.is_empty());
}

#[tokio::test]
async fn s5_tampering_by_the_service_is_noticed() {
    let f = fixture().await;
    f.table.insert(&don()).await.expect("inserted");
    f.table.insert(&Employee { number: "employee_2".to_owned(), ..don() }).await.expect("inserted");
    let genuine = f.stored().await;
    let other: DynamicEntity = f.plain.get("Sales", "employee_2").await.expect("read").expect("found");
    let (email, salary) = (genuine.value("Email").cloned(), genuine.value("Salary").cloned());
    let (email, salary) = (email.expect("bytes"), salary.expect("bytes"));

    let mut copied = other.clone();
    copied.row_key.clone_from(&genuine.row_key);
    let mut dropped = genuine.clone();
    dropped.remove("Salary");
    let mut stripped = dropped.clone();
    for name in ["Email", "EmailHash", METADATA] {
        stripped.remove(name);
    }
    for (case, changed) in [
        ("swapped properties", genuine.clone().with("Email", salary).with("Salary", email)),
        ("another entity's property", genuine.clone().with("Email", other.value("Email").cloned().expect("bytes"))),
        ("another entity", copied),
        ("a dropped property", dropped),
        ("plain text", genuine.clone().with("Email", "mallory@contoso.com")),
        ("plain text without metadata", stripped.clone().with("Email", "mallory@contoso.com")),
        ("nothing", stripped.with("Email2", "x")),
    ] {
        f.plain.replace(&changed, IfMatch::Any).await.expect("the service may do so");
        let error = f.table.get::<Employee>("Sales", "employee_1").await.expect_err(case);
        refusal(error);
        refusal(f.table.query::<Employee>().all().await.expect_err(case));
    }
    f.plain.replace(&genuine, IfMatch::Any).await.expect("an older version");
    let read = f.table.get::<Employee>("Sales", "employee_1").await.expect("rollback is not noticed");
    assert_eq!(read, Some(don()));
}

#[tokio::test]
async fn s5_a_resolver_encrypts_entities_without_a_type() {
    let f = fixture().await;
    let keys = KeyRing::new(LocalKey::new("k1", [1; 32]));
    let table = f.plain.encrypted(Arc::new(
        Encryption::new(keys).choose(|partition, row, name| (partition, row, name) == ("Sales", "employee_1", "Email")),
    ));
    for row in ["employee_1", "employee_2"] {
        table.insert(&DynamicEntity::new("Sales", row).with("Email", "x@y").with("Age", 3)).await.expect("inserted");
        let read: DynamicEntity = table.get("Sales", row).await.expect("read").expect("found");
        assert_eq!(read.get::<String>("Email").expect("text"), "x@y");
        let stored: DynamicEntity = f.plain.get("Sales", row).await.expect("read").expect("found");
        assert_eq!(stored.get::<String>("Email").is_err(), row == "employee_1");
    }
    let error = table.insert(&DynamicEntity::new("Sales", "employee_1").with("Email", 5)).await.expect_err("a number");
    assert!(matches!(refusal(error), EncryptionError::NotText { .. }));
}

#[tokio::test]
async fn s5_types_with_and_without_encryption_share_a_table() {
    let f = fixture().await;
    let sales = Department { name: "Sales".to_owned(), key: "department".to_owned(), budget: 5_000 };
    f.plain.insert(&sales).await.expect("inserted");
    f.table.insert(&don()).await.expect("inserted");
    let expected = [Record::Department(sales), Record::Employee(don())];
    assert_eq!(f.table.query::<Record>().all().await.expect("read"), expected);
    f.table.replace(&expected[1], IfMatch::Any).await.expect("replaced");
    assert_eq!(f.table.query::<Record>().all().await.expect("read"), expected);
    f.assert_nothing_leaked();
}

#[tokio::test]
async fn s5_keys_are_rotated_by_merging_metadata_alone() {
    let f = fixture().await;
    f.table.insert(&don()).await.expect("inserted");
    let before = f.stored().await;
    let rotated = KeyRing::new(LocalKey::new("k2", [2; 32])).with_older(LocalKey::new("k1", [1; 32]));
    let rotated = Encryption::new(rotated).with_hash_key(HashKey::new([9; 32]));
    let patch = rotated.rewrap(f.plain.name(), &before).await.expect("rewrapped").expect("something to merge");
    let etag = patch.etag.clone().expect("the version that was read");
    f.plain.merge(&patch, etag).await.expect("merged");

    let after = f.stored().await;
    assert_eq!(after.value("Email"), before.value("Email"), "the ciphertext is the same");
    let keys = KeyRing::new(LocalKey::new("k2", [2; 32]));
    let newest = f.plain.encrypted(Arc::new(Encryption::new(keys).with_hash_key(HashKey::new([9; 32]))));
    assert_eq!(newest.get::<Employee>("Sales", "employee_1").await.expect("read"), Some(don()));
    let error = f.table.get::<Employee>("Sales", "employee_1").await.expect_err("the old key alone");
    assert!(matches!(refusal(error), EncryptionError::UnknownKey { id } if id == "k2"));
    f.assert_nothing_leaked();
}

#[tokio::test]
async fn s5_a_table_is_moved_to_a_new_key_while_it_is_in_use() {
    let f = fixture().await;
    let employees: Vec<Employee> =
        (0..300).map(|number| Employee { number: format!("employee_{number:03}"), ..don() }).collect();
    for some in employees.chunks(100) {
        let mut transaction = f.table.transaction();
        for employee in some {
            transaction.insert(employee).expect("added");
        }
        transaction.submit().await.expect("submitted");
    }
    f.plain.insert(&DynamicEntity::new("Sales", "department").with("Budget", 5)).await.expect("inserted");
    let rotated = KeyRing::new(LocalKey::new("k2", [2; 32])).with_older(LocalKey::new("k1", [1; 32]));
    let rotated = f.plain.encrypted(Arc::new(Encryption::new(rotated).with_hash_key(HashKey::new([9; 32]))));

    // Writers that know both keys rewrite some of them meanwhile.
    let writes = async {
        for employee in &employees[..40] {
            rotated.replace(employee, IfMatch::Any).await.expect("replaced");
        }
        rotated.delete("Sales", "employee_299", IfMatch::Any).await.expect("deleted");
    };
    let (moved, ()) = tokio::join!(rotated.rewrap_all(), writes);
    let first = moved.expect("moved");
    assert!(first.moved >= 259 && first.moved + first.unchanged <= 300, "{first:?}");
    let again = rotated.rewrap_all().await.expect("moved");
    assert_eq!((again.moved, again.unchanged), (0, 299), "all have been moved");

    let keys = KeyRing::new(LocalKey::new("k2", [2; 32]));
    let newest = f.plain.encrypted(Arc::new(Encryption::new(keys).with_hash_key(HashKey::new([9; 32]))));
    let read = newest.query::<Employee>().filter(Employee::number().ge("e")).all().await.expect("read");
    assert_eq!(read, employees[..299]);
    assert!(matches!(f.plain.rewrap_all().await.expect_err("no encryption"), Error::Invalid(_)));
    f.assert_nothing_leaked();
}

#[tokio::test]
async fn s5_updates_keep_what_their_type_does_not_know_encrypted() {
    let f = fixture().await;
    f.table.insert(&don()).await.expect("inserted");
    let rename = |contact: &mut Contact| contact.name = "\"Don\" Hall".to_owned();
    f.table.update_with_retry("Sales", "employee_1", rename).await.expect("updated").expect("found");
    let stored = f.stored().await;
    for property in ["Email", "Salary", "EmailHash"] {
        assert_eq!(stored.value(property).map(Value::type_name), Some("Edm.Binary"), "{property}");
    }
    let expected = Employee { name: "\"Don\" Hall".to_owned(), ..don() };
    assert_eq!(f.table.get::<Employee>("Sales", "employee_1").await.expect("read"), Some(expected.clone()));

    // C7: without knowing the type at all.
    let raise = |entity: &mut DynamicEntity| drop(entity.set("Salary", "70000"));
    f.table.update_with_retry("Sales", "employee_1", raise).await.expect("updated").expect("found");
    let expected = Employee { salary: Some("70000".to_owned()), ..expected };
    assert_eq!(f.table.get::<Employee>("Sales", "employee_1").await.expect("read"), Some(expected));
    assert_eq!(f.stored().await.value("Salary").map(Value::type_name), Some("Edm.Binary"));
    f.assert_nothing_leaked();
}
