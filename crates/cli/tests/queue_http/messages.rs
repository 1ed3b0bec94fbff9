//! Messages: put, get, peek, update, delete, clear; visibility, receipts, expiry and the limits of each.

use super::{get, handle, message, put, serve_queue};
use std::time::{Duration, Instant};

#[test]
fn x1_a_message_is_put_got_and_deleted() {
    let server = serve_queue();
    let client = server.queues();
    let placed = put(&client, "a &lt;b&gt; &amp; ü €", "");
    for element in ["MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible"] {
        assert!(placed.element(element).is_some(), "{element} in {placed}");
    }
    assert_eq!(placed.element("MessageText"), None);
    let got = get(&client, "");
    assert_eq!(got.element("MessageId"), placed.element("MessageId"));
    assert_eq!(got.element("MessageText"), Some("a &lt;b&gt; &amp; ü €"));
    assert_eq!(got.element("DequeueCount"), Some("1"));
    assert_eq!(got.header("Cache-Control"), Some("no-cache"));
    assert_eq!(get(&client, "").elements("QueueMessage").len(), 0, "it is hidden now");
    client.request("DELETE", &handle(&got)).send().is_status(204);
    client.request("DELETE", &handle(&got)).send().is_error(404, "MessageNotFound");
}

#[test]
fn x1_peeking_changes_nothing_and_gives_no_receipt() {
    let server = serve_queue();
    let client = server.queues();
    put(&client, "one", "");
    for _ in 0..3 {
        let peeked = get(&client, "?peekonly=true");
        assert_eq!((peeked.element("MessageText"), peeked.element("DequeueCount")), (Some("one"), Some("0")));
        assert_eq!((peeked.element("PopReceipt"), peeked.element("TimeNextVisible")), (None, None));
    }
    assert_eq!(get(&client, "").element("DequeueCount"), Some("1"));
    assert!(get(&client, "?peekonly=true").elements("QueueMessage").is_empty());
}

#[test]
fn x1_a_message_is_visible_again_when_its_time_is_over_and_counts_its_deliveries() {
    let server = serve_queue();
    let client = server.queues();
    put(&client, "again", "");
    let first = get(&client, "?visibilitytimeout=1");
    let deadline = Instant::now() + Duration::from_secs(30);
    let second = loop {
        let reply = get(&client, "?visibilitytimeout=60");
        if reply.element("MessageId").is_some() {
            break reply;
        }
        assert!(Instant::now() < deadline, "it never came back");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(second.element("DequeueCount"), Some("2"));
    client.request("DELETE", &handle(&first)).send().is_error(400, "PopReceiptMismatch");
    client.request("DELETE", &handle(&second)).send().is_status(204);
}

#[test]
fn x1_the_receipt_of_a_put_is_good_at_once() {
    let server = serve_queue();
    let client = server.queues();
    let placed = put(&client, "short", "");
    client.request("DELETE", &handle(&placed)).send().is_status(204);
    assert!(get(&client, "").elements("QueueMessage").is_empty());
}

#[test]
fn x1_an_update_changes_text_and_visibility_and_gives_a_new_receipt() {
    let server = serve_queue();
    let client = server.queues();
    put(&client, "before", "");
    let got = get(&client, "");
    let path = format!("{}&visibilitytimeout=0", handle(&got));
    let updated = client.request("PUT", &path).body(message("after")).send();
    updated.is_status(204);
    assert!(updated.header("x-ms-time-next-visible").is_some());
    let receipt = updated.header("x-ms-popreceipt").expect("a receipt");
    assert_ne!(Some(receipt), got.element("PopReceipt"));
    client.request("PUT", &path).body(message("late")).send().is_error(400, "PopReceiptMismatch");
    let again = get(&client, "");
    assert_eq!((again.element("MessageText"), again.element("DequeueCount")), (Some("after"), Some("2")));
    // Without a body the text stays.
    client.request("PUT", &format!("{}&visibilitytimeout=0", handle(&again))).send().is_status(204);
    assert_eq!(get(&client, "").element("MessageText"), Some("after"));
}

#[test]
fn x1_up_to_32_messages_are_got_at_once_in_about_their_order() {
    let server = serve_queue();
    let client = server.queues();
    for number in 0..40 {
        put(&client, &format!("{number:02}"), "");
    }
    let texts = |query: &str| get(&client, query).elements("MessageText").join(" ");
    let expected: Vec<_> = (0..32).map(|number| format!("{number:02}")).collect();
    assert_eq!(texts("?numofmessages=32&peekonly=true"), expected.join(" "));
    assert_eq!(texts("?numofmessages=32"), expected.join(" "));
    assert_eq!(texts("?numofmessages=32"), "32 33 34 35 36 37 38 39");
    assert_eq!(texts("?numofmessages=32"), "");
}

#[test]
fn x1_delays_and_lifetimes_are_honoured() {
    let server = serve_queue();
    let client = server.queues();
    let hidden = put(&client, "later", "?visibilitytimeout=600");
    assert!(get(&client, "?peekonly=true").elements("QueueMessage").is_empty());
    client.request("DELETE", &handle(&hidden)).send().is_status(204);
    let never = put(&client, "for ever", "?messagettl=-1");
    assert_eq!(never.element("ExpirationTime"), Some("Fri, 31 Dec 9999 23:59:59 GMT"));
    client.request("DELETE", &handle(&never)).send().is_status(204);
    let short = put(&client, "short", "?messagettl=1");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !get(&client, "?peekonly=true").elements("QueueMessage").is_empty() {
        assert!(Instant::now() < deadline, "it never expired");
        std::thread::sleep(Duration::from_millis(20));
    }
    client.request("DELETE", &handle(&short)).send().is_error(404, "MessageNotFound");
}

#[test]
fn x1_clearing_removes_hidden_messages_too() {
    let server = serve_queue();
    let client = server.queues();
    for number in 0..20 {
        put(&client, &number.to_string(), "");
    }
    get(&client, "?numofmessages=5");
    client.request("DELETE", "/jobs/messages").send().is_status(204);
    assert!(get(&client, "?numofmessages=32").elements("QueueMessage").is_empty());
    let counted = client.get("/jobs?comp=metadata").send();
    assert_eq!(counted.header("x-ms-approximate-messages-count"), Some("0"));
}

#[test]
fn x1_parameters_out_of_range_are_told_with_their_range() {
    let server = serve_queue();
    let client = server.queues();
    for query in ["numofmessages=0", "numofmessages=33", "visibilitytimeout=0", "visibilitytimeout=604801"] {
        let reply = client.get(&format!("/jobs/messages?{query}")).send();
        reply.is_error(400, "OutOfRangeQueryParameterValue");
        let (name, value) = query.split_once('=').expect("a pair");
        assert_eq!(reply.element("QueryParameterName"), Some(name), "{reply}");
        assert_eq!(reply.element("QueryParameterValue"), Some(value), "{reply}");
        assert!(reply.element("MinimumAllowed").is_some() && reply.element("MaximumAllowed").is_some(), "{reply}");
    }
    let post = |query: &str| client.request("POST", &format!("/jobs/messages?{query}")).body(message("x")).send();
    for query in ["visibilitytimeout=-1", "visibilitytimeout=604801", "messagettl=-2"] {
        post(query).is_error(400, "OutOfRangeQueryParameterValue");
    }
    for query in ["messagettl=0", "messagettl=10&visibilitytimeout=10"] {
        post(query).is_error(400, "InvalidQueryParameterValue");
    }
    client.get("/jobs/messages?numofmessages=many").send().is_error(400, "InvalidQueryParameterValue");
}

#[test]
fn x1_texts_at_and_past_their_limit() {
    let server = serve_queue();
    let client = server.queues();
    put(&client, &"x".repeat(64 << 10), "");
    let post = |text: &str| client.request("POST", "/jobs/messages").body(message(text)).send();
    post(&"x".repeat((64 << 10) + 1)).is_error(413, "RequestBodyTooLarge");
    // What counts is the text, not its escapes.
    post(&"&amp;".repeat(64 << 10)).is_status(201);
    post("&amp;".repeat((64 << 10) + 1).as_str()).is_error(413, "RequestBodyTooLarge");
    post("").is_status(201);
}

#[test]
fn x1_bad_bodies_ids_and_receipts_are_told_apart() {
    let server = serve_queue();
    let client = server.queues();
    for body in ["", "x", "<QueueMessage>", "<Other/>", "<QueueMessage><MessageText>&#1;</MessageText></QueueMessage>"]
    {
        let reply = client.request("POST", "/jobs/messages").body(body).send();
        assert_eq!(reply.status, 400, "{body}: {reply}");
        assert_eq!(reply.header("x-ms-error-code"), Some(reply.code().as_str()));
    }
    let got = put(&client, "x", "");
    let id = got.element("MessageId").expect("an id");
    let delete = |path: &str| client.request("DELETE", path).send();
    delete(&format!("/jobs/messages/{id}")).is_error(400, "MissingRequiredQueryParameter");
    let malformed = delete(&format!("/jobs/messages/{id}?popreceipt=x"));
    malformed.is_error(400, "InvalidQueryParameterValue");
    let update = client.request("PUT", &handle(&got)).body(message("y")).send();
    update.is_error(400, "MissingRequiredQueryParameter");
    let unknown = handle(&got).replace(id, "00000000-0000-0000-0000-000000000000");
    delete(&unknown).is_error(404, "MessageNotFound");
    client.get("/missing/messages").send().is_error(404, "QueueNotFound");
}

#[test]
fn x1_many_consumers_share_a_queue_and_none_gets_a_message_twice() {
    let server = serve_queue();
    let client = server.queues();
    for number in 0..200 {
        put(&client, &number.to_string(), "");
    }
    let consumers: Vec<_> = (0..8).map(|_| server.queues()).collect();
    let mut texts: Vec<String> = std::thread::scope(|scope| {
        let consume = |client: larimar_testkit::http::Client| {
            let mut texts = Vec::new();
            loop {
                let reply = get(&client, "?numofmessages=3&visibilitytimeout=600");
                let found = reply.elements("MessageText");
                if found.is_empty() {
                    return texts;
                }
                texts.extend(found.into_iter().map(str::to_owned));
            }
        };
        let threads: Vec<_> = consumers.into_iter().map(|client| scope.spawn(move || consume(client))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a consumer")).collect()
    });
    texts.sort_by_key(|text| text.parse::<u32>().expect("a number"));
    assert_eq!(texts, (0..200).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_missing_queue_is_told_before_anything_of_the_message() {
    let server = serve_queue();
    let client = server.queues();
    let placed = put(&client, "x", "");
    let path = handle(&placed).replace("/jobs/", "/missing/");
    for path in [path.as_str(), "/missing/messages/none?popreceipt=none"] {
        let separator = format!("{path}&visibilitytimeout=0");
        client.request("PUT", &separator).body(message("y")).send().is_error(404, "QueueNotFound");
        client.request("DELETE", path).send().is_error(404, "QueueNotFound");
    }
    let id = placed.element("MessageId").expect("an id");
    let malformed = format!("/jobs/messages/{id}?popreceipt=none");
    client.request("DELETE", &malformed).send().is_error(400, "InvalidQueryParameterValue");
    client.request("DELETE", "/jobs/messages/none?popreceipt=none").send().is_error(404, "MessageNotFound");
}

#[test]
fn messages_may_live_for_any_time() {
    let server = serve_queue();
    let client = server.queues();
    for seconds in ["2147483648", "250000000000", "9223372036854775807"] {
        let placed = put(&client, "x", &format!("?messagettl={seconds}"));
        assert!(placed.element("ExpirationTime").is_some(), "{placed}");
    }
    assert_eq!(get(&client, "?numofmessages=32").elements("MessageText").len(), 3);
    let old = client.request("POST", "/jobs/messages?messagettl=604801").header("x-ms-version", "2016-05-31");
    old.body(message("x")).send().is_error(400, "OutOfRangeQueryParameterValue");
    let short = client.request("POST", "/jobs/messages?messagettl=5&visibilitytimeout=10").body(message("x")).send();
    assert_eq!(short.element("Reason"), Some("messagettl must be greater than visibilitytimeout"), "{short}");
}

#[test]
fn line_ends_of_a_message_stay_as_they_are() {
    let server = serve_queue();
    let client = server.queues();
    for sent in ["a\r\nb", "a&#xD;&#xA;b", "a&#13;\nb"] {
        put(&client, sent, "");
        // A reader of XML makes CR LF a single LF unless the CR is escaped.
        assert_eq!(get(&client, "").element("MessageText"), Some("a&#xD;\nb"), "{sent:?}");
    }
    put(&client, "a\nb\rc", "");
    assert_eq!(get(&client, "").element("MessageText"), Some("a\nb&#xD;c"));
}
