//! Every operation over HTTP with a shared access signature that lacks a permission it needs: 403. With all permissions it
//! is anything else.

use super::{Case, Place, blobs, queues, tables};
use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{Batch, BatchReply, Client, Sas};
use larimar_wire::operation::{Endpoint, Facts, Operation};
use larimar_wire::sas::{Letters, Need};

/// The letters of all permissions.
const ALL: &str = "racwdxyltfmeopiu";

fn serve() -> TemporaryServer {
    TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &["--durability", "async", "--log-level", "warn"])
}

/// Sets of letters of which each lacks one permission that an operation needs.
fn lacking(need: &Need<'_>) -> Vec<String> {
    let without = |lacking: &dyn Fn(char) -> bool| ALL.chars().filter(|letter| !lacking(*letter)).collect::<String>();
    match need.letters {
        Letters::All(letters) => letters.chars().map(|letter| without(&|other| other == letter)).collect(),
        // Any permission suffices.
        Letters::Any(letters) if letters == ALL => Vec::new(),
        Letters::Any(letters) => vec![without(&|letter| letters.contains(letter))],
        Letters::Never => vec![ALL.to_owned()],
    }
}

/// Sends each case with all permissions, and without each that it needs.
fn check<O: Operation>(owner: &Client, service: &str, cases: &[Case], parse: impl Fn(&Case) -> O) {
    for case in cases {
        let operation = parse(case);
        let facts = operation.facts();
        let mut refused = 0;
        for need in facts.needs.iter().flatten() {
            for letters in lacking(need) {
                let (status, code) = send(owner, service, case, &facts, &letters);
                assert_eq!(status, 403, "{} with {letters}: {code}, {case:?}", facts.name);
                refused += 1;
            }
        }
        let is_never = facts.needs.iter().flatten().any(|need| need.letters == Letters::Never);
        let (status, code) = send(owner, service, case, &facts, ALL);
        assert_eq!(status == 403, is_never, "{} with all permissions: {code}, {case:?}", facts.name);
        let is_open = facts.needs.iter().flatten().all(|need| need.letters == Letters::Any(ALL));
        assert_eq!(refused == 0, is_open, "{} is refused without its permission", facts.name);
    }
}

/// The status and the code of the response to a case, sent with an account SAS of these letters.
fn send(owner: &Client, service: &str, case: &Case, facts: &Facts<'_>, letters: &str) -> (u16, String) {
    let token = Sas::account("sco", letters).with("sv", "2019-12-12").with("ss", service).token();
    let guest = owner.with_sas(&token);
    let guest = if facts.endpoint == Endpoint::Secondary { guest.secondary() } else { guest };
    let response = match case.place {
        Place::Alone => {
            let request = guest.request(case.method, case.target);
            let request =
                case.headers.iter().fold(request, |request, (name, value)| request.header(name, value.as_str()));
            match case.method {
                "GET" | "HEAD" => request.send(),
                _ => request.body(case.body.as_str()).send(),
            }
        }
        Place::Changeset => {
            let headers = [case.header_line("If-Match")];
            let headers: Vec<&str> = headers.iter().flatten().map(String::as_str).collect();
            let batch = Batch::new().operation(&guest, case.method, case.target, &headers, &case.body);
            only(batch.send(&guest))
        }
        Place::BatchQuery => {
            let part = format!(
                "--batch_a8f3c1d2-0001-4a5b-9c6d-1234567890ab\r\nContent-Type: application/http\r\n\r\n{} {}{} HTTP/1.1\r\n\r\n\r\n--batch_a8f3c1d2-0001-4a5b-9c6d-1234567890ab--\r\n",
                case.method,
                guest.base(),
                case.target
            );
            only(BatchReply::new(Batch::raw(&guest, part).send()))
        }
        Place::BlobBatch => return send_blob_part(owner, case, &token),
    };
    (response.status, if case.method == "HEAD" { String::new() } else { response.code() })
}

fn only(reply: BatchReply) -> larimar_testkit::http::Response {
    let mut parts = reply.parts;
    assert_eq!(parts.len(), 1, "{}", reply.outer);
    parts.remove(0).response
}

/// Sends a part of a blob batch with a token of its own.
fn send_blob_part(owner: &Client, case: &Case, token: &str) -> (u16, String) {
    let separator = if case.target.contains('?') { '&' } else { '?' };
    let headers: String = case.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let part = format!(
        "--b\r\nContent-Type: application/http\r\n\r\n{} {}{}{separator}{token} HTTP/1.1\r\n{headers}Content-Length: 0\r\n\r\n\r\n--b--\r\n",
        case.method,
        owner
            .base()
            .trim_start_matches("http://")
            .split_once('/')
            .map_or(String::new(), |(_, path)| format!("/{path}")),
        case.target
    );
    let request = owner.request("POST", "/?comp=batch").header("Content-Type", "multipart/mixed; boundary=b");
    let response = request.body(part).send();
    response.is_status(202);
    let text = response.text();
    let status = text.split("HTTP/1.1 ").nth(1).and_then(|rest| rest.get(..3)).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{text}")), text.to_owned())
}

impl Case {
    fn header_line(&self, name: &str) -> Option<String> {
        self.pairs().into_iter().find(|(found, _)| *found == name).map(|(name, value)| format!("{name}: {value}"))
    }
}

#[test]
fn s2_every_operation_on_tables_needs_its_permission() {
    let server = serve();
    let owner = server.client();
    owner.create_table("tab");
    check(&owner, "t", &tables::cases(), tables::parse);
}

#[test]
fn s2_every_operation_on_queues_needs_its_permission() {
    let server = serve();
    let owner = server.queues();
    owner.request("PUT", "/jobs").send().is_status(201);
    check(&owner, "q", &queues::cases(), queues::parse);
}

#[test]
fn s2_every_operation_on_blobs_needs_its_permission() {
    let server = serve();
    let owner = server.blobs();
    owner.request("PUT", "/box?restype=container").send().is_status(201);
    for (name, kind) in [("block", "BlockBlob"), ("append", "AppendBlob"), ("pages", "PageBlob")] {
        let put = owner.request("PUT", &format!("/box/{name}")).header("x-ms-blob-type", kind);
        let put = if kind == "PageBlob" { put.header("x-ms-blob-content-length", "1024") } else { put };
        put.body("").send().is_status(201);
    }
    check(&owner, "b", &blobs::cases(), blobs::parse);
}
