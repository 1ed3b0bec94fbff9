//! The list of settings, in four files, and how their texts are read.

mod accounts;
mod data;
mod limits;
mod services;

use super::engine::Password;
use super::value::{self, Wrong};
use super::{Group, Kind, Setting};
use larimar_server::AdminToken;
use std::path::PathBuf;
use std::time::Duration;

/// Every setting, in the order in which they are shown.
pub(crate) fn all_settings() -> impl Iterator<Item = &'static Setting> {
    [services::SETTINGS, data::SETTINGS, accounts::SETTINGS, limits::SETTINGS].into_iter().flatten()
}

fn put<T>(place: &mut T, value: Option<T>) -> Result<(), Wrong> {
    *place = value.ok_or(Wrong::Unexpected)?;
    Ok(())
}

fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

fn password(text: &str) -> Option<Password> {
    (!text.is_empty()).then(|| Password(text.to_owned()))
}

fn admin_token(text: &str) -> Option<Password> {
    AdminToken::new(text).ok().map(|_| Password(text.to_owned()))
}

fn number(text: &str, least: usize, most: usize) -> Option<usize> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

fn size(text: &str, least: u64, most: u64) -> Option<u64> {
    value::bytes(text).filter(|bytes| (least..=most).contains(bytes))
}

fn timeout(text: &str) -> Option<Duration> {
    value::span(text).filter(|span| (Duration::from_millis(100)..=24 * HOUR).contains(span))
}

fn show_count(count: usize) -> toml::Value {
    i64::try_from(count).unwrap_or(i64::MAX).into()
}

const HOUR: Duration = Duration::from_secs(3600);
const HOST: &str = "an IP address or a host name";
const PORT: &str = "a port number from 0 to 65535";
pub(crate) const ADMIN_TOKEN: &str = "16 to 256 printable ASCII characters without spaces";
const SWITCH: &str = "true or false";
const TIMEOUT: &str = "a span of time from 100ms to 24h, such as 30s or 5m";
