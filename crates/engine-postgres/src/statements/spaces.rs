//! Tables, queues and containers.

statements! {
    /// Returns a row if the space exists.
    HasSpace { space: i64 } -> () = "SELECT 1::int8 FROM larimar_space WHERE id = $1";

    /// Returns id, meta and token.
    FindSpace<'a> { account: &'a [u8], kind: i64, name: &'a [u8] } -> (i64, Vec<u8>, i64) =
        "SELECT id, meta, tok FROM larimar_space WHERE account = $1 AND kind = $2 AND name = $3";

    /// Returns name, id and meta.
    ListSpaces<'a> { account: &'a [u8], kind: i64, first: &'a [u8], count: i64 } -> (Vec<u8>, i64, Vec<u8>) = "\
        SELECT name, id, meta FROM larimar_space WHERE account = $1 AND kind = $2 AND name >= $3 \
        ORDER BY account, kind, name LIMIT $4::int8";

    /// Returns the id; nothing if the name is taken.
    CreateSpace<'a> { account: &'a [u8], kind: i64, name: &'a [u8], token: i64, meta: &'a [u8] } -> (i64,) = "\
        INSERT INTO larimar_space (account, kind, name, id, tok, meta) \
        VALUES ($1, $2, $3, nextval('larimar_space_id'), $4, $5) \
        ON CONFLICT (account, kind, name) DO NOTHING RETURNING id";

    /// Replaces the meta bytes if they are the expected ones, and then returns a row.
    ChangeSpace<'a> {
        account: &'a [u8],
        kind: i64,
        name: &'a [u8],
        meta: &'a [u8],
        token: i64,
        expected: &'a [u8],
    } -> () = "\
        UPDATE larimar_space SET meta = $4, tok = $5 \
        WHERE account = $1 AND kind = $2 AND name = $3 AND meta = $6 RETURNING 1::int8";

    /// Gives a space another name and other meta bytes, unless the name is taken, and then returns a row.
    RenameSpace<'a> {
        account: &'a [u8],
        kind: i64,
        name: &'a [u8],
        new_account: &'a [u8],
        new_name: &'a [u8],
        meta: &'a [u8],
        token: i64,
    } -> () = "\
        UPDATE larimar_space SET account = $4, name = $5, meta = $6, tok = $7 \
        WHERE account = $1 AND kind = $2 AND name = $3 AND NOT EXISTS (\
        SELECT 1 FROM larimar_space t WHERE t.account = $4 AND t.kind = $2 AND t.name = $5) RETURNING 1::int8";

    /// Drops a space, if its meta bytes are the expected ones or none are expected, and returns its id. Its rows are
    /// removed in the background.
    DropSpace<'a> { account: &'a [u8], kind: i64, name: &'a [u8], expected: Option<&'a [u8]> } -> (i64,) = concat!(
        "WITH gone AS (DELETE FROM larimar_space WHERE account = $1 AND kind = $2 AND name = $3 \
        AND ($4::bytea IS NULL OR meta = $4) RETURNING id), \
        kept AS (INSERT INTO larimar_job (name, owner, until) SELECT ",
        dropped_name!("id"),
        ", 0, 0 FROM gone WHERE $2 = 3) \
        INSERT INTO larimar_purge (id, since) SELECT id, ",
        ticks!(),
        " FROM gone RETURNING id",
    );

    /// The accounts that have spaces, each found from the one before. The system's space has no account.
    ListAccounts {} -> (Vec<u8>,) = "\
        WITH RECURSIVE a AS (\
        (SELECT account FROM larimar_space WHERE account > '' ORDER BY account, kind, name LIMIT 1) UNION ALL \
        SELECT (SELECT s.account FROM larimar_space s WHERE s.account > a.account \
        ORDER BY s.account, s.kind, s.name LIMIT 1) FROM a WHERE a.account IS NOT NULL\
        ) SELECT account FROM a WHERE account IS NOT NULL";
}
