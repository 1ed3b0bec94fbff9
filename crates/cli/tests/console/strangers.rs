//! Other origins, other machines, and clients that are slow or send too much.

use super::{MARK, all, client, is_disarmed, launch, mounted, send, through};
use larimar_testkit::http::{ACCOUNT, KEY, Sas, exchange, read_response};
use larimar_wire::sas::Service;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

const OWN_KEY: &str = "YSBrZXkgb2YgbXkgb3du";

/// An address of this machine that is not a loopback address, if it has one. Nothing is sent.
fn outer_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("203.0.113.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[test]
fn other_origins_and_names_are_refused_before_the_credentials_are_read() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    let address = server.admin_address();
    let properties = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET,PUT,\
                      OPTIONS</AllowedMethods><AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
                      <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
    let direct = server.client();
    direct.request("PUT", "/?restype=service&comp=properties").xml(properties).send().is_status(202);
    let own_port = direct.get("/Tables").header("Origin", "http://evil.test").send();
    assert_eq!(own_port.header("access-control-allow-origin"), Some("*"), "the rule is for the service's own port");
    let tables = client(&server, Service::Table);
    let own = format!("http://{address}");
    for (name, value, status) in [
        ("Origin", own.as_str(), 200),
        ("Origin", "http://evil.test", 403),
        ("Origin", "null", 403),
        ("Origin", "http://localhost:1", 403),
        ("Host", "evil.test", 403),
        ("Host", "localhost", 200),
        ("Host", "localhost.evil.test", 403),
    ] {
        let reply = through(Service::Table, &tables, tables.get("/Tables").header(name, value));
        assert_eq!(reply.status, status, "{name}: {value}: {reply}");
        assert!(all(&reply, "access-control-allow-origin").is_empty(), "{reply}");
        if status == 200 {
            is_disarmed(&reply);
        }
    }
    let preflight = [("access-control-request-method", "GET"), ("access-control-request-headers", MARK.0)];
    for (extra, status) in [
        (&[("origin", "http://evil.test")][..], 403),
        (&[("origin", own.as_str())], 403),
        (&[("origin", own.as_str()), MARK], 405),
        (&[MARK], 405),
    ] {
        let reply = send(address, "OPTIONS", "/table/devstoreaccount1/Tables", &[&preflight, extra].concat());
        assert_eq!(reply.status, status, "{extra:?}");
        assert!(all(&reply, "access-control-allow-origin").is_empty(), "{reply}");
    }
}

#[test]
fn the_well_known_key_does_not_count_from_other_machines() {
    let Some(outer) = outer_address() else {
        println!("this machine has no address but loopback: nothing to show");
        return;
    };
    let accounts = format!("{ACCOUNT}:{KEY};own:{OWN_KEY}");
    for is_allowed in [false, true] {
        let folder = tempfile::tempdir().expect("a directory");
        let launch = launch(&folder).argument("--admin-host=0.0.0.0").environment("LARIMAR_ACCOUNTS", &accounts);
        let launch = launch.argument(format!("--allow-well-known-key={is_allowed}"));
        let server = launch.start();
        let near = client(&server, Service::Table);
        let far = SocketAddr::new(outer, server.admin_address().port());
        let reached = |bytes: &[u8]| exchange(far, bytes).expect("an answer").status;
        let seen = if is_allowed { 200 } else { 403 };
        through(Service::Table, &near, near.get("/Tables")).is_status(200);
        let by_key = near.get("/Tables").header("Host", far.to_string()).header(MARK.0, MARK.1);
        assert_eq!(reached(&mounted("table", &by_key)), seen);
        let by_sas = near.with_sas(&Sas::account("sco", "rl").token());
        let by_sas = by_sas.get("/Tables").header("Host", far.to_string()).header(MARK.0, MARK.1);
        assert_eq!(reached(&mounted("table", &by_sas)), seen);
        let own = near.of_account("own", OWN_KEY);
        let own = own.get("/Tables").header("Host", far.to_string()).header(MARK.0, MARK.1);
        assert_eq!(reached(&mounted("table", &own)), 200, "a key of one's own counts");
        let about = send(far, "GET", "/console.json", &[MARK]);
        assert!(about.status == 200 && about.json()["development"].is_null(), "{about}");
        let pretending = send(far, "GET", "/console.json", &[MARK, ("host", "localhost")]);
        assert!(pretending.status == 200 && pretending.json()["development"].is_null(), "{pretending}");
        // The signature of a copy's source counts as little.
        let blobs = client(&server, Service::Blob).of_account("own", OWN_KEY);
        through(Service::Blob, &blobs, blobs.request("PUT", "/mine?restype=container").body("")).is_status(201);
        server.blobs().put("/box?restype=container", "").send().is_status(201);
        server
            .blobs()
            .request("PUT", "/box/secret")
            .body("x")
            .header("x-ms-blob-type", "BlockBlob")
            .send()
            .is_status(201);
        let source = format!("http://{far}/{ACCOUNT}/box/secret?{}", Sas::blob("box", "secret", "r").token());
        let copy = blobs.request("PUT", "/mine/taken").body("").header("x-ms-copy-source", source);
        let copy = copy.header("Host", far.to_string()).header(MARK.0, MARK.1);
        assert_eq!(reached(&mounted("blob", &copy)), if is_allowed { 202 } else { 403 });
    }
}

#[test]
fn bodies_are_bounded_and_paced_as_at_the_service_s_own_port() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--body-timeout=1s").start();
    let tables = client(&server, Service::Table);
    server.client().create_table("people");
    let huge = tables.post("/people", vec![b' '; 5 << 20]);
    through(Service::Table, &tables, huge).is_error(413, "RequestBodyTooLarge");
    // A body that never comes: with a right to send it, and without.
    let late = |request: Vec<u8>| {
        let end = request.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        let mut stream = TcpStream::connect(server.admin_address()).expect("the server accepts");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream.write_all(&request[..end + 3]).expect("a part is sent");
        read_response(&stream, true).expect("an answer")
    };
    let slow = tables.post("/people", vec![b' '; 1000]).header(MARK.0, MARK.1);
    assert_eq!(late(mounted("table", &slow)).status, 408);
    let unmarked = tables.post("/people", vec![b' '; 1000]);
    let refused = late(mounted("table", &unmarked));
    assert_eq!((refused.status, refused.header("connection")), (403, Some("close")), "{refused}");
    let stranger = tables.post("/people", vec![b' '; 1000]).unsigned().header(MARK.0, MARK.1);
    assert_eq!(late(mounted("table", &stranger)).status, 401);
}
