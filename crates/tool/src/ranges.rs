//! Reads a table in parallel: every entity exactly once, whatever the keys are and however they are distributed.
//!
//! One worker starts with the whole range of keys. A worker without work takes about half of what another has left: it
//! computes a key in the middle (`midpoint.rs`), asks with `$top=1` whether anything is beyond it, and then the busy
//! worker's range ends there. Partitions are divided first, then the rows of one partition. The busy worker keeps its
//! query and its continuation, and discards what is beyond the new end, so ranges are disjoint at any moment.
//!
//! A reader that wants to continue after an interruption takes `Parts`, and notes what is left after each.

mod midpoint;
mod span;
mod steal;
#[cfg(test)]
mod tests;

pub(crate) use span::Span;
use span::{End, Start};

use crate::Result;
use futures_util::Stream;
use larimar_client::{DynamicEntity, Filter, Query, Table};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// A parallel read of a table.
#[derive(Clone, Debug)]
pub struct Scan {
    table: Table,
    filter: Filter,
    select: Option<Vec<String>>,
    parallel: usize,
    page_size: Option<usize>,
    spans: Vec<Span>,
}

impl Scan {
    /// All entities of the table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        let filter = Filter::everything();
        Self { table, filter, select: None, parallel: PARALLEL, page_size: None, spans: vec![Span::all()] }
    }

    /// Only entities that pass this filter too.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = self.filter.and(filter);
        self
    }

    /// Only these properties, and the keys.
    #[must_use]
    pub fn select<I: IntoIterator<Item: Into<String>>>(mut self, properties: I) -> Self {
        self.select = Some(properties.into_iter().map(Into::into).collect());
        self
    }

    /// How many requests are under way at once, at least 1 (default: 8).
    #[must_use]
    pub fn parallel(mut self, parallel: usize) -> Self {
        self.parallel = parallel.max(1);
        self
    }

    /// The most entities of a page, for tests.
    #[must_use]
    pub const fn page_size(mut self, page_size: usize) -> Self {
        self.page_size = Some(page_size);
        self
    }

    /// Only the keys of these spans, which are disjoint.
    pub(crate) fn within(mut self, spans: Vec<Span>) -> Self {
        self.spans = spans;
        self
    }

    /// The entities, in pages of any order; those of a page are in the order of their keys. Dropping the stream ends the
    /// scan; so does an error.
    #[must_use]
    pub fn pages(self) -> Pages {
        Pages(self.parts())
    }

    /// The same as [`Scan::pages`], with what is left of the scan after each page.
    pub(crate) fn parts(mut self) -> Parts {
        let (sender, receiver) = mpsc::channel(self.parallel);
        let parallel = self.parallel;
        let work = Arc::new(Work {
            state: Mutex::new(State {
                waiting: std::mem::take(&mut self.spans),
                lanes: (0..parallel).map(|_| None).collect(),
                unfinished: BTreeMap::new(),
                parts: 0,
            }),
            changed: Notify::new(),
            thief: tokio::sync::Mutex::new(()),
            scan: self,
        });
        let mut workers = JoinSet::new();
        for lane in 0..parallel {
            let (work, sender) = (Arc::clone(&work), sender.clone());
            workers.spawn(async move {
                if let Err(error) = work.run(lane, &sender).await {
                    // The receiver is gone only if nobody is interested.
                    let _ = sender.send(Err(error)).await;
                }
            });
        }
        Parts { receiver: Some(receiver), _workers: workers }
    }

    /// A query of this scan's entities within a filter.
    fn query(&self, within: Filter) -> Query<DynamicEntity> {
        let mut query = self.table.query().filter(within).filter(self.filter.clone());
        if let Some(select) = &self.select {
            query = query.select(select);
        }
        match self.page_size {
            Some(page_size) => query.page_size(page_size),
            None => query,
        }
    }
}

/// The pages of a scan.
#[derive(Debug)]
pub struct Pages(Parts);

impl Stream for Pages {
    type Item = Result<Vec<DynamicEntity>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let part = Pin::new(&mut self.0).poll_next(context);
        part.map(|part| part.map(|part| part.map(Part::into_entities)))
    }
}

/// A page, and what it covers of the scan.
pub(crate) struct Part {
    pub(crate) entities: Vec<DynamicEntity>,
    number: u64,
    work: Arc<Work>,
}

impl Part {
    /// Notes that the entities are dealt with, and passes on what is left of the scan besides them. No other part is
    /// finished meanwhile.
    pub(crate) fn finish(self, note: impl FnOnce(Vec<Span>)) {
        let mut state = self.work.state();
        state.unfinished.remove(&self.number);
        let lanes = state.lanes.iter().flatten();
        let lanes = lanes.filter_map(|lane| Some(Span { start: lane.start.clone()?, end: lane.end.clone() }));
        note(state.waiting.iter().cloned().chain(lanes).chain(state.unfinished.values().cloned()).collect());
    }

    fn into_entities(mut self) -> Vec<DynamicEntity> {
        self.work.state().unfinished.remove(&self.number);
        std::mem::take(&mut self.entities)
    }
}

/// The pages of a scan, with what is left after each.
#[derive(Debug)]
pub(crate) struct Parts {
    /// None after an error: what other workers bring then would be a part without an end.
    receiver: Option<mpsc::Receiver<Result<Part>>>,
    /// Ended with the stream.
    _workers: JoinSet<()>,
}

impl Stream for Parts {
    type Item = Result<Part>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(receiver) = &mut self.receiver else { return Poll::Ready(None) };
        let page = receiver.poll_recv(context);
        if matches!(page, Poll::Ready(Some(Err(_)))) {
            self.receiver = None;
        }
        page
    }
}

/// What the workers share.
struct Work {
    scan: Scan,
    state: Mutex<State>,
    /// A page was read, or a lane has ended.
    changed: Notify,
    /// One worker at a time looks for work that it can take over.
    thief: tokio::sync::Mutex<()>,
}

struct State {
    /// What no worker has begun.
    waiting: Vec<Span>,
    /// By worker; none while it has no work.
    lanes: Vec<Option<Lane>>,
    /// What was read and not finished, by number.
    unfinished: BTreeMap<u64, Span>,
    /// How many parts there were.
    parts: u64,
}

/// What a worker has yet to read.
struct Lane {
    /// None at the end.
    start: Option<Start>,
    end: End,
    pages: u64,
    /// The partition in which no further key was found to divide the range at.
    indivisible: Option<String>,
}

impl Work {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no worker panics with the lock")
    }

    async fn run(self: &Arc<Self>, lane: usize, sender: &mpsc::Sender<Result<Part>>) -> Result<()> {
        while let Some(span) = self.next(lane).await? {
            tracing::debug!(lane, ?span, "reading");
            if !self.read(lane, sender).await? {
                return Ok(());
            }
            self.state().lanes[lane] = None;
            self.changed.notify_waiters();
        }
        Ok(())
    }

    /// Work for a worker: what waits, or a part of another's. None when all is done.
    async fn next(&self, lane: usize) -> Result<Option<Span>> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.state();
                if let Some(span) = state.waiting.pop() {
                    state.lanes[lane] = Some(Lane::new(span.clone()));
                    return Ok(Some(span));
                }
                if state.lanes.iter().all(Option::is_none) {
                    return Ok(None);
                }
            }
            if let Some(span) = self.steal(lane).await? {
                return Ok(Some(span));
            }
            changed.await;
        }
    }

    /// Reads a lane to its end. False if nobody wants to have it.
    async fn read(self: &Arc<Self>, lane: usize, sender: &mpsc::Sender<Result<Part>>) -> Result<bool> {
        while let Some(segment) = self.segment(lane) {
            let query = self.scan.query(segment.filter);
            let mut continuation = None;
            loop {
                let page = match continuation.take() {
                    Some(continuation) => query.clone().start_at(continuation).page().await?,
                    None => query.clone().page().await?,
                };
                let rest = page.continuation.is_none().then(|| segment.rest.clone());
                let (part, is_beyond) = self.advance(lane, page.entities, rest);
                self.changed.notify_waiters();
                if let Some(part) = part
                    && sender.send(Ok(part)).await.is_err()
                {
                    return Ok(false);
                }
                match page.continuation {
                    Some(next) if !is_beyond => continuation = Some(next),
                    _ => break,
                }
            }
        }
        Ok(true)
    }

    fn segment(&self, lane: usize) -> Option<span::Segment> {
        let state = self.state();
        let lane = state.lanes[lane].as_ref().expect("the lane is this worker's");
        Span { start: lane.start.clone()?, end: lane.end.clone() }.segment()
    }

    /// Notes what was read of a lane. `rest` is where the lane goes on after the last page of a segment. Returns the
    /// entities before the lane's end, which may have moved meanwhile, and whether there were others.
    fn advance(
        self: &Arc<Self>,
        lane: usize,
        mut entities: Vec<DynamicEntity>,
        rest: Option<Option<Start>>,
    ) -> (Option<Part>, bool) {
        let mut state = self.state();
        let state = &mut *state;
        let lane = state.lanes[lane].as_mut().expect("the lane is this worker's");
        let beyond = entities.iter().position(|entity| lane.end.is_before(&entity.partition_key, &entity.row_key));
        entities.truncate(beyond.unwrap_or(entities.len()));
        let before = lane.start.clone();
        match (rest, entities.last()) {
            _ if beyond.is_some() => lane.start = None,
            (Some(next), _) => lane.start = next,
            (None, Some(last)) => lane.start = Some(Start::AfterRow(last.partition_key.clone(), last.row_key.clone())),
            // An empty page before the last one says nothing about where the service is.
            (None, None) => {}
        }
        lane.pages += 1;
        let part = before.zip(entities.last()).map(|(start, last)| {
            let end = End::AfterRow(last.partition_key.clone(), last.row_key.clone());
            let number = state.parts;
            state.parts += 1;
            state.unfinished.insert(number, Span { start, end });
            number
        });
        (part.map(|number| Part { entities, number, work: Arc::clone(self) }), beyond.is_some())
    }
}

impl Lane {
    fn new(span: Span) -> Self {
        Self { start: Some(span.start), end: span.end, pages: 0, indivisible: None }
    }
}

/// How many requests are under way at once.
const PARALLEL: usize = 8;
