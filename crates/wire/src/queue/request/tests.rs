//! Requests become the operations they ask for, or the protocol's own refusals.

use super::*;
use proptest::prelude::*;

const ID: &str = "5974b586-0df3-4e2d-ad0c-18e3892bfca2";

fn parse_with(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<QueueOperation, ErrorReply> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let head = RequestHead::new(method, path, query, headers.iter().copied());
    QueueOperation::parse(&head, path)
}

fn parse(method: &str, target: &str) -> Result<QueueOperation, ErrorCode> {
    parse_with(method, target, &[]).map_err(|error| error.code)
}

fn queue() -> QueueName {
    "q-1".parse().expect("a name")
}

fn id() -> Guid {
    Guid::parse(ID).expect("a Guid")
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn check_all(cases: &[(&str, &str, QueueOperation, &str)]) {
    for (method, target, operation, name) in cases {
        assert_eq!(parse(method, target).as_ref(), Ok(operation), "{method} {target}");
        assert_eq!(operation.facts().name, *name);
        let is_read = matches!(*method, "GET" | "HEAD") && !matches!(operation, QueueOperation::GetMessages { .. });
        assert_eq!(operation.facts().is_read_only(), is_read, "{method} {target}");
    }
}

#[test]
fn x1_every_operation_on_queues_has_its_request() {
    use QueueOperation as O;
    check_all(&[
        ("GET", "/?comp=list", O::ListQueues(ListQueues::default()), "ListQueues"),
        ("GET", "?restype=service&comp=properties", O::GetServiceProperties, "GetQueueServiceProperties"),
        ("PUT", "/?restype=service&comp=properties&timeout=30", O::SetServiceProperties, "SetQueueServiceProperties"),
        ("GET", "/?restype=service&comp=stats", O::GetServiceStats, "GetQueueServiceStats"),
        ("PUT", "/q-1", O::CreateQueue(queue(), Metadata::new()), "CreateQueue"),
        ("DELETE", "/q-1", O::DeleteQueue(queue()), "DeleteQueue"),
        ("GET", "/q-1?comp=metadata", O::GetMetadata(queue()), "GetQueueMetadata"),
        ("HEAD", "//q-1/?comp=metadata", O::GetMetadata(queue()), "GetQueueMetadata"),
        ("PUT", "/q-1?comp=metadata", O::SetMetadata(queue(), Metadata::new()), "SetQueueMetadata"),
        ("HEAD", "/q-1?comp=acl", O::GetAcl(queue()), "GetQueueACL"),
        ("PUT", "/q-1?comp=acl", O::SetAcl(queue()), "SetQueueACL"),
    ]);
}

#[test]
fn x1_every_operation_on_messages_has_its_request() {
    use QueueOperation as O;
    let [delete, update] = [
        format!("/q-1/messages/{ID}?popreceipt=a%2Bb+c%3D"),
        format!("/q-1/messages/{ID}?popreceipt=r&visibilitytimeout=0"),
    ];
    check_all(&[
        (
            "POST",
            "/q-1/messages",
            O::PutMessage { queue: queue(), hidden_for: seconds(0), lives_for: Some(seconds(604_800)) },
            "PutMessage",
        ),
        (
            "POST",
            "/q-1/messages?visibilitytimeout=10&messagettl=-1",
            O::PutMessage { queue: queue(), hidden_for: seconds(10), lives_for: None },
            "PutMessage",
        ),
        ("GET", "/q-1/messages", O::GetMessages { queue: queue(), count: 1, hidden_for: seconds(30) }, "GetMessages"),
        (
            "GET",
            "/q-1/messages?numofmessages=32&visibilitytimeout=604800&peekonly=False",
            O::GetMessages { queue: queue(), count: 32, hidden_for: seconds(604_800) },
            "GetMessages",
        ),
        (
            "GET",
            "/q-1/messages?peekonly=true&numofmessages=5",
            O::PeekMessages { queue: queue(), count: 5 },
            "PeekMessages",
        ),
        ("DELETE", "/q-1/messages", O::ClearMessages(queue()), "ClearMessages"),
        (
            "DELETE",
            &delete,
            O::DeleteMessage { queue: queue(), id: Some(id()), receipt: "a+b+c=".to_owned() },
            "DeleteMessage",
        ),
        (
            "PUT",
            &update,
            O::UpdateMessage { queue: queue(), id: Some(id()), receipt: "r".to_owned(), hidden_for: seconds(0) },
            "UpdateMessage",
        ),
    ]);
}

#[test]
fn listings_have_their_options() {
    let parsed = parse("GET", "/?comp=list&prefix=q&marker=1!cTE&maxresults=5000&include=metadata");
    let expected = ListQueues {
        prefix: Some("q".to_owned()),
        marker: Some("1!cTE".to_owned()),
        from: Some("q1".to_owned()),
        count_max: Some(5000),
        metadata: true,
    };
    assert_eq!(expected.page(), 5000);
    assert_eq!(ListQueues::default().page(), 5000);
    assert_eq!(parsed, Ok(QueueOperation::ListQueues(expected)));
    let empty = parse("GET", "/?comp=list&prefix=&marker=&maxresults=&include=");
    assert_eq!(empty, Ok(QueueOperation::ListQueues(ListQueues::default())));
}

#[test]
fn metadata_comes_from_headers() {
    let created = parse_with("PUT", "/q-1", &[("x-ms-meta-a", "1")]);
    let Ok(QueueOperation::CreateQueue(_, metadata)) = created else { panic!("{created:?}") };
    assert_eq!(metadata.get("a"), Some("1"));
}

#[test]
fn ranges_at_and_past_their_limits() {
    for (method, target, expected) in [
        ("GET", "/?comp=list&maxresults=0", ErrorCode::OutOfRangeQueryParameterValue),
        ("GET", "/?comp=list&maxresults=5001", ErrorCode::OutOfRangeQueryParameterValue),
        ("GET", "/?comp=list&maxresults=x", ErrorCode::InvalidQueryParameterValue),
        ("GET", "/?comp=list&include=all", ErrorCode::InvalidQueryParameterValue),
        ("GET", "/?comp=list&marker=x", ErrorCode::OutOfRangeInput),
        ("GET", "/q-1/messages?numofmessages=0", ErrorCode::OutOfRangeQueryParameterValue),
        ("GET", "/q-1/messages?numofmessages=33", ErrorCode::OutOfRangeQueryParameterValue),
        ("GET", "/q-1/messages?numofmessages=33&peekonly=true", ErrorCode::OutOfRangeQueryParameterValue),
        ("GET", "/q-1/messages?peekonly=maybe", ErrorCode::InvalidQueryParameterValue),
        ("GET", "/q-1/messages?visibilitytimeout=0", ErrorCode::OutOfRangeQueryParameterValue),
        ("GET", "/q-1/messages?visibilitytimeout=604801", ErrorCode::OutOfRangeQueryParameterValue),
        ("POST", "/q-1/messages?visibilitytimeout=-1", ErrorCode::OutOfRangeQueryParameterValue),
        ("POST", "/q-1/messages?visibilitytimeout=604801&messagettl=-1", ErrorCode::OutOfRangeQueryParameterValue),
        ("POST", "/q-1/messages?messagettl=0", ErrorCode::InvalidQueryParameterValue),
        ("POST", "/q-1/messages?messagettl=-2", ErrorCode::OutOfRangeQueryParameterValue),
        ("POST", "/q-1/messages?visibilitytimeout=5&messagettl=5", ErrorCode::InvalidQueryParameterValue),
        ("POST", "/q-1/messages?visibilitytimeout=604800", ErrorCode::InvalidQueryParameterValue),
        ("POST", "/q-1/messages?timeout=soon", ErrorCode::InvalidQueryParameterValue),
        ("PUT", "/q-1/messages/x?popreceipt=r", ErrorCode::MissingRequiredQueryParameter),
        ("PUT", "/q-1/messages/x?visibilitytimeout=1", ErrorCode::MissingRequiredQueryParameter),
        ("PUT", "/q-1/messages/x?popreceipt=r&visibilitytimeout=604801", ErrorCode::OutOfRangeQueryParameterValue),
        ("DELETE", "/q-1/messages/x", ErrorCode::MissingRequiredQueryParameter),
    ] {
        assert_eq!(parse(method, target), Err(expected), "{method} {target}");
    }
    assert!(parse("POST", "/q-1/messages?visibilitytimeout=4&messagettl=5").is_ok());
    assert!(parse("POST", "/q-1/messages?visibilitytimeout=604800&messagettl=-1").is_ok());
    for seconds in ["2147483647", "9999999999", "9223372036854775807"] {
        assert!(parse("POST", &format!("/q-1/messages?messagettl={seconds}")).is_ok(), "{seconds}");
    }
    let old = [("x-ms-version", "2016-05-31")];
    for target in ["/q-1/messages?messagettl=-1", "/q-1/messages?messagettl=604801"] {
        let error = parse_with("POST", target, &old).expect_err("an old version");
        assert_eq!(error.code, ErrorCode::OutOfRangeQueryParameterValue);
    }
    let details = parse_with("GET", "/q-1/messages?numofmessages=33", &[]).expect_err("too many").details;
    assert_eq!(
        details,
        [
            ("QueryParameterName", "numofmessages".to_owned()),
            ("QueryParameterValue", "33".to_owned()),
            ("MinimumAllowed", "1".to_owned()),
            ("MaximumAllowed", "32".to_owned())
        ]
    );
}

#[test]
fn other_requests_are_refused() {
    for (method, target, expected) in [
        ("GET", "/", ErrorCode::MissingRequiredQueryParameter),
        ("GET", "/?comp=other", ErrorCode::InvalidQueryParameterValue),
        ("POST", "/?comp=list", ErrorCode::UnsupportedHttpVerb),
        ("DELETE", "/?restype=service&comp=properties", ErrorCode::UnsupportedHttpVerb),
        ("GET", "/q-1", ErrorCode::MissingRequiredQueryParameter),
        ("POST", "/q-1", ErrorCode::UnsupportedHttpVerb),
        ("DELETE", "/q-1?comp=metadata", ErrorCode::UnsupportedHttpVerb),
        ("GET", "/q-1?comp=other", ErrorCode::InvalidQueryParameterValue),
        ("GET", "/q-1/messages?comp=metadata", ErrorCode::InvalidQueryParameterValue),
        ("PUT", "/q-1/messages", ErrorCode::UnsupportedHttpVerb),
        ("GET", "/q-1/messages/x", ErrorCode::UnsupportedHttpVerb),
        ("GET", "/q-1/other", ErrorCode::InvalidUri),
        ("GET", "/q-1/messages/a/b", ErrorCode::InvalidUri),
        ("PUT", "/q_1", ErrorCode::InvalidResourceName),
        ("PUT", "/Q-1", ErrorCode::InvalidResourceName),
        ("PUT", "/q-", ErrorCode::InvalidResourceName),
        ("PUT", "/ab", ErrorCode::OutOfRangeInput),
        ("PUT", "/%zz", ErrorCode::InvalidUri),
        ("PUT", "/q-1?comp=%zz", ErrorCode::InvalidQueryParameterValue),
        ("PUT", "/q%2F1/messages", ErrorCode::InvalidResourceName),
    ] {
        assert_eq!(parse(method, target), Err(expected), "{method} {target}");
    }
}

proptest! {
    #[test]
    fn any_request_is_read_or_refused(
        method in "GET|PUT|POST|DELETE|HEAD|PATCH", path in "(/|q-1|messages|%2F|é|%){0,6}",
        query in "((comp|restype|numofmessages|visibilitytimeout|messagettl|popreceipt|marker)=(list|metadata|-1|7|1!YQ|é|%)?&){0,4}",
    ) {
        let _ = parse(&method, &format!("{path}?{query}"));
    }
}
