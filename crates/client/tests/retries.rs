//! What is sent again and what is not: lost answers, busy services, secondaries, time limits and cancellation.

use crate::common::faults::{Fault, Faults, Meanwhile, faulty_table};
use larimar_client::{Account, AccountBuilder, DynamicEntity, Error, IfMatch, RetryPolicy, Table, Transport};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

fn entity(value: i32) -> DynamicEntity {
    DynamicEntity::new("p", "r").with("Value", value)
}

async fn value(table: &Table) -> Option<i32> {
    let stored: Option<DynamicEntity> = table.get("p", "r").await.expect("read");
    stored.map(|stored| stored.get("Value").expect("a number"))
}

#[tokio::test]
async fn c10_an_insert_whose_answer_was_lost_reports_no_false_conflict() {
    let (_server, table, faults) = faulty_table().await;
    faults.plan([Fault::LoseReply]);
    let etag = table.insert(&entity(1)).await.expect("no false conflict");
    assert_eq!(faults.sent().len(), 3, "sent, sent again, looked up: {:?}", faults.sent());
    let stored: DynamicEntity = table.get("p", "r").await.expect("read").expect("found");
    assert_eq!(stored.etag, Some(etag));

    faults.plan([Fault::LoseReply]);
    assert!(table.insert(&entity(2)).await.expect_err("a true conflict").is_conflict());
    assert_eq!(value(&table).await, Some(1));
    // Doubled by the network, only the second answer reports a conflict, and no earlier one is known to be lost.
    faults.plan([Fault::Double]);
    assert!(table.insert(&DynamicEntity::new("p", "doubled")).await.expect_err("as answered").is_conflict());
}

#[tokio::test]
async fn c10_a_delete_whose_answer_was_lost_is_found_done() {
    let (_server, table, faults) = faulty_table().await;
    table.insert(&entity(1)).await.expect("inserted");
    faults.plan([Fault::LoseReply]);
    table.delete("p", "r", IfMatch::Any).await.expect("deleted");
    assert_eq!(value(&table).await, None);
    faults.plan([]);
    assert!(table.delete("p", "r", IfMatch::Any).await.expect_err("not there").is_not_found());
}

#[tokio::test]
async fn c10_a_conditional_write_whose_answer_was_lost_is_found_done_or_changed() {
    let (_server, table, faults) = faulty_table().await;
    let first = table.insert(&entity(1)).await.expect("inserted");
    faults.plan([Fault::LoseReply]);
    let second = table.replace(&entity(2), &first).await.expect("replaced");
    faults.plan([Fault::LoseReply]);
    assert!(table.replace(&entity(3), &first).await.expect_err("an old version").is_changed());
    faults.plan([Fault::LoseReply]);
    table.merge(&entity(4), &second).await.expect("the ETag is the right one");
    assert_eq!(value(&table).await, Some(4));
}

#[tokio::test]
async fn c10_what_a_lost_answer_leaves_open_is_told() {
    let (_server, table, faults) = faulty_table().await;
    // The last error alone would tell that nothing was sent.
    faults.plan([Fault::LoseReply, Fault::NotSent, Fault::NotSent, Fault::NotSent, Fault::NotSent]);
    let error = table.insert(&entity(1)).await.expect_err("no answer");
    assert!(matches!(error, Error::Transport(_)) && error.is_ambiguous(), "{error}");
    assert_eq!(value(&table).await, Some(1), "it took place");

    // It is unknown whether the entity that was read back has the change whose answer was lost.
    let first: DynamicEntity = table.get("p", "r").await.expect("read").expect("found");
    let first = first.etag.expect("an ETag");
    let others = table.clone();
    let meanwhile = Meanwhile::new(move || {
        let others = others.clone();
        async move { others.replace(&entity(7), IfMatch::Any).await.map(drop).expect("replaced") }
    });
    faults.plan([Fault::LoseReplyAnd(meanwhile)]);
    let error = table.replace(&entity(2), &first).await.expect_err("changed since");
    assert!(error.is_changed() && error.is_ambiguous(), "{error}");
    faults.plan([]);
    let error = table.replace(&entity(2), &first).await.expect_err("changed before");
    assert!(error.is_changed() && !error.is_ambiguous(), "{error}");

    // A token may allow the write and not the look-up.
    let forbidden = Fault::Answer(403, vec![("x-ms-error-code", "AuthorizationPermissionMismatch")]);
    faults.plan([Fault::LoseReply, Fault::Pass, forbidden.clone()]);
    let error = table.insert(&DynamicEntity::new("p", "s")).await.expect_err("cannot be looked up");
    assert!(error.status() == Some(403) && error.is_ambiguous() && !error.is_conflict(), "{error}");
    faults.plan([Fault::LoseReply, Fault::Pass, forbidden]);
    let error = table.transaction().insert(&DynamicEntity::new("p", "t")).expect("one").submit().await;
    let error = error.expect_err("cannot be looked up");
    assert!(error.status() == Some(403) && error.is_ambiguous() && !error.is_conflict(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn c10_only_a_busy_service_says_that_nothing_took_place() {
    let faults = Faults::new();
    let table = scripted(&faults, |account| account);
    let stored = r#"{"odata.etag":"W/\"2\"","PartitionKey":"p","RowKey":"r","Value":1}"#;
    let conflict = || Fault::Answer(409, vec![("x-ms-error-code", "EntityAlreadyExists")]);
    // A proxy that lost its connection to the service, and a service that gave up.
    for (status, headers) in [(503, vec![]), (503, vec![("x-ms-error-code", "ServiceUnavailable")]), (408, vec![])] {
        faults.plan([Fault::Answer(status, headers), conflict(), Fault::AnswerWith(200, vec![], stored)]);
        assert_eq!(table.insert(&entity(1)).await.expect("found done").as_str(), "W/\"2\"", "{status}");
    }
    faults.plan([Fault::Answer(503, vec![("x-ms-error-code", "ServerBusy")]), conflict()]);
    let error = table.insert(&entity(1)).await.expect_err("a true conflict");
    assert!(error.is_conflict() && !error.is_ambiguous(), "{error}");
    assert_eq!(faults.sent().len(), 2, "nothing to look up");
}

#[tokio::test]
async fn c10_requests_that_never_left_are_sent_again() {
    let (_server, table, faults) = faulty_table().await;
    faults.plan([Fault::NotSent, Fault::NotSent]);
    table.insert(&entity(1)).await.expect("inserted");
    assert_eq!(faults.sent().len(), 3, "nothing to look up");
}

/// A table behind a transport that answers by itself, so that time can be made up.
fn scripted(faults: &Arc<Faults>, change: impl FnOnce(AccountBuilder) -> AccountBuilder) -> Table {
    let account = Account::builder()
        .connection_string("UseDevelopmentStorage=true")
        .transport(Arc::clone(faults) as Arc<dyn Transport>);
    change(account).build().expect("an account").table("Employees")
}

fn missing() -> Fault {
    Fault::Answer(404, vec![("x-ms-error-code", "ResourceNotFound")])
}

fn written() -> Fault {
    Fault::Answer(204, vec![("etag", "W/\"1\"")])
}

#[tokio::test(start_paused = true)]
async fn c10_what_the_service_asks_to_wait_is_waited() {
    let faults = Faults::new();
    let table = scripted(&faults, |account| account);
    for (name, asked, least) in [("retry-after", "7", 7_000), ("x-ms-retry-after-ms", "2500", 2_500)] {
        faults.plan([Fault::Answer(503, vec![(name, asked)]), written()]);
        let start = Instant::now();
        table.insert(&entity(1)).await.expect("inserted");
        let waited = start.elapsed();
        assert!(waited >= Duration::from_millis(least), "{name}: {waited:?} of made-up time");
        assert_eq!(faults.sent().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn c10_retries_end_and_refusals_are_not_retried() {
    let faults = Faults::new();
    let table = scripted(&faults, |account| account.retry(RetryPolicy::exponential().retries_max(2)));
    faults.plan([(); 5].map(|()| Fault::Answer(429, vec![])));
    let error = table.insert(&entity(1)).await.expect_err("busy all the time");
    assert!(error.is_throttled(), "{error}");
    assert_eq!(faults.sent().len(), 3);
    faults.plan([Fault::Answer(400, vec![]), written()]);
    assert_eq!(table.insert(&entity(1)).await.expect_err("refused").status(), Some(400));
    assert_eq!(faults.sent().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c10_reads_go_to_the_secondary_and_writes_do_not() {
    let faults = Faults::new();
    let retry = RetryPolicy::exponential().read_from_secondary(true);
    let secondary = "http://127.0.0.2:10002/devstoreaccount1-secondary";
    let table = scripted(&faults, |account| account.retry(retry).table_secondary_endpoint(secondary));
    let hosts =
        |faults: &Faults| -> Vec<bool> { faults.sent().iter().map(|line| line.contains("127.0.0.2")).collect() };

    // What the secondary does not have, the primary may.
    faults.plan([Fault::Answer(500, vec![]), missing(), missing()]);
    assert_eq!(table.get::<DynamicEntity>("p", "r").await.expect("read"), None);
    assert_eq!(hosts(&faults), [false, true, false]);
    faults.plan([Fault::Answer(500, vec![]), written()]);
    table.insert(&entity(1)).await.expect("inserted");
    assert_eq!(hosts(&faults), [false, false]);
    // Nor does the look-up of whether a write took place: the secondary may not have it yet.
    let stored = r#"{"odata.etag":"W/\"2\"","PartitionKey":"p","RowKey":"r","Value":1}"#;
    let [busy, conflict] = [500, 409].map(|status| Fault::Answer(status, vec![]));
    faults.plan([busy.clone(), conflict, busy, Fault::AnswerWith(200, vec![], stored)]);
    assert_eq!(table.insert(&entity(1)).await.expect("found done").as_str(), "W/\"2\"");
    assert_eq!(hosts(&faults), [false; 4]);
}

#[tokio::test(start_paused = true)]
async fn c10_what_only_the_secondary_does_not_have_is_not_reported_missing() {
    let faults = Faults::new();
    let retry = RetryPolicy::exponential().read_from_secondary(true).retries_max(1);
    let table = scripted(&faults, |account| account.retry(retry));
    faults.plan([Fault::Answer(500, vec![]), missing()]);
    let error = table.get::<DynamicEntity>("p", "r").await.expect_err("the primary did not answer");
    assert_eq!((error.status(), faults.sent().len()), (Some(500), 2));

    // An account without a secondary has its address refused.
    let retry = RetryPolicy::exponential().read_from_secondary(true);
    let table = scripted(&faults, |account| account.retry(retry));
    let stored = r#"{"odata.etag":"W/\"2\"","PartitionKey":"p","RowKey":"r","Value":1}"#;
    faults.plan([Fault::Answer(500, vec![]), Fault::Answer(403, vec![]), Fault::AnswerWith(200, vec![], stored)]);
    assert!(table.get::<DynamicEntity>("p", "r").await.expect("read").is_some());
}

#[tokio::test(start_paused = true)]
async fn c1_what_is_missing_is_told_by_the_service_and_not_on_the_way_to_it() {
    let faults = Faults::new();
    let table = scripted(&faults, |account| account);
    faults.plan([missing()]);
    assert_eq!(table.get::<DynamicEntity>("p", "r").await.expect("read"), None);
    for (headers, body) in [
        (vec![("x-ms-error-code", "TableNotFound")], ""),
        (vec![], ""),
        (vec![("content-type", "text/html")], "<html><h1>No such site</h1></html>"),
    ] {
        faults.plan([Fault::AnswerWith(404, headers, body)]);
        let error = table.get::<DynamicEntity>("p", "r").await.expect_err("nothing is known of the entity");
        assert!(error.is_not_found() && !error.is_entity_not_found(), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn c10_a_success_that_is_not_understood_is_ambiguous() {
    let faults = Faults::new();
    let table = scripted(&faults, |account| account);
    let page = || Fault::AnswerWith(200, vec![("content-type", "text/html")], "<html>Please log in</html>");
    faults.plan([page(), page(), page()]);
    let inserted = table.insert(&entity(1)).await.expect_err("no answer of the service");
    let submitted = table.transaction().insert(&entity(1)).expect("added").submit().await.expect_err("no parts");
    for error in [inserted, submitted] {
        assert!(matches!(error, Error::Answer(_)) && error.is_ambiguous(), "{error}");
    }
    assert!(matches!(table.get::<DynamicEntity>("p", "r").await, Err(Error::Answer(_))));
    assert_eq!(faults.sent().len(), 3, "nothing is sent again");
}

#[tokio::test(start_paused = true)]
async fn c10_limits_that_no_clock_can_tell_are_none() {
    let faults = Faults::new();
    let retry = RetryPolicy::exponential().delay_max(Duration::MAX);
    let endless = |account: AccountBuilder| {
        account.timeout(Duration::MAX).attempt_timeout(Duration::MAX).connect_timeout(Duration::MAX).retry(retry)
    };
    let table = scripted(&faults, endless);
    faults.plan([Fault::Answer(503, vec![]), written()]);
    table.insert(&entity(1)).await.expect("inserted");
    faults.plan([Fault::Answer(503, vec![("retry-after", "18446744073709551615")]), written()]);
    assert_eq!(table.insert(&entity(1)).await.expect_err("not in this life").status(), Some(503));
    let retry = RetryPolicy::exponential().delay(Duration::MAX).delay_max(Duration::MAX);
    let table = scripted(&faults, |account| account.retry(retry)).with_timeout(Duration::MAX);
    faults.plan([Fault::Answer(503, vec![]), written()]);
    assert_eq!(table.insert(&entity(1)).await.expect_err("not in this life").status(), Some(503));
}

#[tokio::test(start_paused = true)]
async fn c10_time_limits_hold_for_an_attempt_and_for_the_call() {
    let faults = Faults::new();
    let table = scripted(&faults, |account| account.attempt_timeout(Duration::from_secs(3)));
    faults.plan([Fault::Hang, written()]);
    table.insert(&entity(1)).await.expect("the second attempt is answered");
    assert_eq!(faults.sent().len(), 2);

    faults.plan([(); 20].map(|()| Fault::Hang));
    let start = Instant::now();
    let error = table.with_timeout(Duration::from_secs(5)).insert(&entity(1)).await.expect_err("no answer");
    assert!(matches!(error, Error::Timeout(_)) && error.is_ambiguous(), "{error}");
    assert!(start.elapsed() <= Duration::from_secs(5), "{:?} of made-up time", start.elapsed());

    // The look-up after a lost answer is a part of the call.
    let table = table.with_timeout(Duration::from_secs(5));
    let [busy, conflict] = [500, 409].map(|status| Fault::Answer(status, vec![]));
    for is_transaction in [false, true] {
        faults.plan([Fault::Hang, busy.clone(), conflict.clone(), Fault::Hang, Fault::Hang, Fault::Hang]);
        let start = Instant::now();
        let error = match is_transaction {
            false => table.insert(&entity(1)).await.map(drop),
            true => table.transaction().insert(&entity(1)).expect("added").submit().await.map(drop),
        };
        let error = error.expect_err("no answer");
        assert!(matches!(error, Error::Timeout(_)) && error.is_ambiguous(), "{error}");
        assert!(start.elapsed() <= Duration::from_secs(5), "{:?} of made-up time", start.elapsed());
    }
}

#[tokio::test]
async fn c10_a_call_that_is_dropped_leaves_the_table_usable() {
    let (_server, table, faults) = faulty_table().await;
    // The server may still carry out what was dropped, so it is on another entity.
    let other = DynamicEntity::new("p", "dropped");
    for polls in 0..20 {
        let mut call = Box::pin(table.insert_or_replace(&other));
        // Polled a few times and dropped, wherever it is by then.
        for _ in 0..polls {
            if poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_ready())).await {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    faults.plan([]);
    table.insert_or_replace(&entity(99)).await.expect("written");
    assert_eq!(value(&table).await, Some(99));
}
