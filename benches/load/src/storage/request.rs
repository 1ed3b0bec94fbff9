//! Requests of the Queue and Blob services as bytes, signed and ready to send.
//!
//! One `StorageRequests` belongs to one connection and reuses its buffers. A large body is not copied here: only its
//! head is made, and the connection sends the body from where it is.

use std::io::Write as _;
use std::rc::Rc;

use crate::check::push_encoded;
use crate::sign::{ACCOUNT, Date, Signed, Signer};

const VERSION: &str = "2021-12-02";
const XML: &str = "application/xml";
const BYTES: &str = "application/octet-stream";
/// Long enough that a message which comes twice was delivered twice.
const VISIBILITY_SECONDS: &str = "3600";
/// Largest page of a listing.
pub(crate) const PAGE_BLOBS: u64 = 5_000;

/// Builds the requests of one connection.
pub(crate) struct StorageRequests {
    signer: Rc<Signer>,
    port: u16,
    date: Date,
    path: String,
    body: Vec<u8>,
    out: Vec<u8>,
}

/// The parts of a request that differ.
#[derive(Default)]
struct Parts<'a> {
    verb: &'a str,
    /// Decoded, sorted by name.
    query: &'a [(&'a str, &'a str)],
    content_type: &'a str,
    blob_type: bool,
    /// The length of a body that is sent apart from the head; without one, what is in the buffer is the body.
    apart: Option<usize>,
}

impl StorageRequests {
    /// Requests for the service on a port of this machine.
    pub(crate) fn new(signer: Rc<Signer>, port: u16) -> Self {
        Self { signer, port, date: Date::default(), path: String::new(), body: Vec::new(), out: Vec::new() }
    }

    /// Lists queues or containers; used to find out whether a server answers.
    pub(crate) fn list_names(&mut self) -> &[u8] {
        self.set_path(&[""]);
        self.finish(&Parts { verb: "GET", query: &[("comp", "list")], ..Parts::default() })
    }

    /// Creates a queue.
    pub(crate) fn create_queue(&mut self, queue: &str) -> &[u8] {
        self.set_path(&[queue]);
        self.finish(&Parts { verb: "PUT", ..Parts::default() })
    }

    /// Asks for a queue's metadata, which has the number of its messages.
    pub(crate) fn queue_metadata(&mut self, queue: &str) -> &[u8] {
        self.set_path(&[queue]);
        self.finish(&Parts { verb: "GET", query: &[("comp", "metadata")], ..Parts::default() })
    }

    /// Puts a message; `write` writes its text.
    pub(crate) fn put_message(&mut self, queue: &str, write: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        self.set_path(&[queue, "messages"]);
        self.body.extend_from_slice(b"<QueueMessage><MessageText>");
        write(&mut self.body);
        self.body.extend_from_slice(b"</MessageText></QueueMessage>");
        self.finish(&Parts { verb: "POST", content_type: XML, ..Parts::default() })
    }

    /// Gets one message and hides it for as long as no run takes.
    pub(crate) fn get_message(&mut self, queue: &str) -> &[u8] {
        self.set_path(&[queue, "messages"]);
        let query = [("visibilitytimeout", VISIBILITY_SECONDS)];
        self.finish(&Parts { verb: "GET", query: &query, ..Parts::default() })
    }

    /// Deletes a message by what its get answered.
    pub(crate) fn delete_message(&mut self, queue: &str, id: &str, receipt: &str) -> &[u8] {
        self.set_path(&[queue, "messages", id]);
        self.finish(&Parts { verb: "DELETE", query: &[("popreceipt", receipt)], ..Parts::default() })
    }

    /// Creates a container.
    pub(crate) fn create_container(&mut self, container: &str) -> &[u8] {
        self.set_path(&[container]);
        self.finish(&Parts { verb: "PUT", query: &[("restype", "container")], ..Parts::default() })
    }

    /// The head of a Put Blob.
    pub(crate) fn put_blob(&mut self, container: &str, blob: &str, bytes: usize) -> &[u8] {
        self.set_path(&[container, blob]);
        let parts = Parts { verb: "PUT", content_type: BYTES, blob_type: true, apart: Some(bytes), ..Parts::default() };
        self.finish(&parts)
    }

    /// The head of a Put Block.
    pub(crate) fn put_block(&mut self, container: &str, blob: &str, block: &str, bytes: usize) -> &[u8] {
        self.set_path(&[container, blob]);
        let query = [("blockid", block), ("comp", "block")];
        self.finish(&Parts { verb: "PUT", query: &query, content_type: BYTES, apart: Some(bytes), ..Parts::default() })
    }

    /// Commits blocks that were put, in this order.
    pub(crate) fn put_block_list<'b>(
        &mut self,
        container: &str,
        blob: &str,
        blocks: impl Iterator<Item = &'b str>,
    ) -> &[u8] {
        self.set_path(&[container, blob]);
        self.body.extend_from_slice(br#"<?xml version="1.0" encoding="utf-8"?><BlockList>"#);
        for block in blocks {
            let _ = write!(self.body, "<Latest>{block}</Latest>");
        }
        self.body.extend_from_slice(b"</BlockList>");
        self.finish(&Parts { verb: "PUT", query: &[("comp", "blocklist")], content_type: XML, ..Parts::default() })
    }

    /// Gets a whole blob.
    pub(crate) fn get_blob(&mut self, container: &str, blob: &str) -> &[u8] {
        self.set_path(&[container, blob]);
        self.finish(&Parts { verb: "GET", ..Parts::default() })
    }

    /// Lists a page of a container, the first one if the marker is empty.
    pub(crate) fn list_blobs(&mut self, container: &str, marker: &str) -> &[u8] {
        self.set_path(&[container]);
        let page = PAGE_BLOBS.to_string();
        let query = [("comp", "list"), ("marker", marker), ("maxresults", &page), ("restype", "container")];
        let first = [query[0], query[2], query[3]];
        let query = if marker.is_empty() { &first[..] } else { &query[..] };
        self.finish(&Parts { verb: "GET", query, ..Parts::default() })
    }

    /// Names what is asked for, and forgets the body of the request before.
    fn set_path(&mut self, parts: &[&str]) {
        self.body.clear();
        self.path.clear();
        for part in [ACCOUNT].iter().chain(parts) {
            self.path.push('/');
            self.path.push_str(part);
        }
    }

    fn finish(&mut self, parts: &Parts<'_>) -> &[u8] {
        let date = self.date.now();
        let body_bytes = parts.apart.unwrap_or(self.body.len());
        let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-date", date), ("x-ms-version", VERSION)];
        let headers = if parts.blob_type { &headers[..] } else { &headers[1..] };
        let signature = self.signer.storage_signature(&Signed {
            verb: parts.verb,
            body_bytes,
            content_type: parts.content_type,
            headers,
            path: &self.path,
            query: parts.query,
        });
        self.out.clear();
        let _ = write!(self.out, "{} {}", parts.verb, self.path);
        for (index, (name, value)) in parts.query.iter().enumerate() {
            let mut encoded = String::new();
            push_encoded(&mut encoded, value.as_bytes());
            let _ = write!(self.out, "{}{name}={encoded}", if index == 0 { '?' } else { '&' });
        }
        let _ = write!(
            self.out,
            " HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: SharedKey {ACCOUNT}:{signature}\r\n",
            self.port
        );
        for (name, value) in headers {
            let _ = write!(self.out, "{name}: {value}\r\n");
        }
        if !parts.content_type.is_empty() {
            let _ = write!(self.out, "Content-Type: {}\r\n", parts.content_type);
        }
        if !matches!(parts.verb, "GET" | "DELETE") {
            let _ = write!(self.out, "Content-Length: {body_bytes}\r\n");
        }
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(&self.body);
        &self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[test]
    fn a_receipt_is_encoded_in_the_address() {
        let signer = Rc::new(Signer::development().expect("a valid key"));
        let mut requests = StorageRequests::new(signer, 1234);
        let sent = text(requests.delete_message("q", "0-1", "a+/="));
        let start =
            "DELETE /devstoreaccount1/q/messages/0-1?popreceipt=a%2B%2F%3D HTTP/1.1\r\nHost: 127.0.0.1:1234\r\n";
        assert!(sent.starts_with(start), "{sent}");
        assert!(sent.ends_with("\r\n\r\n") && !sent.contains("Content-Length"));
    }

    #[test]
    fn a_head_tells_the_length_of_the_body_that_follows() {
        let signer = Rc::new(Signer::development().expect("a valid key"));
        let mut requests = StorageRequests::new(signer, 1);
        let sent = text(requests.put_blob("c", "b", 4096));
        assert!(sent.contains("\r\nContent-Length: 4096\r\n") && sent.ends_with("\r\n\r\n"));
        assert!(sent.contains("\r\nx-ms-blob-type: BlockBlob\r\n"));
        let sent = text(requests.put_message("q", |text| text.extend_from_slice(b"hello")));
        let (head, body) = sent.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())) && !head.contains("x-ms-blob-type"));
        assert_eq!(body, "<QueueMessage><MessageText>hello</MessageText></QueueMessage>");
    }
}
