//! Reads the rows of a space slice by slice, the next one while one is worked on.

use larimar_engine::{BackupSnapshot, OwnedRow, Position, ReadError, SpaceId, SpaceKind};
use std::sync::Arc;
use tokio::task::JoinHandle;

use crate::error::BackupError;

/// The rows of a space from a position on.
pub(crate) struct Slices<S> {
    snapshot: Arc<S>,
    kind: Option<SpaceKind>,
    space: SpaceId,
    next: Option<Next>,
    /// Whether the next slice is read in a task of its own. A backup that spares requests counts reading as work.
    is_ahead: bool,
}

enum Next {
    At(Position),
    Reading(Reading),
}

type Slice = (Vec<OwnedRow>, Option<Position>);

/// A slice that is being read; dropping it ends that.
struct Reading(JoinHandle<Result<Slice, ReadError>>);

impl<S: BackupSnapshot> Slices<S> {
    pub(crate) fn new(
        snapshot: &Arc<S>,
        kind: Option<SpaceKind>,
        space: SpaceId,
        start: Position,
        is_ahead: bool,
    ) -> Self {
        Self { snapshot: Arc::clone(snapshot), kind, space, next: Some(Next::At(start)), is_ahead }
    }

    /// The next rows; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<OwnedRow>>, BackupError> {
        let (rows, after) = match self.next.take() {
            None => return Ok(None),
            Some(Next::At(start)) => self.snapshot.slice(self.kind, self.space, start).await?,
            Some(Next::Reading(mut reading)) => (&mut reading.0).await.map_err(BackupError::thread)??,
        };
        self.next = after.map(|start| if self.is_ahead { self.read(start) } else { Next::At(start) });
        Ok(Some(rows))
    }

    fn read(&self, start: Position) -> Next {
        let (snapshot, kind, space) = (Arc::clone(&self.snapshot), self.kind, self.space);
        Next::Reading(Reading(tokio::spawn(async move { snapshot.slice(kind, space, start).await })))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.abort();
    }
}
