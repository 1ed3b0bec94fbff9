//! Requests and bytes by account and service.
//!
//! Accounts are those of the settings, and everything else is `other`: clients cannot add a label value.

use super::page::Page;
use larimar_wire::analytics::LOG_SERVICES;
use larimar_wire::sas::Service;
use std::collections::BTreeMap;

/// What was counted of one service of one account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    /// Answers by the first digit of their status, from 1 to 5.
    by_class: [u64; 5],
    received_bytes: u64,
    sent_bytes: u64,
}

impl Traffic {
    pub(super) fn count(&mut self, status: u16, received_bytes: u64, sent_bytes: u64) {
        self.by_class[usize::from(status / 100).clamp(1, 5) - 1] += 1;
        self.received_bytes += received_bytes;
        self.sent_bytes += sent_bytes;
    }

    fn add(&mut self, other: &Self) {
        for (sum, count) in self.by_class.iter_mut().zip(other.by_class) {
            *sum += count;
        }
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
    }
}

/// Where the requests of a service are counted; `place` is the account's, if it is served here.
pub(super) fn index(service: Service, place: Option<usize>) -> usize {
    let account = place.filter(|place| *place < ACCOUNTS_MAX).map_or(0, |place| place + 1);
    let service = LOG_SERVICES.iter().position(|known| *known == service).expect("all services are in the list");
    account * LOG_SERVICES.len() + service
}

/// The sum over the shards by account and service.
#[derive(Default)]
pub(super) struct TrafficSum(BTreeMap<(String, &'static str), Traffic>);

impl TrafficSum {
    /// Adds what a shard has counted; `names` are the accounts by their places.
    pub(super) fn add(&mut self, shard: &[Traffic], names: &[String]) {
        for (accounts, traffic) in shard.chunks(LOG_SERVICES.len()).enumerate() {
            let name = accounts.checked_sub(1).and_then(|place| names.get(place)).map_or(OTHER, String::as_str);
            for (service, traffic) in LOG_SERVICES.iter().zip(traffic) {
                if traffic.by_class != [0; 5] {
                    self.0.entry((name.to_owned(), service.name())).or_default().add(traffic);
                }
            }
        }
    }

    pub(super) fn render(&self, page: &mut Page) {
        let name = "larimar_account_requests_total";
        page.family(name, "counter", "Requests by service, account and class of the status.");
        for ((account, service), traffic) in &self.0 {
            for (class, count) in (1..).zip(traffic.by_class).filter(|(_, count)| *count > 0) {
                let labels = format!("service=\"{service}\",account=\"{account}\",class=\"{class}xx\"");
                page.line(name, &labels, count);
            }
        }
        self.bytes(page, "larimar_account_received_bytes_total", "Bytes of bodies that were received.", |traffic| {
            traffic.received_bytes
        });
        let help = "Bytes of the bodies of answers, also if a client did not take all of them.";
        self.bytes(page, "larimar_account_sent_bytes_total", help, |traffic| traffic.sent_bytes);
    }

    fn bytes(&self, page: &mut Page, name: &str, help: &str, figure: fn(&Traffic) -> u64) {
        page.family(name, "counter", help);
        for ((account, service), traffic) in &self.0 {
            page.line(name, &format!("service=\"{service}\",account=\"{account}\""), figure(traffic));
        }
    }
}

/// Accounts with series of their own, in the order in which they were configured. It bounds the memory of the shards and
/// the length of the page.
pub(super) const ACCOUNTS_MAX: usize = 1000;

/// Requests whose address names no account of this server, and the accounts beyond [`ACCOUNTS_MAX`].
const OTHER: &str = "other";
