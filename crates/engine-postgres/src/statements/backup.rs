//! What a backup reads in its transaction, and the lock that its session has.

use super::messages::MessageRow;

/// The lock of a backup: one for each set of tables, as databases may have several.
macro_rules! backup_lock {
    () => {
        "5503806014920589312 + 'larimar_job'::regclass::oid::int8"
    };
}

statements! {
    /// Takes the lock for as long as the session lasts; `false` if another one has it.
    BackupLock {} -> (bool,) = concat!("SELECT pg_try_advisory_lock(", backup_lock!(), ")");

    /// Whether a session has the lock. The answer's own lock is shared, and ends with the statement.
    IsBackedUp {} -> (bool,) = concat!("SELECT NOT pg_try_advisory_xact_lock_shared(", backup_lock!(), ")");

    /// When the transaction began, and the time after its snapshot was taken.
    BackupMoment {} -> (i64, i64) = concat!(
        "SELECT (extract(epoch FROM transaction_timestamp()) * 10000000)::int8 + 621355968000000000, ",
        ticks!(),
    );

    /// Spaces after a name: account, kind, name, id and meta.
    SpacesAfter<'a> {
        account: &'a [u8],
        kind: i64,
        name: &'a [u8],
        count: i64,
    } -> (Vec<u8>, i64, Vec<u8>, i64, Vec<u8>) = "\
        SELECT account, kind, name, id, meta FROM larimar_space \
        WHERE account >= $1 AND (account, kind, name) > ($1, $2, $3) ORDER BY account, kind, name LIMIT $4::int8";

    /// Messages after an id, in the order of ids.
    Contents<'a> { queue: i64, after: &'a [u8], count: i64 } -> MessageRow = "\
        SELECT true, id, ins, exp, deq, pop, vis, body FROM larimar_message WHERE q = $1 AND id > $2 \
        ORDER BY q, id LIMIT $3::int8";

    /// Messages after a place in the order of delivery, without their contents.
    Deliveries<'a> { queue: i64, visible_at: i64, after: &'a [u8], count: i64 } -> MessageRow = "\
        SELECT true, id, ins, exp, deq, pop, vis, ''::bytea FROM larimar_message \
        WHERE q = $1 AND vis >= $2 AND (vis, id) > ($2, $3) ORDER BY q, vis, id LIMIT $4::int8";
}
