//! The services under the console's origin: what they serve, and that nothing they serve becomes a part of the page.

use super::{MARK, client, is_disarmed, launch, mounted, of_account, send, through};
use larimar_testkit::Server;
use larimar_testkit::http::{ACCOUNT, KEY, Sas, encode, entity, entity_path, exchange};
use larimar_wire::sas::Service;

const HTML: &str = "<!doctype html><script>alert(document.domain)</script>";

/// Uploads a page to a public container at the service's own port, with headers that make browsers run and keep it.
fn upload_page(server: &Server) {
    let blobs = server.blobs();
    let container = blobs.put("/public?restype=container", "").header("x-ms-blob-public-access", "blob");
    container.send().is_status(201);
    let blob = blobs.request("PUT", "/public/page.html").body(HTML).header("x-ms-blob-type", "BlockBlob");
    let blob = blob.header("x-ms-blob-content-type", "text/html").header("x-ms-blob-cache-control", "public");
    blob.header("x-ms-blob-content-disposition", "inline; filename=\"page.html\"").send().is_status(201);
    let open = blobs.anonymous().get("/public/page.html").send();
    assert_eq!((open.status, open.text(), open.header("content-type")), (200, HTML, Some("text/html")));
}

#[test]
fn the_services_are_mounted_beside_the_page() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    let tables = client(&server, Service::Table);
    let created = through(Service::Table, &tables, tables.post("/Tables", r#"{"TableName":"people"}"#));
    created.is_status(201);
    is_disarmed(&created);
    through(Service::Table, &tables, tables.post("/people", entity("p", "r", "\"Age\":7"))).is_status(201);
    let explained = tables.get("/people()").query("$filter", "Age gt 5").header("x-larimar-explain", "true");
    let page = through(Service::Table, &tables, explained);
    assert_eq!((page.status, page.values().len(), page.header("x-larimar-plan").is_some()), (200, 1, true), "{page}");
    is_disarmed(&page);
    let sas = tables.with_sas(&Sas::table("people", "r").token());
    through(Service::Table, &sas, sas.get("/people()")).is_status(200);
    through(Service::Table, &sas, sas.post("/people", entity("p", "s", "")))
        .is_error(403, "AuthorizationPermissionMismatch");
    let missing = through(Service::Table, &tables, tables.get(&entity_path("people", "p", "none")));
    missing.is_error(404, "ResourceNotFound");
    is_disarmed(&missing);

    let queues = client(&server, Service::Queue);
    through(Service::Queue, &queues, queues.request("PUT", "/jobs").body("")).is_status(201);
    let message = "<QueueMessage><MessageText>hello</MessageText></QueueMessage>";
    through(Service::Queue, &queues, queues.request("POST", "/jobs/messages").xml(message)).is_status(201);
    let peeked = through(Service::Queue, &queues, queues.get("/jobs/messages?peekonly=true"));
    assert_eq!(peeked.element("MessageText"), Some("hello"), "{peeked}");

    let blobs = client(&server, Service::Blob);
    through(Service::Blob, &blobs, blobs.request("PUT", "/box?restype=container").body("")).is_status(201);
    let large = vec![b'x'; 3 << 20];
    let blob = blobs.request("PUT", "/box/a%20b").body(large.clone()).header("x-ms-blob-type", "BlockBlob");
    through(Service::Blob, &blobs, blob.header("x-ms-meta-Color", "blue")).is_status(201);
    let read = through(Service::Blob, &blobs, blobs.get("/box/a%20b"));
    assert_eq!((read.status, read.body.len()), (200, large.len()));
    assert!(
        read.headers.iter().any(|(name, value)| name == "x-ms-meta-Color" && value == "blue"),
        "{:?}",
        read.headers
    );
    let part = through(Service::Blob, &blobs, blobs.get("/box/a%20b").header("x-ms-range", "bytes=0-9"));
    assert_eq!((part.status, part.body.len()), (206, 10));
    is_disarmed(&part);
    // What clients at the services' own ports see is the same.
    assert_eq!(server.client().get("/people()").send().values().len(), 1);
    assert_eq!(server.blobs().get("/box/a%20b").send().body, large);
}

#[test]
fn an_uploaded_page_is_only_data_whatever_it_has_stored_and_a_signature_asks_for() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    upload_page(&server);
    let blobs = client(&server, Service::Blob);
    let read = through(Service::Blob, &blobs, blobs.get("/public/page.html"));
    assert_eq!((read.status, read.text()), (200, HTML));
    is_disarmed(&read);
    assert_eq!(read.header("x-larimar-content-disposition"), Some("inline; filename=\"page.html\""));
    let asked = Sas::blob("public", "page.html", "r").with("rscd", "inline").with("rsct", "text/html");
    let asked = asked.with("rscc", "public, max-age=9").token();
    let sas = blobs.with_sas(&asked);
    for method in ["GET", "HEAD"] {
        let reply = through(Service::Blob, &sas, sas.request(method, "/public/page.html"));
        reply.is_status(200);
        is_disarmed(&reply);
        assert_eq!(reply.header("x-larimar-content-disposition"), Some("inline"), "{reply}");
    }
    // The address that a user could be made to open, with a signature that holds.
    let address = server.admin_address();
    for (headers, status) in [
        (&[][..], 403),
        (&[("sec-fetch-mode", "navigate")], 403),
        (&[("x-larimar-console", "")], 403),
        (&[("x-larimar-console", "0")], 403),
        (&[("x-larimar-console", "1, 1")], 403),
        (&[MARK, MARK], 403),
        (&[MARK, ("X-Larimar-Console", "0")], 403),
        (&[MARK], 200),
    ] {
        let reply = send(address, "GET", &format!("/blob{}?{asked}", of_account("/public/page.html")), headers);
        assert_eq!(reply.status, status, "{headers:?}");
        assert_eq!(reply.text().contains("script"), status == 200, "{headers:?}");
        assert!(reply.header("content-type").is_some_and(|kind| status == 200 || kind.starts_with("text/plain")));
    }
}

#[test]
fn there_is_nothing_without_credentials_not_even_public_blobs() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    upload_page(&server);
    let address = server.admin_address();
    let bearer = "Bearer eyJ0eXAiOiJKV1QifQ.e30.c2ln";
    for (target, headers) in [
        ("/blob/devstoreaccount1/public/page.html", &[MARK][..]),
        ("/blob/devstoreaccount1/public/page.html?sip=1", &[MARK]),
        ("/blob/devstoreaccount1/public/page.html", &[MARK, ("authorization", bearer)]),
        ("/blob/devstoreaccount1/public/page.html", &[MARK, ("authorization", "Basic YTpi")]),
        ("/blob/devstoreaccount1/public/page.html", &[MARK, ("authorization", "SharedKeyLite devstoreaccount1:x")]),
        ("/blob/devstoreaccount1/public?restype=container&comp=list", &[MARK]),
        ("/table/devstoreaccount1/Tables", &[MARK]),
        ("/queue/devstoreaccount1/?comp=list", &[MARK, ("authorization", bearer)]),
    ] {
        let reply = send(address, "GET", target, headers);
        assert_eq!(reply.status, 401, "{target} {headers:?}: {reply}");
        assert!(!reply.text().contains("script"), "{reply}");
    }
    // A signature that the service does not read as one, or that does not hold, is not taken for none.
    for (query, status) in [
        ("sig=", 401),
        ("sig", 401),
        ("SIG=x", 401),
        ("sig=%20", 403),
        ("sig=x", 403),
        ("%73ig=x", 403),
        ("sig=&sig=x", 403),
        ("sv=2020-12-06&sig=x&sp=r&sr=b&se=2090-01-01", 403),
    ] {
        let reply = send(address, "GET", &format!("/blob/{ACCOUNT}/public/page.html?{query}"), &[MARK]);
        assert_eq!(reply.status, status, "{query}: {reply}");
        assert!(!reply.text().contains("script"), "{reply}");
    }
    let wrong = [MARK, ("authorization", "SharedKey devstoreaccount1:x")];
    assert_eq!(send(address, "GET", "/blob/devstoreaccount1/public/page.html", &wrong).status, 403);
    let twice = client(&server, Service::Blob);
    let twice =
        twice.get("/public/page.html").also("Authorization", "SharedKey devstoreaccount1:x").header(MARK.0, MARK.1);
    assert_eq!(exchange(address, &mounted("blob", &twice)).expect("an answer").status, 401);
}

#[test]
fn a_key_signs_for_the_service_s_own_path() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    let tables = client(&server, Service::Table);
    through(Service::Table, &tables, tables.get("/Tables")).is_status(200);
    // Signed for the path of the mount.
    let wrong = tables.get("/Tables").target("/table/devstoreaccount1/Tables").header(MARK.0, MARK.1);
    wrong.header("Connection", "close").send().is_error(403, "AuthenticationFailed");
    // What only the key may do.
    through(Service::Table, &tables, tables.post("/Tables", r#"{"TableName":"people"}"#)).is_status(201);
    let acl = "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Expiry>2090-01-01T00:00:00Z</Expiry>\
               <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    through(Service::Table, &tables, tables.request("PUT", "/people?comp=acl").xml(acl)).is_status(204);
    let by_policy = tables.with_sas(&Sas::policy("people", "one").token());
    through(Service::Table, &by_policy, by_policy.get("/people()")).is_status(200);
    through(Service::Table, &by_policy, by_policy.get("/people?comp=acl")).is_status(403);
    // A batch of blobs has a signature for each part, again of the service's own path.
    let other = tables.of_account("nobody", KEY);
    assert_eq!(through(Service::Table, &other, other.get("/Tables")).status, 404);
}

#[test]
fn restrictions_of_signatures_hold() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--sas-version-min=2018-11-09").start();
    server.client().create_table("people");
    let tables = client(&server, Service::Table);
    let sas = || Sas::table("people", "r");
    for (what, token, status) in [
        ("", sas(), 200),
        ("this address", sas().with("sip", "127.0.0.1"), 200),
        ("another address", sas().with("sip", "10.0.0.1-10.0.0.9"), 403),
        ("only TLS", sas().with("spr", "https"), 403),
        ("any protocol", sas().with("spr", "https,http"), 200),
        ("expired", sas().with("se", "2020-01-01T00:00:00Z"), 403),
        ("later", sas().with("st", "2090-01-01T00:00:00Z"), 403),
        ("a version that is too old", sas().with("sv", "2017-04-17"), 403),
        ("another table", Sas::table("others", "r"), 403),
        ("the account", Sas::account("o", "r"), 200),
        ("the account's queues", Sas::account("o", "r").with("ss", "q"), 403),
    ] {
        let client = tables.with_sas(&token.token());
        let reply = through(Service::Table, &client, client.get("/people()"));
        assert_eq!(reply.status, status, "{what}: {reply}");
        is_disarmed(&reply);
    }
    let forged = tables.with_sas(&sas().token_signed_with("c2VjcmV0"));
    through(Service::Table, &forged, forged.get("/people()")).is_error(403, "AuthenticationFailed");
}

#[test]
fn paths_lead_to_the_account_that_they_name_or_nowhere() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    upload_page(&server);
    server.client().create_table("people");
    let address = server.admin_address();
    let token = Sas::account("sco", "rl").with("ss", "bqt").token();
    for (target, statuses) in [
        ("/table/devstoreaccount1/Tables", &[200][..]),
        ("/blob/devstoreaccount1/public/page.html", &[200]),
        ("/table", &[400]),
        ("/table/", &[400]),
        ("/table//devstoreaccount1/Tables", &[400]),
        ("//table/devstoreaccount1/Tables", &[401]),
        ("/Table/devstoreaccount1/Tables", &[401]),
        ("/tables/devstoreaccount1/Tables", &[401]),
        ("/%74able/devstoreaccount1/Tables", &[401]),
        ("/table%2Fdevstoreaccount1/Tables", &[401]),
        ("/table/devstoreaccount1%2FTables", &[404]),
        ("/table/%64evstoreaccount1/Tables", &[404]),
        ("/table/DevStoreAccount1/Tables", &[404]),
        ("/table/../blob/devstoreaccount1/public/page.html", &[404]),
        ("/table/devstoreaccount1/../../blob/devstoreaccount1/public/page.html", &[400, 404]),
        ("/table/devstoreaccount1/%2e%2e/%2e%2e/blob/devstoreaccount1/public/page.html", &[400, 404]),
        ("/table/blob/devstoreaccount1/public/page.html", &[404]),
        ("/blob/table/devstoreaccount1/Tables", &[404]),
        ("/blob/./devstoreaccount1/public/page.html", &[404]),
        ("/file/devstoreaccount1/share", &[401]),
    ] {
        let reply = send(address, "GET", &format!("{target}?{token}"), &[MARK]);
        assert!(statuses.contains(&reply.status), "{target}: {reply}");
        assert_eq!(reply.text().contains("script"), target == "/blob/devstoreaccount1/public/page.html", "{target}");
    }
    let absolute = |host: &str| format!("http://{host}/table/devstoreaccount1/Tables?{token}");
    for (target, host, status) in [
        (absolute(&address.to_string()), address.to_string(), 200),
        (absolute("evil.test"), address.to_string(), 403),
        (absolute(&address.to_string()), "evil.test".to_owned(), 403),
    ] {
        assert_eq!(send(address, "GET", &target, &[MARK, ("host", &host)]).status, status, "{target} {host}");
    }
}

#[test]
fn a_name_of_the_endpoint_that_looks_like_an_account_s_changes_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    let names = "devstoreaccount1.table.test,devstoreaccount1.blob.test,other.tables.test";
    let launch = launch(&folder).argument(format!("--admin-names={names}")).argument("--host-suffixes=tables.test");
    let server = launch.start();
    server.client().create_table("people");
    let token = Sas::account("sco", "rl").token();
    for host in names.split(',') {
        for (target, status) in
            [("/table/devstoreaccount1/Tables", 200), ("/table/people()", 404), ("/table/other/Tables", 404)]
        {
            let reply = send(server.admin_address(), "GET", &format!("{target}?{token}"), &[MARK, ("host", host)]);
            assert_eq!(reply.status, status, "{host} {target}: {reply}");
        }
    }
}

#[test]
fn copies_and_batches_go_through_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    upload_page(&server);
    let blobs = client(&server, Service::Blob);
    let source = format!("{}/public/page.html", blobs.base());
    let copy = blobs.request("PUT", "/public/copy").body("").header("x-ms-copy-source", &source);
    through(Service::Blob, &blobs, copy).is_status(202);
    let elsewhere = blobs.request("PUT", "/public/copy").body("").header("x-ms-copy-source", "http://evil.test/a/b/c");
    through(Service::Blob, &blobs, elsewhere).is_error(404, "CannotVerifyCopySource");
    let token = Sas::container("public", "d").token();
    let part = format!(
        "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n\
                        DELETE /{ACCOUNT}/public/copy?{token} HTTP/1.1\r\nContent-Length: 0\r\n\r\n--b--\r\n"
    );
    let batch = blobs.request("POST", "/?comp=batch").body(part).header("Content-Type", "multipart/mixed; boundary=b");
    let reply = through(Service::Blob, &blobs, batch);
    assert!(reply.status == 202 && reply.text().contains("HTTP/1.1 202"), "{reply}");
    let filter = encode("PartitionKey eq 'x'");
    let tables = client(&server, Service::Table);
    through(Service::Table, &tables, tables.get(&format!("/none()?$filter={filter}"))).is_error(404, "TableNotFound");
}

#[test]
fn strict_servers_are_strict_through_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--strict").start();
    let tables = client(&server, Service::Table);
    let unknown = tables.get("/Tables").header("x-ms-version", "2099-01-01");
    through(Service::Table, &tables, unknown).is_error(400, "InvalidHeaderValue");
    let about = send(server.admin_address(), "GET", "/console.json", &[MARK]).json();
    assert_eq!((&about["strict"], &about["insights"]), (&true.into(), &true.into()), "{about}");
}
