//! Rows of entities: read by key, and written one at a time for many requests at once.
//!
//! A single write that finds its condition unmet changes nothing and returns nothing.

use crate::reads::FoundRow;

/// Inserts rows; `$if_present` is done with those that exist.
macro_rules! inserted {
    ($if_present:literal) => {
        concat!(
            "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($6::int8[])) \
            INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
            SELECT o.pk, o.rk, ",
            ticks!(),
            ", o.tok, o.body FROM unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int8[], $5::bytea[]) \
            AS o(space, pk, rk, tok, body) WHERE EXISTS (SELECT 1 FROM s WHERE s.id = o.space) \
            ON CONFLICT (pk, rk) DO ",
            $if_present,
            " RETURNING tok, ver",
        )
    };
}

statements! {
    /// Rows by their keys: the number of the key, whether its space exists, version, body. Many keys are in few spaces,
    /// which are looked up once.
    GetRows<'a> {
        numbers: Vec<i64>,
        spaces: Vec<i64>,
        pks: Vec<&'a [u8]>,
        rks: Vec<&'a [u8]>,
        distinct_spaces: Vec<i64>,
    } -> FoundRow = concat!(
        "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($5::int8[])) \
        SELECT o.i, EXISTS (SELECT 1 FROM s WHERE s.id = o.space), e.ver, e.body \
        FROM unnest($1::int8[], $2::int8[], $3::bytea[], $4::bytea[]) AS o(i, space, pk, rk) \
        LEFT JOIN larimar_entity e ON ",
        matching!(),
    );

    /// Single writes that insert. Returns token and version of those that took effect; the same below.
    InsertRows<'a> {
        spaces: Vec<i64>,
        pks: Vec<&'a [u8]>,
        rks: Vec<&'a [u8]>,
        tokens: Vec<i64>,
        bodies: Vec<&'a [u8]>,
        distinct_spaces: Vec<i64>,
    } -> (i64, i64) = inserted!("NOTHING");

    /// Single writes that insert or replace.
    UpsertRows<'a> {
        spaces: Vec<i64>,
        pks: Vec<&'a [u8]>,
        rks: Vec<&'a [u8]>,
        tokens: Vec<i64>,
        bodies: Vec<&'a [u8]>,
        distinct_spaces: Vec<i64>,
    } -> (i64, i64) = inserted!(
        "UPDATE SET ver = GREATEST(EXCLUDED.ver, larimar_entity.ver + 1), tok = EXCLUDED.tok, body = EXCLUDED.body"
    );

    /// Single writes that replace a row of an expected version, or of any if that is -1.
    UpdateRows<'a> {
        spaces: Vec<i64>,
        pks: Vec<&'a [u8]>,
        rks: Vec<&'a [u8]>,
        tokens: Vec<i64>,
        bodies: Vec<&'a [u8]>,
        distinct_spaces: Vec<i64>,
        expected: Vec<i64>,
    } -> (i64, i64) = concat!(
        "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($6::int8[])) \
        UPDATE larimar_entity e SET ver = GREATEST(",
        ticks!(),
        ", e.ver + 1), tok = o.tok, body = o.body \
        FROM unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int8[], $5::bytea[], $7::int8[]) \
        AS o(space, pk, rk, tok, body, expected) \
        WHERE ",
        matching!(),
        " AND (o.expected < 0 OR e.ver = o.expected) \
        AND EXISTS (SELECT 1 FROM s WHERE s.id = o.space) RETURNING e.tok, e.ver",
    );

    /// Single deletes of a row of an expected version, or of any if that is -1. Returns the tokens, and the versions
    /// that were deleted.
    DeleteRows<'a> {
        spaces: Vec<i64>,
        pks: Vec<&'a [u8]>,
        rks: Vec<&'a [u8]>,
        tokens: Vec<i64>,
        expected: Vec<i64>,
        distinct_spaces: Vec<i64>,
    } -> (i64, i64) = concat!(
        "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($6::int8[])) \
        DELETE FROM larimar_entity e \
        USING unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int8[], $5::int8[]) AS o(space, pk, rk, tok, expected) \
        WHERE ",
        matching!(),
        " AND (o.expected < 0 OR e.ver = o.expected) \
        AND EXISTS (SELECT 1 FROM s WHERE s.id = o.space) RETURNING o.tok, e.ver",
    );

    /// Finds out which of some writes took effect, by their tokens, and makes sure of it: this is a write itself, so it
    /// is not done before everything before it is durable wherever it has to be. Returns token, rk and version.
    ConfirmRows<'a> { pks: Vec<&'a [u8]>, rks: Vec<&'a [u8]>, tokens: Vec<i64> } -> (i64, Vec<u8>, i64) = concat!(
        "UPDATE larimar_entity e SET tok = o.tok FROM unnest($1::bytea[], $2::bytea[], $3::int8[]) AS o(pk, rk, tok) \
        WHERE ",
        matching!(),
        " AND e.tok = o.tok RETURNING e.tok, e.rk, e.ver",
    );

    /// Stores rows with their versions.
    RestoreRows<'a> {
        space: i64,
        pks: Vec<&'a [u8]>,
        rks: Vec<&'a [u8]>,
        versions: Vec<i64>,
        bodies: Vec<&'a [u8]>,
    } -> () = "\
        INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
        SELECT o.pk, o.rk, o.ver, 0, o.body \
        FROM unnest($2::bytea[], $3::bytea[], $4::int8[], $5::bytea[]) AS o(pk, rk, ver, body) \
        WHERE EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) \
        ON CONFLICT (pk, rk) DO UPDATE SET ver = EXCLUDED.ver, tok = 0, body = EXCLUDED.body";
}
