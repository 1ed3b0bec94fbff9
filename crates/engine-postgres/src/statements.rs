//! Every statement but those that make tables. They are written for the common part of the dialects: no comparison of row
//! values, no `DELETE … USING`, no `int`.
//!
//! A write asks for its space within the statement, so none succeeds once a drop was acknowledged. A single write that
//! finds its condition unmet changes nothing and returns nothing; in a transaction a guard divides by zero then, which
//! ends all of it.

/// The database's time in ticks of 100 ns since the year 1, read once a statement: the clock that all servers share, which
/// gives rows their versions.
macro_rules! ticks {
    () => {
        "(SELECT (extract(epoch FROM clock_timestamp()) * 10000000)::int8 + 621355968000000000)"
    };
}

/// The database's time.
pub(crate) const NOW: &str = concat!("SELECT ", ticks!());

/// Rows by their keys: number of the question, whether its space exists, version, body. Many questions are about few
/// spaces, which are looked up once.
pub(crate) const GET: &str = "\
    WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($5::int8[])) \
    SELECT o.i, EXISTS (SELECT 1 FROM s WHERE s.id = o.space), e.ver, e.body \
    FROM unnest($1::int8[], $2::int8[], $3::bytea[], $4::bytea[]) AS o(i, space, pk, rk) \
    LEFT JOIN larimar_entity e ON e.pk = o.pk AND e.rk = o.rk";

/// Single writes: arrays of space, pk, rk, token and body, the spaces without repeats, and, for updates, the expected
/// versions or -1.
pub(crate) const INSERT_MANY: &str = concat!(
    "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($6::int8[])) \
    INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
    SELECT o.pk, o.rk, ",
    ticks!(),
    ", o.tok, o.body \
    FROM unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int8[], $5::bytea[]) AS o(space, pk, rk, tok, body) \
    WHERE EXISTS (SELECT 1 FROM s WHERE s.id = o.space) \
    ON CONFLICT (pk, rk) DO NOTHING RETURNING tok, ver",
);
pub(crate) const UPSERT_MANY: &str = concat!(
    "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($6::int8[])) \
    INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
    SELECT o.pk, o.rk, ",
    ticks!(),
    ", o.tok, o.body \
    FROM unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int8[], $5::bytea[]) AS o(space, pk, rk, tok, body) \
    WHERE EXISTS (SELECT 1 FROM s WHERE s.id = o.space) \
    ON CONFLICT (pk, rk) DO UPDATE SET ver = GREATEST(EXCLUDED.ver, larimar_entity.ver + 1), \
    tok = EXCLUDED.tok, body = EXCLUDED.body RETURNING tok, ver",
);
pub(crate) const UPDATE_MANY: &str = concat!(
    "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($6::int8[])) \
    UPDATE larimar_entity e SET ver = GREATEST(",
    ticks!(),
    ", e.ver + 1), tok = o.tok, body = o.body \
    FROM unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int8[], $5::bytea[], $7::int8[]) \
    AS o(space, pk, rk, tok, body, expected) \
    WHERE e.pk = o.pk AND e.rk = o.rk AND (o.expected < 0 OR e.ver = o.expected) \
    AND EXISTS (SELECT 1 FROM s WHERE s.id = o.space) RETURNING e.tok, e.ver",
);

/// A single delete: pk, rk, expected version or -1, space.
pub(crate) const DELETE_ONE: &str = "\
    DELETE FROM larimar_entity WHERE pk = $1 AND rk = $2 AND ($3::int8 < 0 OR ver = $3) \
    AND EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $4)";

/// Finds out which of some writes took effect, by their tokens, and makes sure of it: this is a write itself, and it is
/// not done before everything before it is durable wherever it has to be. Arrays of pk, rk, token.
pub(crate) const CONFIRM: &str = "\
    UPDATE larimar_entity e SET tok = o.tok FROM unnest($1::bytea[], $2::bytea[], $3::int8[]) AS o(pk, rk, tok) \
    WHERE e.pk = o.pk AND e.rk = o.rk AND e.tok = o.tok RETURNING e.tok, e.rk, e.ver";

/// Rows of a partition, locked in order, so that transactions that meet queue up instead of blocking each other: pk, rks.
pub(crate) const LOCK: &str = "\
    SELECT count(*) FROM (SELECT 1 FROM larimar_entity WHERE pk = $1 AND rk = ANY($2::bytea[]) ORDER BY rk FOR UPDATE) AS held";
/// Of a transaction: pk, token, rks, bodies, space, count. Here a row that is there already ends the transaction, so
/// there is no need for the costlier `ON CONFLICT`. Returns the version, which all rows share.
pub(crate) const INSERT_ALL: &str = concat!(
    "WITH w AS (INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
    SELECT $1::bytea, o.rk, ",
    ticks!(),
    ", $2::int8, o.body FROM unnest($3::bytea[], $4::bytea[]) AS o(rk, body) \
    WHERE EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $5) RETURNING ver) \
    SELECT max(ver), 1 / (CASE WHEN count(*) = $6::int8 THEN 1 ELSE 0 END) FROM w",
);
/// The same parameters. Returns the rows and their versions.
pub(crate) const UPSERT_ALL: &str = concat!(
    "WITH w AS (INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
    SELECT $1::bytea, o.rk, ",
    ticks!(),
    ", $2::int8, o.body FROM unnest($3::bytea[], $4::bytea[]) AS o(rk, body) \
    WHERE EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $5) \
    ON CONFLICT (pk, rk) DO UPDATE SET ver = GREATEST(EXCLUDED.ver, larimar_entity.ver + 1), \
    tok = EXCLUDED.tok, body = EXCLUDED.body RETURNING rk, ver) \
    SELECT array_agg(rk), array_agg(ver), 1 / (CASE WHEN count(*) = $6::int8 THEN 1 ELSE 0 END) FROM w",
);
/// As before, and the expected versions or -1.
pub(crate) const UPDATE_ALL: &str = concat!(
    "WITH w AS (UPDATE larimar_entity e SET ver = GREATEST(",
    ticks!(),
    ", e.ver + 1), tok = $2::int8, body = o.body \
    FROM unnest($3::bytea[], $4::bytea[], $7::int8[]) AS o(rk, body, expected) \
    WHERE e.pk = $1 AND e.rk = o.rk AND (o.expected < 0 OR e.ver = o.expected) \
    AND EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $5) RETURNING e.rk, e.ver) \
    SELECT array_agg(rk), array_agg(ver), 1 / (CASE WHEN count(*) = $6::int8 THEN 1 ELSE 0 END) FROM w",
);
/// Of a transaction: pk, rks, expected versions or -1, count.
pub(crate) const DELETE_ALL: &str = "\
    WITH w AS (DELETE FROM larimar_entity WHERE pk = $1 AND rk = ANY($2::bytea[]) RETURNING rk, ver) \
    SELECT 1 / (CASE WHEN count(*) = $4::int8 THEN 1 ELSE 0 END) \
    FROM w JOIN unnest($2::bytea[], $3::int8[]) AS o(rk, expected) \
    ON o.rk = w.rk AND (o.expected < 0 OR o.expected = w.ver)";
/// Removes rows of a transaction, whether they are there or not: pk, rks.
pub(crate) const DELETE_ANY: &str = "DELETE FROM larimar_entity WHERE pk = $1 AND rk = ANY($2::bytea[])";
/// Ends a transaction whose space is gone: space.
pub(crate) const GUARD_SPACE: &str =
    "SELECT 1 / (CASE WHEN EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) THEN 1 ELSE 0 END)";
/// Ends a transaction if not all rows are there with their versions: pk, rks, expected versions or -1, count.
pub(crate) const GUARD_PRESENT: &str = "\
    SELECT 1 / (CASE WHEN count(*) = $4::int8 THEN 1 ELSE 0 END) FROM larimar_entity e \
    JOIN unnest($2::bytea[], $3::int8[]) AS o(rk, expected) \
    ON e.pk = $1 AND e.rk = o.rk AND (o.expected < 0 OR o.expected = e.ver)";

/// Stores rows as they are: space, then arrays of pk, rk, version, body; returns how many.
pub(crate) const RESTORE: &str = "\
    INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
    SELECT o.pk, o.rk, o.ver, 0, o.body \
    FROM unnest($2::bytea[], $3::bytea[], $4::int8[], $5::bytea[]) AS o(pk, rk, ver, body) \
    WHERE EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) \
    ON CONFLICT (pk, rk) DO UPDATE SET ver = EXCLUDED.ver, tok = 0, body = EXCLUDED.body";

/// Whether a space is there: id.
pub(crate) const HAS_SPACE: &str = "SELECT 1::int8 FROM larimar_space WHERE id = $1";
/// Account, kind, name.
pub(crate) const FIND_SPACE: &str =
    "SELECT id, meta, tok FROM larimar_space WHERE account = $1 AND kind = $2 AND name = $3";
/// Account, kind, first name, how many.
pub(crate) const LIST_SPACES: &str = "\
    SELECT name, id, meta FROM larimar_space WHERE account = $1 AND kind = $2 AND name >= $3 \
    ORDER BY account, kind, name LIMIT $4::int8";
/// Account, kind, name, token, meta.
pub(crate) const CREATE_SPACE: &str = "\
    INSERT INTO larimar_space (account, kind, name, id, tok, meta) \
    VALUES ($1, $2, $3, nextval('larimar_space_id'), $4, $5) \
    ON CONFLICT (account, kind, name) DO NOTHING RETURNING id";
/// Account, kind, name, meta, token, expected meta.
pub(crate) const CHANGE_SPACE: &str =
    "UPDATE larimar_space SET meta = $4, tok = $5 WHERE account = $1 AND kind = $2 AND name = $3 AND meta = $6";
/// Account, kind, name. The rows are left to the purger.
pub(crate) const DROP_SPACE: &str = concat!(
    "WITH gone AS (DELETE FROM larimar_space WHERE account = $1 AND kind = $2 AND name = $3 RETURNING id) \
    INSERT INTO larimar_purge (id, since) SELECT id, ",
    ticks!(),
    " FROM gone RETURNING id",
);
/// The system's space, at number 0, has no account.
pub(crate) const ACCOUNTS: &str = "SELECT DISTINCT account FROM larimar_space WHERE id > 0 ORDER BY account";

/// Takes or renews a lease: name, owner, ticks that it lasts.
pub(crate) const LEASE: &str = concat!(
    "INSERT INTO larimar_job (name, owner, until) SELECT $1::bytea, $2::int8, ",
    ticks!(),
    " + $3::int8 \
    ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, until = EXCLUDED.until \
    WHERE larimar_job.owner = EXCLUDED.owner OR larimar_job.until < ",
    ticks!(),
    " RETURNING owner",
);
pub(crate) const RELEASE: &str = "DELETE FROM larimar_job WHERE name = $1 AND owner = $2";
/// Dropped spaces, and how many ticks ago that was.
pub(crate) const PURGES: &str = concat!("SELECT id, ", ticks!(), " - since FROM larimar_purge ORDER BY id LIMIT 100",);
pub(crate) const PURGE_COUNT: &str = "SELECT count(*) FROM larimar_purge";
pub(crate) const PURGE_DONE: &str = "DELETE FROM larimar_purge WHERE id = $1";
/// The last of the next rows to purge: first pk, pk after the last, how many rows to skip.
pub(crate) const PURGE_BOUND: &str =
    "SELECT pk, rk FROM larimar_entity WHERE pk >= $1 AND pk < $2 ORDER BY pk, rk LIMIT 1 OFFSET $3::int8";
pub(crate) const PURGE_PARTITIONS: &str = "DELETE FROM larimar_entity WHERE pk >= $1 AND pk < $2";
pub(crate) const PURGE_ROWS: &str = "DELETE FROM larimar_entity WHERE pk = $1 AND rk <= $2";

/// Messages to add, as arrays: queue, id, ticks hidden, ticks to live or -1, receipt, body; the queues without repeats.
pub(crate) const PUT_MESSAGES: &str = concat!(
    "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($7::int8[])), n AS MATERIALIZED (SELECT ",
    ticks!(),
    " AS t) INSERT INTO larimar_message (q, id, vis, exp, deq, pop, ins, body) \
    SELECT o.q, o.id, LEAST(n.t + o.hidden, 3155378975999999999), \
    CASE WHEN o.lives < 0 THEN 3155378975999999999 ELSE LEAST(n.t + o.lives, 3155378975999999999) END, \
    0, o.pop, n.t, o.body \
    FROM n, unnest($1::int8[], $2::bytea[], $3::int8[], $4::int8[], $5::int8[], $6::bytea[]) \
    AS o(q, id, hidden, lives, pop, body) \
    WHERE EXISTS (SELECT 1 FROM s WHERE s.id = o.q) RETURNING id, ins, vis, exp",
);
/// Finds out which of some messages are there, and makes sure of it as [`CONFIRM`] does. Arrays of queue and id.
pub(crate) const CONFIRM_MESSAGES: &str = "\
    UPDATE larimar_message m SET pop = m.pop FROM unnest($1::int8[], $2::bytea[]) AS o(q, id) \
    WHERE m.q = o.q AND m.id = o.id RETURNING m.id, m.ins, m.vis, m.exp, m.pop";
/// Queue, how many, ticks to hide, receipt. There is always a row: whether the queue is there, and a message or none.
/// Whoever holds a message passes it on sooner or later, so those who come meanwhile take others.
pub(crate) const CLAIM_MESSAGES: &str = concat!(
    "WITH c AS MATERIALIZED (SELECT id, vis FROM larimar_message WHERE q = $1 AND vis <= ",
    ticks!(),
    " AND exp > ",
    ticks!(),
    " AND EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) \
    ORDER BY q, vis, id LIMIT $2::int8 FOR UPDATE SKIP LOCKED), \
    u AS (UPDATE larimar_message m SET vis = ",
    ticks!(),
    " + $3::int8, deq = m.deq + 1, pop = $4::int8 FROM c WHERE m.q = $1 AND m.id = c.id \
    RETURNING m.id, m.ins, m.exp, m.deq, m.pop, m.vis, m.body, c.vis AS was) \
    SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), u.id, u.ins, u.exp, u.deq, u.pop, u.vis, u.body, u.was \
    FROM (SELECT 1::int8 AS x) AS one LEFT JOIN u ON true",
);
/// Queue, how many. Rows as above.
pub(crate) const PEEK_MESSAGES: &str = concat!(
    "WITH u AS MATERIALIZED (SELECT id, ins, exp, deq, pop, vis, body FROM larimar_message WHERE q = $1 AND vis <= ",
    ticks!(),
    " AND exp > ",
    ticks!(),
    " ORDER BY q, vis, id LIMIT $2::int8) \
    SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), u.id, u.ins, u.exp, u.deq, u.pop, u.vis, u.body, u.vis \
    FROM (SELECT 1::int8 AS x) AS one LEFT JOIN u ON true",
);
/// Queue, id, receipt, when the receipt ends, ticks to hide, new receipt, new body or null.
pub(crate) const UPDATE_MESSAGE: &str = concat!(
    "UPDATE larimar_message SET vis = ",
    ticks!(),
    " + $5::int8, pop = $6, body = COALESCE($7::bytea, body) \
    WHERE q = $1 AND id = $2 AND pop = $3 AND vis = $4 AND exp >= ",
    ticks!(),
    " + $5::int8 AND exp > ",
    ticks!(),
    " AND EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) RETURNING vis",
);
/// Queue, then arrays of ids without repeats, receipts, when they end. Returns the ids of the deleted ones.
pub(crate) const DELETE_MESSAGES: &str = concat!(
    "DELETE FROM larimar_message WHERE q = $1 AND id = ANY($2::bytea[]) \
    AND pop = ($3::int8[])[array_position($2::bytea[], id)] AND vis = ($4::int8[])[array_position($2::bytea[], id)] \
    AND exp > ",
    ticks!(),
    " AND EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) RETURNING id",
);
/// Why a receipt did not do: queue, id, receipt, when it ends. Whether the queue is there, whether the receipt is the
/// message's, how long the message lives; the latter two null if there is no message.
pub(crate) const EXPLAIN_MESSAGE: &str = concat!(
    "SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), m.pop = $3 AND m.vis = $4, m.exp - ",
    ticks!(),
    " FROM (SELECT 1::int8 AS x) AS one LEFT JOIN larimar_message m ON m.q = $1 AND m.id = $2",
);
/// Queue. Whether it is there, and how many messages it has.
pub(crate) const COUNT_MESSAGES: &str = "\
    SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), \
    (SELECT count(*) FROM larimar_message WHERE q = $1)";
/// The last message of a queue, or nothing: queue.
pub(crate) const LAST_MESSAGE: &str = "SELECT id FROM larimar_message WHERE q = $1 ORDER BY q DESC, id DESC LIMIT 1";
/// The last of the next messages to remove: queue, how many to skip.
pub(crate) const CLEAR_BOUND: &str =
    "SELECT id FROM larimar_message WHERE q = $1 ORDER BY q, id LIMIT 1 OFFSET $2::int8";
/// Queue, last id.
pub(crate) const CLEAR_MESSAGES: &str = "DELETE FROM larimar_message WHERE q = $1 AND id <= $2";
/// Queue, all of it.
pub(crate) const PURGE_MESSAGES: &str = "DELETE FROM larimar_message WHERE q = $1";
/// Expired messages: how many at most.
pub(crate) const EXPIRED_MESSAGES: &str =
    concat!("SELECT q, id FROM larimar_message WHERE exp <= ", ticks!(), " ORDER BY exp LIMIT $1::int8",);
/// Queue, ids.
pub(crate) const PURGE_EXPIRED: &str =
    concat!("DELETE FROM larimar_message WHERE q = $1 AND id = ANY($2::bytea[]) AND exp <= ", ticks!(),);
