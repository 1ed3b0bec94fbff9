//! Queues: creating, finding, listing and deleting them, their metadata and access control lists.

use crate::contract::{Changed, Space, SpaceId, SpaceKind, SpaceName, Spaces};
use crate::error::{EngineError, Fault, Reject};
use larimar_model::Metadata;
use larimar_model::queue::QueueName;

/// A queue that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The number of the space that holds its messages.
    pub id: SpaceId,
    /// What its users keep with it.
    pub metadata: Metadata,
    /// Its access control list as the protocol writes it; empty when none was set.
    pub acl: String,
}

/// How a creation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// There is a new queue.
    New,
    /// There was one with the same metadata already.
    Same,
}

/// Creates a queue.
///
/// # Errors
/// `Reject::QueueExists` if there is one of this name with other metadata.
pub async fn create_queue(
    engine: &impl Spaces,
    account: &str,
    name: &QueueName,
    metadata: &Metadata,
) -> Result<Creation, EngineError> {
    for _ in 0..ATTEMPTS {
        if engine.create_space(space_name(account, name.as_str()), &encode(metadata, "")).await?.is_some() {
            return Ok(Creation::New);
        }
        match read_queue(engine, account, name).await {
            Ok(found) if found.metadata.is_same(metadata) => return Ok(Creation::Same),
            Ok(_) => return Err(Reject::QueueExists.into()),
            // It was deleted between the two looks.
            Err(EngineError::Reject(Reject::QueueNotFound)) => {}
            Err(other) => return Err(other),
        }
    }
    Err(busy())
}

/// Finds a queue to work with its messages. Its metadata and list may be a moment old ([`Spaces::recent_space`]).
///
/// # Errors
/// `Reject::QueueNotFound` if there is none of this name.
pub async fn find_queue(engine: &impl Spaces, account: &str, name: &QueueName) -> Result<Queue, EngineError> {
    queue_of(engine.recent_space(space_name(account, name.as_str())).await?)
}

/// Reads a queue's metadata and list as they are now.
///
/// # Errors
/// `Reject::QueueNotFound` if there is none of this name.
pub async fn read_queue(engine: &impl Spaces, account: &str, name: &QueueName) -> Result<Queue, EngineError> {
    queue_of(engine.space(space_name(account, name.as_str())).await?)
}

fn queue_of(space: Option<Space>) -> Result<Queue, EngineError> {
    let space = space.ok_or(Reject::QueueNotFound)?;
    let (metadata, acl) = decode(&space.meta)?;
    Ok(Queue { id: space.id, metadata, acl })
}

/// Lists queues from a name on, at most `max`.
///
/// # Errors
/// Faults of the engine.
pub async fn list_queues(
    engine: &impl Spaces,
    account: &str,
    from: &str,
    max: usize,
) -> Result<Vec<(String, Queue)>, Fault> {
    let spaces = engine.list_spaces(space_name(account, from), max).await?;
    let queue = |(name, space): (String, Space)| {
        let (metadata, acl) = decode(&space.meta)?;
        Ok((name, Queue { id: space.id, metadata, acl }))
    };
    spaces.into_iter().map(queue).collect()
}

/// Deletes a queue with all its messages, however many.
///
/// # Errors
/// `Reject::QueueNotFound` if there is none of this name.
pub async fn delete_queue(engine: &impl Spaces, account: &str, name: &QueueName) -> Result<(), EngineError> {
    let is_found = engine.drop_space(space_name(account, name.as_str())).await?;
    if is_found { Ok(()) } else { Err(Reject::QueueNotFound.into()) }
}

/// Replaces a queue's metadata.
///
/// # Errors
/// `Reject::QueueNotFound` if there is none of this name.
pub async fn set_queue_metadata(
    engine: &impl Spaces,
    account: &str,
    name: &QueueName,
    metadata: &Metadata,
) -> Result<(), EngineError> {
    change(engine, account, name, |_, acl| encode(metadata, acl)).await
}

/// Replaces a queue's access control list.
///
/// # Errors
/// `Reject::QueueNotFound` if there is none of this name.
pub async fn set_queue_acl(
    engine: &impl Spaces,
    account: &str,
    name: &QueueName,
    acl: &str,
) -> Result<(), EngineError> {
    change(engine, account, name, |metadata, _| encode(metadata, acl)).await
}

async fn change(
    engine: &impl Spaces,
    account: &str,
    name: &QueueName,
    edit: impl Fn(&Metadata, &str) -> Vec<u8>,
) -> Result<(), EngineError> {
    let name = space_name(account, name.as_str());
    for _ in 0..ATTEMPTS {
        let space = engine.recent_space(name).await?.ok_or(Reject::QueueNotFound)?;
        let (metadata, acl) = decode(&space.meta)?;
        match engine.change_space(name, &space.meta, &edit(&metadata, &acl)).await? {
            Changed::Yes => return Ok(()),
            Changed::Missing => return Err(Reject::QueueNotFound.into()),
            Changed::Other => {}
        }
    }
    Err(busy())
}

const fn space_name<'a>(account: &'a str, name: &'a str) -> SpaceName<'a> {
    SpaceName { account, kind: SpaceKind::Queue, name }
}

/// The meta bytes of a queue: a format byte, how many pairs of metadata, each with the lengths of name and value before
/// it, the access control list. Lengths are two bytes, big-endian.
fn encode(metadata: &Metadata, acl: &str) -> Vec<u8> {
    let short = |length: usize| u16::try_from(length).expect("metadata has at most 8 KiB").to_be_bytes();
    let mut meta = vec![META_FORMAT];
    meta.extend_from_slice(&short(metadata.iter().len()));
    for (name, value) in metadata.iter() {
        for text in [name, value] {
            meta.extend_from_slice(&short(text.len()));
            meta.extend_from_slice(text.as_bytes());
        }
    }
    meta.extend_from_slice(acl.as_bytes());
    meta
}

fn decode(meta: &[u8]) -> Result<(Metadata, String), Fault> {
    read(meta).ok_or_else(|| Fault::Damaged("a queue's description has an unknown format".to_owned()))
}

fn read(meta: &[u8]) -> Option<(Metadata, String)> {
    let mut rest = meta.strip_prefix(&[META_FORMAT])?;
    let mut metadata = Metadata::new();
    for _ in 0..take_short(&mut rest)? {
        let (name, value) = (take_text(&mut rest)?, take_text(&mut rest)?);
        metadata.insert(name, value).ok()?;
    }
    Some((metadata, std::str::from_utf8(rest).ok()?.to_owned()))
}

fn take_short(rest: &mut &[u8]) -> Option<u16> {
    let (short, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(u16::from_be_bytes(*short))
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let length = take_short(rest)?;
    let (text, tail) = rest.split_at_checked(usize::from(length))?;
    *rest = tail;
    std::str::from_utf8(text).ok()
}

fn busy() -> EngineError {
    Fault::Unavailable("a queue's metadata changes too often".to_owned()).into()
}

const META_FORMAT: u8 = 1;
/// Attempts before answering `ServerBusy`.
const ATTEMPTS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryEngine;
    use proptest::prelude::*;

    fn metadata(pairs: &[(&str, &str)]) -> Metadata {
        let mut metadata = Metadata::new();
        for (name, value) in pairs {
            metadata.insert(name, value).expect("a good pair");
        }
        metadata
    }

    #[tokio::test]
    async fn x1_a_queue_is_created_again_only_with_the_same_metadata() {
        let engine = MemoryEngine::new();
        let name: QueueName = "orders".parse().expect("a name");
        let (red, blue) = (metadata(&[("color", "red")]), metadata(&[("color", "blue")]));
        assert_eq!(create_queue(&engine, "a", &name, &red).await, Ok(Creation::New));
        assert_eq!(create_queue(&engine, "a", &name, &metadata(&[("Color", "red")])).await, Ok(Creation::Same));
        assert_eq!(create_queue(&engine, "a", &name, &blue).await, Err(Reject::QueueExists.into()));
        assert_eq!(create_queue(&engine, "b", &name, &blue).await, Ok(Creation::New));
        assert_eq!(find_queue(&engine, "a", &name).await.map(|queue| queue.metadata), Ok(red));
        assert_eq!(delete_queue(&engine, "a", &name).await, Ok(()));
        assert_eq!(delete_queue(&engine, "a", &name).await, Err(Reject::QueueNotFound.into()));
        assert_eq!(find_queue(&engine, "a", &name).await, Err(Reject::QueueNotFound.into()));
    }

    #[tokio::test]
    async fn x1_metadata_and_list_are_changed_apart() {
        let engine = MemoryEngine::new();
        let name: QueueName = "orders".parse().expect("a name");
        let red = metadata(&[("color", "red"), ("size", "")]);
        assert_eq!(set_queue_acl(&engine, "a", &name, "").await, Err(Reject::QueueNotFound.into()));
        create_queue(&engine, "a", &name, &Metadata::new()).await.expect("a queue");
        set_queue_acl(&engine, "a", &name, "<list/>").await.expect("a list");
        set_queue_metadata(&engine, "a", &name, &red).await.expect("metadata");
        let found = find_queue(&engine, "a", &name).await.expect("a queue");
        assert_eq!((found.metadata, found.acl.as_str()), (red, "<list/>"));
        let listed = list_queues(&engine, "a", "", 10).await.expect("no fault");
        assert_eq!(listed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["orders"]);
    }

    proptest! {
        #[test]
        fn descriptions_are_read_as_written(pairs in proptest::collection::vec(("[a-z]{1,8}", "[ -~]{0,20}"), 0..5), acl: String) {
            let mut metadata = Metadata::new();
            for (name, value) in &pairs {
                // A name that comes twice is left out.
                let _ = metadata.insert(name, value);
            }
            prop_assert_eq!(decode(&encode(&metadata, &acl)), Ok((metadata, acl)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(meta: Vec<u8>) {
            let _ = decode(&meta);
        }
    }
}
