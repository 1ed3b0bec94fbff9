//! Several queries at once: of partitions that are known, or of ranges of keys.

use super::Table;
use super::pages::{self, Page};
use super::query::Query;
use crate::{DynamicEntity, Entity, EntityError, Filter, Result, keys};
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use larimar_model::utf16;
use std::collections::VecDeque;
use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Queries that are run several at a time, each with a filter of its own.
///
/// Entities come as they arrive, or in order ([`ParallelQuery::in_order`]). No more than
/// [`ParallelQuery::concurrency`] queries are under way, and as many pages in memory.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// # let table = account.table("Employees");
/// # table.create_if_missing().await?;
/// use futures_util::TryStreamExt as _;
/// use larimar_client::DynamicEntity;
/// # for partition in ["Sales", "Marketing", "Support"] {
/// #     table.insert(&DynamicEntity::new(partition, "1")).await?;
/// # }
///
/// let mut employees = table
///     .query_partitions::<DynamicEntity>(["Support", "Sales", "Marketing"])
///     .concurrency(2)
///     .in_order()
///     .stream();
/// let mut departments = Vec::new();
/// while let Some(employee) = employees.try_next().await? {
///     departments.push(employee.partition_key);
/// }
/// assert_eq!(departments, ["Marketing", "Sales", "Support"]);
/// # Ok(())
/// # }
/// ```
#[must_use = "queries are sent when their answer is asked for"]
pub struct ParallelQuery<T> {
    query: Query<T>,
    filters: Vec<Filter>,
    concurrency: usize,
    in_order: bool,
}

impl Table {
    /// Queries each partition, several at a time. A partition that is named twice is queried once.
    pub fn query_partitions<E: Entity + Send + 'static>(
        &self,
        partition_keys: impl IntoIterator<Item = impl Into<String>>,
    ) -> ParallelQuery<E> {
        let mut partitions: Vec<String> = partition_keys.into_iter().map(Into::into).collect();
        partitions.sort_by(|left, right| utf16::compare(left, right));
        partitions.dedup();
        self.query_each(partitions.into_iter().map(|partition| keys::partition_key().eq(partition)))
    }

    /// A query for each of these filters, several at a time: of ranges of keys, for example, into which a large scan is
    /// divided. An entity that passes several filters comes several times.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = larimar_embedded::Larimar::ephemeral().await?;
    /// # let account = larimar_client::Account::connect(&server.connection_string())?;
    /// # let table = account.table("Employees");
    /// # table.create_if_missing().await?;
    /// use larimar_client::{DynamicEntity, keys};
    /// # for partition in ["Aaron", "Miller", "Zoe"] {
    /// #     table.insert(&DynamicEntity::new(partition, "1")).await?;
    /// # }
    /// let partition = keys::partition_key();
    /// let ranges = [partition.lt("H"), partition.between("H", "Q"), partition.ge("Q")];
    /// assert_eq!(table.query_each::<DynamicEntity>(ranges).in_order().all().await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn query_each<E: Entity + Send + 'static>(
        &self,
        filters: impl IntoIterator<Item = Filter>,
    ) -> ParallelQuery<E> {
        let filters = filters.into_iter().collect();
        ParallelQuery { query: self.query(), filters, concurrency: CONCURRENCY, in_order: false }
    }
}

impl<T: Send + 'static> ParallelQuery<T> {
    /// How many queries are under way at most, at least 1 (default: 8).
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency.max(1);
        self
    }

    /// Has entities come query by query: those of [`Table::query_partitions`] in the order of their keys, those of
    /// [`Table::query_each`] in the order of the filters. The first pages of the next queries are fetched meanwhile.
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// Asks only for entities that pass this filter too.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.query = self.query.filter(filter);
        self
    }

    /// The most entities of one page; see [`Query::page_size`].
    pub fn page_size(mut self, page_size: usize) -> Self {
        self.query = self.query.page_size(page_size);
        self
    }

    /// The most entities in all.
    pub fn limit(mut self, limit: usize) -> Self {
        self.query = self.query.limit(limit);
        self
    }

    /// Has the service send only these properties, and the keys; see [`Query::select`].
    pub fn select<I>(mut self, properties: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.query = self.query.select(properties);
        self
    }

    /// Reads the entities into another type and has the service send only what that type reads; see
    /// [`Query::project`].
    pub fn project<P: Entity + Send + 'static>(self) -> ParallelQuery<P> {
        self.with(Query::project)
    }

    /// Makes the values of the answer by a function; see [`Query::resolve`].
    pub fn resolve<U, F>(self, resolver: F) -> ParallelQuery<U>
    where
        U: Send + 'static,
        F: Fn(DynamicEntity) -> Result<U, EntityError> + Send + Sync + 'static,
    {
        self.with(|query| query.resolve(resolver))
    }

    /// The entities of all queries. Dropping the stream ends them; so does an error.
    pub fn stream(self) -> impl Stream<Item = Result<T>> + Send + Unpin + use<T> {
        let Self { query, filters, concurrency, in_order } = self;
        let limit = query.ask.limit.unwrap_or(usize::MAX);
        let queries = filters.into_iter().map(move |filter| query.clone().filter(filter));
        let entities = if in_order {
            let pages = InOrder { waiting: queries, started: VecDeque::new(), concurrency };
            pages.map_ok(|page| stream::iter(page.entities.into_iter().map(Ok))).try_flatten().boxed()
        } else {
            stream::iter(queries.map(Query::stream)).flatten_unordered(concurrency).boxed()
        };
        // What other queries bring after an error would be a part without an end.
        let entities = entities.scan(false, |failed, entity| {
            let is_after = std::mem::replace(failed, *failed || entity.is_err());
            ready((!is_after).then_some(entity))
        });
        entities.take(limit).boxed()
    }

    /// All entities of all queries, in memory. Use [`ParallelQuery::stream`] for many.
    ///
    /// # Errors
    /// The first error of a query.
    pub async fn all(self) -> Result<Vec<T>> {
        self.stream().try_collect().await
    }

    fn with<U>(self, change: impl FnOnce(Query<T>) -> Query<U>) -> ParallelQuery<U> {
        let Self { query, filters, concurrency, in_order } = self;
        ParallelQuery { query: change(query), filters, concurrency, in_order }
    }
}

impl<T> Clone for ParallelQuery<T> {
    fn clone(&self) -> Self {
        Self { query: self.query.clone(), filters: self.filters.clone(), ..*self }
    }
}

impl<T> fmt::Debug for ParallelQuery<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { query, filters, concurrency, in_order } = self;
        f.debug_struct("ParallelQuery")
            .field("query", query)
            .field("filters", filters)
            .field("concurrency", concurrency)
            .field("in_order", in_order)
            .finish()
    }
}

/// The pages of queries, query by query. Of those that are not due yet, one page each is fetched.
struct InOrder<T, I> {
    waiting: I,
    started: VecDeque<Started<T>>,
    concurrency: usize,
}

struct Started<T> {
    pages: BoxStream<'static, Result<Page<T>>>,
    /// What came and is not due yet: a page, or the end.
    arrived: Option<Option<Result<Page<T>>>>,
}

// Nothing in it is pinned in place: streams are boxed.
impl<T, I> Unpin for InOrder<T, I> {}

impl<T: Send + 'static, I: Iterator<Item = Query<T>>> Stream for InOrder<T, I> {
    type Item = Result<Page<T>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            while self.started.len() < self.concurrency
                && let Some(query) = self.waiting.next()
            {
                self.started.push_back(Started { pages: pages::pages(query), arrived: None });
            }
            for part in self.started.iter_mut().filter(|part| part.arrived.is_none()) {
                if let Poll::Ready(arrived) = part.pages.poll_next_unpin(cx) {
                    part.arrived = Some(arrived);
                }
            }
            let Some(due) = self.started.front_mut() else { return Poll::Ready(None) };
            match due.arrived.take() {
                None => return Poll::Pending,
                Some(Some(page)) => return Poll::Ready(Some(page)),
                Some(None) => drop(self.started.pop_front()),
            }
        }
    }
}

const CONCURRENCY: usize = 8;
