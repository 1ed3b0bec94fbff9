//! The stored form of a blob's row (drawn in docs/format.md).

use super::{BlobRow, Pending};
use crate::blob::codec::{
    Reader, damaged, put_bytes, put_metadata, put_number, put_optional_text, put_time, take_metadata,
};
use crate::blob::incremental::{put_incremental, take_incremental};
use crate::blob::layout::{Blocks, Layout};
use crate::blob::lease::Lease;
use crate::blob::released::Released;
use crate::blob::tier::{put_rehydration, take_rehydration};
use crate::error::Fault;
use larimar_model::blob::{BlobType, ContentHeaders, CopyInfo, SnapshotTime, Tags};
use larimar_model::{Guid, Timestamp};

impl BlobRow {
    /// Whether the stored row has committed content.
    pub(crate) fn is_committed_in(body: &[u8]) -> bool {
        body.get(1).is_some_and(|flags| flags & COMMITTED != 0)
    }

    /// Encodes the row.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        let kind = match self.kind {
            BlobType::Block => 0,
            BlobType::Append => 1,
            BlobType::Page => 2,
        };
        let committed = if self.is_committed { COMMITTED } else { 0 };
        let released = if self.released.is_empty() { 0 } else { RELEASED };
        let shared = if self.snapshots > 0 { SHARED } else { 0 };
        let bits = if self.rehydration.is_some() { REHYDRATION } else { 0 }
            | if self.is_sealed { SEALED } else { 0 }
            | if self.incremental().is_some() { INCREMENTAL } else { 0 };
        let rare = if bits == 0 { 0 } else { RARE };
        out.extend_from_slice(&[FORMAT, kind | committed | released | shared | rare]);
        put_time(&mut out, self.created);
        put_time(&mut out, self.changed);
        for number in [self.length, self.sequence_number, u64::from(self.snapshots), self.pending.generation] {
            put_number(&mut out, number);
        }
        out.push(self.pending.id_length);
        put_content(&mut out, &self.content);
        put_metadata(&mut out, &self.metadata);
        put_number(&mut out, self.tags.len() as u64);
        for (key, value) in self.tags.iter() {
            put_bytes(&mut out, key.as_bytes());
            put_bytes(&mut out, value.as_bytes());
        }
        put_optional_text(&mut out, self.tier.map(|(tier, _)| tier.as_str()));
        if let Some((_, since)) = self.tier {
            put_time(&mut out, since);
        }
        self.lease.encode(&mut out);
        out.push(u8::from(self.copy.is_some()));
        if let Some(copy) = &self.copy {
            out.extend_from_slice(&copy.id.0);
            put_bytes(&mut out, copy.source.as_bytes());
            put_number(&mut out, copy.length);
            put_time(&mut out, copy.completed);
        }
        if !self.released.is_empty() {
            self.released.encode(&mut out);
        }
        if self.snapshots > 0 {
            put_number(&mut out, self.shared_since.map_or(0, |since| since.0.ticks() + 1));
        }
        if bits != 0 {
            out.push(bits);
        }
        if let Some(rehydration) = &self.rehydration {
            put_rehydration(&mut out, rehydration);
        }
        if let Some(incremental) = self.incremental() {
            put_incremental(&mut out, incremental);
        }
        self.layout.encode(&mut out);
        out
    }

    /// Decodes a row.
    pub(crate) fn decode(body: &[u8]) -> Result<Self, Fault> {
        let read = || {
            let mut reader = Reader(body);
            let row = Self::read(&mut reader)?;
            let layout = Layout::decode(&mut reader).filter(|_| reader.0.is_empty())?;
            Some(Self { layout, ..row })
        };
        read().ok_or_else(|| damaged("a blob's row"))
    }

    /// Decodes the row without its blocks, of which only the count is returned. Listings need no more.
    pub(crate) fn decode_head(body: &[u8]) -> Result<(Self, u32), Fault> {
        let read = || {
            let mut reader = Reader(body);
            let row = Self::read(&mut reader)?;
            Some((row, Layout::decode_count(&mut reader)?))
        };
        read().ok_or_else(|| damaged("a blob's row"))
    }

    /// Decodes all but the layout, which comes last.
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.byte()? != FORMAT {
            return None;
        }
        let flags = reader.byte()?;
        let kind = match flags & !(COMMITTED | RELEASED | SHARED | RARE) {
            0 => BlobType::Block,
            1 => BlobType::Append,
            2 => BlobType::Page,
            _ => return None,
        };
        let (created, changed) = (reader.time()?, reader.time()?);
        let (length, sequence_number, snapshots) = (reader.number()?, reader.number()?, reader.small()?);
        let pending = Pending { generation: reader.number()?, id_length: reader.byte()? };
        let content = take_content(reader)?;
        let metadata = take_metadata(reader)?;
        let tags = take_tags(reader)?;
        let tier = match reader.optional_text()? {
            Some(tier) => Some((tier.parse().ok()?, reader.time()?)),
            None => None,
        };
        let lease = Lease::decode(&mut reader.0)?;
        let mut copy = if reader.flag()? { Some(take_copy(reader)?) } else { None };
        let is_committed = flags & COMMITTED != 0;
        let released = if flags & RELEASED == 0 { Released::default() } else { Released::decode(reader)? };
        let shared_since = match (flags & SHARED == 0, snapshots) {
            (false, _) => reader.number()?.checked_sub(1).map(|ticks| SnapshotTime(Timestamp::from_ticks(ticks))),
            (true, 0) => None,
            // An earlier release did not store this.
            (true, _) => Some(SnapshotTime(Timestamp::from_ticks(0))),
        };
        let rare = if flags & RARE == 0 { 0 } else { reader.byte()? };
        if rare & !(REHYDRATION | SEALED | INCREMENTAL) != 0 {
            return None;
        }
        let rehydration = if rare & REHYDRATION == 0 { None } else { Some(take_rehydration(reader)?) };
        if rare & INCREMENTAL != 0 {
            copy.as_mut()?.incremental = Some(take_incremental(reader)?);
        }
        Some(Self {
            is_committed,
            kind,
            created,
            changed,
            length,
            content,
            metadata,
            tags,
            tier,
            rehydration,
            lease,
            copy,
            sequence_number,
            is_sealed: rare & SEALED != 0,
            snapshots,
            shared_since,
            pending,
            released,
            layout: Layout::Blocks(Blocks::default()),
        })
    }
}

/// Bytes of an MD5. Clients may set values of another length.
const MD5_BYTES: usize = 16;

fn put_content(out: &mut Vec<u8>, content: &ContentHeaders) {
    for text in
        [&content.content_type, &content.encoding, &content.language, &content.disposition, &content.cache_control]
    {
        put_optional_text(out, text.as_deref());
    }
    match &content.md5 {
        None => out.push(0),
        Some(md5) if md5.len() == MD5_BYTES => {
            out.push(1);
            out.extend_from_slice(md5);
        }
        Some(other) => {
            out.push(2);
            put_bytes(out, other);
        }
    }
}

fn take_content(reader: &mut Reader<'_>) -> Option<ContentHeaders> {
    Some(ContentHeaders {
        content_type: reader.optional_text()?,
        encoding: reader.optional_text()?,
        language: reader.optional_text()?,
        disposition: reader.optional_text()?,
        cache_control: reader.optional_text()?,
        md5: match reader.byte()? {
            0 => None,
            1 => Some(reader.take(MD5_BYTES)?.to_vec()),
            2 => {
                let length = reader.count()?;
                Some(reader.take(length)?.to_vec())
            }
            _ => return None,
        },
    })
}

fn take_tags(reader: &mut Reader<'_>) -> Option<Tags> {
    let mut tags = Tags::new();
    for _ in 0..reader.count()? {
        tags.insert(reader.text()?, reader.text()?).ok()?;
    }
    Some(tags)
}

fn take_copy(reader: &mut Reader<'_>) -> Option<CopyInfo> {
    Some(CopyInfo {
        id: Guid(reader.array()?),
        // Earlier releases stored the address with the signature that came with it.
        source: CopyInfo::shown_source(reader.text()?),
        length: reader.number()?,
        completed: reader.time()?,
        incremental: None,
    })
}

const FORMAT: u8 = 1;
/// Set in the second byte of a blob that is there.
const COMMITTED: u8 = 0x80;
/// Set in the second byte if payloads were given up; their list stands before the layout.
const RELEASED: u8 = 0x40;
/// Set in the second byte if it is known which snapshots share the content.
pub(super) const SHARED: u8 = 0x20;
/// Set in the second byte if the row has rare parts: a byte before the layout has a bit for each.
const RARE: u8 = 0x10;
/// Set in the byte of what is rare if there is a rehydration.
const REHYDRATION: u8 = 1;
/// Set in the byte of what is rare if the blob is sealed.
const SEALED: u8 = 2;
/// Set in the byte of what is rare if the copy is incremental.
const INCREMENTAL: u8 = 4;
