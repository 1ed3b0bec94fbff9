//! Calls on pairs of partitions: transactions in either, and pages over both.
//!
//! Between the two partitions lie many rows that no call changes, so that a page over both takes several reads of the
//! store. It has to show both at one moment.

use super::{Answer, Shared, Worker, if_match, refusal, version};
use crate::history::{Condition, partition};
use crate::http::{Batch, BatchReply, Client, entity as entity_json, entity_path};
use std::collections::{BTreeMap, BTreeSet};

/// The rows of a pair of partitions: the first half of them is in the one, the other half in the other.
const ROWS: usize = 6;
/// The partition between, and its rows: more than a store reads in one go under a filter.
const FILLER: &str = "f";
const FILLER_ROWS: usize = 600;

/// Stores the rows that lie between the partitions of every pair.
pub(super) fn fill(shared: &Shared) {
    let client = Client::new(shared.targets.get(0));
    let rows: Vec<usize> = (0..FILLER_ROWS).collect();
    for rows in rows.chunks(100) {
        let add = |batch: Batch, row: &usize| batch.insert(&client, &shared.table, FILLER, &format!("{row:04}"), "");
        let reply = rows.iter().fold(Batch::new(), add).send(&client);
        assert!(reply.statuses().iter().all(|status| *status < 300), "{}", reply.outer);
    }
}

/// Which partition of its pair a row is in.
const fn half_of(row: usize) -> usize {
    row * 2 / ROWS
}

/// The partition of half a pair.
fn partition_of(name: &str, half: usize) -> String {
    format!("{}-{name}", ["a", "z"][half])
}

/// The keys of a row.
fn key(name: &str, row: usize) -> (String, String) {
    (partition_of(name, half_of(row)), format!("r{row}"))
}

/// Calls on partitions.
impl Worker {
    pub(super) fn play_partition(&mut self, server: usize, name: &str) -> bool {
        let choice = self.dice.below(100);
        let half = self.dice.below(2) as usize;
        let mut known = self.seen.get(name).cloned().unwrap_or_default();
        known.retain(|row, _| half_of(*row) == half);
        if choice < 40 || (choice >= 85 && known.len() < 2) {
            return self.play_page(server, name);
        }
        let mut rows: Vec<usize> = (0..ROWS).filter(|row| half_of(*row) == half).collect();
        if choice >= 85 {
            rows = known.keys().copied().collect();
        }
        // Any order, so that transactions meet each other's rows the wrong way round.
        for at in (1..rows.len()).rev() {
            rows.swap(at, self.dice.below(at as u64 + 1) as usize);
        }
        rows.truncate(2 + self.dice.below(rows.len() as u64 - 1) as usize);
        let condition = |row: &usize| match choice {
            40..65 => (Condition::Any, false),
            65..75 => (Condition::Absent, false),
            75..85 => (Condition::Present, true),
            85..95 => (Condition::Version(known[row]), false),
            _ => (Condition::Version(known[row]), row.is_multiple_of(2)),
        };
        let writes: Vec<partition::Write> = rows
            .iter()
            .map(|row| (row, condition(row)))
            .map(|(row, (condition, is_delete))| partition::Write { row: *row, condition, is_delete })
            .collect();
        self.transact(server, name, writes)
    }

    fn transact(&mut self, server: usize, name: &str, writes: Vec<partition::Write>) -> bool {
        use partition::{Action, Outcome};
        let (table, value) = (self.shared.table.clone(), self.shared.history.value());
        let (span, answer) = self.send(server, |client| {
            let members = format!(r#""Put":{value}"#);
            let add = |batch: Batch, write: &partition::Write| {
                let (pk, row) = key(name, write.row);
                let path = entity_path(&table, &pk, &row);
                let header = if_match(write.condition).map(|etag| format!("If-Match: {etag}"));
                let headers: Vec<&str> = header.as_deref().into_iter().collect();
                match (write.is_delete, write.condition) {
                    (true, _) => batch.operation(client, "DELETE", &path, &headers, ""),
                    (false, Condition::Absent) => batch.insert(client, &table, &pk, &row, &members),
                    _ => batch.operation(client, "PUT", &path, &headers, &entity_json(&pk, &row, &members)),
                }
            };
            writes.iter().fold(Batch::new(), add).request(client)
        });
        let outcome = match answer {
            Answer::Unsent => return false,
            Answer::Broken => Outcome::Unknown,
            Answer::Reply(reply) => outcome_of(&BatchReply::new(reply), &writes),
        };
        if let Outcome::Done(versions) = &outcome {
            let seen = self.seen.entry(name.to_owned()).or_default();
            for (write, version) in writes.iter().zip(versions) {
                match version {
                    Some(version) => drop(seen.insert(write.row, *version)),
                    None => drop(seen.remove(&write.row)),
                }
            }
        }
        let is_known = outcome != Outcome::Unknown;
        self.count(matches!(outcome, Outcome::Done(_)), !is_known);
        self.shared.history.partition(name, partition::Call { span, action: Action::Transact(value, writes), outcome });
        is_known
    }

    /// Reads a page that takes one read of the store, several look-ups, several ranges, or many rows under a filter.
    fn play_page(&mut self, server: usize, name: &str) -> bool {
        let (one, other) = (partition_of(name, 0), partition_of(name, 1));
        let both = format!("PartitionKey eq '{one}' or PartitionKey eq '{other}'");
        match self.dice.below(5) {
            0 => {
                let half = self.dice.below(2) as usize;
                let rows = (0..ROWS).filter(|row| half_of(*row) == half).collect();
                let filter = format!("PartitionKey eq '{}'", partition_of(name, half));
                self.read_rows(server, name, rows, &filter)
            }
            1 => self.read_pair(server, name),
            2 => {
                let rows: BTreeSet<usize> = (0..ROWS).filter(|_| self.dice.below(3) > 0).chain([0, ROWS - 1]).collect();
                let point = |row: &usize| {
                    let (partition, row) = key(name, *row);
                    format!("(PartitionKey eq '{partition}' and RowKey eq '{row}')")
                };
                let filter = rows.iter().map(point).collect::<Vec<_>>().join(" or ");
                self.read_rows(server, name, rows, &filter)
            }
            3 => {
                let filter = format!("(PartitionKey eq '{FILLER}' or {both}) and Put ge 0");
                self.read_rows(server, name, (0..ROWS).collect(), &filter)
            }
            _ => {
                // The last row of the first partition and the first row of the second are left out.
                let rows = (0..ROWS).filter(|row| *row != ROWS / 2 - 1 && *row != ROWS / 2).collect();
                let (last, first) = (key(name, ROWS / 2 - 1).1, key(name, ROWS / 2).1);
                let filter = format!(
                    "(PartitionKey eq '{one}' and RowKey lt '{last}') or (PartitionKey eq '{other}' and RowKey gt '{first}')"
                );
                self.read_rows(server, name, rows, &filter)
            }
        }
    }

    /// Reads both partitions by one page.
    pub(super) fn read_pair(&mut self, server: usize, name: &str) -> bool {
        let [one, other] = [0, 1].map(|half| partition_of(name, half));
        let filter = format!("PartitionKey eq '{one}' or PartitionKey eq '{other}'");
        self.read_rows(server, name, (0..ROWS).collect(), &filter)
    }

    /// Reads some rows by a filter that is about these.
    fn read_rows(&mut self, server: usize, name: &str, asked: BTreeSet<usize>, filter: &str) -> bool {
        use partition::{Action, Outcome};
        let path = format!("/{}()", self.shared.table);
        let (span, answer) = self.send(server, |client| client.get(&path).query("$filter", filter));
        let Answer::Reply(reply) = answer else {
            self.count(false, true);
            return false;
        };
        // A page that ends early, for want of time, is no read of the whole.
        if reply.header("x-ms-continuation-NextPartitionKey").is_some() {
            self.count(false, true);
            return false;
        }
        assert_eq!(reply.status, 200, "{reply}");
        let row = |found: &serde_json::Value| {
            let number = found["RowKey"].as_str().and_then(|row| row.strip_prefix('r')?.parse().ok());
            let version = version(found["odata.etag"].as_str().expect("an entity has an etag"));
            (number.expect("a row of ours"), (found["Put"].as_u64().expect("a value"), version))
        };
        let rows: BTreeMap<usize, _> = reply.values().iter().map(row).collect();
        let seen = self.seen.entry(name.to_owned()).or_default();
        seen.retain(|row, _| !asked.contains(row));
        seen.extend(rows.iter().map(|(row, (_, version))| (*row, *version)));
        self.count(true, false);
        let call = partition::Call { span, action: Action::Read(asked), outcome: Outcome::Found(rows) };
        self.shared.history.partition(name, call);
        true
    }
}

/// What a transaction's answer says.
fn outcome_of(reply: &BatchReply, writes: &[partition::Write]) -> partition::Outcome {
    let first = &reply.parts[0].response;
    if first.status < 300 {
        assert_eq!(reply.parts.len(), writes.len(), "{}", reply.outer);
        let etag = |part: &crate::http::Part| part.response.header("ETag").map(version);
        return partition::Outcome::Done(reply.parts.iter().map(etag).collect());
    }
    if first.status >= 500 {
        return partition::Outcome::Unknown;
    }
    let index = first.message().split(':').next().and_then(|index| index.parse().ok());
    partition::Outcome::Refused(index.unwrap_or_else(|| panic!("no index: {first}")), refusal(first))
}
