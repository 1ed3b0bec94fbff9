//! Settings of where the data is: engine, directory, database.

use super::{Group, Kind, Setting, number, password, path, put, show_count, size, value};
use crate::settings::engine::EngineChoice;
use crate::settings::value::Durability;
use larimar_tool::location::holds_credentials;
use std::time::Duration;

pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        name: "engine",
        group: Group::Data,
        help: "What stores the data: local (this machine's disk) or postgres://USER@HOST[,HOST]/DATABASE, which any \
               number of servers share; a password in the URL is better given by database_password_file or \
               LARIMAR_DATABASE_PASSWORD",
        expected: "local or postgres://USER@HOST[:PORT][,HOST…]/DATABASE[?sslmode=…&…], a password percent-encoded",
        kind: Kind::Private,
        read: |settings, text| put(&mut settings.engine, EngineChoice::from_text(text)),
        show: |settings| Some(settings.engine.without_secrets().into()),
    },
    Setting {
        name: "data_dir",
        group: Group::Data,
        help: "Data directory; created if it is missing; not used with PostgreSQL",
        expected: "the path of a directory",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.data_dir, path(text)),
        show: |settings| Some(settings.data_dir.display().to_string().into()),
    },
    Setting {
        name: "durability",
        group: Group::Data,
        help: "What an acknowledged write survives: sync (power loss), async (the end of the process), memory (nothing); \
               not used with PostgreSQL",
        expected: "sync, async or memory",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.durability, Durability::from_text(text)),
        show: |settings| Some(settings.durability.as_text().into()),
    },
    Setting {
        name: "memory",
        group: Group::Data,
        help: "Memory for the store's caches; default: chosen for the machine; not used with PostgreSQL",
        expected: "a number of bytes from 16MiB on, such as 512MiB or 2GiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.memory, size(text, 16 << 20, u64::MAX).map(Some)),
        show: |settings| settings.memory.map(|bytes| value::show_bytes(bytes).into()),
    },
    Setting {
        name: "reserve",
        group: Group::Data,
        help: "Disk space set aside in the data directory, at most an eighth of the disk, so that clients can delete and \
               drop when another program fills the disk; with 0 writes go on until the disk is full, and deletes then \
               fail too; not used with PostgreSQL",
        expected: "a number of bytes, such as 64MiB or 0",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.reserve, size(text, 0, 1 << 40)),
        show: |settings| Some(value::show_bytes(settings.reserve).into()),
    },
    Setting {
        name: "seed",
        group: Group::Data,
        help: "Directory with files of `larimar export --all`, from which an empty store is filled before the server serves; \
               one that has tables is left alone",
        expected: "the path of a directory",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.seed, path(text).map(Some)),
        show: |settings| settings.seed.as_ref().map(|path| path.display().to_string().into()),
    },
    Setting {
        name: "archive",
        group: Group::Data,
        help: "Where every commit is archived, so that the store can be restored to any moment: a directory, or \
               s3://BUCKET/PREFIX, az:// or gs://, as `larimar backup` takes it; full backups go there too",
        expected: "a directory, or an address that starts with s3://, az:// or gs:// and has no user, password, ? or #: \
                   credentials belong in the environment",
        kind: Kind::Private,
        read: |settings, text| {
            let is_fit = !text.is_empty() && !holds_credentials(text);
            put(&mut settings.archive.place, is_fit.then(|| Some(text.to_owned())))
        },
        show: |settings| settings.archive.place.as_ref().map(|place| place.as_str().into()),
    },
    Setting {
        name: "archive_spool_bytes_max",
        group: Group::Data,
        help: "Disk space for commits that the archive has not taken yet, counted with the bytes of deleted and replaced blobs that \
               they point to; beyond it the archive has a gap and begins again with a full backup",
        expected: "a number of bytes from 16MiB to 1000GiB, such as 1GiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.archive.spool_bytes_max, size(text, 16 << 20, 1000 << 30)),
        show: |settings| Some(value::show_bytes(settings.archive.spool_bytes_max).into()),
    },
    Setting {
        name: "archive_backup_every",
        group: Group::Data,
        help: "How often a full backup goes to the archive: a restore replays the commits since the last one",
        expected: "a span of time from 1m to 365d, such as 1d",
        kind: Kind::Value,
        read: |settings, text| {
            let range = Duration::from_secs(60)..=Duration::from_secs(365 * 86_400);
            put(&mut settings.archive.backup_every, value::days(text).filter(|span| range.contains(span)))
        },
        show: |settings| Some(value::show_span(settings.archive.backup_every).into()),
    },
    Setting {
        name: "backup_key_file",
        group: Group::Data,
        help: "File with the key that encrypts backups, made by `larimar backup key FILE`; only its owner may read it; the \
               server needs it to take backups, and verify and restore need it to read them",
        expected: "the path of a file",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.backup_key_file, path(text).map(Some)),
        show: |settings| settings.backup_key_file.as_ref().map(|path| path.display().to_string().into()),
    },
    Setting {
        name: "backup_keep_time",
        group: Group::Data,
        help: "After each backup the server removes those that are older, except the last of them: the store can be restored \
               to any time that is not older; what backup_keep_count keeps is kept, too; default: all are kept",
        expected: "a span of time from 1h to 10000d, such as 30d",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.backup_keep_time, value::days(text).filter(is_kept).map(Some)),
        show: |settings| settings.backup_keep_time.map(|span| value::show_span(span).into()),
    },
    Setting {
        name: "backup_keep_count",
        group: Group::Data,
        help: "After each backup the server removes all but so many of the latest; what backup_keep_time keeps is kept, too; \
               default: all are kept",
        expected: "a number from 1 to 100000",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.backup_keep_count, number(text, 1, 100_000).map(Some)),
        show: |settings| settings.backup_keep_count.map(show_count),
    },
    Setting {
        name: "dialect",
        group: Group::Database,
        help: "Which database a postgres:// engine is: postgres, cockroach or yugabyte",
        expected: "postgres, cockroach or yugabyte",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.dialect, text.parse().ok()),
        show: |settings| Some(settings.dialect.to_string().into()),
    },
    Setting {
        name: "database_password",
        group: Group::Database,
        help: "Password of the database; overrides the file's and the URL's",
        expected: "a password",
        kind: Kind::Secret,
        read: |settings, text| put(&mut settings.database_password, password(text).map(Some)),
        show: crate::settings::show::database_password,
    },
    Setting {
        name: "database_password_file",
        group: Group::Database,
        help: "File with the password of the database, which overrides the URL's; read again for each new connection, so that it \
               can be changed while servers run; a newline at its end does not count",
        expected: "the path of a file",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.database_password_file, path(text).map(Some)),
        show: |settings| settings.database_password_file.as_ref().map(|path| path.display().to_string().into()),
    },
    Setting {
        name: "database_connections",
        group: Group::Database,
        help: "Connections that this server opens to the database",
        expected: "a number from 8 to 1000",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.database_connections, number(text, 8, 1000)),
        show: |settings| Some(show_count(settings.database_connections)),
    },
    Setting {
        name: "database_timeout",
        group: Group::Database,
        help: "How long the database may take for one statement",
        expected: "a span of time from 1s to 5m",
        kind: Kind::Value,
        read: |settings, text| {
            let allowed = Duration::from_secs(1)..=Duration::from_secs(300);
            put(&mut settings.database_timeout, value::span(text).filter(|span| allowed.contains(span)))
        },
        show: |settings| Some(value::show_span(settings.database_timeout).into()),
    },
];

fn is_kept(span: &Duration) -> bool {
    (Duration::from_secs(3600)..=Duration::from_secs(10_000 * 86_400)).contains(span)
}
