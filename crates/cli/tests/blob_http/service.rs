//! The service itself: properties, CORS, stats, account facts, special containers, and what is out of scope.

use super::{block_blob, content, make_container, put, serve, serve_container};

const PROPERTIES: &str = "/?restype=service&comp=properties";
const CORS: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://one.example</AllowedOrigins>\
    <AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>60</MaxAgeInSeconds>\
    <ExposedHeaders>x-ms-meta-*,ETag</ExposedHeaders><AllowedHeaders>x-ms-*,content-type</AllowedHeaders>\
    </CorsRule></Cors></StorageServiceProperties>";

#[test]
fn x2_service_properties_are_kept_by_service() {
    let server = serve();
    let client = server.blobs();
    let answer = client.get(PROPERTIES).send();
    answer.is_status(200);
    for element in ["Logging", "HourMetrics", "MinuteMetrics"] {
        assert!(answer.element(element).is_some(), "{element}: {answer}");
    }
    client.request("PUT", PROPERTIES).xml(CORS).send().is_status(202);
    let version = "<StorageServiceProperties><DefaultServiceVersion>2021-06-08</DefaultServiceVersion></StorageServiceProperties>";
    client.request("PUT", PROPERTIES).xml(version).send().is_status(202);
    let answer = client.get(PROPERTIES).send();
    assert_eq!(answer.element("AllowedOrigins"), Some("http://one.example"), "what is not named stays: {answer}");
    assert_eq!(answer.element("DefaultServiceVersion"), Some("2021-06-08"));
    let of_queues = server.queues().get(PROPERTIES).send();
    assert_eq!(of_queues.element("AllowedOrigins"), None);
    for body in ["", "x", "<Other/>", "<StorageServiceProperties>"] {
        let refused = client.request("PUT", PROPERTIES).xml(body).send();
        assert_eq!(refused.status, 400, "{body}: {refused}");
    }
}

#[test]
fn x2_browsers_are_let_in_by_rule() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let preflight = |origin: &str, method: &str, headers: &str| {
        let stranger = client.anonymous();
        let request = stranger.request("OPTIONS", "/box/a").header("Origin", origin);
        request.header("Access-Control-Request-Method", method).header("Access-Control-Request-Headers", headers).send()
    };
    preflight("http://one.example", "GET", "x-ms-version").is_error(403, "CorsPreflightFailure");
    client.request("PUT", PROPERTIES).xml(CORS).send().is_status(202);
    let good = preflight("http://one.example", "PUT", "x-ms-version,content-type");
    good.is_status(200);
    for (name, value) in [
        ("Access-Control-Allow-Origin", "http://one.example"),
        ("Access-Control-Allow-Methods", "PUT"),
        ("Access-Control-Max-Age", "60"),
        ("Access-Control-Allow-Credentials", "true"),
    ] {
        assert_eq!(good.header(name), Some(value), "{name}: {good}");
    }
    preflight("http://two.example", "GET", "").is_error(403, "CorsPreflightFailure");
    preflight("http://one.example", "DELETE", "").is_error(403, "CorsPreflightFailure");
    preflight("http://one.example", "GET", "authorization").is_error(403, "CorsPreflightFailure");
    let read = client.get("/box/a").header("Origin", "http://one.example").send();
    assert_eq!((read.status, read.header("Access-Control-Allow-Origin")), (200, Some("http://one.example")));
    assert!(
        read.header("Access-Control-Expose-Headers").is_some_and(|list| list.contains("ETag") || list.contains("etag"))
    );
    let other = client.get("/box/a").header("Origin", "http://two.example").send();
    assert_eq!((other.status, other.header("Access-Control-Allow-Origin")), (200, None));
    let missing = client.get("/box/none").header("Origin", "http://one.example").send();
    assert_eq!((missing.status, missing.header("Access-Control-Allow-Origin")), (404, Some("http://one.example")));
}

#[test]
fn x2_stats_are_told_by_the_secondary_and_account_facts_by_all() {
    let server = serve_container();
    let client = server.blobs();
    let stats = client.secondary().get("/?restype=service&comp=stats").send();
    stats.is_status(200);
    assert_eq!(stats.element("Status"), Some("live"), "{stats}");
    assert!(stats.element("LastSyncTime").is_some());
    let primary = client.get("/?restype=service&comp=stats").send();
    primary.is_error(400, "InvalidQueryParameterValue");
    for path in ["/", "/box", "/box/a"] {
        for method in ["GET", "HEAD"] {
            let answer = client.request(method, &format!("{path}?restype=account&comp=properties")).send();
            answer.is_status(200);
            assert_eq!(answer.header("x-ms-sku-name"), Some("Standard_LRS"), "{answer}");
            assert_eq!(answer.header("x-ms-account-kind"), Some("StorageV2"));
            assert_eq!(answer.header("x-ms-is-hns-enabled"), Some("false"));
        }
    }
}

#[test]
fn x2_the_root_container_is_where_names_alone_lead() {
    let server = serve();
    let client = server.blobs();
    block_blob(&client, "/page.html", "x").send().is_error(404, "ContainerNotFound");
    make_container(&client, "$root");
    put(&client, "/page.html", "root");
    assert_eq!(content(&client, "/page.html"), b"root");
    assert_eq!(content(&client, "/$root/page.html"), b"root");
    assert_eq!(content(&client, "/%24root/page.html"), b"root");
    assert_eq!(client.get("/$root?restype=container&comp=list").send().elements("Name"), ["page.html"]);
    assert_eq!(client.get("/?comp=list").send().elements("Name"), ["$root"]);
    // What names a container is not taken for one without the word.
    make_container(&client, "box");
    client.request("DELETE", "/box").send().is_error(404, "BlobNotFound");
    client.request("DELETE", "/box/").send().is_error(400, "InvalidUri");
    client.get("/box?restype=container").send().is_status(200);
    client.request("DELETE", "/page.html").send().is_status(202);
    client.request("DELETE", "/$root?restype=container").send().is_status(202);
}

#[test]
fn x2_the_logs_are_read_and_deleted_but_not_written() {
    let server = serve();
    let client = server.blobs();
    client.request("PUT", "/$logs?restype=container").send().is_error(403, "AuthorizationFailure");
    let on = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read>\
              <Write>true</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging></StorageServiceProperties>";
    client.request("PUT", PROPERTIES).xml(on).send().is_status(202);
    client.get("/$logs?restype=container&comp=list").send().is_status(200);
    client.get("/$logs?restype=container").send().is_status(200);
    assert!(client.get("/?comp=list").send().elements("Name").is_empty(), "it is not listed with the others");
    assert_eq!(client.get("/?comp=list&include=system").send().elements("Name"), ["$logs"]);
    for request in [
        block_blob(&client, "/$logs/a", "x"),
        client.request("PUT", "/$logs/a?comp=block&blockid=AAAA").body("x"),
        client.request("PUT", "/$logs/a").header("x-ms-blob-type", "AppendBlob").body(""),
        client.request("PUT", "/$logs/a?comp=appendblock").body("x"),
        client.request("DELETE", "/$logs?restype=container"),
        client
            .request("PUT", "/$logs?restype=container&comp=acl")
            .header("x-ms-blob-public-access", "container")
            .body(""),
    ] {
        request.send().is_error(403, "AuthorizationFailure");
    }
    client.request("DELETE", "/$logs/none").send().is_error(404, "BlobNotFound");
    client.anonymous().get("/$logs?restype=container&comp=list").send().is_error(401, "NoAuthenticationInformation");
}

/// What cannot be had is refused by its name, so that a client can send the rest of the document without it.
#[test]
fn x2_settings_that_are_not_implemented_are_named() {
    let server = serve_container();
    let client = server.blobs();
    let keep = "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></DeleteRetentionPolicy>";
    let site = "<StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument></StaticWebsite>";
    for setting in [keep, site] {
        let body = format!("<StorageServiceProperties>{setting}</StorageServiceProperties>");
        let refused = client.request("PUT", PROPERTIES).xml(body).send();
        refused.is_error(501, "NotImplemented");
        let element = if setting == keep { "DeleteRetentionPolicy" } else { "StaticWebsite" };
        assert_eq!(refused.element("XmlNodeName"), Some(element), "{refused}");
        assert!(refused.element("Message").is_some_and(|message| message.contains(element)), "{refused}");
        let off = "<Enabled>false</Enabled>";
        let body = format!("<StorageServiceProperties><{element}>{off}</{element}></StorageServiceProperties>");
        client.request("PUT", PROPERTIES).xml(body).send().is_status(202);
        assert!(client.get(PROPERTIES).send().element(element).is_some_and(|answer| answer.starts_with(off)));
    }
}

#[test]
fn x2_what_is_out_of_scope_is_refused_and_not_passed_over() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    for (method, path) in [
        ("POST", "/?restype=service&comp=userdelegationkey"),
        ("PUT", "/box?restype=container&comp=undelete"),
        ("PUT", "/box/a?comp=undelete"),
        ("PUT", "/box/a?comp=expiry"),
        ("PUT", "/box/a?comp=legalhold"),
        ("PUT", "/box/a?comp=immutabilityPolicies"),
        ("DELETE", "/box/a?comp=immutabilityPolicies"),
        ("POST", "/box/a?comp=query"),
        ("GET", "/box/a?versionid=2020-01-01T00:00:00.0000000Z"),
        ("DELETE", "/box/a?deletetype=permanent"),
    ] {
        client.request(method, path).body("").send().is_error(501, "NotImplemented");
    }
    for (name, value) in [
        ("x-ms-encryption-key", "AAAA"),
        ("x-ms-encryption-scope", "scope"),
        ("x-ms-immutability-policy-until-date", "Tue, 01 Jan 2030 00:00:00 GMT"),
        ("x-ms-legal-hold", "true"),
        ("x-ms-structured-body", "XSM/1.0; properties=crc64"),
    ] {
        block_blob(&client, "/box/b", "x").header(name, value).send().is_error(400, "UnsupportedHeader");
    }
    client.get("/box/b").send().is_error(404, "BlobNotFound");
    assert_eq!(content(&client, "/box/a"), b"x");
    for (method, path, status, code) in [
        ("PATCH", "/box/a", 405, "UnsupportedHttpVerb"),
        ("POST", "/box/a", 405, "UnsupportedHttpVerb"),
        ("DELETE", "/box/a?comp=metadata", 405, "UnsupportedHttpVerb"),
        ("GET", "/box/a?comp=lease", 405, "UnsupportedHttpVerb"),
        ("POST", "/box?restype=container", 405, "UnsupportedHttpVerb"),
        ("PUT", "/box/a?comp=weather", 400, "InvalidQueryParameterValue"),
        ("GET", "/box?restype=container&comp=weather", 400, "InvalidQueryParameterValue"),
        ("GET", "/?comp=weather", 400, "InvalidQueryParameterValue"),
        ("GET", "/", 400, "MissingRequiredQueryParameter"),
    ] {
        client.request(method, path).body("").send().is_error(status, code);
    }
}

#[test]
fn caches_are_told_about_origins_though_no_browser_asks() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let answers = || {
        let head = client.request("HEAD", "/box/none").send();
        let put = block_blob(&client, "/box/b", "x").send();
        [client.get("/box/a").send(), head, put]
    };
    assert!(answers().iter().all(|reply| reply.header("Vary").is_none()), "there are no rules");
    client.request("PUT", PROPERTIES).xml(CORS).send().is_status(202);
    let [get, head, put] = answers();
    assert_eq!((get.header("Vary"), get.header("Access-Control-Allow-Origin")), (Some("Origin"), None), "{get}");
    assert_eq!((head.status, head.header("Vary")), (404, Some("Origin")), "{head}");
    assert_eq!((put.status, put.header("Vary")), (201, None), "{put}");
    client.request("PUT", PROPERTIES).xml(CORS.replace("http://one.example", "*")).send().is_status(202);
    let [get, head, put] = answers();
    assert_eq!((get.header("Vary"), get.header("Access-Control-Allow-Origin")), (None, Some("*")), "{get}");
    assert!(get.header("Access-Control-Expose-Headers").is_some_and(|list| list.contains("ETag")), "{get}");
    assert_eq!(head.header("Vary"), Some("Origin"), "no rule is for HEAD: {head}");
    assert_eq!(put.header("Access-Control-Allow-Origin"), None, "{put}");
}

#[test]
fn rules_name_subdomains_and_every_method_and_come_back_names_first() {
    let server = serve_container();
    let client = server.blobs();
    let rules = |origins: &str, methods: &str, headers: &str| {
        let body = format!(
            "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>{origins}</AllowedOrigins>\
             <AllowedMethods>{methods}</AllowedMethods><AllowedHeaders>{headers}</AllowedHeaders>\
             <ExposedHeaders>{headers}</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds>\
             </CorsRule></Cors></StorageServiceProperties>"
        );
        client.request("PUT", PROPERTIES).xml(body).send()
    };
    rules("http://*.contoso.com", "TRACE,CONNECT,GET", "x-ms-meta-data*,x-ms-meta-b,x-ms-meta-target*,x-ms-meta-a")
        .is_status(202);
    let answer = client.get(PROPERTIES).send();
    assert_eq!(answer.element("AllowedMethods"), Some("TRACE,CONNECT,GET"));
    for list in ["AllowedHeaders", "ExposedHeaders"] {
        assert_eq!(answer.element(list), Some("x-ms-meta-b,x-ms-meta-a,x-ms-meta-data*,x-ms-meta-target*"));
    }
    let from = |origin: &str| client.get("/box/none").header("Origin", origin).send();
    let sub = from("http://www.contoso.com");
    assert_eq!(sub.header("Access-Control-Allow-Origin"), Some("http://www.contoso.com"), "{sub}");
    for origin in [
        "http://contoso.com.evil.example",
        "http://evil.example#.contoso.com",
        "http://evil.example?.contoso.com",
        "http://evil.example/.contoso.com",
        "http://evil.example\\.contoso.com",
        "http://user@.contoso.com",
        "http://user:password@www.contoso.com",
        "http://www.contoso.com/",
        "http://www.contoso.com#",
        "http://www.contoso.com:80",
        "http://.contoso.com",
    ] {
        assert_eq!(from(origin).header("Access-Control-Allow-Origin"), None, "{origin}");
    }
    let many =
        |count: usize, name: &str| (0..count).map(|number| format!("{name}{number}")).collect::<Vec<_>>().join(",");
    rules(&many(65, "http://a"), "GET", "").is_error(400, "InvalidXmlNodeValue");
    rules("*", "GET", &many(65, "x-")).is_error(400, "InvalidXmlNodeValue");
    rules("*", "GET", "a*,b*,c*").is_error(400, "InvalidXmlNodeValue");
    rules("*", "BREW", "").is_error(400, "InvalidXmlDocument");
}

/// Recorded: an account that never set the default version has no such element.
#[test]
fn the_default_version_comes_last_and_is_empty_after_it_was_set_to_nothing() {
    let server = serve();
    let client = server.blobs();
    let set = |inside: &str| {
        let body = format!("<StorageServiceProperties>{inside}</StorageServiceProperties>");
        client.request("PUT", PROPERTIES).xml(body).send().is_status(202);
        client.get(PROPERTIES).send().text().to_owned()
    };
    let fresh = client.get(PROPERTIES).send();
    assert!(fresh.text().ends_with("</StaticWebsite></StorageServiceProperties>"), "{fresh}");
    let text = set("<DefaultServiceVersion>2021-06-08</DefaultServiceVersion>");
    let end = "<DefaultServiceVersion>2021-06-08</DefaultServiceVersion></StorageServiceProperties>";
    assert!(text.ends_with(end), "{text}");
    let text = set("<DefaultServiceVersion />");
    assert!(text.ends_with("<DefaultServiceVersion /></StorageServiceProperties>"), "{text}");
}
