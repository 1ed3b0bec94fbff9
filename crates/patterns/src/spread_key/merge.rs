//! Ordered streams merged into one, by row key.

use crate::Result;
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A row key as the service compares it, by UTF-16 code units, and as Rust compares it.
pub(super) fn order(row_key: &str) -> Vec<u16> {
    row_key.encode_utf16().collect()
}

/// Merges streams of which each is ordered. All are asked for their first item side by side, and later each one when its
/// item has been taken.
pub(super) fn by_row_key<T, S>(sources: Vec<S>) -> impl Stream<Item = Result<T>> + Send + Unpin + use<T, S>
where
    T: Send + 'static,
    S: Stream<Item = larimar_client::Result<(Vec<u16>, T)>> + Send + Unpin + 'static,
{
    stream::once(start(sources)).try_flatten().boxed()
}

async fn start<T, S>(sources: Vec<S>) -> Result<impl Stream<Item = Result<T>> + Send>
where
    T: Send + 'static,
    S: Stream<Item = larimar_client::Result<(Vec<u16>, T)>> + Send + Unpin + 'static,
{
    let first: Vec<_> = stream::iter(sources.into_iter().map(first)).buffered(CONCURRENT_MAX).try_collect().await?;
    let mut heap = BinaryHeap::new();
    let mut sources = Vec::with_capacity(first.len());
    for (index, (item, source)) in first.into_iter().enumerate() {
        heap.extend(item.map(|(order, value)| Reverse(Head { order, index, value })));
        sources.push(source);
    }
    Ok(stream::try_unfold((heap, sources), |(mut heap, mut sources)| async move {
        let Some(Reverse(head)) = heap.pop() else { return Ok(None) };
        if let Some((order, value)) = sources[head.index].next().await.transpose()? {
            heap.push(Reverse(Head { order, index: head.index, value }));
        }
        Ok(Some((head.value, (heap, sources))))
    }))
}

/// The first item of a source, and the source.
async fn first<I, S>(mut source: S) -> Result<(Option<I>, S)>
where
    S: Stream<Item = larimar_client::Result<I>> + Unpin,
{
    let item = source.next().await.transpose()?;
    Ok((item, source))
}

/// The next item of a source.
struct Head<T> {
    order: Vec<u16>,
    index: usize,
    value: T,
}

impl<T> Ord for Head<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (&self.order, self.index).cmp(&(&other.order, other.index))
    }
}

impl<T> PartialOrd for Head<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Head<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Head<T> {}

/// Requests at a time, for the first items.
const CONCURRENT_MAX: usize = 32;
