//! Messages of queues. All times are in ticks, by the database's clock.

use super::{FromRow, column};
use crate::failure::Failure;
use larimar_engine::queue::Message;
use larimar_model::queue::Receipt;
use larimar_model::{Guid, Timestamp};
use tokio_postgres::Row;

statements! {
    /// Times are in ticks; a message that does not expire lives for -1. Returns id, and when it was put, becomes
    /// visible and expires.
    PutMessages<'a> {
        queues: Vec<i64>,
        ids: Vec<&'a [u8]>,
        hidden: Vec<i64>,
        lives: Vec<i64>,
        receipts: Vec<i64>,
        bodies: Vec<&'a [u8]>,
        distinct_queues: Vec<i64>,
    } -> (Vec<u8>, i64, i64, i64) = concat!(
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

    /// Finds out which of some messages exist, and makes sure of it as `ConfirmRows` does. Returns what [`PutMessages`]
    /// does and the receipt.
    ConfirmMessages<'a> { queues: Vec<i64>, ids: Vec<&'a [u8]> } -> (Vec<u8>, i64, i64, i64, i64) = concat!(
        "WITH o AS MATERIALIZED (SELECT k.q, k.id, f.vis FROM unnest($1::int8[], $2::bytea[]) AS k(q, id) \
        CROSS JOIN LATERAL (SELECT vis FROM larimar_message WHERE q = k.q AND id >= k.id AND id <= k.id \
        ORDER BY q, id LIMIT 1) AS f) \
        UPDATE larimar_message m SET pop = m.pop FROM o WHERE ",
        matching_message!(),
        " RETURNING m.id, m.ins, m.vis, m.exp, m.pop",
    );

    /// Claims messages that are visible, looking at those that became so at `from` or later. Messages that another
    /// session has locked are skipped. There is always a row.
    ClaimMessages { queue: i64, count: i64, hidden_for: i64, receipt: i64, from: i64 } -> ClaimedRow = concat!(
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

    /// Messages that are visible. There is always a row.
    PeekMessages { queue: i64, count: i64 } -> MessageRow = concat!(
        "WITH u AS MATERIALIZED (SELECT id, ins, exp, deq, pop, vis, body FROM larimar_message WHERE q = $1 AND vis <= ",
        ticks!(),
        " AND exp > ",
        ticks!(),
        " ORDER BY q, vis, id LIMIT $2::int8) \
        SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), u.id, u.ins, u.exp, u.deq, u.pop, u.vis, u.body, u.vis \
        FROM (SELECT 1::int8 AS x) AS one LEFT JOIN u ON true",
    );

    /// Returns when the message is visible. One that another session has locked is left as it is, so that no connection
    /// waits for it; the same below.
    UpdateMessage<'a> {
        queue: i64,
        id: &'a [u8],
        receipt: i64,
        visible_at: i64,
        hidden_for: i64,
        new_receipt: i64,
        body: Option<&'a [u8]>,
    } -> (i64,) = concat!(
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

    /// Deletes messages, each id once. Returns the ids of the deleted ones.
    DeleteMessages<'a> { queue: i64, ids: Vec<&'a [u8]>, receipts: Vec<i64>, visible_at: Vec<i64> } -> (Vec<u8>,) = concat!(
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

    /// Why a receipt was not accepted: whether the queue exists, whether the receipt is the message's, how many ticks
    /// the message has left; the latter two null if there is no message.
    ExplainMessage<'a> {
        queue: i64,
        id: &'a [u8],
        receipt: i64,
        visible_at: i64,
    } -> (bool, Option<bool>, Option<i64>) = concat!(
        "SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), m.pop = $3 AND m.vis = $4, m.exp - ",
        ticks!(),
        " FROM (SELECT 1::int8 AS x) AS one LEFT JOIN (SELECT pop, vis, exp FROM larimar_message \
        WHERE q = $1 AND id >= $2 AND id <= $2 ORDER BY q, id LIMIT 1) AS m ON true",
    );

    /// Whether the queue exists, and how many messages it has.
    CountMessages { queue: i64 } -> (bool, i64) = "\
        SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), \
        (SELECT count(*) FROM larimar_message WHERE q = $1)";

    /// Messages as they are, hidden and expired ones too, after a place in the order of delivery. There is always a row.
    ReadMessages<'a> { queue: i64, visible_at: i64, id: &'a [u8], count: i64 } -> MessageRow = "\
        WITH u AS MATERIALIZED (SELECT id, ins, exp, deq, pop, vis, body FROM larimar_message WHERE q = $1 \
        AND vis >= $2 AND (vis, id) > ($2, $3) ORDER BY q, vis, id LIMIT $4::int8) \
        SELECT EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1), u.id, u.ins, u.exp, u.deq, u.pop, u.vis, u.body \
        FROM (SELECT 1::int8 AS x) AS one LEFT JOIN u ON true";

    /// Stores messages as they are.
    RestoreMessages<'a> {
        queue: i64,
        ids: Vec<&'a [u8]>,
        visible_at: Vec<i64>,
        expires: Vec<i64>,
        dequeue_counts: Vec<i64>,
        receipts: Vec<i64>,
        inserted: Vec<i64>,
        bodies: Vec<&'a [u8]>,
    } -> () = "\
        INSERT INTO larimar_message (q, id, vis, exp, deq, pop, ins, body) \
        SELECT $1::int8, o.id, o.vis, o.exp, o.deq, o.pop, o.ins, o.body \
        FROM unnest($2::bytea[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::bytea[]) \
        AS o(id, vis, exp, deq, pop, ins, body) \
        WHERE EXISTS (SELECT 1 FROM larimar_space s WHERE s.id = $1) \
        ON CONFLICT (q, id) DO UPDATE SET vis = EXCLUDED.vis, exp = EXCLUDED.exp, deq = EXCLUDED.deq, \
        pop = EXCLUDED.pop, ins = EXCLUDED.ins, body = EXCLUDED.body";

    /// The id of the last message, if there is one.
    LastMessage { queue: i64 } -> (Vec<u8>,) =
        "SELECT id FROM larimar_message WHERE q = $1 ORDER BY q DESC, id DESC LIMIT 1";

    /// Deletes the first messages of a queue, at most `count`. Returns how many there were.
    ClearMessages<'a> { queue: i64, last_id: &'a [u8], count: i64 } -> (i64,) = concat!(
        "WITH o AS MATERIALIZED (SELECT q, id, vis FROM larimar_message WHERE q = $1 AND id <= $2 \
        ORDER BY q, id LIMIT $3::int8), d AS (DELETE FROM larimar_message m USING o WHERE ",
        matching_message!(),
        " RETURNING 1::int8) SELECT count(*), (SELECT count(*) FROM d) FROM o",
    );
}

/// A visible message, or that there is none.
pub(crate) struct MessageRow {
    pub(crate) has_queue: bool,
    pub(crate) message: Option<Message>,
}

impl FromRow for MessageRow {
    fn from_row(row: Row) -> Result<Self, Failure> {
        let has_queue = column(&row, 0)?;
        let Some(id) = column::<Option<&[u8]>>(&row, 1)? else { return Ok(Self { has_queue, message: None }) };
        let id = id.try_into().map_err(|_| Failure::Refused("a message id is not 16 bytes long".to_owned()))?;
        let time = |ticks: i64| Timestamp::from_ticks(ticks.cast_unsigned());
        let visible_at = time(column(&row, 6)?);
        let message = Message {
            id: Guid(id),
            inserted: time(column(&row, 2)?),
            expires: time(column(&row, 3)?),
            dequeue_count: u32::try_from(column::<i64>(&row, 4)?).unwrap_or(u32::MAX),
            receipt: Receipt { visible_at, nonce: column::<i64>(&row, 5)?.cast_unsigned() },
            visible_at,
            text: column(&row, 7)?,
        };
        Ok(Self { has_queue, message: Some(message) })
    }
}

impl MessageRow {
    /// When the message became visible, in ticks; 0 without one.
    pub(crate) fn visible_at(&self) -> i64 {
        self.message.as_ref().map_or(0, |message| message.visible_at.ticks().cast_signed())
    }
}

/// A claimed message, or that there is none; when it was visible, and the database's time.
pub(crate) struct ClaimedRow {
    pub(crate) message: MessageRow,
    pub(crate) was_visible_at: Option<i64>,
    pub(crate) now: i64,
}

impl FromRow for ClaimedRow {
    fn from_row(row: Row) -> Result<Self, Failure> {
        let (was_visible_at, now) = (column(&row, 8)?, column(&row, 9)?);
        Ok(Self { message: MessageRow::from_row(row)?, was_visible_at, now })
    }
}
