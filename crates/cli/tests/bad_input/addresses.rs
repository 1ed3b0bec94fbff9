//! Where a request goes: addresses without an account, hosts that contradict each other, parts of batches for others.

use super::Victim;
use larimar_testkit::http::{ACCOUNT, Batch, Client, KEY, Response, Sas, entity, exchange};
use larimar_testkit::{Launch, Server};

const OTHER_KEY: &str = "b3RoZXIga2V5IG9mIG1vcmUgYnl0ZXMgdGhhbiBzaXh0ZWVu";

/// A server with two accounts, each with the table `tab` and the container `box`, and clients of the first.
fn two_accounts(host_suffix: &str) -> ((Server, tempfile::TempDir), Client, Client) {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(env!("CARGO_BIN_EXE_larimar"), folder.path().join("data"));
    let launch = launch.argument("--host-suffixes").argument(host_suffix);
    let server = launch.environment("LARIMAR_ACCOUNTS", &format!("{ACCOUNT}:{KEY};other:{OTHER_KEY}")).start();
    for (account, key) in [(ACCOUNT, KEY), ("other", OTHER_KEY)] {
        server.client().of_account(account, key).create_table("tab");
        let blobs = server.blobs().of_account(account, key);
        blobs.put("/box?restype=container", "").send().is_status(201);
        blobs.put("/box/a", "x").header("x-ms-blob-type", "BlockBlob").send().is_status(201);
    }
    let (tables, blobs) = (server.client(), server.blobs());
    ((server, folder), tables, blobs)
}

fn plain_get(client: &Client, target: &str, host: &str) -> Response {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    exchange(client.address(), request.as_bytes()).expect("an answer")
}

#[test]
fn an_address_without_an_account_says_so() {
    let victim = Victim::new(&[]);
    let (queues, blobs) = (victim.server.queues(), victim.server.blobs());
    for client in [&victim.client, &queues, &blobs] {
        let host = client.address().to_string();
        for target in ["/", "//", "/?comp=list"] {
            let reply = plain_get(client, target, &host);
            reply.is_error(404, "ResourceNotFound");
            assert!(reply.text().contains("names no account"), "{reply}");
            assert!(reply.text().contains(&format!("http://{host}/{{account}}")), "{reply}");
        }
        let reply = plain_get(client, "/Tables", &host);
        reply.is_error(404, "ResourceNotFound");
        assert!(reply.text().contains("no account 'Tables'"), "{reply}");
        assert!(reply.text().contains(&format!("http://{host}/{{account}}/Tables")), "{reply}");
        let long = plain_get(client, &format!("/{}", "a".repeat(30_000)), &host);
        long.is_error(404, "ResourceNotFound");
        assert!(long.body.len() < 2_000, "{} bytes", long.body.len());
        assert!(!reply.text().contains(ACCOUNT), "accounts are not listed: {reply}");
    }
    victim.check_unharmed();
}

#[test]
fn a_host_that_differs_from_an_absolute_address_is_refused() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    let host = client.address().to_string();
    let path = format!("/{ACCOUNT}/Tables");
    let list = |target: &str, host: &str| {
        let request = client.get("/Tables").header("Host", host).header("Connection", "close").to_bytes();
        let request = String::from_utf8(request).expect("text").replacen(&path, target, 1);
        exchange(client.address(), request.as_bytes()).expect("an answer")
    };
    list(&format!("http://{host}{path}"), &host).is_status(200);
    list(&format!("http://tables.test{path}"), "Tables.TEST").is_status(200);
    list(&format!("http://tables.test:80{path}"), "tables.test").is_status(200);
    for (target, host) in [
        (format!("http://other.test{path}"), host.as_str()),
        (format!("http://tables.test:8080{path}"), "tables.test"),
        (format!("http://user@tables.test{path}"), "tables.test"),
        (format!("http://{host}.evil.test{path}"), host.as_str()),
    ] {
        list(&target, host).is_error(400, "InvalidHeaderValue");
    }
    victim.check_unharmed();
}

/// The body of a batch with one upsert, sent to this URL.
fn upsert_at(url: &str) -> String {
    let part =
        Batch::new().operation(&Client::new(([127, 0, 0, 1], 1).into()), "PUT", "/URL", &[], &entity("p", "r", ""));
    part.body().replace(&format!("http://127.0.0.1:1/{ACCOUNT}/URL"), url)
}

#[test]
fn parts_of_a_table_batch_for_another_account_or_the_secondary_are_refused() {
    let (_server, tables, _) = two_accounts("table.test");
    let key = "tab(PartitionKey='p',RowKey='r')";
    let base = format!("http://{}", tables.address());
    for url in [
        format!("{base}/other/{key}"),
        format!("/other/{key}"),
        format!("{base}/{ACCOUNT}-secondary/{key}"),
        format!("/{ACCOUNT}-secondary/{key}"),
        format!("/other-secondary/{key}"),
        format!("http://other.table.test/{key}"),
        format!("http://other.table.core.windows.net/{key}"),
        format!("http://unknown.table.core.windows.net:443/{key}"),
        format!("http://{ACCOUNT}-secondary.table.test/{key}"),
    ] {
        let reply = Batch::raw(&tables, upsert_at(&url)).send();
        reply.is_status(202);
        let is_refused = reply.text().contains("HTTP/1.1 400") || reply.text().contains("HTTP/1.1 403");
        assert!(is_refused, "{url}: {reply}");
    }
    // In host style it is the host that names the account.
    let host = format!("{ACCOUNT}.table.test");
    let in_host_style = |body: String| {
        let signed = Batch::raw(&tables, body).target("/$batch").header("Host", host.as_str());
        signed.send()
    };
    for url in [format!("http://other.table.test/{key}"), format!("http://{ACCOUNT}-secondary.table.test/{key}")] {
        let reply = in_host_style(upsert_at(&url));
        reply.is_status(202);
        assert!(!reply.text().contains("HTTP/1.1 204"), "{url}: {reply}");
    }
    for client in [&tables, &tables.of_account("other", OTHER_KEY)] {
        assert_eq!(client.get("/tab()").send().values().len(), 0, "nothing was stored");
    }
    for url in [
        format!("{base}/{ACCOUNT}/{key}"),
        format!("/{ACCOUNT}/{key}"),
        format!("/{key}"),
        key.to_owned(),
        format!("http://behind.a.proxy:8080/{ACCOUNT}/{key}"),
        format!("https://{ACCOUNT}.table.core.windows.net/{key}"),
    ] {
        let reply = Batch::raw(&tables, upsert_at(&url)).send();
        assert!(reply.text().contains("HTTP/1.1 204"), "{url}: {reply}");
    }
    let reply = in_host_style(upsert_at(&format!("http://{host}/{key}")));
    assert!(reply.text().contains("HTTP/1.1 204"), "{reply}");
}

#[test]
fn parts_of_a_blob_batch_for_another_account_or_the_secondary_are_refused() {
    let (_server, _, blobs) = two_accounts("blob.test");
    let other = blobs.of_account("other", OTHER_KEY);
    let send = |part: Vec<u8>| {
        let head = "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        let body = [head.as_bytes(), &part, b"\r\n--b--\r\n"].concat();
        let reply = blobs.post("/?comp=batch", body).header("Content-Type", "multipart/mixed; boundary=b").send();
        reply.is_status(202);
        reply
    };
    let secondary = blobs.secondary();
    let own = || blobs.request("DELETE", "/box/a").body("");
    let absolute = |host: &str| {
        let text = String::from_utf8(own().without("Host").to_bytes()).expect("text");
        text.replacen("DELETE /", &format!("DELETE http://{host}/"), 1).into_bytes()
    };
    for part in [
        other.request("DELETE", "/box/a").body("").to_bytes(),
        secondary.request("DELETE", "/box/a").body("").to_bytes(),
        own().header("Host", "other.blob.test").to_bytes(),
        own().header("Host", format!("{ACCOUNT}-secondary.blob.test")).to_bytes(),
        absolute("other.blob.core.windows.net"),
        absolute(&format!("{ACCOUNT}-secondary.blob.test")),
    ] {
        let reply = send(part);
        assert!(!reply.text().contains("HTTP/1.1 2"), "{reply}");
    }
    blobs.get("/box/a").send().is_status(200);
    other.get("/box/a").send().is_status(200);
    let reply = send(own().to_bytes());
    assert!(reply.text().contains("HTTP/1.1 202"), "{reply}");
}

#[test]
fn headers_that_an_old_signature_does_not_sign_are_ignored() {
    let victim = Victim::new(&[]);
    let blobs = victim.server.blobs();
    blobs.put("/box?restype=container", "").send().is_status(201);
    let put = blobs.put("/box/a", "x").header("x-ms-blob-type", "BlockBlob");
    put.header("x-ms-blob-content-type", "text/plain").send().is_status(201);
    let token = |version: &str, signed: &str| {
        let sas = Sas::blob("box", "a", "r").with("sv", version);
        let mut token = if signed.is_empty() { sas.token() } else { sas.with("rsct", signed).token() };
        if signed.is_empty() {
            token.push_str("&rsct=text%2Fhtml&rscc=evil&rscd=inline&rsce=gzip&rscl=xx");
        }
        token
    };
    let reply = blobs.with_sas(&token("2012-02-12", "")).get("/box/a").send();
    reply.is_status(200);
    assert_eq!(reply.header("content-type"), Some("text/plain"), "anybody could have added it");
    for name in ["cache-control", "content-disposition", "content-encoding", "content-language"] {
        assert_eq!(reply.header(name), None, "{name}");
    }
    let reply = blobs.with_sas(&token("2021-06-08", "text/html")).get("/box/a").send();
    assert_eq!(reply.header("content-type"), Some("text/html"), "it is signed");
    blobs.with_sas(&token("2021-06-08", "")).get("/box/a").send().is_error(403, "AuthenticationFailed");
    victim.check_unharmed();
}

#[test]
fn signatures_older_than_a_setting_are_refused() {
    let victim = Victim::new(&["--sas-version-min", "2018-11-09"]);
    let (tables, blobs) = (&victim.client, victim.server.blobs());
    blobs.put("/box?restype=container", "").send().is_status(201);
    let list = |token: String| tables.with_sas(&token).get("/tab()").send();
    list(Sas::table("tab", "r").with("sv", "2018-11-09").token()).is_status(200);
    list(Sas::table("tab", "r").with("sv", "2019-02-02").token()).is_status(200);
    for version in ["2012-02-12", "2017-04-17", "2018-11-08"] {
        let refused = list(Sas::table("tab", "r").with("sv", version).token());
        refused.is_error(403, "AuthenticationFailed");
    }
    let account = Sas::account("sco", "rl").with("ss", "b").with("sv", "2017-07-29");
    let refused = blobs.with_sas(&account.token()).get("/?comp=list").send();
    refused.is_error(403, "AuthenticationFailed");
    assert!(refused.text().contains("sv 2018-11-09 or later"), "{refused}");
    tables.get("/tab()").send().is_status(200);
    victim.check_unharmed();
    let victim = Victim::new(&[]);
    let old = Sas::table("tab", "r").with("sv", "2012-02-12").token();
    victim.client.with_sas(&old).get("/tab()").send().is_status(200);
    victim.check_unharmed();
}
