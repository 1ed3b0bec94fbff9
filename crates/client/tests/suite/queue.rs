//! What queues do, over any server: each case takes an account and makes a queue of its own.

use crate::suite::unique;
use futures_util::TryStreamExt as _;
use larimar_client::sas::QueuePermissions;
use larimar_client::{Account, Error, Queue, StoredPolicy};
use std::collections::BTreeMap;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

async fn queue(account: &Account) -> Queue {
    let queue = account.queue(unique("queue"));
    assert!(queue.create_if_missing().await.expect("created"));
    queue
}

pub(crate) async fn x1_a_message_is_hidden_while_it_is_worked_on_and_then_deleted(account: &Account) {
    let queue = queue(account).await;
    let put = queue.put("first").await.expect("put");
    assert_eq!((put.text.as_str(), put.dequeue_count), ("first", 0));
    let received = queue.receive(32, MINUTE).await.expect("received");
    let [message] = &received[..] else { panic!("{received:?}") };
    assert_eq!((message.id.as_str(), message.text.as_str(), message.dequeue_count), (put.id.as_str(), "first", 1));
    assert!(message.next_visible_on > message.inserted_on);
    assert!(message.expires_on.expect("a day") > message.next_visible_on);
    assert_eq!(queue.receive(1, MINUTE).await.expect("nothing is visible"), []);
    assert_eq!(queue.peek(1).await.expect("nothing is visible"), []);
    assert_eq!(queue.approximate_count().await.expect("a number"), 1);
    queue.delete(message).await.expect("deleted");
    let error = queue.delete(message).await.expect_err("it is gone");
    assert_eq!((error.is_not_found(), error.code()), (true, Some("MessageNotFound")));
    queue.delete_queue().await.expect("deleted");
}

pub(crate) async fn x1_a_receipt_is_stale_once_others_received_the_message(account: &Account) {
    let queue = queue(account).await;
    queue.put("a").await.expect("put");
    let mut mine = queue.receive(1, MINUTE).await.expect("received").remove(0);
    queue.update(&mut mine, Duration::ZERO, None).await.expect("made visible");
    let theirs = queue.receive(1, MINUTE).await.expect("received").remove(0);
    assert_eq!((theirs.id.as_str(), theirs.dequeue_count), (mine.id.as_str(), 2));
    for error in [
        queue.delete(&mine).await.expect_err("it is theirs"),
        queue.update(&mut mine, MINUTE, Some("b")).await.expect_err("it is theirs"),
    ] {
        assert!(matches!(error.code(), Some("PopReceiptMismatch" | "MessageNotFound")), "{error}");
    }
    assert_eq!(mine.text, "a", "a refused update changes nothing");
    queue.delete(&theirs).await.expect("deleted");
    queue.delete_queue().await.expect("deleted");
}

pub(crate) async fn x1_an_update_gives_a_new_receipt_and_text(account: &Account) {
    let queue = queue(account).await;
    queue.put("step 1").await.expect("put");
    let mut message = queue.receive(1, MINUTE).await.expect("received").remove(0);
    let before = message.clone();
    queue.update(&mut message, 2 * MINUTE, Some("step 2 <&>")).await.expect("updated");
    assert_ne!(message.pop_receipt, before.pop_receipt);
    assert!(message.next_visible_on > before.next_visible_on);
    queue.update(&mut message, Duration::ZERO, None).await.expect("updated with the new receipt");
    let peeked = queue.peek(1).await.expect("peeked").remove(0);
    assert_eq!((peeked.text.as_str(), peeked.dequeue_count), ("step 2 <&>", 1));
    assert_eq!((&peeked.id, peeked.inserted_on), (&message.id, before.inserted_on));
    queue.delete_queue().await.expect("deleted");
}

pub(crate) async fn x1_texts_come_back_as_they_were_put(account: &Account) {
    let queue = queue(account).await;
    for text in ["", " \t\n leading and trailing \n", "<a b=\"c\">&amp;'</a>", "日本 \u{1F600} ]]>", "+ %2B"] {
        queue.put(text).await.expect("put");
        let message = queue.receive(1, MINUTE).await.expect("received").remove(0);
        assert_eq!((message.text.as_str(), message.is_raw), (text, false));
        queue.delete(&message).await.expect("deleted");
    }
    assert!(matches!(queue.put("\u{1}").await, Err(Error::Invalid(_))));
    assert!(matches!(queue.put("a".repeat(64 * 1024 + 1)).await, Err(Error::Invalid(_))));
    queue.put("<".repeat(64 * 1024)).await.expect("as long as a message may be");
    assert_eq!(queue.peek(1).await.expect("peeked")[0].text.len(), 64 * 1024);
    queue.delete_queue().await.expect("deleted");
}

pub(crate) async fn x1_texts_in_base64_are_those_of_older_clients(account: &Account) {
    let plain = queue(account).await;
    let encoded = plain.with_base64();
    let put = encoded.put("ü \u{1}").await.expect("put");
    assert_eq!(put.text, "ü \u{1}");
    assert_eq!(plain.peek(1).await.expect("peeked")[0].text, "w7wgAQ==");
    let mut message = encoded.receive(1, MINUTE).await.expect("received").remove(0);
    assert_eq!((message.text.as_str(), message.is_raw), ("ü \u{1}", false));
    encoded.update(&mut message, Duration::ZERO, Some("b")).await.expect("updated");
    assert_eq!(plain.peek(1).await.expect("peeked")[0].text, "Yg==");
    plain.clear().await.expect("cleared");
    plain.put("no base64").await.expect("put");
    let raw = encoded.receive(1, MINUTE).await.expect("received").remove(0);
    assert_eq!((raw.text.as_str(), raw.is_raw), ("no base64", true));
    encoded.delete(&raw).await.expect("deleted");
    plain.delete_queue().await.expect("deleted");
}

pub(crate) async fn x1_messages_wait_and_live_for_as_long_as_their_writer_says(account: &Account) {
    use larimar_client::PutOptions;
    let queue = queue(account).await;
    let hidden = PutOptions::default().hidden_for(MINUTE).lives_for(Duration::from_millis(3_599_500));
    let later = queue.put_with("later", hidden).await.expect("put");
    assert_eq!(later.next_visible_on.since(later.inserted_on), MINUTE);
    let lives_for = later.expires_on.map(|end| end.since(later.inserted_on));
    assert_eq!(lives_for, Some(60 * MINUTE), "whole seconds, not fewer than asked for");
    assert_eq!(queue.receive(1, MINUTE).await.expect("nothing is visible"), []);
    queue.delete(&later).await.expect("a message that was just put can be taken back");
    let forever = queue.put_with("forever", PutOptions::default().lives_forever()).await.expect("put");
    assert_eq!(forever.expires_on, None);
    assert_eq!(queue.peek(1).await.expect("peeked")[0].expires_on, None);
    for refused in [
        queue.put_with("", PutOptions::default().lives_for(Duration::ZERO)).await.err(),
        queue.put_with("", PutOptions::default().hidden_for(8 * 24 * 60 * MINUTE)).await.err(),
        queue.receive(1, Duration::ZERO).await.err(),
        queue.receive(0, MINUTE).await.err(),
        queue.receive(33, MINUTE).await.err(),
        queue.peek(33).await.err(),
    ] {
        assert!(matches!(refused, Some(Error::Invalid(_))), "{refused:?}");
    }
    queue.delete_queue().await.expect("deleted");
}

pub(crate) async fn x1_many_messages_are_received_counted_and_cleared(account: &Account) {
    let queue = queue(account).await;
    for n in 0..40 {
        queue.put(n.to_string()).await.expect("put");
    }
    assert_eq!(queue.approximate_count().await.expect("a number"), 40);
    assert_eq!(queue.peek(32).await.expect("peeked").len(), 32);
    let mut texts = Vec::new();
    for _ in 0..2 {
        texts.extend(queue.receive(32, MINUTE).await.expect("received").into_iter().map(|message| message.text));
    }
    texts.sort_by_key(|text| text.parse::<u32>().ok());
    assert_eq!(texts, (0..40).map(|n| n.to_string()).collect::<Vec<_>>());
    queue.clear().await.expect("cleared");
    assert_eq!(queue.approximate_count().await.expect("a number"), 0);
    queue.delete_queue().await.expect("deleted");
}

pub(crate) async fn x1_queues_are_made_listed_and_deleted(account: &Account) {
    let first = queue(account).await;
    assert!(!first.create_if_missing().await.expect("it is there"));
    let second = account.queue(format!("{}-b", first.name()));
    assert!(second.create_if_missing().await.expect("created"));
    let listed: Vec<_> = account.queues().list(first.name()).try_collect().await.expect("listed");
    let names: Vec<_> = listed.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, [first.name(), second.name()]);
    assert!(first.url().ends_with(&format!("/{}", first.name())), "{}", first.url());
    second.delete_queue().await.expect("deleted");
    assert!(!second.delete_queue_if_exists().await.expect("it is gone"));
    let error = second.put("a").await.expect_err("there is no queue");
    assert_eq!((error.is_not_found(), error.code()), (true, Some("QueueNotFound")));
    assert!(second.delete_queue().await.expect_err("it is gone").is_not_found());
    let listed: Vec<_> = account.queues().list(second.name()).try_collect().await.expect("listed");
    assert_eq!(listed, []);
    first.delete_queue().await.expect("deleted");
}

pub(crate) async fn x1_a_queue_keeps_metadata_and_policies(account: &Account) {
    let queue = queue(account).await;
    assert_eq!(queue.metadata().await.expect("read"), BTreeMap::new());
    assert_eq!(queue.policies().await.expect("read"), []);
    let metadata = BTreeMap::from([("Owner".to_owned(), "Don <&>".to_owned()), ("n".to_owned(), "1".to_owned())]);
    queue.set_metadata(&metadata).await.expect("set");
    let lowered = metadata.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
    assert_eq!(queue.metadata().await.expect("read"), lowered);
    let start = "2021-06-08T02:05:09Z".parse().expect("a time");
    let policies = [
        StoredPolicy::new("put only").permissions(QueuePermissions::ADD).starts(start),
        StoredPolicy::new("all").permissions(QueuePermissions::ALL).expires(start),
    ];
    queue.set_policies(&policies).await.expect("set");
    assert_eq!(queue.policies().await.expect("read"), policies);
    let six: Vec<_> = (0..6).map(|number| StoredPolicy::new(number.to_string())).collect();
    assert!(matches!(queue.set_policies(&six).await, Err(Error::Invalid(_))));
    queue.delete_queue().await.expect("deleted");
}

pub(crate) async fn x1_a_receipt_alone_gives_a_message_back(account: &Account) {
    let queue = queue(account).await;
    queue.put("a").await.expect("put");
    let received = queue.receive(1, MINUTE).await.expect("received").remove(0);
    assert_eq!(queue.peek(1).await.expect("nothing is visible"), []);
    queue.release(&received.id, &received.pop_receipt).await.expect("given back");
    let [again] = &queue.receive(1, MINUTE).await.expect("received")[..] else { panic!("it is visible") };
    assert_eq!((again.id.as_str(), again.dequeue_count), (received.id.as_str(), 2));
    let error = queue.release(&received.id, &received.pop_receipt).await.expect_err("it is theirs");
    assert!(matches!(error.code(), Some("PopReceiptMismatch" | "MessageNotFound")), "{error}");
    queue.delete_queue().await.expect("deleted");
}

macro_rules! queue_cases {
    ($test:ident) => {
        $test! { queue:
            x1_a_message_is_hidden_while_it_is_worked_on_and_then_deleted,
            x1_a_receipt_is_stale_once_others_received_the_message,
            x1_an_update_gives_a_new_receipt_and_text,
            x1_texts_come_back_as_they_were_put,
            x1_texts_in_base64_are_those_of_older_clients,
            x1_messages_wait_and_live_for_as_long_as_their_writer_says,
            x1_many_messages_are_received_counted_and_cleared,
            x1_queues_are_made_listed_and_deleted,
            x1_a_queue_keeps_metadata_and_policies,
            x1_a_receipt_alone_gives_a_message_back,
        }
    };
}
pub(crate) use queue_cases;
