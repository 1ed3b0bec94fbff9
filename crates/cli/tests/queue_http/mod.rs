//! The Queue service over HTTP, as the protocol notes have it, against the built binary. Test names carry the numbers of
//! the design guide.

mod access;
mod messages;
mod queues;

use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{Client, Response, encode};

/// A server of one's own. What is tested here does not depend on how acknowledged writes reach the disk.
fn serve() -> TemporaryServer {
    TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &["--durability", "async", "--log-level", "warn"])
}

/// A server with one queue, `jobs`.
fn serve_queue() -> TemporaryServer {
    let server = serve();
    server.queues().request("PUT", "/jobs").send().is_status(201);
    server
}

/// The body of Put Message and Update Message.
fn message(text: &str) -> String {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

fn put(client: &Client, text: &str, query: &str) -> Response {
    let reply = client.request("POST", &format!("/jobs/messages{query}")).body(message(text)).send();
    reply.is_status(201);
    reply
}

fn get(client: &Client, query: &str) -> Response {
    let reply = client.get(&format!("/jobs/messages{query}")).send();
    reply.is_status(200);
    reply
}

/// The path of a message in an answer, with its receipt.
fn handle(reply: &Response) -> String {
    let (id, receipt) = (reply.element("MessageId"), reply.element("PopReceipt"));
    let (id, receipt) = (id.expect("an id"), receipt.expect("a receipt"));
    format!("/jobs/messages/{id}?popreceipt={}", encode(receipt))
}
