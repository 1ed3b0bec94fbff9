//! What expressions on tags mean, which are refused, and what bounds them.

use super::*;
use proptest::prelude::*;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let mut tags = Tags::new();
    for (key, value) in pairs {
        tags.insert(key, value).expect("a tag");
    }
    tags
}

#[test]
fn conditions_compare_and_combine() {
    let plain = tags(&[("status", "open"), ("rank", "07")]);
    for (text, expected) in [
        ("\"status\" = 'open'", true),
        ("status='open'", true),
        ("\"status\" = 'Open'", false),
        ("\"Status\" = 'open'", false),
        ("\"status\" <> 'done'", true),
        ("\"none\" = ''", false),
        ("\"none\" <> 'x'", true),
        ("\"rank\" > '06' and \"rank\" <= '07'", true),
        ("\"rank\" < '07' OR \"status\" >= 'open'", true),
        ("\"rank\" < '07' OR \"status\" > 'open'", false),
        // AND binds more tightly than OR.
        ("\"status\" = 'open' OR \"rank\" = '1' AND \"rank\" = '2'", true),
        ("(\"status\" = 'open' OR \"rank\" = '1') AND \"rank\" = '2'", false),
    ] {
        assert_eq!(TagCondition::parse(text).map(|condition| condition.admits(&plain)), Ok(expected), "{text}");
    }
    assert!(TagCondition::parse("\"none\" <> 'x'").is_ok_and(|condition| !condition.admits(&Tags::new())));
    assert!(TagCondition::parse("\"a b\" > ''").is_ok_and(|condition| !condition.admits(&plain)));
}

#[test]
fn queries_are_comparisons_joined_by_and() {
    let query = TagQuery::parse("@container = 'box' AND \"a\" >= '1' AND (\"a\" < '2')").expect("a query");
    let comparison = |operator, value: &str| TagComparison { key: "a".to_owned(), operator, value: value.to_owned() };
    let comparisons = vec![comparison(TagOperator::GreaterOrEqual, "1"), comparison(TagOperator::Less, "2")];
    assert_eq!(query, TagQuery { container: Some("box".to_owned()), comparisons });
    assert!(query.admits(&tags(&[("a", "15")])) && !query.admits(&tags(&[("a", "2")])));
    for text in ["\"a\" = '1' OR \"b\" = '2'", "\"a\" <> '1'", "@container > 'a' AND \"b\" = '1'"] {
        assert_eq!(TagQuery::parse(text), Err(TagFilterError::Operator), "{text}");
    }
    let unquoted = TagQuery::parse("a+b-c.d/e:f_1='x'").expect("a query");
    assert_eq!(unquoted.comparisons[0].key, "a+b-c.d/e:f_1");
    assert!(TagQuery::parse("@container = 'box'").is_err());
    assert!(matches!(TagQuery::parse("@blob = 'x'"), Err(TagFilterError::Column(_))));
    assert!(matches!(TagCondition::parse("@container = 'x'"), Err(TagFilterError::Column(_))));
}

#[test]
fn what_is_not_an_expression_is_refused() {
    for text in [
        "",
        " ",
        "\"a\"",
        "\"a\" =",
        "\"a\" = b",
        "\"a\" = 'b",
        "'a' = 'b'",
        "\"a\" = 'b' AND",
        "\"a\" == 'b'",
        "\"a\" = 'b' \"c\" = 'd'",
        "(\"a\" = 'b'",
        "\"a\" = 'b')",
        "= 'b'",
        "\"a\" ! 'b'",
        "\"a\" = 'b' ANDx = 'c'",
        // A key that no tag can have.
        "k! = 'b'",
        "k;l = 'b'",
        "é = 'b'",
        "k@ = 'b'",
        "@ = 'b'",
    ] {
        assert!(matches!(TagCondition::parse(text), Err(TagFilterError::Syntax { .. })), "{text}");
        assert!(TagQuery::parse(text).is_err(), "{text}");
    }
}

#[test]
fn expressions_are_bounded() {
    let deep = |levels| format!("{}\"a\" = 'b'{}", "(".repeat(levels), ")".repeat(levels));
    assert!(TagCondition::parse(&deep(DEPTH_MAX)).is_ok());
    assert_eq!(TagCondition::parse(&deep(DEPTH_MAX + 1)), Err(TagFilterError::TooDeep));
    let repeated = |count| vec!["\"a\" = 'b'"; count].join(" AND ");
    assert!(TagCondition::parse(&repeated(COMPARISONS_MAX)).is_ok());
    assert_eq!(TagCondition::parse(&repeated(COMPARISONS_MAX + 1)), Err(TagFilterError::TooMany));
    // Tags are counted once each, and the container is none.
    let different = |count| (0..count).map(|key| format!("k{key} = 'b'")).collect::<Vec<_>>().join(" AND ");
    let most = format!("@container = 'box' AND {} AND k0 > 'a'", different(limits::TAGS_MAX));
    assert!(TagQuery::parse(&most).is_ok());
    assert_eq!(TagQuery::parse(&different(limits::TAGS_MAX + 1)), Err(TagFilterError::TooMany));
    let long = format!("\"a\" = '{}'", "x".repeat(limits::TAG_FILTER_BYTES_MAX));
    assert_eq!(TagCondition::parse(&long), Err(TagFilterError::TooLong));
}

proptest! {
    #[test]
    fn quoted_texts_are_read_back(key in "[^@].{0,20}", value in ".{0,20}") {
        let text = format!("\"{}\" = '{}'", key.replace('"', "\"\""), value.replace('\'', "''"));
        let query = TagQuery::parse(&text).expect("a query");
        let expected = TagComparison { key, operator: TagOperator::Equal, value };
        prop_assert_eq!(query.comparisons, vec![expected]);
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = (TagCondition::parse(&text), TagQuery::parse(&text));
    }

    #[test]
    fn a_query_admits_what_the_same_condition_admits(
        parts in prop::collection::vec(("[ab]", 0..5_usize, "[0-3]"), 1..5),
        found in prop::collection::btree_map("[ab]", "[0-3]", 1..3),
    ) {
        let operators = ["=", ">", ">=", "<", "<="];
        let parts: Vec<_> = parts.iter().map(|(key, at, value)| format!("{key} {} '{value}'", operators[*at])).collect();
        let text = parts.join(" AND ");
        let pairs: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let (query, condition) = (TagQuery::parse(&text), TagCondition::parse(&text));
        let found = tags(&pairs);
        prop_assert_eq!(query.expect("a query").admits(&found), condition.expect("a condition").admits(&found));
    }
}
