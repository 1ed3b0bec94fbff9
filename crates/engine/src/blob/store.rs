//! Reads the rows of a blob's partition, and converts errors of the engine.

use super::Blobs;
use super::access::BlobRef;
use super::bytes::{ByteStore, Extent};
use super::change::contended;
use super::reject::BlobReject;
use super::row::BlobRow;
use super::work_slice::{ITEM_BYTES, WorkSlice};
use crate::contract::{Budget, Engine, Flow, Key, KeyRange, Position, RowRef};
use crate::error::{EngineError, Fault, ReadError, WriteError};
use larimar_model::Timestamp;
use std::time::{Duration, Instant};

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Reads the row of a blob or of a snapshot, with its version.
    pub(crate) async fn load(&self, at: BlobRef<'_>, row: &str) -> Result<Option<(Timestamp, BlobRow)>, EngineError> {
        let key = Key { space: at.container, partition: at.name.as_str(), row };
        let found = self.engine.get(key, |row| row.map(|row| (row.version, BlobRow::decode(row.body)))).await;
        match found.map_err(read_error)? {
            Some((version, row)) => Ok(Some((version, row?))),
            None => Ok(None),
        }
    }

    /// Visits the rows of a blob in a range of names, until the visitor stops. Yields to other tasks.
    pub(crate) async fn visit_rows(
        &self,
        at: BlobRef<'_>,
        (from, to): (&str, &str),
        mut visit: impl FnMut(RowRef<'_>) -> Result<Flow, Fault> + Send,
    ) -> Result<(), EngineError> {
        let partition = at.name.as_str();
        let mut range = KeyRange { start: Position::new(partition, from), end: Some(Position::new(partition, to)) };
        let mut slice = WorkSlice::default();
        loop {
            let mut outcome = Ok(Flow::Continue);
            let budget = Budget { rows_max: SCAN_ROWS, deadline: Instant::now() + SCAN_TIME };
            let next = self.engine.scan(at.container, &range, budget, |row| {
                outcome = visit(row);
                match &outcome {
                    Ok(Flow::Continue) if slice.is_full_after(1 + row.body.len() / ITEM_BYTES) => Flow::Pause,
                    Ok(flow) => *flow,
                    Err(_) => Flow::StopHere,
                }
            });
            let next = next.await.map_err(read_error)?;
            match (outcome?, next) {
                (Flow::Continue | Flow::Pause, Some(next)) => range.start = next,
                (Flow::StopHere, _) | (Flow::Continue | Flow::Pause, None) => return Ok(()),
            }
        }
    }

    /// The name of the first row of a blob in a range of names.
    pub(crate) async fn first_row(
        &self,
        at: BlobRef<'_>,
        (from, to): (&str, &str),
    ) -> Result<Option<String>, EngineError> {
        let partition = at.name.as_str();
        let range = KeyRange { start: Position::new(partition, from), end: Some(Position::new(partition, to)) };
        let budget = Budget { rows_max: 1, deadline: Instant::now() + SCAN_TIME };
        let mut first = None;
        let scan = self.engine.scan(at.container, &range, budget, |row| {
            first = Some(row.row.to_owned());
            Flow::StopHere
        });
        scan.await.map_err(read_error)?;
        Ok(first)
    }

    /// Returns the result of an operation, and discards its payloads if it was rejected. After a fault it is unknown
    /// whether they are in use; a later pass finds out.
    pub(crate) fn settle<T>(&self, result: Result<T, EngineError>, payloads: &[Extent]) -> Result<T, EngineError> {
        if let Err(EngineError::Reject(_)) = &result
            && !payloads.is_empty()
        {
            self.bytes.discard(payloads.to_vec());
        }
        result
    }
}

/// Converts an error of a read.
pub(crate) fn read_error(error: ReadError) -> EngineError {
    match error {
        ReadError::SpaceGone => BlobReject::ContainerNotFound.into(),
        ReadError::Fault(fault) => fault.into(),
    }
}

/// Converts an error of a write.
pub(crate) fn write_error(error: WriteError) -> EngineError {
    match error {
        WriteError::Refused { reason, .. } => EngineError::Reject(reason),
        WriteError::SpaceGone => BlobReject::ContainerNotFound.into(),
        WriteError::Fault(fault) => fault.into(),
        WriteError::Condition { .. } => contended(),
    }
}

const SCAN_ROWS: usize = 1000;
const SCAN_TIME: Duration = Duration::from_secs(5);
