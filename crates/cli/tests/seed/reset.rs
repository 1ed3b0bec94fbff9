//! After a reset the accounts are as they were after the start.

use super::{folder, launch, lines, tables, write};
use larimar_testkit::Server;
use larimar_testkit::http::Response;
use larimar_tool::admin::find_token;

fn reset(server: &Server) -> Response {
    let (address, runtime) = (server.admin_address(), server.runtime_directory().join("larimar"));
    let token = find_token(Some(&runtime), &server.data(), address.port()).expect("readable files").expect("a token");
    let request = format!(
        "POST /reset?account=devstoreaccount1 HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    larimar_testkit::http::exchange(address, request.as_bytes()).expect("an answer")
}

#[test]
fn a_reset_returns_to_the_seed() {
    let folder = folder();
    write(&folder, "Orders.jsonl", lines(250));
    let server = launch(&folder).argument("--allow-reset").start();
    let expected = tables(&server);
    for _ in 0..3 {
        let client = server.client();
        client.insert("Orders", "p", "new", "");
        client.create_table("Other");
        server.queues().request("PUT", "/jobs").send().is_status(201);
        assert_eq!(reset(&server).status, 200);
        assert_eq!(tables(&server), expected);
        assert!(!server.queues().get("/?comp=list").send().text().contains("<Name>"));
    }
    // The files are read again.
    write(&folder, "Orders.jsonl", "{}\n");
    let reply = reset(&server);
    assert_eq!(reply.status, 503);
    assert!(reply.text().contains("Orders.jsonl: line 1: "), "{}", reply.text());
    write(&folder, "Orders.jsonl", lines(2));
    write(&folder, "Added.jsonl", lines(3));
    assert_eq!(reset(&server).status, 200);
    assert_eq!((tables(&server)["Orders"].len(), tables(&server)["Added"].len()), (2, 3));
    let server = server.kill().start();
    assert_eq!(tables(&server)["Orders"].len(), 2);
}
