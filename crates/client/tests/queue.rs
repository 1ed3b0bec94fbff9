//! Queues over a server of their own, and what the client makes of answers that are lost.

use crate::common::faults::{Fault, Faults};
use crate::suite::{self, losing, over_larimar, queue};
use http::Method;
use larimar_client::sas::{QueuePermissions, QueueSas};
use larimar_client::{Account, Error, RetryPolicy, SharedKey, Timestamp};
use larimar_embedded::Larimar;
use std::sync::atomic::Ordering;
use std::time::Duration;

queue::queue_cases!(over_larimar);

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn c10_a_delete_whose_answer_is_lost_has_deleted() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (account, has_lost) = losing::account(&server, |request| request.method() == Method::DELETE);
    let queue = account.queue("work");
    queue.create_if_missing().await.expect("created");
    let message = queue.put("a").await.expect("put");
    queue.delete(&message).await.expect("deleted by the first attempt");
    assert!(has_lost.load(Ordering::Relaxed));
    assert_eq!(queue.approximate_count().await.expect("a number"), 0);
    assert!(queue.delete(&message).await.expect_err("nothing was lost this time").is_not_found());
}

#[tokio::test]
async fn c10_a_queue_whose_creation_was_not_answered_counts_as_made() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (account, has_lost) = losing::account(&server, |request| request.method() == Method::PUT);
    assert!(account.queue("work").create_if_missing().await.expect("created"));
    assert!(has_lost.load(Ordering::Relaxed));
    assert!(!account.queue("work").create_if_missing().await.expect("it is there"));
}

#[tokio::test]
async fn c10_a_put_whose_answer_is_lost_is_there_at_least_once() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (account, _) = losing::account(&server, |request| request.method() == Method::POST);
    let queue = account.queue("work");
    queue.create_if_missing().await.expect("created");
    queue.put("a").await.expect("put");
    let texts: Vec<_> = queue.peek(32).await.expect("peeked").into_iter().map(|message| message.text).collect();
    assert_eq!(texts, ["a", "a"]);
}

#[tokio::test]
async fn c10_an_update_whose_answer_is_lost_leaves_a_stale_receipt() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (account, _) = losing::account(&server, |request| {
        request.method() == Method::PUT && request.uri().path().contains("/messages")
    });
    let queue = account.queue("work");
    queue.create_if_missing().await.expect("created");
    let mut message = queue.put("a").await.expect("put");
    let error = queue.update(&mut message, Duration::ZERO, Some("b")).await.expect_err("the new receipt is lost");
    assert!(matches!(error.code(), Some("PopReceiptMismatch" | "MessageNotFound")), "{error}");
    assert_eq!(queue.receive(1, MINUTE).await.expect("received")[0].text, "b", "the update took place");
}

#[tokio::test]
async fn s2_a_shared_access_signature_opens_a_queue_for_what_it_allows() {
    let server = Larimar::ephemeral().await.expect("a server");
    let owner = suite::connect(&server.connection_string());
    owner.queue("work").create_if_missing().await.expect("created");
    let token = QueueSas::new("work")
        .permissions(QueuePermissions::ADD)
        .expires(Timestamp::now().after(MINUTE))
        .sign(&SharedKey::new(server.account(), server.key()).expect("a key"))
        .expect("a token");
    let guest = Account::builder().queue_endpoint(server.queue_endpoint()).sas(token.as_str()).build();
    let queue = guest.expect("an account").queue("work");
    queue.put("a").await.expect("it may put");
    let error = queue.receive(1, MINUTE).await.expect_err("it may not receive");
    assert_eq!((error.status(), error.code()), (Some(403), Some("AuthorizationPermissionMismatch")));
}

#[tokio::test]
async fn c10_a_receive_that_is_tried_again_does_not_go_to_the_secondary() {
    let server = Larimar::ephemeral().await.expect("a server");
    suite::connect(&server.connection_string()).queue("work").create_if_missing().await.expect("created");
    let faults = Faults::new();
    let secondary = server.queue_endpoint() + "-secondary";
    let text = format!("{}QueueSecondaryEndpoint={secondary};", server.connection_string());
    let retry = RetryPolicy::exponential().delay(Duration::from_millis(1)).read_from_secondary(true);
    let account = faults.account(&server).connection_string(text).retry(retry).build().expect("an account");
    let queue = account.queue("work");
    let busy = || [Fault::Answer(503, vec![("x-ms-error-code", "ServerBusy")])];
    faults.plan(busy());
    queue.receive(1, MINUTE).await.expect("received");
    assert!(faults.sent().iter().all(|line| !line.contains("-secondary")), "{:?}", faults.sent());
    faults.plan(busy());
    queue.peek(1).await.expect("peeked");
    assert!(faults.sent()[1].contains("-secondary"), "{:?}", faults.sent());
}

#[tokio::test]
async fn x1_names_that_are_none_are_not_sent() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = suite::connect(&server.connection_string());
    for name in ["", "ab", "Work", "a--b", "..", "work/messages"] {
        let refused = account.queue(name).delete_queue().await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{name}: {refused:?}");
    }
    assert_eq!(server.requests().queue, 0);
}
