//! Access control lists of tables, queues and containers: from the body of a request to the text that is stored, and
//! back to the body of an answer. Only the account's key may see or change them.

use crate::reply::Reply;
use larimar_wire::acl;
use larimar_wire::error_body::ErrorReply;

/// The text to store for the list in a request's body; empty for an empty list.
pub(crate) fn to_stored(body: &[u8], letters: &str) -> Result<String, ErrorReply> {
    let list = acl::parse(body, letters)?;
    let mut xml = Vec::with_capacity(512);
    if !list.is_empty() {
        acl::write(&mut xml, &list, letters);
    }
    Ok(String::from_utf8_lossy(&xml).into_owned())
}

/// The answer that shows a stored list.
pub(crate) fn reply(stored: &str, letters: &str) -> Result<Reply, ErrorReply> {
    let list = acl::parse(stored.as_bytes(), letters)?;
    let mut xml = Vec::with_capacity(512);
    acl::write(&mut xml, &list, letters);
    Ok(Reply::xml(200, xml))
}
