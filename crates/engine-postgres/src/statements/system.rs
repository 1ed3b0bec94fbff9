//! The database itself: its clock, the format of the tables, sessions and sizes.

statements! {
    /// The database's time.
    Now {} -> (i64,) = concat!("SELECT ", ticks!());

    /// Whether there are tables.
    HasFormat {} -> (bool,) = "SELECT to_regclass('larimar_format') IS NOT NULL";

    /// The format of the tables.
    FoundFormat {} -> (i64,) = "SELECT format FROM larimar_format WHERE id = 1";

    /// The format of the tables, locked while they are changed.
    LockFormat {} -> (i64,) = "SELECT format FROM larimar_format WHERE id = 1 FOR UPDATE";

    /// How many more sessions the database accepts from roles that are not superusers.
    FreeSlots {} -> (i64,) = "\
        SELECT current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8 \
        - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')";

    /// The bytes that the rows take, and about how many of them are of dead rows, by the database's own statistics.
    StoreSize {} -> (i64, i64) = "\
        SELECT x.e + x.m, (x.e * x.ed / GREATEST(x.ed + x.el, 1) + x.m * x.md / GREATEST(x.md + x.ml, 1))::int8 \
        FROM (SELECT pg_total_relation_size('larimar_entity')::int8 AS e, pg_total_relation_size('larimar_message')::int8 AS m, \
        pg_stat_get_dead_tuples('larimar_entity'::regclass)::numeric AS ed, \
        pg_stat_get_live_tuples('larimar_entity'::regclass)::numeric AS el, \
        pg_stat_get_dead_tuples('larimar_message'::regclass)::numeric AS md, \
        pg_stat_get_live_tuples('larimar_message'::regclass)::numeric AS ml) AS x";
}
