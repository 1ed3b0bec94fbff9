//! Copies one blob: block blobs appear whole at their end, append and page blobs grow in place.

use super::checksum::{self, Checksum};
use super::content::{Piece, Reader, piece_bytes};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use larimar_client::{AppendOptions, Blob, BlobItem, BlobKind, Container, Error, ListOptions, Result, UploadOptions};
use md5::{Digest as _, Md5};
use std::collections::{BTreeMap, HashMap};

/// What became of a blob.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is at the destination, with this digest.
    Copied(u128),
    /// It was deleted at the source meanwhile.
    Gone,
    /// One side refuses it, for this reason.
    Refused(String),
}

/// Copies a blob that was listed. If it changes meanwhile, the new version is copied.
pub(super) async fn copy(
    reader: &Reader,
    from: &Container,
    to: &Container,
    mut item: BlobItem,
    with_tags: bool,
) -> Result<Outcome> {
    let (source, target) = (from.blob(item.name.as_str()), to.blob(item.name.as_str()));
    for _ in 0..VERSIONS_MAX {
        match copy_version(reader, &source, &target, &item).await {
            Ok(content) => return Ok(Outcome::Copied(checksum::blob(&item, content))),
            Err(error) if error.is_changed() || error.is_not_found() => {
                match find(from, &item.name, with_tags).await? {
                    Some(found) => item = found,
                    None => {
                        target.delete_if_exists().await?;
                        return Ok(Outcome::Gone);
                    }
                }
            }
            // Another blob may well be copied: this one is archived, or its name is one that the client does not send.
            Err(error @ Error::Invalid(_)) => return Ok(Outcome::Refused(error.to_string())),
            Err(error) if matches!(error.status(), Some(400 | 409)) => return Ok(Outcome::Refused(error.to_string())),
            Err(error) => return Err(error),
        }
    }
    Ok(Outcome::Refused("it changes too often".to_owned()))
}

/// The blob of this name as it is now.
async fn find(container: &Container, name: &str, with_tags: bool) -> Result<Option<BlobItem>> {
    let options = ListOptions::default().prefix(name).page_size(1).tags(with_tags);
    let mut pages = container.list_pages(options);
    // The shortest name with a prefix is first, but a page may be empty.
    while let Some(page) = pages.try_next().await? {
        if let Some(first) = page.blobs.into_iter().next() {
            return Ok(Some(first).filter(|first| first.name == name));
        }
    }
    Ok(None)
}

async fn copy_version(reader: &Reader, from: &Blob, to: &Blob, item: &BlobItem) -> Result<Checksum> {
    match item.kind {
        BlobKind::Block => copy_block_blob(reader, from, to, item).await,
        BlobKind::Append => copy_append_blob(reader, from, to, item).await,
        BlobKind::Page => copy_page_blob(reader, from, to, item).await,
        _ => Err(Error::Invalid("a kind of blob that this program does not know".to_owned())),
    }
}

/// Blocks are named by the version that they are of, so those that an interrupted copy sent are found and kept.
async fn copy_block_blob(reader: &Reader, from: &Blob, to: &Blob, item: &BlobItem) -> Result<Checksum> {
    let step = piece_bytes(item.kind, item.size);
    let options = described(item).metadata(item.metadata.clone());
    if item.size == 0 {
        put_whole(to, item, Bytes::new(), options).await?;
        return Ok(Checksum::default());
    }
    if item.size <= step {
        let put = |piece: Piece| put_whole(to, item, piece.bytes, options.clone());
        return reader.read(from, item, put).await;
    }
    let sent: HashMap<String, u64> = to.uncommitted_blocks().await?.into_iter().collect();
    let id = |start: u64| block_id(item, step, start);
    let put = |piece: Piece| {
        let (id, sent) = (id(piece.start), &sent);
        async move {
            match sent.get(&id) {
                Some(size) if *size == piece.bytes.len() as u64 => Ok(()),
                _ => to.put_block(&id, piece.bytes).await,
            }
        }
    };
    let content = reader.read(from, item, put).await?;
    let ids = (0..item.size).step_by(usize::try_from(step).expect("a block fits into memory")).map(id);
    to.commit_blocks(ids, &options).await?;
    Ok(content)
}

/// A service computes the MD5 of what is put in one request and refuses another one. A blob whose MD5 is absent or not
/// that of its content is put as a block, so that it is as it was.
async fn put_whole(to: &Blob, item: &BlobItem, content: Bytes, options: UploadOptions) -> Result<()> {
    let md5 = STANDARD.encode(Md5::digest(&content));
    if item.content_headers.content_md5.as_ref() == Some(&md5) {
        to.upload(content, options).await?;
        return Ok(());
    }
    let mut ids = Vec::new();
    if !content.is_empty() {
        ids.push(block_id(item, 0, 0));
        to.put_block(&ids[0], content).await?;
    }
    to.commit_blocks(ids, &options).await?;
    Ok(())
}

fn block_id(item: &BlobItem, step: u64, start: u64) -> String {
    let digest = Md5::new().chain_update(item.etag.as_str()).chain_update(step.to_le_bytes());
    STANDARD.encode(digest.chain_update(start.to_le_bytes()).finalize())
}

/// While it grows, the blob says in its metadata which version it is a part of; that is how an interrupted copy is
/// continued.
async fn copy_append_blob(reader: &Reader, from: &Blob, to: &Blob, item: &BlobItem) -> Result<Checksum> {
    let mark = BTreeMap::from([(MARK.to_owned(), item.etag.as_str().trim_matches('"').to_owned())]);
    let there = to.properties().await?;
    let there =
        there.filter(|there| there.kind == BlobKind::Append && there.metadata == mark && there.size <= item.size);
    let length = match there {
        Some(there) => there.size,
        None => {
            to.create_append(described(item).metadata(mark)).await?;
            0
        }
    };
    let append = |piece: Piece| async move {
        let end = piece.start + piece.bytes.len() as u64;
        if end <= length {
            return Ok(());
        }
        let start = piece.start.max(length);
        let rest = piece.bytes.slice(usize::try_from(start - piece.start).expect("within the piece")..);
        to.append(rest, AppendOptions::default().at(start)).await.map(drop)
    };
    let content = reader.read(from, item, append).await?;
    to.set_metadata(&item.metadata, larimar_client::BlobCondition::Always).await?;
    if item.is_sealed {
        to.seal().await?;
    }
    Ok(content)
}

async fn copy_page_blob(reader: &Reader, from: &Blob, to: &Blob, item: &BlobItem) -> Result<Checksum> {
    let options = described(item).metadata(item.metadata.clone());
    to.create_page(item.size, item.sequence_number, &options).await?;
    let write = |piece: Piece| async move {
        for range in piece.written {
            let within = |at: u64| usize::try_from(at - piece.start).expect("within the piece");
            to.write_pages(range.start, piece.bytes.slice(within(range.start)..within(range.end))).await?;
        }
        Ok(())
    };
    reader.read(from, item, write).await
}

/// Content headers and tags of the blob.
fn described(item: &BlobItem) -> UploadOptions {
    UploadOptions::default().content_headers(item.content_headers.clone()).tags(item.tags.clone())
}

/// The name of the metadata that an unfinished append blob has.
const MARK: &str = "larimar_unfinished_copy_of";
/// How often a blob may change while it is copied.
const VERSIONS_MAX: u32 = 8;
