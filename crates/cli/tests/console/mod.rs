//! The web console of the built binary: its page, and what keeps other pages, stored files and other machines away from the
//! services that are mounted beside it.

mod design;
mod live;
mod mount;
mod page;
mod strangers;

use larimar_testkit::http::{ACCOUNT, Client, Request, Response, exchange, read_response};
use larimar_testkit::{Launch, Server};
use larimar_wire::sas::Service;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tempfile::TempDir;

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
/// The header that only the page's own scripts can send.
const MARK: (&str, &str) = ("x-larimar-console", "1");

fn launch(folder: &TempDir) -> Launch {
    Launch::new(EXE, folder.path().join("data")).argument("--log-level=debug")
}

/// A client that signs for the service's own path, while its requests go through the console.
fn client(server: &Server, service: Service) -> Client {
    Client::of_service(server.admin_address(), service)
}

/// Sends a request through the mount of a service, as the page does.
fn through(service: Service, client: &Client, request: Request<'_>) -> Response {
    let bytes = mounted(service.name(), &request.header(MARK.0, MARK.1));
    if !bytes.starts_with(b"HEAD ") {
        return exchange(client.address(), &bytes).expect("an answer");
    }
    let mut stream = TcpStream::connect(client.address()).expect("the server accepts");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream.write_all(&bytes).expect("a request");
    read_response(&stream, false).expect("an answer")
}

/// The bytes of a request with a word before its path.
fn mounted(word: &str, request: &Request<'_>) -> Vec<u8> {
    let mut bytes = request.clone().header("Connection", "close").to_bytes();
    let target = bytes.iter().position(|byte| *byte == b' ').expect("a target") + 1;
    bytes.splice(target..target, format!("/{word}").into_bytes());
    bytes
}

/// Sends a request with these headers besides `Host`.
fn send(address: SocketAddr, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request.push_str(&format!("host: {address}\r\n"));
    }
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    exchange(address, request.as_bytes()).expect("an answer")
}

/// The values of all headers of a name.
fn all<'a>(reply: &'a Response, name: &str) -> Vec<&'a str> {
    let found = reply.headers.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str()).collect()
}

/// An answer of a mount: whatever it holds, it cannot become a document or a script of the console's origin.
#[track_caller]
fn is_disarmed(reply: &Response) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "attachment"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(all(reply, name), [value], "{name} of {reply}");
    }
    assert!(!reply.headers.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with("access-control-")), "{reply}");
}

/// A path of the development account.
fn of_account(path: &str) -> String {
    format!("/{ACCOUNT}{path}")
}
