//! Settings of accounts, host names, TLS and strictness.

use super::{Group, Kind, SWITCH, Setting, Wrong, path, put, value};
use crate::settings::account::accounts;

pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        name: "accounts",
        group: Group::Accounts,
        help: "Accounts with one or two keys in Base64, as name:key[:key2];…",
        expected: "name:key[:key2];… (in the file also [[accounts]] with name, key, key2), each name once and of \
                   letters, digits, - and _, keys in Base64",
        kind: Kind::Secret,
        read: |settings, text| accounts(text).map(|read| settings.accounts = read).map_err(Wrong::Because),
        show: crate::settings::show::accounts,
    },
    Setting {
        name: "allow_well_known_key",
        group: Group::Accounts,
        help: "Start with the public key of devstoreaccount1 also where other machines can reach the services; for tests",
        expected: SWITCH,
        kind: Kind::Switch,
        read: |settings, text| put(&mut settings.allow_well_known_key, value::switch(text)),
        show: |settings| Some(settings.allow_well_known_key.into()),
    },
    Setting {
        name: "host_suffixes",
        group: Group::Accounts,
        help: "Domains below which an account is a host: table.example.com serves ACCOUNT.table.example.com",
        expected: "domains separated by commas, such as table.example.com",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.host_suffixes, value::domains(text)),
        show: |settings| Some(settings.host_suffixes.clone().into()),
    },
    Setting {
        name: "tls_certificate",
        group: Group::Accounts,
        help: "File with the certificate chain in PEM; the services and the admin endpoint then speak TLS",
        expected: "the path of a file",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.tls_certificate, path(text).map(Some)),
        show: |settings| settings.tls_certificate.as_ref().map(|path| path.display().to_string().into()),
    },
    Setting {
        name: "tls_key",
        group: Group::Accounts,
        help: "File with the private key in PEM",
        expected: "the path of a file",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.tls_key, path(text).map(Some)),
        show: |settings| settings.tls_key.as_ref().map(|path| path.display().to_string().into()),
    },
    Setting {
        name: "sas_version_min",
        group: Group::Accounts,
        help: "Refuse shared access signatures of an older version (sv); default: accept all, as the service does",
        expected: "the date of a version, such as 2018-11-09",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.sas_version_min, value::version(text).map(Some)),
        show: |settings| settings.sas_version_min.clone().map(Into::into),
    },
    Setting {
        name: "strict",
        group: Group::Diagnostics,
        help: "Refuse unknown versions, keep a deleted table's name busy for a while, throttle at the published targets",
        expected: SWITCH,
        kind: Kind::Switch,
        read: |settings, text| put(&mut settings.strict, value::switch(text)),
        show: |settings| Some(settings.strict.into()),
    },
];
