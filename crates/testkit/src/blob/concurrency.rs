//! Many concurrent callers of two servers: no write is lost, no content is mixed, and of conditional writes one wins.

use super::appends::{append, put_append};
use super::leases::OWN;
use super::pages::{put_page_blob, write};
use super::site::{Site, blob, filled, id, plain_copy};
use futures_util::future::join_all;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, CopyRequest};
use larimar_engine::{Engine, EngineError, Reject};
use larimar_model::Guid;
use larimar_model::blob::{
    BlockListEntry, ByteRange, Conditions, ETagCondition, LeaseAction, LeaseDuration, LeaseId, LeaseState, Tags,
};

/// A list finds all blocks that were put in parallel, even the first ones.
pub async fn parallel_blocks_make_one_blob<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let servers = [site, &site.second()];
    for round in 0..3_u8 {
        let put = |n: u32| {
            let (name, site) = (&name, servers[n as usize % 2]);
            async move { site.put_block(name, &id(n), &filled(round + n as u8, 1_000)).await }
        };
        for done in join_all((0..40).map(put)).await {
            done.expect("a block");
        }
        let list: Vec<_> = (0..40).map(|n| BlockListEntry::Uncommitted(id(n))).collect();
        site.commit(&name, &list).await.expect("it is committed");
        let content: Vec<u8> = (0..40).flat_map(|n| filled(round + n, 1_000)).collect();
        assert!(site.read(&name).await == Ok(content), "round {round}");
    }
    site.expect_payloads(40, "the last round's").await;
}

/// Of many overwrites, with whole bytes and with lists too long for one row, one content is left, whole, and the bytes of
/// the others are gone.
pub async fn concurrent_overwrites_leave_one_whole_content<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let servers = [site, &site.second()];
    let content = |n: u8| filled(n, 40).repeat(150);
    let write = |n: u8| {
        let (name, site) = (&name, servers[usize::from(n) / 2 % 2]);
        async move {
            if n.is_multiple_of(6) {
                return site.put_if(name, &content(n), &AccessConditions::default()).await.map(|_| ());
            }
            site.put_block(name, &id(u32::from(n)), &filled(n, 40)).await?;
            let list = vec![BlockListEntry::Latest(id(u32::from(n))); 150];
            let committed = site.commit(name, &list).await;
            // Another commit may have removed the block.
            committed.map(|_| ()).or_else(|error| if is_refused(&error) { Ok(()) } else { Err(error) })
        }
    };
    for round in 0..20_u8 {
        for done in join_all((round * 12..(round + 1) * 12).map(write)).await {
            done.expect("it is written");
        }
        let found = site.read(&name).await.expect("it is there");
        assert!((round * 12..(round + 1) * 12).any(|n| found == content(n)), "one whole content");
    }
    site.put(&name, b"end").await;
    site.expect_payloads(1, "the bytes of the others are gone").await;
    assert_eq!(site.rows().await.len(), 1);
}

/// Of many concurrent acquires one gets the lease.
pub async fn one_of_many_lease_acquires_wins<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    site.put(&name, b"x").await;
    let servers = [site, &site.second()];
    let acquire = |n: u8| {
        let site = servers[usize::from(n) % 2];
        let action = LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: Some(LeaseId(Guid([n; 16]))) };
        let at = site.at(&name);
        async move { site.blobs.lease_blob(at, (action, OWN), &AccessConditions::default(), site.now()).await }
    };
    let won: Vec<_> = join_all((1..20).map(acquire)).await.into_iter().filter_map(Result::ok).collect();
    assert_eq!(won.len(), 1);
    let properties = site.blobs.properties(site.at(&name), None, &AccessConditions::default(), site.now()).await;
    assert_eq!(properties.map(|properties| properties.lease.state), Ok(LeaseState::Leased));
    let owner = AccessConditions { lease: won[0].1.id, ..AccessConditions::default() };
    site.put_if(&name, b"y", &owner).await.expect("the winner writes");
}

/// Every acknowledged append is in the blob once, complete, at the returned offset.
pub async fn concurrent_appends_lose_nothing<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("log");
    put_append(site, &name).await;
    let servers = [site, &site.second()];
    let write = |n: u8| {
        let (name, site) = (&name, servers[usize::from(n) % 2]);
        async move { (n, append(site, name, &filled(n, 100), Default::default()).await) }
    };
    let done = join_all((0..40).map(write)).await;
    let content = site.read(&name).await.expect("it is there");
    assert_eq!(content.len(), 4_000);
    for (n, appended) in done {
        let offset = appended.expect("it is appended").offset as usize;
        assert!(content[offset..offset + 100] == filled(n, 100), "append {n}");
    }
}

/// Of many conditional creations one succeeds.
pub async fn one_of_many_conditional_creations_wins<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let conditions = Conditions { if_none_match: Some(ETagCondition::Any), ..Conditions::NONE };
    let servers = [site, &site.second()];
    let create = |n: u8| {
        let (name, site) = (&name, servers[usize::from(n) % 2]);
        async move { (n, site.put_if(name, &[n], &AccessConditions { conditions, ..AccessConditions::default() }).await) }
    };
    let done = join_all((0..20).map(create)).await;
    let won: Vec<u8> = done.into_iter().filter_map(|(n, put)| put.is_ok().then_some(n)).collect();
    assert_eq!(won.len(), 1);
    assert_eq!(site.read(&name).await, Ok(won));
    site.expect_payloads(1, "the winner's").await;
}

/// A reader during writes sees one content or another, never parts of two. Bytes that a slow reader still needs may be
/// removed, because these stores have no grace period; then the read fails.
pub async fn readers_beside_writers_see_whole_blobs<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    site.put(&name, &filled(0, 3_000)).await;
    let second = site.second();
    let writer = async {
        for round in 1..30_u8 {
            if round.is_multiple_of(3) {
                site.put(&name, &filled(round, 3_000)).await;
                continue;
            }
            for n in 0..200 {
                let extent = site.payload(&name, &filled(round, 3_000)[n * 15..(n + 1) * 15]).await;
                let put = site.blobs.put_block(site.at(&name), &id(n as u32), extent, None, site.now()).await;
                put.expect("a block");
            }
            let list: Vec<_> = (0..200).map(|n| BlockListEntry::Latest(id(n))).collect();
            site.commit(&name, &list).await.expect("it is committed");
        }
    };
    let reader = async {
        let mut seen = 0;
        for _ in 0..200 {
            match second.read(&name).await {
                Ok(content) => {
                    assert!((0..30).any(|n| content == filled(n, 3_000)), "one whole content");
                    seen += 1;
                }
                Err(EngineError::Fault(_)) => {}
                Err(other) => panic!("{other}"),
            }
            tokio::task::yield_now().await;
        }
        seen
    };
    let ((), seen) = futures_util::future::join(writer, reader).await;
    assert!(seen > 0);
}

/// A page blob that is replaced by copies is read as one of them, never with holes.
pub async fn readers_of_pages_see_whole_copies<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, sources) = (blob("disk"), [blob("one"), blob("two")]);
    let border = 16 << 20;
    for (n, source) in sources.iter().enumerate() {
        put_page_blob(site, source, border + 1024).await;
        write(site, source, border - 1024, &filled(n as u8, 2048)).await.expect("pages");
    }
    let second = site.second();
    let copy = async |n: u8| {
        let from = site.source(&sources[usize::from(n) % 2], None);
        let request = CopyRequest { id: Guid([n; 16]), tags: Some(Tags::new()), ..plain_copy() };
        let copied =
            site.blobs.copy_blob(&from, site.at(&name), &request, &AccessConditions::default(), site.now()).await;
        copied.expect("it is copied");
    };
    copy(0).await;
    let writer = async {
        for n in 1..40 {
            copy(n).await;
        }
    };
    let reader = async {
        let range = Some(ByteRange { start: border - 1024, last: None });
        let mut seen = 0;
        for _ in 0..300 {
            match second.read_of(&name, None, range).await {
                Ok(content) => {
                    assert!((0..2).any(|n| content == filled(n, 2048)), "one whole copy");
                    seen += 1;
                }
                Err(EngineError::Fault(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        seen
    };
    let ((), seen) = futures_util::future::join(writer, reader).await;
    assert!(seen > 0);
}

/// Snapshots, commits, deletions and reclaiming by two servers leave exactly the payloads that rows point to.
pub async fn snapshots_and_commits_keep_what_they_point_to<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let servers = [site, &site.second()];
    site.put(&name, b"first").await;
    let act = |n: u8| {
        let (name, none, site) = (&name, &none, servers[usize::from(n) % 2]);
        async move {
            let at = site.at(name);
            match n / 2 % 4 {
                0 => site.blobs.snapshot_blob(at, None, none, site.now()).await.map(|_| ()),
                1 => site.put_if(name, &filled(n, 300), none).await.map(|_| ()),
                2 => {
                    site.put_block(name, &id(u32::from(n)), &filled(n, 300)).await?;
                    let committed = site.commit(name, &[BlockListEntry::Latest(id(u32::from(n)))]).await;
                    committed.map(|_| ()).or_else(|error| if is_refused(&error) { Ok(()) } else { Err(error) })
                }
                _ => {
                    let only = Some(larimar_model::blob::DeleteSnapshots::Only);
                    site.blobs.delete_blob(at, only, none, site.now()).await
                }
            }
        }
    };
    for done in join_all((0..32).map(act)).await {
        done.expect("it is done");
    }
    // Every remaining blob can be read, and no other payload exists.
    let query = larimar_engine::blob::ListQuery {
        items_max: 100,
        include: larimar_model::blob::ListInclude { snapshots: true, ..Default::default() },
        ..Default::default()
    };
    for item in site.list(&query).await.items {
        let larimar_engine::blob::ListItem::Blob(found) = item else { panic!("no prefixes") };
        let content = site.read_of(&name, found.snapshot, None).await.expect("it is read");
        assert!(content == b"first" || (0..32).any(|n| content == filled(n, 300)), "one whole content");
    }
    let include = Some(larimar_model::blob::DeleteSnapshots::Include);
    site.blobs.delete_blob(site.at(&name), include, &none, site.now()).await.expect("it is deleted");
    site.blobs.reclaim_container(site.container, site.now()).await.expect("it is reclaimed");
    assert_eq!(site.rows().await, []);
    site.blobs.bytes().reclaim(&site.blobs.owners(site.now())).await.expect("it is reclaimed");
    site.expect_payloads(0, "nothing is left").await;
}

pub(super) fn is_refused(error: &EngineError) -> bool {
    matches!(error, EngineError::Reject(Reject::Blob(BlobReject::InvalidBlockList)))
}
