//! Rows of one partition, written in one transaction. A statement whose condition does not hold divides by zero, which
//! ends the transaction.

statements! {
    /// Locks rows of a partition in the order of the rks given, so that transactions on the same rows run one after the
    /// other instead of in a deadlock.
    LockRows<'a> { pk: &'a [u8], rks: Vec<&'a [u8]> } -> () = concat!(
        rows_of_partition!("$2::bytea[]", "rk"),
        " SELECT count(*) FROM (SELECT 1 FROM o JOIN larimar_entity e ON ",
        matching!(),
        " FOR UPDATE OF e) AS held",
    );

    /// Inserts rows. A row that exists ends the transaction, so there is no need for the costlier `ON CONFLICT`.
    /// Returns the version, which all rows share.
    InsertAll<'a> {
        pk: &'a [u8],
        token: i64,
        rks: Vec<&'a [u8]>,
        bodies: Vec<&'a [u8]>,
        space: i64,
        count: i64,
    } -> (Option<i64>,) = concat!(
        "WITH w AS (INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
        SELECT $1::bytea, o.rk, ",
        ticks!(),
        ", $2::int8, o.body FROM unnest($3::bytea[], $4::bytea[]) AS o(rk, body) \
        WHERE EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $5) RETURNING ver) \
        SELECT max(ver), 1 / (CASE WHEN count(*) = $6::int8 THEN 1 ELSE 0 END) FROM w",
    );

    /// Inserts or replaces rows. Returns their rks and their versions.
    UpsertAll<'a> {
        pk: &'a [u8],
        token: i64,
        rks: Vec<&'a [u8]>,
        bodies: Vec<&'a [u8]>,
        space: i64,
        count: i64,
    } -> (Vec<Vec<u8>>, Vec<i64>) = concat!(
        "WITH w AS (INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
        SELECT $1::bytea, o.rk, ",
        ticks!(),
        ", $2::int8, o.body FROM unnest($3::bytea[], $4::bytea[]) AS o(rk, body) \
        WHERE EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $5) \
        ON CONFLICT (pk, rk) DO UPDATE SET ver = GREATEST(EXCLUDED.ver, larimar_entity.ver + 1), \
        tok = EXCLUDED.tok, body = EXCLUDED.body RETURNING rk, ver) \
        SELECT array_agg(rk), array_agg(ver), 1 / (CASE WHEN count(*) = $6::int8 THEN 1 ELSE 0 END) FROM w",
    );

    /// Replaces rows of expected versions, or of any where that is -1. Returns their rks and their versions.
    UpdateAll<'a> {
        pk: &'a [u8],
        token: i64,
        rks: Vec<&'a [u8]>,
        bodies: Vec<&'a [u8]>,
        space: i64,
        count: i64,
        expected: Vec<i64>,
    } -> (Vec<Vec<u8>>, Vec<i64>) = concat!(
        rows_of_partition!("$3::bytea[], $4::bytea[], $7::int8[]", "rk, body, expected"),
        ", w AS (UPDATE larimar_entity e SET ver = GREATEST(",
        ticks!(),
        ", e.ver + 1), tok = $2::int8, body = o.body FROM o WHERE ",
        matching!(),
        " AND (o.expected < 0 OR e.ver = o.expected) \
        AND EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $5) RETURNING e.rk, e.ver) \
        SELECT array_agg(rk), array_agg(ver), 1 / (CASE WHEN count(*) = $6::int8 THEN 1 ELSE 0 END) FROM w",
    );

    /// Deletes rows of expected versions, or of any where that is -1.
    DeleteAll<'a> { pk: &'a [u8], rks: Vec<&'a [u8]>, expected: Vec<i64>, count: i64 } -> () = concat!(
        rows_of_partition!("$2::bytea[], $3::int8[]", "rk, expected"),
        ", w AS (DELETE FROM larimar_entity e USING o WHERE ",
        matching!(),
        " AND (o.expected < 0 OR e.ver = o.expected) RETURNING 1::int8) \
        SELECT 1 / (CASE WHEN count(*) = $4::int8 THEN 1 ELSE 0 END) FROM w",
    );

    /// Deletes those of some rows that exist.
    DeleteAny<'a> { pk: &'a [u8], rks: Vec<&'a [u8]> } -> () = concat!(
        rows_of_partition!("$2::bytea[]", "rk"),
        " DELETE FROM larimar_entity e USING o WHERE ",
        matching!(),
    );

    /// Ends a transaction whose space does not exist.
    GuardSpace { space: i64 } -> () =
        "SELECT 1 / (CASE WHEN EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) THEN 1 ELSE 0 END)";

    /// Ends a transaction unless all rows exist with the expected versions, or with any where that is -1.
    GuardPresent<'a> { pk: &'a [u8], rks: Vec<&'a [u8]>, expected: Vec<i64>, count: i64 } -> () = concat!(
        rows_of_partition!("$2::bytea[], $3::int8[]", "rk, expected"),
        " SELECT 1 / (CASE WHEN count(*) = $4::int8 THEN 1 ELSE 0 END) FROM o JOIN larimar_entity e ON ",
        matching!(),
        " AND (o.expected < 0 OR o.expected = e.ver)",
    );
}
