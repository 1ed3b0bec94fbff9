//! What goes into which group, and which group is next. It knows nothing of time or network.

use crate::table::Table;
use crate::table::transaction::{Transaction, TransactionRefusal};
use crate::table::write::Write;
use larimar_model::limits;
use std::collections::{HashMap, HashSet, VecDeque};

/// Operations that are sent as one transaction.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) transaction: Transaction,
    /// Which operations they are.
    pub(super) operations: Vec<usize>,
}

/// The operations that are not done yet, by partition.
#[derive(Debug)]
pub(super) struct Groups {
    table: Table,
    lanes: HashMap<String, Lane>,
    /// Partitions that have a group which may be sent now, because it is full.
    full: VecDeque<String>,
    /// Partitions in the order in which they came. One that is gone is passed over.
    waiting: VecDeque<String>,
    /// Operations that are held, those under way among them.
    held: usize,
    held_bytes: usize,
}

/// The groups of one partition, in their order. Only one of them is under way at a time.
#[derive(Debug, Default)]
struct Lane {
    /// None of them is empty, and only the last may take further operations.
    groups: VecDeque<Group>,
    is_running: bool,
}

impl Group {
    /// Whether it can take no more operations, so that there is nothing to wait for.
    const fn is_full(&self) -> bool {
        self.operations.len() == limits::TRANSACTION_OPERATIONS_MAX
    }
}

impl Groups {
    pub(super) fn new(table: &Table) -> Self {
        Self {
            table: table.clone(),
            lanes: HashMap::new(),
            full: VecDeque::new(),
            waiting: VecDeque::new(),
            held: 0,
            held_bytes: 0,
        }
    }

    /// How many operations are held.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// How many bytes of requests are held.
    pub(super) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes an operation, unless no group could have it.
    pub(super) fn push(&mut self, operation: usize, write: Write) -> Result<(), TransactionRefusal> {
        let Some(lane) = self.lanes.get_mut(&write.entity.partition_key) else {
            return self.push_group(operation, write);
        };
        let (is_only, is_running) = (lane.groups.len() == 1, lane.is_running);
        let Some(last) = lane.groups.back_mut() else { return self.push_group(operation, write) };
        let before = last.transaction.size();
        match last.transaction.push(write) {
            Ok(()) => {
                last.operations.push(operation);
                self.held += 1;
                self.held_bytes += last.transaction.size() - before;
                if is_only && !is_running && last.is_full() {
                    self.full.extend(last.transaction.partition_key().map(str::to_owned));
                }
                Ok(())
            }
            Err(refused) => match refused.reason {
                TransactionRefusal::TooManyOperations
                | TransactionRefusal::TooLarge { .. }
                | TransactionRefusal::EntityTwice { .. } => self.push_group(operation, refused.write),
                reason => Err(reason),
            },
        }
    }

    /// Takes an operation into a group of its own, after those of its partition.
    fn push_group(&mut self, operation: usize, write: Write) -> Result<(), TransactionRefusal> {
        let partition = write.entity.partition_key.clone();
        let mut transaction = self.table.transaction();
        transaction.push(write).map_err(|refused| refused.reason)?;
        self.held += 1;
        self.held_bytes += transaction.size();
        let lane = self.lanes.entry(partition.clone()).or_default();
        lane.groups.push_back(Group { transaction, operations: vec![operation] });
        match lane.groups.len() {
            _ if lane.is_running => {}
            1 => self.wait(partition),
            // The one before it takes no more.
            2 => self.full.push_back(partition),
            _ => {}
        }
        Ok(())
    }

    fn wait(&mut self, partition: String) {
        self.waiting.push_back(partition);
        // What is passed over would otherwise gather while only full groups are sent.
        if self.waiting.len() > 2 * self.lanes.len() + 16 {
            let mut seen = HashSet::new();
            let lanes = &self.lanes;
            self.waiting.retain(|partition| lanes.contains_key(partition) && seen.insert(partition.clone()));
        }
    }

    /// The next group to send: a full one, or else, if `any` will do, that of the partition that has waited longest.
    pub(super) fn next(&mut self, any: bool) -> Option<Group> {
        while let Some(partition) = self.full.pop_front().or_else(|| any.then(|| self.waiting.pop_front()).flatten()) {
            let lane = self.lanes.get_mut(&partition).filter(|lane| !lane.is_running);
            if let Some(lane) = lane
                && let Some(group) = lane.groups.pop_front()
            {
                lane.is_running = true;
                return Some(group);
            }
        }
        None
    }

    /// A group of this partition and size is done.
    pub(super) fn done(&mut self, partition: &str, operations: usize, bytes: usize) {
        self.held -= operations;
        self.held_bytes -= bytes;
        let Some(lane) = self.lanes.get_mut(partition) else { return };
        lane.is_running = false;
        match lane.groups.len() {
            0 => drop(self.lanes.remove(partition)),
            1 if !lane.groups[0].is_full() => self.wait(partition.to_owned()),
            _ => self.full.push_back(partition.to_owned()),
        }
    }
}
