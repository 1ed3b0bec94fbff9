//! The access control list of a table, a queue or a container: up to five stored access policies, read from
//! and written as XML.
//!
//! The list is stored as the text that [`write()`] makes. `sas.rs` merges a policy into the tokens that
//! name it.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::sas::Permissions;
use crate::xml::{self, Element, XmlError};
use larimar_model::{Timestamp, limits, utf16};

/// The letters of a table's permissions in their canonical order.
pub const TABLE_PERMISSIONS: &str = "raud";
/// The letters of a queue's permissions in their canonical order.
pub const QUEUE_PERMISSIONS: &str = "raup";
/// The letters of a container's permissions in their canonical order.
pub const CONTAINER_PERMISSIONS: &str = "racwdxyltfmeopi";

/// What a stored policy fixes for the tokens that name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    /// When tokens become valid.
    pub start: Option<Timestamp>,
    /// When tokens end.
    pub expiry: Option<Timestamp>,
    /// What tokens allow.
    pub permissions: Option<Permissions>,
}

/// A stored policy and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIdentifier {
    /// The name, which tokens give as `si`.
    pub id: String,
    /// The policy.
    pub policy: AccessPolicy,
}

/// Why a list is refused: 400 `InvalidXmlDocument`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AclError {
    /// The document is not a list of signed identifiers.
    #[error("expected a document of SignedIdentifiers")]
    Xml(#[from] XmlError),
    /// More policies than a resource may have.
    #[error("expected at most 5 signed identifiers")]
    TooMany,
    /// An identifier that is missing, too long or there twice.
    #[error("expected identifiers of 1 to 64 characters, each once")]
    Id,
    /// A time that cannot be read.
    #[error("expected times such as 2021-06-08T02:05:09Z")]
    Time,
    /// Letters that are unknown or repeated.
    #[error("expected letters of permissions that the service knows, each once")]
    Permission,
}

impl AclError {
    /// The code to answer with.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        ErrorCode::InvalidXmlDocument
    }
}

impl From<AclError> for ErrorReply {
    fn from(error: AclError) -> Self {
        Self::new(error.code())
    }
}

/// Reads the body of Set ACL; `letters` are the permissions that the service knows. An empty body is the
/// empty list.
///
/// # Errors
/// Anything that the service's reference does not allow.
pub fn parse(body: &[u8], letters: &str) -> Result<Vec<SignedIdentifier>, AclError> {
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let root = Element::parse(body)?;
    if root.name != "SignedIdentifiers" {
        return Err(XmlError::Element.into());
    }
    root.expect_only(&["SignedIdentifier"])?;
    if root.children.len() > limits::POLICIES_MAX {
        return Err(AclError::TooMany);
    }
    let mut list: Vec<SignedIdentifier> = Vec::with_capacity(root.children.len());
    for child in &root.children {
        let identifier = parse_identifier(child, letters)?;
        if find(&list, &identifier.id).is_some() {
            return Err(AclError::Id);
        }
        list.push(identifier);
    }
    Ok(list)
}

/// Appends the body of Get ACL, with permissions in the order of `letters`.
pub fn write(out: &mut Vec<u8>, list: &[SignedIdentifier], letters: &str) {
    xml::write_start(out);
    xml::write_element(out, "SignedIdentifiers", |out| {
        for identifier in list {
            xml::write_element(out, "SignedIdentifier", |out| write_identifier(out, identifier, letters));
        }
    });
}

/// The policy of this name. Names compare exactly.
#[must_use]
pub fn find<'a>(list: &'a [SignedIdentifier], id: &str) -> Option<&'a AccessPolicy> {
    list.iter().find(|identifier| identifier.id == id).map(|identifier| &identifier.policy)
}

fn parse_identifier(element: &Element, letters: &str) -> Result<SignedIdentifier, AclError> {
    element.expect_only(&["Id", "AccessPolicy"])?;
    let id = element.child("Id")?.ok_or(AclError::Id)?;
    id.expect_only(&[])?;
    if id.text.is_empty() || utf16::len(&id.text) > limits::POLICY_ID_CHARS_MAX {
        return Err(AclError::Id);
    }
    let policy = element.child("AccessPolicy")?.map(|policy| parse_policy(policy, letters)).transpose()?;
    Ok(SignedIdentifier { id: id.text.clone(), policy: policy.unwrap_or_default() })
}

fn parse_policy(element: &Element, letters: &str) -> Result<AccessPolicy, AclError> {
    element.expect_only(&["Start", "Expiry", "Permission"])?;
    let time = |name| match element.child_text(name)? {
        Some(text) => Timestamp::parse(text).map(Some).map_err(|_| AclError::Time),
        None => Ok(None),
    };
    let permissions = match element.child_text("Permission")? {
        Some(text) => Some(Permissions::parse_strict(text, letters).ok_or(AclError::Permission)?),
        None => None,
    };
    Ok(AccessPolicy { start: time("Start")?, expiry: time("Expiry")?, permissions })
}

fn write_identifier(out: &mut Vec<u8>, identifier: &SignedIdentifier, letters: &str) {
    xml::write_text(out, "Id", &identifier.id);
    let AccessPolicy { start, expiry, permissions } = identifier.policy;
    if identifier.policy == AccessPolicy::default() {
        return;
    }
    xml::write_element(out, "AccessPolicy", |out| {
        if let Some(start) = start {
            xml::write_text(out, "Start", &start.to_seven_digits());
        }
        if let Some(expiry) = expiry {
            xml::write_text(out, "Expiry", &expiry.to_seven_digits());
        }
        if let Some(permissions) = permissions {
            xml::write_text(out, "Permission", &permissions.to_text(letters));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(list: &[SignedIdentifier]) -> String {
        let mut out = Vec::new();
        write(&mut out, list, TABLE_PERMISSIONS);
        String::from_utf8(out).expect("UTF-8")
    }

    fn one(inside: &str) -> String {
        format!("<SignedIdentifiers><SignedIdentifier>{inside}</SignedIdentifier></SignedIdentifiers>")
    }

    #[test]
    fn s4_a_list_comes_back_as_the_service_writes_it() {
        let start = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";
        for (body, expected) in [
            (String::new(), "<SignedIdentifiers />".to_owned()),
            (" \r\n".to_owned(), "<SignedIdentifiers />".to_owned()),
            ("<SignedIdentifiers/>".to_owned(), "<SignedIdentifiers />".to_owned()),
            (
                format!(
                    "{start}{}",
                    one(
                        "<AccessPolicy><Permission>udr</Permission><Expiry>2021-06-08T03:10:09Z</Expiry><Start>2021-06-08T02:05Z</Start></AccessPolicy><Id>testid</Id>"
                    )
                ),
                one(
                    "<Id>testid</Id><AccessPolicy><Start>2021-06-08T02:05:00.0000000Z</Start><Expiry>2021-06-08T03:10:09.0000000Z</Expiry><Permission>rud</Permission></AccessPolicy>",
                ),
            ),
            (one("<Id>a</Id>"), one("<Id>a</Id>")),
            (one("<Id>a</Id><AccessPolicy/>"), one("<Id>a</Id>")),
            (
                one("<Id>a&lt;</Id><AccessPolicy><Start/><Permission>r</Permission></AccessPolicy>"),
                one("<Id>a&lt;</Id><AccessPolicy><Permission>r</Permission></AccessPolicy>"),
            ),
            (
                one("<Id>a</Id><AccessPolicy><Start>2021-06-08</Start></AccessPolicy>"),
                one("<Id>a</Id><AccessPolicy><Start>2021-06-08T00:00:00.0000000Z</Start></AccessPolicy>"),
            ),
        ] {
            let list = parse(body.as_bytes(), TABLE_PERMISSIONS).expect("a list");
            assert_eq!(text(&list), format!("{start}{expected}"), "{body}");
        }
    }

    #[test]
    fn s4_five_policies_and_no_sixth() {
        let list = |count: usize| {
            let identifiers: String =
                (0..count).map(|i| format!("<SignedIdentifier><Id>{i}</Id></SignedIdentifier>")).collect();
            parse(format!("<SignedIdentifiers>{identifiers}</SignedIdentifiers>").as_bytes(), TABLE_PERMISSIONS)
        };
        assert_eq!(list(5).map(|list| list.len()), Ok(5));
        assert_eq!(list(6), Err(AclError::TooMany));
    }

    #[test]
    fn each_service_has_its_letters() {
        for (letters, text, canonical) in [
            (TABLE_PERMISSIONS, "dr", Some("rd")),
            (TABLE_PERMISSIONS, "p", None),
            (QUEUE_PERMISSIONS, "pura", Some("raup")),
            (QUEUE_PERMISSIONS, "d", None),
            (CONTAINER_PERMISSIONS, "ldwcar", Some("racwdl")),
            (CONTAINER_PERMISSIONS, "u", None),
        ] {
            let body = one(&format!("<Id>a</Id><AccessPolicy><Permission>{text}</Permission></AccessPolicy>"));
            let written = parse(body.as_bytes(), letters).map(|list| {
                let mut out = Vec::new();
                write(&mut out, &list, letters);
                String::from_utf8(out).expect("UTF-8")
            });
            match canonical {
                Some(canonical) => {
                    assert!(written.expect("a list").contains(&format!("<Permission>{canonical}</Permission>")));
                }
                None => assert_eq!(written, Err(AclError::Permission), "{text}"),
            }
        }
    }

    #[test]
    fn other_lists_are_refused() {
        let policy = |inside: &str| one(&format!("<Id>a</Id><AccessPolicy>{inside}</AccessPolicy>"));
        let twice = one("<Id>a</Id></SignedIdentifier><SignedIdentifier><Id>a</Id>");
        for (body, error) in [
            ("<Other/>".to_owned(), XmlError::Element.into()),
            ("<SignedIdentifiers>".to_owned(), XmlError::Syntax.into()),
            ("<SignedIdentifiers><Id/></SignedIdentifiers>".to_owned(), XmlError::Element.into()),
            (one(""), AclError::Id),
            (one("<Id/>"), AclError::Id),
            (one(&format!("<Id>{}</Id>", "i".repeat(65))), AclError::Id),
            (one("<Id>a</Id><Id>b</Id>"), XmlError::Element.into()),
            (twice, AclError::Id),
            (policy("<Start>soon</Start>"), AclError::Time),
            (policy("<Expiry>1600-01-01</Expiry>"), AclError::Time),
            (policy("<Permission>rr</Permission>"), AclError::Permission),
            (policy("<Permission>x</Permission>"), AclError::Permission),
            (policy("<Other/>"), XmlError::Element.into()),
        ] {
            assert_eq!(parse(body.as_bytes(), TABLE_PERMISSIONS), Err(error), "{body}");
        }
        assert!(parse(one(&format!("<Id>{}</Id>", "i".repeat(64))).as_bytes(), TABLE_PERMISSIONS).is_ok());
    }

    fn policies() -> impl Strategy<Value = AccessPolicy> {
        let time = || {
            proptest::option::of(
                (504_911_232_000_000_000..=3_155_378_975_999_999_999u64).prop_map(Timestamp::from_ticks),
            )
        };
        let permissions = proptest::option::of("[r]?[a]?[u]?d").prop_map(|text| Permissions::parse(&text?));
        (time(), time(), permissions).prop_map(|(start, expiry, permissions)| AccessPolicy {
            start,
            expiry,
            permissions,
        })
    }

    proptest! {
        #[test]
        fn lists_are_read_as_they_were_written(
            entries in proptest::collection::btree_map("[ -~é日\r\n]{1,64}", policies(), 0..=5),
        ) {
            let list: Vec<_> = entries.into_iter().map(|(id, policy)| SignedIdentifier { id, policy }).collect();
            prop_assert_eq!(parse(text(&list).as_bytes(), TABLE_PERMISSIONS), Ok(list));
        }

        #[test]
        fn any_body_is_read_or_refused(body in "(<SignedIdentifiers>|<SignedIdentifier>|</SignedIdentifier>|<Id>|</Id>|a|</SignedIdentifiers>|&amp;){0,12}") {
            let _ = parse(body.as_bytes(), TABLE_PERMISSIONS);
        }
    }
}
