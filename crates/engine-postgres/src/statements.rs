//! Every statement but those that make tables. They are written for the common part of the dialects: no comparison of row
//! values, no `int`, no two writes of one table in a statement. `DELETE … USING` needs CockroachDB 23.1 or newer.
//!
//! A statement looks its rows up in an index, however many rows the planner believes that a table has. Rows that are
//! named by a set are joined by `matching!`; `plans.rs` tests every statement, and
//! `docs/decisions/0017-postgres-under-stress.md` has the reasons.
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

/// The condition that a row of entities is the one that a row of a set names. `pk = o.pk` would say the same, but lets the
/// planner turn the join round: it may then read all entities in the order of the index and look each up in the set, if
/// it believes that there are few. An array of one is looked up in the index and is of no use for such an order.
macro_rules! matching {
    () => {
        "e.pk = ANY (ARRAY[o.pk]) AND e.rk = o.rk"
    };
}

/// The same for messages. With `vis` both indexes that begin with the queue lead to the one row.
macro_rules! matching_message {
    () => {
        "m.q = ANY (ARRAY[o.q]) AND m.id = o.id AND m.vis = o.vis"
    };
}

/// The rows of a partition that a transaction names: pk, then arrays whose first is that of the rks. The partition comes
/// from the set too: were it a constant, the whole of it might be read and compared with the set.
macro_rules! rows_of_partition {
    ($arrays:literal, $columns:literal) => {
        concat!("WITH o AS MATERIALIZED (SELECT $1::bytea AS pk, k.* FROM unnest(", $arrays, ") AS k(", $columns, "))")
    };
}

/// Rows in key order, `$source` being at most `$1` of them, bounded by bytes: those whose predecessors have fewer than
/// `$2` together, and one more without its body.
macro_rules! bounded {
    ($source:expr) => {
        concat!(
            "SELECT pk, rk, ver, CASE WHEN total - size < $2::int8 THEN body END FROM (\
            SELECT pk, rk, ver, body, size, (sum(size) OVER w)::int8 AS total, lag(size, 1, 0) OVER w AS last FROM (\
            SELECT pk, rk, ver, body, octet_length(pk) + octet_length(rk) + octet_length(body) AS size FROM (",
            $source,
            ") AS found) AS sized WINDOW w AS (ORDER BY pk, rk ROWS UNBOUNDED PRECEDING)) AS summed \
            WHERE total - size - last < $2::int8 ORDER BY pk, rk"
        )
    };
}

/// The rows of one index range, at most `$1`.
macro_rules! arm {
    ($bounds:literal) => {
        concat!("(SELECT pk, rk, ver, body FROM larimar_entity WHERE ", $bounds, " ORDER BY pk, rk LIMIT $1::int8)")
    };
}

/// The rows of index ranges that follow each other, at most `$1`.
macro_rules! arms {
    ($first:literal $(, $more:literal)+) => {
        concat!(
            "SELECT pk, rk, ver, body FROM (", arm!($first) $(, " UNION ALL ", arm!($more))+,
            ") AS arms ORDER BY pk, rk LIMIT $1::int8"
        )
    };
}

/// The name of the work on the rows of a dropped container, in the order of its number.
macro_rules! dropped_name {
    ($id:literal) => {
        concat!("convert_to('container ' || lpad(", $id, "::text, 20, '0'), 'UTF8')")
    };
}

/// Defines the statements and a list of all of them.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        $($(#[$doc])* pub(crate) const $name: &str = $sql;)*

        /// Every statement that is prepared, by name. The test of their plans takes them from here, and a connection
        /// of a debug build prepares no other, so that a new one is tested too.
        pub(crate) const ALL: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

statements! {
    /// The database's time.
    NOW = concat!("SELECT ", ticks!());

    /// Rows by their keys: number of the question, whether its space exists, version, body. Many questions are about few
    /// spaces, which are looked up once.
    GET = concat!(
        "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($5::int8[])) \
        SELECT o.i, EXISTS (SELECT 1 FROM s WHERE s.id = o.space), e.ver, e.body \
        FROM unnest($1::int8[], $2::int8[], $3::bytea[], $4::bytea[]) AS o(i, space, pk, rk) \
        LEFT JOIN larimar_entity e ON ",
        matching!(),
    );

    /// Single writes: arrays of space, pk, rk, token and body, the spaces without repeats, and, for updates, the expected
    /// versions or -1.
    INSERT_MANY = concat!(
        "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($6::int8[])) \
        INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
        SELECT o.pk, o.rk, ",
        ticks!(),
        ", o.tok, o.body \
        FROM unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int8[], $5::bytea[]) AS o(space, pk, rk, tok, body) \
        WHERE EXISTS (SELECT 1 FROM s WHERE s.id = o.space) \
        ON CONFLICT (pk, rk) DO NOTHING RETURNING tok, ver",
    );
    UPSERT_MANY = concat!(
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
    UPDATE_MANY = concat!(
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
    /// Single deletes: arrays of space, pk, rk, token and expected version or -1; the spaces without repeats. Returns the
    /// tokens, and the versions that are gone.
    DELETE_MANY = concat!(
        "WITH s AS MATERIALIZED (SELECT id FROM larimar_space WHERE id = ANY($6::int8[])) \
        DELETE FROM larimar_entity e \
        USING unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int8[], $5::int8[]) AS o(space, pk, rk, tok, expected) \
        WHERE ",
        matching!(),
        " AND (o.expected < 0 OR e.ver = o.expected) \
        AND EXISTS (SELECT 1 FROM s WHERE s.id = o.space) RETURNING o.tok, e.ver",
    );

    /// Finds out which of some writes took effect, by their tokens, and makes sure of it: this is a write itself, and it is
    /// not done before everything before it is durable wherever it has to be. Arrays of pk, rk, token.
    CONFIRM = concat!(
        "UPDATE larimar_entity e SET tok = o.tok FROM unnest($1::bytea[], $2::bytea[], $3::int8[]) AS o(pk, rk, tok) \
        WHERE ",
        matching!(),
        " AND e.tok = o.tok RETURNING e.tok, e.rk, e.ver",
    );

    /// Rows of a partition, locked in the order of the rks given, so that transactions that meet queue up instead of
    /// blocking each other: pk, rks.
    LOCK = concat!(
        rows_of_partition!("$2::bytea[]", "rk"),
        " SELECT count(*) FROM (SELECT 1 FROM o JOIN larimar_entity e ON ",
        matching!(),
        " FOR UPDATE OF e) AS held",
    );
    /// Of a transaction: pk, token, rks, bodies, space, count. Here a row that is there already ends the transaction, so
    /// there is no need for the costlier `ON CONFLICT`. Returns the version, which all rows share.
    INSERT_ALL = concat!(
        "WITH w AS (INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
        SELECT $1::bytea, o.rk, ",
        ticks!(),
        ", $2::int8, o.body FROM unnest($3::bytea[], $4::bytea[]) AS o(rk, body) \
        WHERE EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $5) RETURNING ver) \
        SELECT max(ver), 1 / (CASE WHEN count(*) = $6::int8 THEN 1 ELSE 0 END) FROM w",
    );
    /// The same parameters. Returns the rows and their versions.
    UPSERT_ALL = concat!(
        "WITH w AS (INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
        SELECT $1::bytea, o.rk, ",
        ticks!(),
        ", $2::int8, o.body FROM unnest($3::bytea[], $4::bytea[]) AS o(rk, body) \
        WHERE EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $5) \
        ON CONFLICT (pk, rk) DO UPDATE SET ver = GREATEST(EXCLUDED.ver, larimar_entity.ver + 1), \
        tok = EXCLUDED.tok, body = EXCLUDED.body RETURNING rk, ver) \
        SELECT array_agg(rk), array_agg(ver), 1 / (CASE WHEN count(*) = $6::int8 THEN 1 ELSE 0 END) FROM w",
    );
    /// Of a transaction: pk, token, rks, bodies, space, count, the expected versions or -1.
    UPDATE_ALL = concat!(
        rows_of_partition!("$3::bytea[], $4::bytea[], $7::int8[]", "rk, body, expected"),
        ", w AS (UPDATE larimar_entity e SET ver = GREATEST(",
        ticks!(),
        ", e.ver + 1), tok = $2::int8, body = o.body FROM o WHERE ",
        matching!(),
        " AND (o.expected < 0 OR e.ver = o.expected) \
        AND EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $5) RETURNING e.rk, e.ver) \
        SELECT array_agg(rk), array_agg(ver), 1 / (CASE WHEN count(*) = $6::int8 THEN 1 ELSE 0 END) FROM w",
    );
    /// Of a transaction: pk, rks, expected versions or -1, count.
    DELETE_ALL = concat!(
        rows_of_partition!("$2::bytea[], $3::int8[]", "rk, expected"),
        ", w AS (DELETE FROM larimar_entity e USING o WHERE ",
        matching!(),
        " AND (o.expected < 0 OR e.ver = o.expected) RETURNING 1::int8) \
        SELECT 1 / (CASE WHEN count(*) = $4::int8 THEN 1 ELSE 0 END) FROM w",
    );
    /// Removes rows of a transaction, whether they are there or not: pk, rks.
    DELETE_ANY = concat!(
        rows_of_partition!("$2::bytea[]", "rk"),
        " DELETE FROM larimar_entity e USING o WHERE ",
        matching!(),
    );
    /// Ends a transaction whose space is gone: space.
    GUARD_SPACE =     "SELECT 1 / (CASE WHEN EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) THEN 1 ELSE 0 END)";
    /// Ends a transaction if not all rows are there with their versions: pk, rks, expected versions or -1, count.
    GUARD_PRESENT = concat!(
        rows_of_partition!("$2::bytea[], $3::int8[]", "rk, expected"),
        " SELECT 1 / (CASE WHEN count(*) = $4::int8 THEN 1 ELSE 0 END) FROM o JOIN larimar_entity e ON ",
        matching!(),
        " AND (o.expected < 0 OR o.expected = e.ver)",
    );

    /// Stores rows as they are: space, then arrays of pk, rk, version, body; returns how many.
    RESTORE = "\
        INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
        SELECT o.pk, o.rk, o.ver, 0, o.body \
        FROM unnest($2::bytea[], $3::bytea[], $4::int8[], $5::bytea[]) AS o(pk, rk, ver, body) \
        WHERE EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) \
        ON CONFLICT (pk, rk) DO UPDATE SET ver = EXCLUDED.ver, tok = 0, body = EXCLUDED.body";

    /// Whether a space is there: id.
    HAS_SPACE = "SELECT 1::int8 FROM larimar_space WHERE id = $1";
    /// Account, kind, name.
    FIND_SPACE =     "SELECT id, meta, tok FROM larimar_space WHERE account = $1 AND kind = $2 AND name = $3";
    /// Account, kind, first name, how many.
    LIST_SPACES = "\
        SELECT name, id, meta FROM larimar_space WHERE account = $1 AND kind = $2 AND name >= $3 \
        ORDER BY account, kind, name LIMIT $4::int8";
    /// Account, kind, name, token, meta.
    CREATE_SPACE = "\
        INSERT INTO larimar_space (account, kind, name, id, tok, meta) \
        VALUES ($1, $2, $3, nextval('larimar_space_id'), $4, $5) \
        ON CONFLICT (account, kind, name) DO NOTHING RETURNING id";
    /// Account, kind, name, meta, token, expected meta.
    CHANGE_SPACE =     "UPDATE larimar_space SET meta = $4, tok = $5 WHERE account = $1 AND kind = $2 AND name = $3 AND meta = $6";
    /// Account, kind, name. The rows are left to the purger.
    DROP_SPACE = concat!(
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
    ACCOUNTS = "\
        WITH RECURSIVE a AS (\
        (SELECT account FROM larimar_space WHERE account > '' ORDER BY account, kind, name LIMIT 1) UNION ALL \
        SELECT (SELECT s.account FROM larimar_space s WHERE s.account > a.account \
        ORDER BY s.account, s.kind, s.name LIMIT 1) FROM a WHERE a.account IS NOT NULL\
        ) SELECT account FROM a WHERE account IS NOT NULL";

    /// Takes or renews a lease: name, owner, ticks that it lasts.
    LEASE = concat!(
        "INSERT INTO larimar_job (name, owner, until) SELECT $1::bytea, $2::int8, ",
        ticks!(),
        " + $3::int8 \
        ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, until = EXCLUDED.until \
        WHERE larimar_job.owner = EXCLUDED.owner OR larimar_job.until < ",
        ticks!(),
        " RETURNING owner",
    );
    RELEASE = "DELETE FROM larimar_job WHERE name = $1 AND owner = $2";
    /// Dropped containers whose rows are kept and that nobody else is at work on: first name, name after the last, owner.
    KEPT = concat!(
        "SELECT name FROM larimar_job WHERE name >= $1 AND name < $2 AND (owner = $3 OR until < ",
        ticks!(),
        ") ORDER BY name LIMIT 16",
    );
    /// Takes or keeps one of them: name, owner, ticks that it is the owner's.
    TAKE_KEPT = concat!(
        "UPDATE larimar_job SET owner = $2, until = ",
        ticks!(),
        " + $3::int8 WHERE name = $1 AND (owner = $2 OR until < ",
        ticks!(),
        ") RETURNING owner",
    );
    /// Rows of a dropped container: how many, pk, first rk, pk after the last.
    KEPT_ROWS = arms!("pk = $2 AND rk >= $3", "pk > $2 AND pk < $4");
    /// Dropped spaces but those containers, and how many ticks ago that was.
    PURGES = concat!(
        "SELECT p.id, ",
        ticks!(),
        " - p.since FROM larimar_purge p WHERE NOT EXISTS (SELECT 1 FROM larimar_job j WHERE j.name = ",
        dropped_name!("p.id"),
        ") ORDER BY p.id LIMIT 100",
    );
    PURGE_COUNT = "SELECT count(*) FROM larimar_purge";
    PURGE_DONE = "DELETE FROM larimar_purge WHERE id = $1";
    /// The last of the next rows to purge: first pk, pk after the last, how many rows to skip.
    PURGE_BOUND =     "SELECT pk, rk FROM larimar_entity WHERE pk >= $1 AND pk < $2 ORDER BY pk, rk LIMIT 1 OFFSET $3::int8";
    PURGE_PARTITIONS = "DELETE FROM larimar_entity WHERE pk >= $1 AND pk < $2";
    PURGE_ROWS = "DELETE FROM larimar_entity WHERE pk = $1 AND rk <= $2";

    /// Messages to add, as arrays: queue, id, ticks hidden, ticks to live or -1, receipt, body; the queues without repeats.
    PUT_MESSAGES = concat!(
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
    CONFIRM_MESSAGES = concat!(
        "WITH o AS MATERIALIZED (SELECT k.q, k.id, f.vis FROM unnest($1::int8[], $2::bytea[]) AS k(q, id) \
        CROSS JOIN LATERAL (SELECT vis FROM larimar_message WHERE q = k.q AND id >= k.id AND id <= k.id \
        ORDER BY q, id LIMIT 1) AS f) \
        UPDATE larimar_message m SET pop = m.pop FROM o WHERE ",
        matching_message!(),
        " RETURNING m.id, m.ins, m.vis, m.exp, m.pop",
    );
    /// Queue, how many, ticks to hide, receipt, from when on messages are looked for. There is always a row: whether the
    /// queue is there, a message or none, when it was visible, and the time.
    /// Whoever holds a message passes it on sooner or later, so those who come meanwhile take others.
    CLAIM_MESSAGES = concat!(
        "WITH o AS MATERIALIZED (SELECT q, id, vis FROM larimar_message WHERE q = $1 AND vis >= $5 AND vis <= ",
        ticks!(),
        " AND exp > ",
        ticks!(),
        " AND EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) \
        ORDER BY q, vis, id LIMIT $2::int8 FOR UPDATE SKIP LOCKED), \
        u AS (UPDATE larimar_message m SET vis = ",
        ticks!(),
        " + $3::int8, deq = m.deq + 1, pop = $4::int8 FROM o WHERE ",
        matching_message!(),
        " RETURNING m.id, m.ins, m.exp, m.deq, m.pop, m.vis, m.body, o.vis AS was) \
        SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), u.id, u.ins, u.exp, u.deq, u.pop, u.vis, u.body, u.was, ",
        ticks!(),
        " \
        FROM (SELECT 1::int8 AS x) AS one LEFT JOIN u ON true",
    );
    /// Queue, how many. Rows as above.
    PEEK_MESSAGES = concat!(
        "WITH u AS MATERIALIZED (SELECT id, ins, exp, deq, pop, vis, body FROM larimar_message WHERE q = $1 AND vis <= ",
        ticks!(),
        " AND exp > ",
        ticks!(),
        " ORDER BY q, vis, id LIMIT $2::int8) \
        SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), u.id, u.ins, u.exp, u.deq, u.pop, u.vis, u.body, u.vis \
        FROM (SELECT 1::int8 AS x) AS one LEFT JOIN u ON true",
    );
    /// Queue, id, receipt, when the receipt ends, ticks to hide, new receipt, new body or null. A message that another
    /// session holds is left as it is, so no connection waits for it; the same below.
    UPDATE_MESSAGE = concat!(
        "WITH o AS MATERIALIZED (SELECT q, id, vis FROM larimar_message \
        WHERE q = $1 AND id = $2 AND pop = $3 AND vis = $4 AND exp >= ",
        ticks!(),
        " + $5::int8 AND exp > ",
        ticks!(),
        " AND EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) FOR UPDATE SKIP LOCKED) \
        UPDATE larimar_message m SET vis = ",
        ticks!(),
        " + $5::int8, pop = $6, body = COALESCE($7::bytea, body) FROM o WHERE ",
        matching_message!(),
        " RETURNING m.vis",
    );
    /// Queue, then arrays of ids without repeats, receipts, when they end. Returns the ids of the deleted ones.
    DELETE_MESSAGES = concat!(
        "WITH k AS MATERIALIZED (SELECT $1::int8 AS q, k.* FROM unnest($2::bytea[], $3::int8[], $4::int8[]) \
        AS k(id, pop, vis)), o AS MATERIALIZED (SELECT m.q, m.id, m.vis FROM k AS o JOIN larimar_message m ON ",
        matching_message!(),
        " AND m.pop = o.pop WHERE m.exp > ",
        ticks!(),
        " AND EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) FOR UPDATE OF m SKIP LOCKED) \
        DELETE FROM larimar_message m USING o WHERE ",
        matching_message!(),
        " RETURNING m.id",
    );
    /// Why a receipt did not do: queue, id, receipt, when it ends. Whether the queue is there, whether the receipt is the
    /// message's, how long the message lives; the latter two null if there is no message.
    EXPLAIN_MESSAGE = concat!(
        "SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), m.pop = $3 AND m.vis = $4, m.exp - ",
        ticks!(),
        " FROM (SELECT 1::int8 AS x) AS one LEFT JOIN (SELECT pop, vis, exp FROM larimar_message \
        WHERE q = $1 AND id >= $2 AND id <= $2 ORDER BY q, id LIMIT 1) AS m ON true",
    );
    /// Queue. Whether it is there, and how many messages it has.
    COUNT_MESSAGES = "\
        SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), \
        (SELECT count(*) FROM larimar_message WHERE q = $1)";
    /// The last message of a queue, or nothing: queue.
    LAST_MESSAGE = "SELECT id FROM larimar_message WHERE q = $1 ORDER BY q DESC, id DESC LIMIT 1";
    /// Removes the first messages of a queue: queue, last id, how many at most. Returns how many there were.
    CLEAR_MESSAGES = concat!(
        "WITH o AS MATERIALIZED (SELECT q, id, vis FROM larimar_message WHERE q = $1 AND id <= $2 \
        ORDER BY q, id LIMIT $3::int8), d AS (DELETE FROM larimar_message m USING o WHERE ",
        matching_message!(),
        " RETURNING 1::int8) SELECT count(*), (SELECT count(*) FROM d) FROM o",
    );
    /// Whether messages have expired.
    HAS_EXPIRED = concat!("SELECT 1::int8 FROM larimar_message WHERE exp <= ", ticks!(), " ORDER BY exp LIMIT 1");
    /// Removes expired messages: how many at most. Returns how many there were.
    PURGE_EXPIRED = concat!(
        "WITH o AS MATERIALIZED (SELECT q, id, vis FROM larimar_message WHERE exp <= ",
        ticks!(),
        " ORDER BY exp LIMIT $1::int8), d AS (DELETE FROM larimar_message m USING o WHERE ",
        matching_message!(),
        " RETURNING 1::int8) SELECT count(*), (SELECT count(*) FROM d) FROM o",
    );

    /// Rows in key order: how many, how many bytes, then the bounds that `arms.rs` explains.
    TAIL = bounded!(arm!("pk = $3 AND rk >= $4"));
    SLICE = bounded!(arm!("pk = $3 AND rk >= $4 AND rk < $5"));
    TAIL_AND_MORE = bounded!(arms!("pk = $3 AND rk >= $4", "pk > $3 AND pk < $5"));
    TAIL_AND_MORE_AND_HEAD = bounded!(arms!("pk = $3 AND rk >= $4", "pk > $3 AND pk < $5", "pk = $5 AND rk < $6"));
    /// Rows by their keys, in key order: how many, how many bytes, arrays of pk and rk. The order is that of the set: one
    /// of the entities could be had by reading all of them.
    POINTS = bounded!(concat!(
        "SELECT o.pk, o.rk, e.ver, e.body FROM unnest($3::bytea[], $4::bytea[]) AS o(pk, rk) \
        JOIN larimar_entity e ON ",
        matching!(),
        " ORDER BY o.pk, o.rk LIMIT $1::int8"
    ));

    /// The format of the tables.
    HAS_FORMAT = "SELECT to_regclass('larimar_format') IS NOT NULL";
    FOUND_FORMAT = "SELECT format FROM larimar_format WHERE id = 1";
    LOCK_FORMAT = "SELECT format FROM larimar_format WHERE id = 1 FOR UPDATE";
    /// How many more sessions the database takes from anybody but superusers.
    SLOTS = "\
        SELECT current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8 \
        - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')";
    /// The bytes that the rows take, where the database knows them.
    SIZE =     "SELECT (pg_total_relation_size('larimar_entity') + pg_total_relation_size('larimar_message'))::int8";
}

/// Whether a statement is in the list.
pub(crate) fn is_listed(sql: &str) -> bool {
    ALL.iter().any(|(_, listed)| *listed == sql)
}

#[cfg(all(test, feature = "test-postgres"))]
mod plans;
