//! Errors with chosen codes, raised by triggers: what the engine repeats, what it reports as unavailable, and what as
//! ambiguous.

use crate::support::{NOW, create, name, open, read, write};
use larimar_engine::queue::{Change, MessageError, MessageHandle, Messages as _, NewMessage};
use larimar_engine::{Act, Changed, Expect, Fault, SpaceId, SpaceKind, SpaceName, Spaces as _, WriteError};
use larimar_engine_postgres::{Dialect, PostgresEngine, Settings};
use larimar_testkit::postgres::Cluster;
use std::time::Duration;

/// Lets the first changes of a table fail with these codes, one after the other; `end` ends the session. `change` is the
/// event of the trigger, and `condition` its `WHEN`.
fn fail(url: &str, table: &str, change: &str, condition: &str, codes: &[&str]) {
    let schema = schema(url);
    let failures: String = (1..)
        .zip(codes)
        .map(|(number, code)| match *code {
            "end" => {
                format!("IF n = {number} THEN PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(60); END IF;")
            }
            code => {
                format!("IF n = {number} THEN RAISE EXCEPTION 'as the test asks' USING ERRCODE = '{code}'; END IF;")
            }
        })
        .collect();
    // Numbers of a sequence are not given back when a statement fails.
    Cluster::shared().sql(&format!(
        "SET search_path = {schema}; CREATE SEQUENCE failures; \
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ \
         DECLARE n int8 := nextval('{schema}.failures'); \
         BEGIN {failures} IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$; \
         CREATE TRIGGER fail BEFORE {change} ON {table} FOR EACH ROW {condition} EXECUTE FUNCTION fail()"
    ));
}

/// A queue with one message, which is claimed.
async fn claimed(engine: &PostgresEngine) -> (SpaceId, MessageHandle) {
    let queue = SpaceName { account: "account", kind: SpaceKind::Queue, name: "q" };
    let queue = engine.create_space(queue, b"").await.expect("no fault").expect("the name is free");
    let new = NewMessage { text: b"x", hidden_for: Duration::ZERO, lives_for: None };
    engine.put_message(queue, new, NOW).await.expect("no fault");
    let claimed = engine.claim(queue, 1, Duration::from_secs(600), NOW).await.expect("no fault");
    (queue, MessageHandle { id: claimed[0].id, receipt: claimed[0].receipt })
}

fn is_ambiguous<T>(outcome: &Result<T, MessageError>) -> bool {
    matches!(outcome, Err(MessageError::Fault(Fault::Ambiguous(_))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_of_a_message_that_fails_after_a_lost_attempt_is_ambiguous() {
    let url = Cluster::shared().fresh_url();
    let engine = open(&url).await;
    let (queue, handle) = claimed(&engine).await;
    fail(&url, "larimar_message", "DELETE", "", &["end", "53100"]);
    let deleted = engine.delete_message(queue, handle, NOW).await;
    assert!(is_ambiguous(&deleted), "{deleted:?}");
    engine.delete_message(queue, handle, NOW).await.expect("no attempt took effect");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_of_a_message_that_fails_after_a_lost_attempt_is_ambiguous() {
    let url = Cluster::shared().fresh_url();
    let engine = open(&url).await;
    let (queue, handle) = claimed(&engine).await;
    // The look-up after a lost attempt writes too, but no new receipt.
    fail(&url, "larimar_message", "UPDATE", "WHEN (OLD.pop IS DISTINCT FROM NEW.pop)", &["end", "53100"]);
    let change = Change { text: Some(b"y"), hidden_for: Duration::from_secs(600) };
    let updated = engine.update_message(queue, handle, change, NOW).await;
    assert!(is_ambiguous(&updated), "{updated:?}");
    engine.update_message(queue, handle, change, NOW).await.expect("no attempt took effect");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_of_a_message_that_is_refused_is_unavailable() {
    let url = Cluster::shared().fresh_url();
    let engine = open(&url).await;
    let (queue, handle) = claimed(&engine).await;
    fail(&url, "larimar_message", "DELETE", "", &["53100"]);
    let deleted = engine.delete_message(queue, handle, NOW).await;
    assert!(matches!(deleted, Err(MessageError::Fault(Fault::Unavailable(_)))), "{deleted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_in_the_catalogue_are_repeated() {
    let url = Cluster::shared().fresh_url();
    let engine = open(&url).await;
    fail(&url, "larimar_space", "INSERT OR UPDATE OR DELETE", "", &["40001", "40P01"]);
    let restart = || Cluster::shared().sql(&format!("ALTER SEQUENCE {}.failures RESTART", schema(&url)));
    create(&engine, "t").await;
    restart();
    assert_eq!(engine.change_space(name("t"), b"", b"new").await, Ok(Changed::Yes));
    restart();
    assert_eq!(engine.drop_space(name("t")).await, Ok(true));
}

fn schema(url: &str) -> &str {
    url.rsplit("%3D").next().expect("a schema")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dialect_decides_what_an_error_code_means() {
    for (dialect, is_known) in [(Dialect::Postgres, true), (Dialect::Cockroach, false)] {
        let url = Cluster::shared().fresh_url();
        let settings = Settings { dialect, connections_max: 8, ..Settings::new(&url) };
        let engine = PostgresEngine::open(&settings).await.expect("the statements of both work on PostgreSQL");
        let space = create(&engine, "t").await;
        fail(&url, "larimar_entity", "INSERT", "", &["XXUUU"]);
        let written = write(&engine, space, "r", Expect::Absent, Act::Put(b"1")).await;
        match written {
            Err(WriteError::Fault(Fault::Unavailable(_))) => assert!(is_known, "{dialect}"),
            Err(WriteError::Fault(Fault::Ambiguous(_))) => assert!(!is_known, "{dialect}"),
            other => panic!("{dialect}: {other:?}"),
        }
        assert_eq!(read(&engine, space, "r").await, None);
    }
}
