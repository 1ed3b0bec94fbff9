//! What a spool gives back, wherever the process ended.

use super::*;
use proptest::prelude::*;

/// A commit: its writes.
type Writes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn line(place: &str) -> SpooledLine {
    SpooledLine {
        line: Line::new(Timestamp::from_ticks(638_000_000_000_000_000), 4, [1, 2, 3, 4]),
        place: place.to_owned(),
    }
}

fn at(sequence: u64) -> SpoolEnd {
    let point = CommitPoint { sequence, time: Timestamp::from_ticks(1000 + sequence) };
    SpoolEnd { point, published: Timestamp::from_ticks(2000 + sequence) }
}

/// A group of commits up to a number.
fn group(last: u64, commits: &[Writes]) -> CommitGroup {
    let SpoolEnd { point, published } = at(last);
    let bytes = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| (key.as_slice().into(), value.as_deref().map(Into::into));
    let commits = commits.iter().map(|writes| writes.iter().map(bytes).collect()).collect();
    CommitGroup { point, published, commits }
}

fn records(last: u64, commits: &[Writes]) -> Vec<u8> {
    let mut records = Vec::new();
    for (number, writes) in (last + 1 - commits.len() as u64..).zip(commits) {
        let writes = writes.iter().map(|(key, value)| (key.as_slice(), value.as_deref()));
        put_commit(&mut records, number, at(last).published, writes);
    }
    records
}

fn one(last: u64, bytes: usize) -> CommitGroup {
    group(last, &[vec![(b"key".to_vec(), Some(vec![7; bytes]))]])
}

fn recover(root: &Path) -> Recovered {
    Spool::recover(&root.join(line("p").line.name), 1 << 30).expect("a spool")
}

fn numbers(recovered: &Recovered) -> Vec<u64> {
    let read = recovered.spool.readable(recovered.cursor).read(None, usize::MAX).expect("groups");
    read.0.iter().map(|group| group.end.point.sequence).collect()
}

fn extent(length: u64) -> Extent {
    Extent { file: [9; 16], offset: 300, length }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn groups_are_read_as_they_were_written(
        groups in proptest::collection::vec((
            proptest::collection::vec(
                proptest::collection::vec((any::<Vec<u8>>(), any::<Option<Vec<u8>>>()), 1..4), 1..4),
            proptest::collection::vec(0..u64::MAX / 8, 0..3),
        ), 1..6),
    ) {
        let root = larimar_testkit::memory_directory();
        let mut spool = Spool::create(root.path(), &line("p"), at(4), u64::MAX).expect("a spool");
        let (mut last, mut expected) = (4, Vec::new());
        for (commits, payloads) in &groups {
            last += commits.len() as u64;
            let payloads: Vec<_> = payloads.iter().map(|length| extent(*length)).collect();
            spool.append(&group(last, commits), &payloads, || 0).expect("room");
            expected.push(SpooledGroup { end: at(last), payloads, records: records(last, commits) });
        }
        let (read, cursor) = spool.readable(spool.start()).read(None, usize::MAX).expect("groups");
        prop_assert_eq!(&read, &expected);
        prop_assert_eq!(cursor.read, at(last));
        drop(spool);
        let recovered = recover(root.path());
        prop_assert_eq!((recovered.spool.end, recovered.intent), (at(last), None));
        prop_assert_eq!(recovered.spool.readable(recovered.cursor).read(None, usize::MAX).expect("groups").0, expected);
    }
}

#[test]
fn a_spool_that_is_cut_anywhere_has_the_whole_groups_before_the_cut_and_goes_on_there() {
    let root = larimar_testkit::memory_directory();
    let mut spool = Spool::create(root.path(), &line("p"), at(4), 1 << 30).expect("a spool");
    let mut ends = vec![(HEAD_BYTES as u64, 4)];
    for number in 5..9 {
        spool.append(&one(number, 10 * number as usize), &[extent(5)], || 0).expect("room");
        ends.push((spool.files[0].bytes, number));
    }
    let path = file_path(&spool.folder, 4);
    drop(spool);
    let whole = std::fs::read(&path).expect("a file");
    for length in HEAD_BYTES..=whole.len() {
        for noise in [None, Some(0), Some(0xFF)] {
            // What follows may be anything, such as the zeros of a file that was made longer before a loss of power.
            let mut torn = whole[..length].to_vec();
            torn.extend(noise.iter().flat_map(|byte| [*byte; 40]));
            std::fs::write(&path, &torn).expect("a file");
            let last = ends.iter().rev().find(|(end, _)| *end <= length as u64).expect("an end").1;
            let mut recovered = recover(root.path());
            assert_eq!(recovered.spool.end, at(last), "cut to {length}, then {noise:?}");
            assert_eq!(numbers(&recovered), (5..=last).collect::<Vec<_>>());
            recovered.spool.append(&one(last + 1, 3), &[], || 0).expect("room");
            assert_eq!(numbers(&recover(root.path())), (5..=last + 1).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_flipped_bit_loses_the_group_and_what_follows_and_a_bad_file_before_the_last_is_refused() {
    let root = larimar_testkit::memory_directory();
    let mut spool = Spool::create(root.path(), &line("p"), at(4), 1 << 30).expect("a spool");
    for number in 5..9 {
        spool.append(&one(number, 3 << 20), &[], || 0).expect("room");
    }
    assert_eq!(spool.files.len(), 2, "a file of more than 4 MiB is followed by another");
    let (folder, first, last) = (spool.folder.clone(), spool.files[0].after, spool.files[1].after);
    drop(spool);
    assert_eq!(numbers(&recover(root.path())), [5, 6, 7, 8]);
    let flip = |after: u64, at: usize| {
        let mut bytes = std::fs::read(file_path(&folder, after)).expect("a file");
        bytes[at] ^= 1;
        std::fs::write(file_path(&folder, after), bytes).expect("a file");
    };
    flip(first, 3 << 20);
    assert!(Spool::recover(&folder, 1 << 30).is_err());
    flip(first, 3 << 20);
    flip(last, HEAD_BYTES + 100);
    assert_eq!(numbers(&recover(root.path())), [5, 6]);
    // A file that was begun and has no head yet.
    std::fs::write(file_path(&folder, last), "LARS").expect("a file");
    assert_eq!(numbers(&recover(root.path())), [5, 6]);
    std::fs::remove_file(file_path(&folder, first)).expect("a file");
    assert!(Spool::recover(&folder, 1 << 30).is_err());
}

#[test]
fn the_same_segment_is_stored_again_unless_its_commits_were_removed() {
    let root = larimar_testkit::memory_directory();
    let mut spool = Spool::create(root.path(), &line("p"), at(4), 1 << 30).expect("a spool");
    for number in 5..8 {
        spool.append(&one(number, 3 << 20), &[], || 0).expect("room");
    }
    let segment = SegmentName { first: 5, last: 6 };
    spool.intend(segment).expect("room");
    let recovered = recover(root.path());
    assert_eq!((recovered.intent, recovered.cursor.read.point.sequence), (Some(segment), 4));
    let (groups, cursor) = recovered.spool.readable(recovered.cursor).read(Some(6), 1).expect("groups");
    assert_eq!((groups.len(), cursor.read), (2, at(6)));
    // It was stored, and the file of its first commits removed.
    spool.release(6).expect("removed");
    assert_eq!(spool.files.len(), 1);
    let recovered = recover(root.path());
    assert_eq!((recovered.intent, numbers(&recovered)), (None, vec![7]));
    assert_eq!(recovered.spool.waiting().1, Some(at(7).published));
}

#[test]
fn a_spool_takes_no_more_than_its_bound_and_no_hole() {
    let root = larimar_testkit::memory_directory();
    let mut spool = Spool::create(root.path(), &line("p"), at(4), 10_000).expect("a spool");
    spool.append(&one(5, 6000), &[], || 0).expect("room");
    assert!(matches!(spool.append(&one(6, 6000), &[], || 0), Err(SpoolError::Full(_))));
    assert!(matches!(spool.append(&one(7, 60), &[], || 0), Err(SpoolError::Hole(5))));
    spool.release(5).expect("released");
    spool.append(&one(6, 6000), &[], || 0).expect("room again");
    assert!(spool.waiting().0 > 6000);
    spool.remove().expect("removed");
    assert_eq!(std::fs::read_dir(root.path()).expect("a directory").count(), 0);
}

#[test]
fn a_payload_counts_for_the_bound_when_nothing_but_the_archive_keeps_it() {
    let root = larimar_testkit::memory_directory();
    let mut spool = Spool::create(root.path(), &line("p"), at(4), 10_000).expect("a spool");
    spool.append(&one(5, 60), &[extent(50_000)], || 0).expect("a blob has it");
    assert!(spool.waiting().0 > 50_000);
    let recovered = Spool::recover(&spool.folder, 10_000).expect("a spool").spool;
    for mut spool in [spool, recovered] {
        assert!(matches!(spool.append(&one(6, 60), &[], || 60_000), Err(SpoolError::Full(50_001..51_000))));
        assert!(matches!(spool.append(&one(6, 60), &[], || 9_900), Err(SpoolError::Full(10_001..11_000))));
        spool.append(&one(6, 60), &[extent(50_000)], || 5_000).expect("room");
        assert!(matches!(spool.append(&one(7, 10_000), &[], || 0), Err(SpoolError::Full(10_001..11_000))));
        spool.release(6).expect("released");
        assert_eq!((spool.waiting().0, spool.waiting_payload_bytes), (0, 0));
    }
}

#[cfg(unix)]
#[test]
fn a_spool_is_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = larimar_testkit::memory_directory();
    let spool = Spool::create(root.path(), &line("p"), at(4), 10_000).expect("a spool");
    let mode = |path: &Path| path.metadata().expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&spool.folder), 0o700);
    for entry in std::fs::read_dir(&spool.folder).expect("a directory") {
        assert_eq!(mode(&entry.expect("an entry").path()), 0o600);
    }
    assert_eq!(Spool::line_of(&spool.folder), Some(line("p")));
}
