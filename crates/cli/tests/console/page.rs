//! The page of the console, what it learns about the server, and how it is switched off.

use super::{MARK, all, launch, send};
use larimar_testkit::http::{ACCOUNT, KEY};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn the_page_is_at_the_root_of_the_admin_endpoint() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    let address = server.admin_address();
    assert!(server.output().contains(&format!("console            http://{address}/\n")), "{}", server.output());
    let page = send(address, "GET", "/", &[]);
    page.is_status(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").expect("a policy");
    for part in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(all(&page, name), [value], "{name}");
    }
    let tag = page.header("etag").expect("a tag");
    assert_eq!(send(address, "GET", "/", &[("if-none-match", tag)]).status, 304);
    let words = page.text().split('"').map(|word| word.trim_start_matches('.'));
    for path in words.filter(|word| word.starts_with("/assets/") || *word == "/favicon.svg") {
        let file = send(address, "GET", path, &[]);
        assert_eq!((file.status, file.header("x-content-type-options")), (200, Some("nosniff")), "{path}");
        let is_asset = path.starts_with("/assets/");
        assert_eq!(file.header("cache-control").is_some_and(|value| value.contains("immutable")), is_asset, "{path}");
    }
    assert_eq!(send(address, "GET", "/assets/none.js", &[]).status, 404);
    for (target, status) in [("/assets/../index.html", 404), ("/assets/..%2Findex.html", 404), ("/../index.html", 401)]
    {
        assert_eq!(send(address, "GET", target, &[]).status, status, "{target}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(send(address, method, "/", &[]).status, 405, "{method}");
    }
    for (host, origin, status) in [
        ("evil.test", None, 403),
        ("localhost", None, 200),
        ("localhost", Some("http://evil.test"), 403),
        ("localhost", Some("http://localhost"), 200),
    ] {
        let headers = [Some(("host", host)), origin.map(|origin| ("origin", origin))];
        let headers: Vec<_> = headers.into_iter().flatten().collect();
        assert_eq!(send(address, "GET", "/", &headers).status, status, "{headers:?}");
    }
}

#[test]
fn it_learns_what_is_served_and_signs_in_by_itself_only_at_this_machine() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--queue=false").argument("--admin-names=admin.test").start();
    let (address, port) = (server.admin_address(), server.admin_address().port());
    let about = send(address, "GET", "/console.json", &[MARK]);
    about.is_status(200);
    let engine = if launch(&folder).database().is_some() { "postgresql" } else { "embedded" };
    let expected = json!({
        "version": env!("CARGO_PKG_VERSION"), "services": ["blob", "table"], "engine": engine, "strict": false,
        "insights": true, "secure": false, "development": { "account": ACCOUNT },
    });
    assert_eq!(about.json(), expected);
    assert!(!about.text().contains(KEY));
    let (localhost, ipv6) = (format!("localhost:{port}"), format!("[::1]:{port}"));
    for (headers, is_near) in [
        (&[("host", localhost.as_str())][..], true),
        (&[("host", ipv6.as_str())], true),
        (&[("host", "admin.test")], false),
        (&[("forwarded", "for=10.0.0.1")], false),
        (&[("x-forwarded-for", "10.0.0.1")], false),
        (&[("x-forwarded-proto", "https")], false),
        (&[("x-real-ip", "10.0.0.1")], false),
        (&[("via", "1.1 proxy")], false),
    ] {
        let about = send(address, "GET", "/console.json", &[headers, &[MARK]].concat());
        assert_eq!((about.status, about.json()["development"].is_object()), (200, is_near), "{headers:?}");
    }
    for (method, headers, status) in [
        ("GET", &[][..], 403),
        ("GET", &[MARK, ("host", "evil.test")], 403),
        ("GET", &[MARK, ("origin", "http://evil.test")], 403),
        ("OPTIONS", &[("origin", "http://evil.test"), ("access-control-request-headers", MARK.0)], 403),
        ("OPTIONS", &[], 403),
        ("OPTIONS", &[MARK], 405),
        ("POST", &[MARK], 405),
    ] {
        let reply = send(address, method, "/console.json", headers);
        assert_eq!((reply.status, reply.text().contains(ACCOUNT)), (status, false), "{method} {headers:?}");
        assert!(reply.header("access-control-allow-origin").is_none(), "{reply}");
    }
    // What is not served is not mounted.
    let reply = send(address, "GET", "/queue/devstoreaccount1/?comp=list&sig=x", &[MARK]);
    assert_eq!(reply.status, 404, "{reply}");
}

#[test]
fn accounts_with_keys_of_their_own_are_not_named() {
    let folder = tempfile::tempdir().expect("a directory");
    let launch = launch(&folder).argument("--durability=memory");
    let accounts = "shop:a2V5IG9uZSBvZiBzaG9w;archive:a2V5IHR3byBvZiBzaG9w";
    let server = launch.environment("LARIMAR_ACCOUNTS", accounts).start();
    let about = send(server.admin_address(), "GET", "/console.json", &[MARK]);
    assert!(about.status == 200 && about.json()["development"].is_null(), "{about}");
    assert!(!about.text().contains("shop") && !about.text().contains("archive"), "{about}");
    for account in ["shop", "archive", "none"] {
        let page = send(server.admin_address(), "GET", "/", &[]);
        assert!(!page.text().contains(account));
    }
}

#[test]
fn it_can_be_switched_off() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--console=false").start();
    assert!(!server.output().contains("console  "), "{}", server.output());
    let address = server.admin_address();
    for (target, status) in [
        ("/", 401),
        ("/console.json", 401),
        ("/favicon.svg", 401),
        ("/assets/x.js", 401),
        ("/table/devstoreaccount1/Tables?sig=x", 401),
        ("/health", 200),
    ] {
        assert_eq!(send(address, "GET", target, &[MARK]).status, status, "{target}");
    }
    drop(server);
    let server = launch(&folder).environment("LARIMAR_CONSOLE", "off").start();
    assert_eq!(send(server.admin_address(), "GET", "/", &[]).status, 401);
}

#[test]
fn over_tls_it_says_so_and_wants_an_origin_of_tls() {
    let folder = tempfile::tempdir().expect("a directory");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    let launch = launch(&folder).argument(format!("--tls-certificate={}", certificate.display()));
    let server = launch.argument(format!("--tls-key={}", key.display())).start();
    assert!(server.output().contains(&format!("console            https://{}/", server.admin_address())));
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let ask = |origin: &str| {
        let name = ServerName::try_from("localhost").expect("a name");
        let socket = TcpStream::connect(server.admin_address()).expect("the server accepts");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        let client = ClientConnection::new(Arc::clone(&config), name).expect("a client");
        let mut stream = StreamOwned::new(client, socket);
        let head = "GET /console.json HTTP/1.1\r\nhost: localhost\r\nx-larimar-console: 1\r\nconnection: close";
        stream.write_all(format!("{head}\r\norigin: {origin}\r\n\r\n").as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer and an orderly end");
        answer
    };
    assert!(ask("https://localhost").contains("\"secure\":true"));
    assert!(ask("http://localhost").starts_with("HTTP/1.1 403 "));
}
