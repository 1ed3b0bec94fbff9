//! Background work: leases, and the removal of dropped spaces and expired messages.

use super::pages::PageRow;

statements! {
    /// Takes or renews a lease for some ticks. Returns a row if the owner has it.
    TakeLease<'a> { name: &'a [u8], owner: i64, ticks: i64 } -> () = concat!(
        "INSERT INTO larimar_job (name, owner, until) SELECT $1::bytea, $2::int8, ",
        ticks!(),
        " + $3::int8 \
        ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, until = EXCLUDED.until \
        WHERE larimar_job.owner = EXCLUDED.owner OR larimar_job.until < ",
        ticks!(),
        " RETURNING owner",
    );

    /// Gives a lease back.
    ReleaseLease<'a> { name: &'a [u8], owner: i64 } -> () = "DELETE FROM larimar_job WHERE name = $1 AND owner = $2";

    /// The jobs of dropped containers whose rows are kept and that no other server works on.
    DroppedContainers<'a> { first: &'a [u8], end: &'a [u8], owner: i64 } -> (Vec<u8>,) = concat!(
        "SELECT name FROM larimar_job WHERE name >= $1 AND name < $2 AND (owner = $3 OR until < ",
        ticks!(),
        ") ORDER BY name LIMIT 16",
    );

    /// Takes or keeps the job of a dropped container for some ticks. Returns a row if the owner has it.
    TakeDroppedContainer<'a> { name: &'a [u8], owner: i64, ticks: i64 } -> () = concat!(
        "UPDATE larimar_job SET owner = $2, until = ",
        ticks!(),
        " + $3::int8 WHERE name = $1 AND (owner = $2 OR until < ",
        ticks!(),
        ") RETURNING owner",
    );

    /// Rows of a dropped container.
    DroppedRows<'a> { count: i64, pk: &'a [u8], rk: &'a [u8], end_pk: &'a [u8] } -> PageRow =
        arms!("pk = $2 AND rk >= $3", "pk > $2 AND pk < $4");

    /// Dropped spaces but those containers, and how many ticks ago they were dropped.
    DroppedSpaces {} -> (i64, i64) = concat!(
        "SELECT p.id, ",
        ticks!(),
        " - p.since FROM larimar_purge p WHERE NOT EXISTS (SELECT 1 FROM larimar_job j WHERE j.name = ",
        dropped_name!("p.id"),
        ") ORDER BY p.id LIMIT 100",
    );

    /// How many dropped spaces have rows.
    CountDroppedSpaces {} -> (i64,) = "SELECT count(*) FROM larimar_purge";

    /// Forgets a dropped space without rows.
    ForgetDroppedSpace { space: i64 } -> () = "DELETE FROM larimar_purge WHERE id = $1";

    /// The last row of the next slice to delete: pk and rk.
    LastOfSlice<'a> { first_pk: &'a [u8], end_pk: &'a [u8], skipped: i64 } -> (Vec<u8>, Vec<u8>) =
        "SELECT pk, rk FROM larimar_entity WHERE pk >= $1 AND pk < $2 ORDER BY pk, rk LIMIT 1 OFFSET $3::int8";

    /// Deletes the rows of whole partitions.
    DeletePartitions<'a> { first_pk: &'a [u8], end_pk: &'a [u8] } -> () =
        "DELETE FROM larimar_entity WHERE pk >= $1 AND pk < $2";

    /// Deletes the first rows of a partition.
    DeletePartitionUpTo<'a> { pk: &'a [u8], last_rk: &'a [u8] } -> () =
        "DELETE FROM larimar_entity WHERE pk = $1 AND rk <= $2";

    /// Returns a row if messages have expired.
    HasExpiredMessages {} -> () =
        concat!("SELECT 1::int8 FROM larimar_message WHERE exp <= ", ticks!(), " ORDER BY exp LIMIT 1");

    /// Deletes expired messages, at most `count`. Returns how many there were.
    DeleteExpiredMessages { count: i64 } -> (i64,) = concat!(
        "WITH o AS MATERIALIZED (SELECT q, id, vis FROM larimar_message WHERE exp <= ",
        ticks!(),
        " ORDER BY exp LIMIT $1::int8), d AS (DELETE FROM larimar_message m USING o WHERE ",
        matching_message!(),
        " RETURNING 1::int8) SELECT count(*), (SELECT count(*) FROM d) FROM o",
    );
}
