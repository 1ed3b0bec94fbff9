//! Service properties, stats, CORS, versions, verb tunnelling, and what lies outside of the service.

use super::{serve, serve_table};
use larimar_testkit::TemporaryServer;
use larimar_testkit::http::Client;

const PROPERTIES: &str = "/?restype=service&comp=properties";
const PATH: &str = "/tab(PartitionKey='p',RowKey='r')";

fn properties(client: &Client) -> String {
    let reply = client.get(PROPERTIES).accept("application/xml").send();
    reply.is_status(200);
    assert_eq!(reply.header("Content-Type"), Some("application/xml"));
    let text = reply.text().strip_prefix('\u{feff}').expect("a byte order mark");
    text.strip_prefix(r#"<?xml version="1.0" encoding="utf-8"?>"#).expect("a declaration").to_owned()
}

fn set(client: &Client, inside: &str) -> larimar_testkit::http::Response {
    let body = format!("<StorageServiceProperties>{inside}</StorageServiceProperties>");
    client.request("PUT", PROPERTIES).xml(body).send()
}

const LOGGING: &str = "<Logging><Version>1.0</Version><Read>true</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging>";
const CORS: &str = "<Cors><CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>http://www.xyz.test</AllowedOrigins><AllowedHeaders>x-custom,x-ms-meta-*</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors>";

#[test]
fn properties_are_kept_element_by_element() {
    let server = serve();
    let client = server.client();
    for element in ["<Logging>", "<HourMetrics>", "<MinuteMetrics>"] {
        assert!(properties(&client).contains(element), "{element} by default");
    }
    set(&client, LOGGING).is_status(202);
    set(&client, CORS).is_status(202);
    let found = properties(&client);
    assert!(found.contains(LOGGING) && found.contains(CORS), "{found}");
    set(&client, "<Cors/>").is_status(202);
    let found = properties(&client);
    assert!(found.contains(LOGGING) && !found.contains("<CorsRule>"), "{found}");
}

#[test]
fn bad_properties_are_refused() {
    let server = serve();
    let client = server.client();
    let rule = CORS.replace("<Cors>", "").replace("</Cors>", "");
    for inside in [
        LOGGING.replace(">5<", ">0<"),
        LOGGING.replace(">5<", ">366<"),
        LOGGING.replace("true", "maybe"),
        format!("<Cors>{}</Cors>", rule.repeat(6)),
        "<Logging>".to_owned(),
        CORS.replace("500", "-1"),
    ] {
        set(&client, &inside).is_error(400, "InvalidXmlDocument");
    }
    set(&client, &format!("<Cors>{}</Cors>", rule.repeat(5))).is_status(202);
    let below = client.get("/tab?restype=service&comp=properties").accept("application/xml").send();
    below.is_error(400, "InvalidUri");
}

#[test]
fn stats_are_the_secondary_s() {
    let server = serve();
    let client = server.client();
    let primary = client.get("/?restype=service&comp=stats").accept("application/xml").send();
    primary.is_error(400, "InvalidQueryParameterValue");
    let reply = client.secondary().get("/?restype=service&comp=stats").accept("application/xml").send();
    reply.is_status(200);
    let text = reply.text();
    assert!(text.contains("<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>"), "{text}");
    assert!(text.ends_with(" GMT</LastSyncTime></GeoReplication></StorageServiceStats>"), "{text}");
}

#[test]
fn cors_preflight_follows_the_rules() {
    let server = serve_table();
    let client = server.client();
    let anonymous = client.anonymous();
    let preflight = |origin: &str, method: &str, headers: &str| {
        let request = anonymous.request("OPTIONS", "/tab").header("Origin", origin);
        let request = request.header("Access-Control-Request-Method", method);
        if headers.is_empty() { request } else { request.header("Access-Control-Request-Headers", headers) }.send()
    };
    let origin = "http://www.xyz.test";
    preflight(origin, "GET", "").is_error(403, "CorsPreflightFailure");
    set(&client, CORS).is_status(202);
    let reply = preflight(origin, "PUT", "x-ms-meta-a,x-custom");
    reply.is_status(200);
    assert_eq!(reply.header("Access-Control-Allow-Origin"), Some(origin));
    assert_eq!(reply.header("Access-Control-Allow-Methods"), Some("PUT"));
    assert_eq!(reply.header("Access-Control-Allow-Headers"), Some("x-ms-meta-a,x-custom"));
    assert_eq!(reply.header("Access-Control-Max-Age"), Some("500"));
    assert_eq!(reply.header("Access-Control-Allow-Credentials"), Some("true"));
    preflight(origin, "DELETE", "").is_error(403, "CorsPreflightFailure");
    preflight("http://other.test", "GET", "").is_error(403, "CorsPreflightFailure");
    preflight(origin, "GET", "x-other").is_error(403, "CorsPreflightFailure");
    let bare = anonymous.request("OPTIONS", "/tab").send();
    bare.is_error(400, "InvalidHeaderValue");
    set(&client, &CORS.replace(origin, "*")).is_status(202);
    let reply = preflight("http://any.test", "GET", "");
    assert_eq!(reply.header("Access-Control-Allow-Origin"), Some("*"));
    assert_eq!(reply.header("Access-Control-Allow-Credentials"), None);
}

#[test]
fn cors_headers_come_with_answers() {
    let server = serve_table();
    let client = server.client();
    set(&client, CORS).is_status(202);
    let get = |origin: &str| client.get("/tab()").header("Origin", origin).send();
    let reply = get("http://www.xyz.test");
    reply.is_status(200);
    assert_eq!(reply.header("Access-Control-Allow-Origin"), Some("http://www.xyz.test"));
    assert_eq!(reply.header("Access-Control-Allow-Credentials"), Some("true"));
    assert!(reply.header("Access-Control-Expose-Headers").is_some_and(|v| v.contains("x-ms-request-id")), "{reply}");
    assert_eq!(reply.header("Vary"), Some("Origin"));
    let other = get("http://other.test");
    other.is_status(200);
    assert_eq!(other.header("Access-Control-Allow-Origin"), None);
    assert_eq!(other.header("Vary"), Some("Origin"));
    assert_eq!(client.get("/tab()").send().header("Access-Control-Allow-Origin"), None);
}

#[test]
fn any_well_formed_version_is_accepted_and_echoed() {
    let server = serve_table();
    let client = server.client();
    for version in ["2015-12-11", "2017-04-17", "2018-03-28", "2020-12-06", "2025-11-05", "2099-01-01"] {
        let reply = client.get("/tab()").header("x-ms-version", version).send();
        reply.is_status(200);
        assert_eq!(reply.header("x-ms-version"), Some(version));
    }
    client.get("/tab()").without("x-ms-version").send().is_status(200);
    let bad = client.get("/tab()").header("x-ms-version", "latest").send();
    bad.is_error(400, "InvalidHeaderValue");
}

#[test]
fn strict_refuses_unknown_versions_and_keeps_deleted_names_busy() {
    let server = TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &["--strict", "--durability", "async"]);
    let client = server.client();
    client.get("/Tables").header("x-ms-version", "2099-01-01").send().is_error(400, "InvalidHeaderValue");
    client.get("/Tables").header("x-ms-version", "2020-12-06").send().is_status(200);
    client.create_table("busy");
    client.delete("/Tables('busy')").send().is_status(204);
    client.post("/Tables", r#"{"TableName":"Busy"}"#).send().is_error(409, "TableBeingDeleted");
    // Only the name is busy; the table is gone at once.
    client.delete("/Tables('busy')").send().is_error(404, "ResourceNotFound");
    client.get("/Tables('busy')").send().is_error(404, "ResourceNotFound");
    client.get("/busy()").send().is_error(404, "TableNotFound");
    client.post("/busy", r#"{"PartitionKey":"p","RowKey":"r"}"#).send().is_error(404, "TableNotFound");
    client.get("/busy?comp=acl").accept("application/xml").send().is_error(404, "TableNotFound");
    for (service, path, deleted, code) in [
        (server.queues(), "/busy", 204, "QueueBeingDeleted"),
        (server.blobs(), "/busy?restype=container", 202, "ContainerBeingDeleted"),
    ] {
        service.request("PUT", path).send().is_status(201);
        service.request("DELETE", path).send().is_status(deleted);
        service.request("DELETE", path).send().is_status(deleted);
        service.request("PUT", path).send().is_error(409, code);
        assert_eq!(service.request("DELETE", &path.replace("busy", "other")).send().status, 404);
    }
    client.create_table("other");
}

#[test]
fn verbs_can_be_tunnelled_through_post() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", r#""A":1"#);
    let tunnel = |verb: &str, body: &str| client.post(PATH, body).header("X-HTTP-Method", verb);
    tunnel("MERGE", r#"{"B":2}"#).if_match("*").send().is_status(204);
    let found = client.get(PATH).send().json();
    assert_eq!((&found["A"], &found["B"]), (&1.into(), &2.into()));
    tunnel("PATCH", r#"{"C":3}"#).send().is_status(204);
    tunnel("PUT", r#"{"D":4}"#).if_match("*").send().is_status(204);
    assert_eq!(client.get(PATH).send().json().get("A"), None);
    tunnel("BREW", "{}").send().is_error(400, "XMethodIncorrectValue");
    tunnel("MERGE", "{}").also("X-HTTP-Method", "PUT").send().is_error(400, "XMethodIncorrectCount");
    client.put(PATH, "{}").header("X-HTTP-Method", "MERGE").send().is_error(400, "XMethodNotUsingPost");
    tunnel("DELETE", "").if_match("*").send().is_status(204);
    client.get(PATH).send().is_error(404, "ResourceNotFound");
}

#[test]
fn etags_that_are_none_are_refused_and_foreign_ones_do_not_match() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    for etag in ["\"abc\"", "foo", "W/abc", "W/\"abc"] {
        client.put(PATH, "{}").if_match(etag).send().is_error(400, "InvalidInput");
        client.request("DELETE", PATH).if_match(etag).send().is_error(400, "InvalidInput");
    }
    for etag in ["W/\"wrong\"", "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"", "W/\"\""] {
        client.put(PATH, "{}").if_match(etag).send().is_error(412, "UpdateConditionNotSatisfied");
        client.request("DELETE", PATH).if_match(etag).send().is_error(412, "UpdateConditionNotSatisfied");
    }
    client.put(PATH, "{}").header("If-None-Match", "*").send().is_error(400, "InvalidInput");
    client.get(PATH).send().is_status(200);
}

#[test]
fn what_is_not_offered_is_said_so() {
    let server = serve_table();
    let client = server.client();
    for option in ["$orderby", "$skip", "$expand", "$inlinecount"] {
        let reply = client.get("/tab()").query(option, "1").send();
        assert!([400, 501].contains(&reply.status), "{option}: {reply}");
    }
    for (method, path) in
        [("PUT", "/Tables"), ("DELETE", "/tab"), ("POST", PATH), ("PUT", "/tab()"), ("MERGE", "/Tables('tab')")]
    {
        let reply = client.request(method, path).json("{}").send();
        assert!([400, 405, 501].contains(&reply.status), "{method} {path}: {reply}");
    }
}
