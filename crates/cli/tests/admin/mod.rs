//! The admin endpoint of the built binary: who may use it, what a reset removes, and what the server says about a query.

mod advice;
mod credentials;
mod explain;
mod insights;
mod insights_rows;
mod partitions_in_time;
mod reset;
mod tls;

use larimar_engine::{Clock as _, SystemClock};
use larimar_testkit::http::{self, Response};
use larimar_testkit::{Launch, Server};
use larimar_tool::admin::find_token;
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use larimar_wire::signature::{AccountKey, Scheme, http_date, sign};
use std::net::SocketAddr;
use tempfile::TempDir;

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const RESET: &str = "/reset?account=devstoreaccount1";

/// Where the server of a directory is started; in memory, where the engine is the embedded one.
fn launch(folder: &TempDir) -> Launch {
    Launch::new(EXE, folder.path().join("data")).argument("--log-level=debug")
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
    http::exchange(address, request.as_bytes()).expect("an answer")
}

/// The token of a server, as commands on this machine find it.
fn token(server: &Server) -> String {
    let (runtime, data) = (server.runtime_directory(), server.data());
    let found = find_token(Some(&runtime.join("larimar")), &data, server.admin_address().port());
    found.expect("readable files").expect("a token")
}

/// Empties the development account.
fn reset(server: &Server) -> Response {
    send(server.admin_address(), "POST", RESET, &[("authorization", &format!("Bearer {}", token(server)))])
}

/// The headers of a request that a key signs.
fn signature(method: &str, target: &str, account: &str, key: &str) -> [(&'static str, String); 2] {
    let date = http_date(SystemClock.now());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = [("x-ms-date", date.as_str())];
    let request = RequestHead::new(method, path, query, headers);
    let key = AccountKey::from_base64(key).expect("a key");
    let header = sign(Service::Blob, Scheme::SharedKey, account, &key, &request).expect("a signature");
    [("x-ms-date", date), ("authorization", header)]
}
