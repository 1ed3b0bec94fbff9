//! Log lines, field by field, as the reference shows them.

use super::*;

/// The request of the first sample of the service's reference, "Storage Analytics log format".
fn get_blob() -> LogEntry {
    LogEntry {
        start: Timestamp::parse("2014-06-19T22:59:23.1967767Z").expect("a time"),
        operation: "GetBlob",
        kind: Kind::Read,
        authentication: Authentication::Anonymous,
        outcome: Outcome::Success,
        code: None,
        status: 200,
        end_to_end: Duration::from_micros(17_900),
        server: Duration::from_millis(16),
        url: "https://storagesample.blob.core.windows.net/sample-container1/00001.txt".to_owned(),
        object_key: "/storagesample/sample-container1/00001.txt".to_owned(),
        request_id: "61d2e3f6-bcb7-4cd1-a81e-4f8f497f0da2".to_owned(),
        peer: "192.100.0.102:4362".parse().expect("an address"),
        version: "2014-02-14".to_owned(),
        request_header_bytes: 283,
        request_bytes: 0,
        response_header_bytes: 354,
        response_bytes: 23,
        content_length: 0,
        request_md5: String::new(),
        server_md5: String::new(),
        etag: "\"0x8D15A2913C934DE\"".to_owned(),
        last_modified: "Thu, 19 Jun 2014 22:58:10 GMT".to_owned(),
        conditions: String::new(),
        user_agent: "WA-Storage/4.0.1 (.NET CLR 4.0.30319.34014; Win32NT 6.3.9600.0)".to_owned(),
        referrer: String::new(),
        client_request_id: "44dfd78e-7288-4898-8f70-c3478983d3b6".to_owned(),
        copy_source: String::new(),
    }
}

fn line(version: LoggingVersion, entry: &LogEntry) -> String {
    let mut out = String::new();
    entry.write(&LogOf { version, account: "storagesample", service: Service::Blob }, &mut out);
    out
}

#[test]
fn x3_a_request_is_the_line_of_the_reference() {
    let expected = concat!(
        r#"1.0;2014-06-19T22:59:23.1967767Z;GetBlob;AnonymousSuccess;200;17;16;anonymous;;storagesample;blob;"#,
        r#""https://storagesample.blob.core.windows.net/sample-container1/00001.txt";"#,
        r#""/storagesample/sample-container1/00001.txt";61d2e3f6-bcb7-4cd1-a81e-4f8f497f0da2;0;192.100.0.102:4362;"#,
        r#"2014-02-14;283;0;354;23;0;;;"&quot;0x8D15A2913C934DE&quot;";Thursday, 19-Jun-14 22:58:10 GMT;;"#,
        r#""WA-Storage/4.0.1 (.NET CLR 4.0.30319.34014; Win32NT 6.3.9600.0)";;"44dfd78e-7288-4898-8f70-c3478983d3b6""#,
        "\n",
    );
    assert_eq!(line(LoggingVersion::One, &get_blob()), expected);
    let second = line(LoggingVersion::Two, &get_blob());
    assert_eq!(second, expected.replacen("1.0", "2.0", 1).replace('\n', ";;;;;;;;\n"));
}

/// Recorded from the service, but for the account's name.
#[test]
fn x3_a_signature_is_masked_and_conditions_are_told() {
    let mut conditions = String::new();
    write_condition(&mut conditions, "If-Unmodified-Since", "Tue, 07 Apr 2020 13:56:12 GMT");
    write_condition(&mut conditions, "If-None-Match", "*");
    let query = mask_signature("se=2021-01-01T00%3A00%3A00Z&sig=secret%3D&sp=racwdl&timeout=901");
    let entry = LogEntry {
        authentication: Authentication::Sas,
        url: format!("https://storagesample.blob.core.windows.net:443/previz/main.tf?{query}"),
        conditions,
        ..get_blob()
    };
    let line = line(LoggingVersion::One, &entry);
    assert!(line.contains(";SASSuccess;200;17;16;sas;;storagesample;blob;"), "{line}");
    let url = "previz/main.tf?se=2021-01-01T00%3A00%3A00Z&amp;sig=XXXXX&amp;sp=racwdl&amp;timeout=901\";";
    assert!(line.contains(url) && !line.contains("secret"), "{line}");
    assert!(line.contains(";\"If-Unmodified-Since=Tuesday, 07-Apr-20 13:56:12 GMT;If-None-Match=*\";"), "{line}");
}

#[test]
fn x3_what_a_client_sends_cannot_break_a_line() {
    let entry = LogEntry {
        url: "http://h/input//\";\"?a='<>&".to_owned(),
        user_agent: "one\r\ntwo;\"".to_owned(),
        ..get_blob()
    };
    let line = line(LoggingVersion::One, &entry);
    assert_eq!(line.matches('\n').count(), 1);
    assert!(line.contains("\"http://h/input//&quot;;&quot;?a=&#39;&lt;&gt;&amp;\";"), "{line}");
    assert!(line.contains(";\"one&#13;&#10;two;&quot;\";"), "{line}");
}

#[test]
fn x3_a_copy_is_told_three_times() {
    let entry = LogEntry {
        operation: "CopyBlob",
        authentication: Authentication::Key,
        copy_source: "https://storagesample.blob.core.windows.net/sample-container/sample-blob.txt".to_owned(),
        ..get_blob()
    };
    let text = line(LoggingVersion::One, &entry);
    let fields: Vec<Vec<&str>> = text.lines().map(|line| line.split(';').collect()).collect();
    let tell = |n: usize| (fields[n][2], fields[n][12], fields[n][14], fields[n][24]);
    let destination = "\"/storagesample/sample-container1/00001.txt\"";
    let source = "\"https://storagesample.blob.core.windows.net/sample-container/sample-blob.txt\"";
    assert_eq!(fields.len(), 3);
    assert!(fields.iter().all(|fields| fields[8] == "storagesample" && fields[13] == entry.request_id));
    // The etag's own semicolons are those of its encoding.
    assert_eq!(tell(0), ("CopyBlob", destination, "0", "\"&quot"));
    assert_eq!(tell(1), ("CopyBlobSource", source, "1", ""));
    assert_eq!(tell(2), ("CopyBlobDestination", destination, "2", ""));
}

#[test]
fn x3_client_errors_are_told_by_their_code_from_2017_on() {
    let status = |version: &str, code, status, authentication| {
        let version = version.to_owned();
        let entry =
            LogEntry { version, code, status, authentication, outcome: Outcome::of(status, code), ..get_blob() };
        line(LoggingVersion::One, &entry).split(';').nth(3).expect("a field").to_owned()
    };
    let missing = Some(ErrorCode::ResourceNotFound);
    assert_eq!(status("2017-04-17", missing, 404, Authentication::Key), "ResourceNotFound");
    assert_eq!(status("2015-12-11", missing, 404, Authentication::Key), "ClientOtherError");
    assert_eq!(status("2015-12-11", missing, 404, Authentication::Sas), "SASClientOtherError");
    assert_eq!(status("", None, 304, Authentication::Anonymous), "AnonymousClientOtherError");
    let refused = Some(ErrorCode::AuthenticationFailed);
    assert_eq!(status("2021-12-02", refused, 403, Authentication::Sas), "SASAuthorizationError");
}

#[test]
fn only_dates_of_http_are_rewritten() {
    for text in ["", "Thu", "*", "Thu, 19 Jun 2014", "Thx, 19 Jun 2014 22:58:10 GMT", "Thu, 19 Jun 2014 22:58:10 GMT x"]
    {
        assert_eq!(rfc850(text), None, "{text}");
    }
    assert_eq!(rfc850("Sun, 06 Nov 1994 08:49:37 GMT").as_deref(), Some("Sunday, 06-Nov-94 08:49:37 GMT"));
}

#[test]
fn x3_texts_are_cut_by_what_they_take_in_a_log() {
    for (text, bytes_max, expected) in [
        ("", 8, ""),
        ("12345678", 8, "12345678"),
        ("123456789", 8, "12345..."),
        // Each quote is six bytes.
        ("\"\"", 12, "\"\""),
        ("\"\"\"", 12, "\"..."),
        ("1234\u{20ac}\u{20ac}", 9, "1234..."),
    ] {
        let mut cut_text = text.to_owned();
        cut(&mut cut_text, bytes_max);
        assert_eq!(cut_text, expected, "{text:?} in {bytes_max}");
        let mut encoded = String::new();
        push_quoted(&mut encoded, &cut_text);
        assert!(encoded.len() <= bytes_max + 2, "{encoded}");
    }
    let long = LogEntry { url: "u".repeat(60_000), user_agent: "a".repeat(60_000), ..get_blob() };
    assert!(long.bounded().bytes() < 8192);
}

#[test]
fn x3_signatures_are_masked_wherever_they_stand() {
    for (text, expected) in [
        ("", ""),
        ("https://h/p", "https://h/p"),
        ("https://h/p?a=1&b=2", "https://h/p?a=1&b=2"),
        ("https://h/p?a=1&sig=x%2B&b=2", "https://h/p?a=1&sig=XXXXX&b=2"),
        ("https://h/p?%73IG=x", "https://h/p?sig=XXXXX"),
        ("https://h/#sig=x#more", "https://h/#sig=XXXXX#more"),
        ("u=https%3A%2F%2Fh%3FSig%3Dx%252B%26a%3D1", "u=https%3A%2F%2Fh%3FSig%3DXXXXX%26a%3D1"),
        ("u=https%253Fsig%253Dx", "u=https%253Fsig%253DXXXXX"),
        ("a signal, a sig and sig", "a signal, a sig and sig"),
        ("sig=sig=x y", "sig=XXXXX y"),
    ] {
        assert_eq!(mask_signatures_in(text), expected, "{text}");
    }
}
