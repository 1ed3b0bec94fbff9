//! The row of a blob or of a snapshot: everything about it but its bytes, and where those are.

use super::codec::{Reader, damaged, put_bytes, put_number, put_optional_text, put_time};
use super::incremental::{put_incremental, take_incremental};
use super::layout::{Blocks, Layout};
use super::lease::Lease;
use super::released::Released;
use super::tier::{put_rehydration, take_rehydration};
use crate::error::Fault;
use larimar_model::blob::{
    AccessTier, BlobProperties, BlobType, ContentHeaders, CopyInfo, Rehydration, SnapshotTime, Tags,
};
use larimar_model::{Guid, Metadata, Timestamp};

/// A blob as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobRow {
    /// Whether there is a blob; if not, there are only blocks that were never committed.
    pub(crate) is_committed: bool,
    /// What it is made of.
    pub(crate) kind: BlobType,
    /// When it was made.
    pub(crate) created: Timestamp,
    /// When it was last changed, also its etag.
    pub(crate) changed: Timestamp,
    /// How many bytes it has.
    pub(crate) length: u64,
    pub(crate) content: ContentHeaders,
    pub(crate) metadata: Metadata,
    pub(crate) tags: Tags,
    /// The tier that was set, and when; [`BlobRow::tier_at`] tells the one that counts.
    pub(crate) tier: Option<(AccessTier, Timestamp)>,
    /// The rehydration that was begun, which may have ended.
    pub(crate) rehydration: Option<Rehydration>,
    pub(crate) lease: Lease,
    pub(crate) copy: Option<CopyInfo>,
    pub(crate) sequence_number: u64,
    /// Whether nothing more is appended.
    pub(crate) is_sealed: bool,
    /// How many snapshots there are.
    pub(crate) snapshots: u32,
    /// The earliest snapshot that may point to payloads of the blob's present content; none does without it.
    pub(crate) shared_since: Option<SnapshotTime>,
    pub(crate) pending: Pending,
    /// Payloads that may not be committed any more.
    pub(crate) released: Released,
    pub(crate) layout: Layout,
}

/// Which blocks are not committed: those whose rows name the generation, if there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    /// Grows with every list of blocks that is begun.
    pub(crate) generation: u64,
    /// How long their ids are; 0 if there are none.
    pub(crate) id_length: u8,
}

impl BlobRow {
    /// A row for blocks of a blob that is not there yet.
    pub(crate) fn uncommitted(now: Timestamp) -> Self {
        Self {
            is_committed: false,
            kind: BlobType::Block,
            created: now,
            changed: now,
            length: 0,
            content: ContentHeaders::default(),
            metadata: Metadata::new(),
            tags: Tags::new(),
            tier: None,
            rehydration: None,
            lease: Lease::None,
            copy: None,
            sequence_number: 0,
            is_sealed: false,
            snapshots: 0,
            shared_since: None,
            pending: Pending::default(),
            released: Released::default(),
            layout: Layout::Blocks(Blocks::default()),
        }
    }

    /// What stays of the row when the blob goes: nothing, or a row that holds only the payloads that were given up.
    pub(crate) fn remains(&self, now: Timestamp) -> Option<Self> {
        let released = self.released.kept(now);
        let pending = Pending { id_length: 0, ..self.pending };
        (!released.is_empty()).then(|| Self { changed: self.changed, pending, released, ..Self::uncommitted(now) })
    }

    /// Whether there is neither a blob nor a block: the row holds only payloads that were given up.
    pub(crate) const fn is_vacant(&self) -> bool {
        !self.is_committed && self.pending.id_length == 0
    }

    /// Whether the stored form is of a blob that is there.
    pub(crate) fn is_committed_in(body: &[u8]) -> bool {
        body.get(1).is_some_and(|flags| flags & COMMITTED != 0)
    }

    /// The time of a change of this row: now, but always later than the last.
    pub(crate) fn next_change(&self, now: Timestamp) -> Timestamp {
        now.max(Timestamp::from_ticks(self.changed.ticks() + 1))
    }

    /// What everybody may know of it.
    pub(crate) fn into_properties(self, now: Timestamp) -> BlobProperties {
        let blocks = match &self.layout {
            Layout::Blocks(blocks) => blocks.count(),
            Layout::Pages(_) => 0,
        };
        self.into_properties_with(blocks, now)
    }

    /// What everybody may know of a row of so many blocks.
    pub(crate) fn into_properties_with(self, blocks: u32, now: Timestamp) -> BlobProperties {
        let (tier, rehydration) = (self.tier_at(now), self.rehydration_at(now));
        let appended_blocks = if self.kind == BlobType::Append { blocks } else { 0 };
        BlobProperties {
            kind: self.kind,
            created: self.created,
            last_modified: self.changed,
            length: self.length,
            content: self.content,
            metadata: self.metadata,
            tags: self.tags,
            tier,
            rehydration,
            lease: self.lease.view(now),
            copy: self.copy,
            sequence_number: self.sequence_number,
            is_sealed: self.is_sealed,
            appended_blocks,
            is_uncommitted: !self.is_committed,
        }
    }

    /// The stored form.
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

    /// Reads the stored form.
    pub(crate) fn decode(body: &[u8]) -> Result<Self, Fault> {
        let read = || {
            let mut reader = Reader(body);
            let row = Self::read(&mut reader)?;
            let layout = Layout::decode(&mut reader).filter(|_| reader.0.is_empty())?;
            Some(Self { layout, ..row })
        };
        read().ok_or_else(|| damaged("a blob's row"))
    }

    /// Reads the stored form without its blocks, of which only the number is told: listings need no more.
    pub(crate) fn decode_head(body: &[u8]) -> Result<(Self, u32), Fault> {
        let read = || {
            let mut reader = Reader(body);
            let row = Self::read(&mut reader)?;
            Some((row, Layout::decode_count(&mut reader)?))
        };
        read().ok_or_else(|| damaged("a blob's row"))
    }

    /// Reads all but the layout, which comes last.
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
            // Of an earlier release, which did not know.
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

/// Bytes of an MD5; what clients set in its place may have others.
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

/// Appends metadata: how many pairs, then names and values.
pub(crate) fn put_metadata(out: &mut Vec<u8>, metadata: &Metadata) {
    put_number(out, metadata.iter().len() as u64);
    for (name, value) in metadata.iter() {
        put_bytes(out, name.as_bytes());
        put_bytes(out, value.as_bytes());
    }
}

/// Takes metadata off the front of stored bytes.
pub(crate) fn take_metadata(reader: &mut Reader<'_>) -> Option<Metadata> {
    let mut metadata = Metadata::new();
    for _ in 0..reader.count()? {
        metadata.insert(reader.text()?, reader.text()?).ok()?;
    }
    Some(metadata)
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
const SHARED: u8 = 0x20;
/// Set in the second byte if there is what few blobs have: a byte before the layout tells what.
const RARE: u8 = 0x10;
/// Set in the byte of what is rare if there is a rehydration.
const REHYDRATION: u8 = 1;
/// Set in the byte of what is rare if the blob is sealed.
const SEALED: u8 = 2;
/// Set in the byte of what is rare if the copy is incremental.
const INCREMENTAL: u8 = 4;

#[cfg(test)]
mod tests {
    use super::super::bytes::Extent;
    use super::super::layout::{Block, ChunkHead, Pages, Piece};
    use super::*;
    use larimar_model::blob::{IncrementalCopy, LeaseId, RehydratePriority};

    fn full() -> BlobRow {
        let mut row = BlobRow::uncommitted(Timestamp::EDM_MIN);
        row.is_committed = true;
        row.changed = Timestamp::MAX;
        (row.length, row.sequence_number, row.snapshots) = (u64::MAX, 7, 3);
        row.shared_since = Some(SnapshotTime(Timestamp::EDM_MIN));
        row.pending = Pending { generation: 1 << 60, id_length: 88 };
        row.content = ContentHeaders {
            content_type: Some("text/plain".to_owned()),
            encoding: Some(String::new()),
            language: None,
            md5: Some(vec![9; 16]),
            disposition: Some("inline".to_owned()),
            cache_control: None,
        };
        row.is_sealed = true;
        row.metadata.insert("Name", "value").expect("metadata");
        row.tags.insert("k", "v").expect("a tag");
        row.tier = Some(("Cool".parse().expect("a tier"), Timestamp::MAX));
        row.rehydration = Some(Rehydration {
            to: AccessTier::HOT,
            priority: RehydratePriority::High,
            until: Timestamp::MAX,
            is_copy: true,
        });
        let id = LeaseId(Guid([3; 16]));
        row.lease = Lease::Broken { id, until: Timestamp::MAX };
        row.copy = Some(CopyInfo {
            id: Guid([4; 16]),
            source: "http://127.0.0.1/c/b".to_owned(),
            length: 5,
            completed: Timestamp::EDM_MIN,
            incremental: Some(IncrementalCopy {
                snapshot: SnapshotTime(Timestamp::MAX),
                source: "account/c/b".to_owned(),
                source_snapshot: SnapshotTime(Timestamp::EDM_MIN),
            }),
        });
        let extent = Extent { file: [1; 16], offset: 2, length: 300 };
        row.released.add(&[extent], Timestamp::MAX);
        row.layout = Layout::Blocks(Blocks {
            set: 17,
            chunks: vec![ChunkHead { bytes: 1 << 40, blocks: 512 }],
            tail: vec![
                Block { id: "AAAA".to_owned(), piece: Piece { extent, skip: 100, length: 50 } },
                Block { id: String::new(), piece: Piece::whole(extent) },
            ],
        });
        row
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let pages = Layout::Pages(Pages { map: u64::MAX, epoch: u32::MAX });
        let page_blob = BlobRow { kind: BlobType::Page, layout: pages, ..full() };
        for (row, blocks) in [(full(), 514), (BlobRow::uncommitted(Timestamp::EDM_MIN), 0), (page_blob, 0)] {
            let layout = Layout::Blocks(Blocks::default());
            let head = BlobRow { layout, ..row.clone() };
            assert_eq!(BlobRow::decode_head(&row.encode()), Ok((head, blocks)));
            assert_eq!(BlobRow::decode(&row.encode()), Ok(row));
        }
    }

    #[test]
    fn a_row_of_an_earlier_release_may_share_with_any_snapshot() {
        let row = BlobRow { shared_since: None, rehydration: None, is_sealed: false, copy: None, ..full() };
        let mut body = row.encode();
        assert_eq!(BlobRow::decode(&body).map(|row| row.shared_since), Ok(None));
        // What is known of sharing is one byte here, before what is rare and the layout; earlier releases had neither it
        // nor its mark.
        let mut layout = Vec::new();
        row.layout.encode(&mut layout);
        body.remove(body.len() - layout.len() - 1);
        body[1] &= !SHARED;
        let first = SnapshotTime(Timestamp::from_ticks(0));
        assert_eq!(BlobRow::decode(&body).map(|row| row.shared_since), Ok(Some(first)));
    }

    #[test]
    fn a_signature_that_an_earlier_release_stored_is_not_read() {
        let mut row = full();
        let copy = row.copy.as_mut().expect("it is a copy");
        copy.source = "http://127.0.0.1/c/b?snapshot=1&sp=r&sig=secret".to_owned();
        let body = row.encode();
        for read in [BlobRow::decode(&body), BlobRow::decode_head(&body).map(|(row, _)| row)] {
            let copy = read.expect("a row").copy.expect("it is a copy");
            assert_eq!(copy.source, "http://127.0.0.1/c/b?snapshot=1");
        }
    }

    #[test]
    fn what_is_cut_or_of_another_format_is_refused() {
        let body = full().encode();
        for length in 0..body.len() {
            assert!(BlobRow::decode(&body[..length]).is_err(), "{length} bytes");
        }
        let longer = [&body[..], &[0]].concat();
        assert!(BlobRow::decode(&longer).is_err());
        let mut other = body;
        other[0] = 2;
        assert!(BlobRow::decode(&other).is_err());
    }

    #[test]
    fn changes_have_increasing_times() {
        let row = BlobRow { changed: Timestamp::from_ticks(100), ..full() };
        assert_eq!(row.next_change(Timestamp::from_ticks(50)).ticks(), 101);
        assert_eq!(row.next_change(Timestamp::from_ticks(100)).ticks(), 101);
        assert_eq!(row.next_change(Timestamp::from_ticks(500)).ticks(), 500);
    }
}
