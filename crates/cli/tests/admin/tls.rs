//! Commands of this machine and a server whose certificate no authority signed and that is for another name.

use super::{EXE, RESET, token};
use larimar_testkit::{Launch, Server};
use larimar_tool::admin::AdminEndpoint;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

/// A certificate as `openssl req -x509` makes it, which is an authority, or one that is not.
fn write_certificate(folder: &Path, is_ca: IsCa) {
    let key = KeyPair::generate().expect("a key");
    let mut parameters = CertificateParams::new(["elsewhere.test".to_owned()]).expect("a name");
    parameters.is_ca = is_ca;
    let certificate = parameters.self_signed(&key).expect("a certificate");
    std::fs::write(folder.join("cert.pem"), certificate.pem()).expect("a file");
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).expect("a file");
}

/// A server with the settings of a file in the directory.
fn start(folder: &Path) -> Server {
    let names = ["table_port", "queue_port", "blob_port", "admin_port"];
    let ports: Vec<_> = names.into_iter().zip(free_ports(names.len())).collect();
    let lines: String = ports.iter().map(|(name, port)| format!("{name} = {port}\n")).collect();
    let text =
        format!("data_dir = 'data'\nallow_reset = true\ntls_certificate = 'cert.pem'\ntls_key = 'key.pem'\n{lines}");
    let file = folder.join("larimar.toml");
    std::fs::write(&file, text).expect("a file");
    let launch = Launch::new(EXE, folder.join("data")).engine("local");
    let launch = launch.argument(format!("--config={}", file.display()));
    // Flags of the fixture say that any port will do.
    let flag = |name: &str| name.replace('_', "-");
    ports.iter().fold(launch, |launch, (name, port)| launch.argument(format!("--{}={port}", flag(name)))).start()
}

/// Ports that were free a moment ago.
fn free_ports(count: usize) -> Vec<u16> {
    let sockets: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    sockets.iter().map(|socket| socket.local_addr().expect("an address").port()).collect()
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(EXE).args(arguments).current_dir(folder).output().expect("the binary runs")
}

#[test]
fn commands_trust_the_certificate_of_the_server_on_this_machine() {
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let folder = tempfile::tempdir().expect("a directory");
        write_certificate(folder.path(), is_ca);
        let server = start(folder.path());
        for (arguments, printed) in [
            (&["table", "create", "Orders"][..], ""),
            (&["table", "list"], "Orders"),
            (&["queue", "list"], ""),
            (&["blob", "list"], ""),
            (&["compact"], "rows: "),
        ] {
            let output = run(folder.path(), arguments);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{arguments:?}: {said}");
            assert!(String::from_utf8_lossy(&output.stdout).contains(printed), "{arguments:?}: {said}");
        }
        // An address that is named is checked as always.
        let url = format!("https://{}/devstoreaccount1", server.table_address());
        let output = run(folder.path(), &["table", "list", "--endpoint", &url]);
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[tokio::test]
async fn admin_requests_need_the_certificate_of_the_server() {
    let folder = tempfile::tempdir().expect("a directory");
    write_certificate(folder.path(), IsCa::NoCa);
    let server = start(folder.path());
    let url = format!("https://{}", server.admin_address());
    let endpoint = |token: &str| AdminEndpoint::new(&url, token);
    let certificate = folder.path().join("cert.pem");
    let trusting = endpoint(&token(&server)).with_certificate(&certificate).expect("a file");
    let answer = trusting.post(RESET).await.expect("an answer");
    assert_eq!((answer.status, answer.text.as_str()), (200, "{\"tables\":0,\"queues\":0,\"containers\":0}\n"));
    let answer = trusting.post("/compact").await.expect("an answer on the same connection");
    assert_eq!(answer.status, 200, "{}", answer.text);
    let wrong = endpoint("another-token-of-32-characters..").with_certificate(&certificate).expect("a file");
    assert_eq!(wrong.post(RESET).await.expect("an answer").status, 401);
    endpoint(&token(&server)).post(RESET).await.expect_err("nobody vouches for this certificate");
    assert!(endpoint("x").with_certificate(&folder.path().join("none.pem")).is_err());
    write_certificate(folder.path(), IsCa::NoCa);
    let other = endpoint(&token(&server)).with_certificate(&certificate).expect("a file");
    other.post(RESET).await.expect_err("another certificate");
    drop(server);
}
