//! Queries: what is asked for, and the ways to take the answer. `pages.rs` holds how it comes, page by page.

use super::Table;
use super::explain::Explanation;
use super::pages::{self, Continuation, Page};
use crate::{BoxFuture, DynamicEntity, Entity, EntityError, Filter, Result, keys};
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A query of a table's entities, which come in the order of their keys.
///
/// Nothing is sent before the answer is asked for: as a stream of entities ([`Query::stream`]) or of pages
/// ([`Query::pages`]), as one page ([`Query::page`]), as all of them ([`Query::all`]) or as the first
/// ([`Query::first`]).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// # let table = account.table("Employees");
/// # table.create_if_missing().await?;
/// use futures_util::TryStreamExt as _;
/// use larimar_client::{Column, DynamicEntity};
/// # for (row, age) in [("1", 31), ("2", 45), ("3", 29)] {
/// #     table.insert(&DynamicEntity::new("Sales", row).with("Age", age)).await?;
/// # }
///
/// let age: Column<i32> = Column::named("Age");
/// let mut grown = table.query::<DynamicEntity>().partition("Sales").filter(age.gt(30)).stream();
/// while let Some(employee) = grown.try_next().await? {
///     println!("{} is {}", employee.row_key, employee.get::<i32>("Age")?);
/// }
///
/// let eldest = table.query::<DynamicEntity>().filter(age.ge(40)).first().await?;
/// assert_eq!(eldest.map(|employee| employee.row_key).as_deref(), Some("2"));
/// # Ok(())
/// # }
/// ```
#[must_use = "a query is sent when its answer is asked for"]
pub struct Query<T> {
    pub(super) ask: Ask,
    pub(super) read: Reader<T>,
}

/// What is asked of the service.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) table: Table,
    pub(super) filter: Filter,
    /// The properties to send, or all.
    pub(super) select: Option<Vec<Cow<'static, str>>>,
    pub(super) page_size: Option<usize>,
    pub(super) limit: Option<usize>,
    pub(super) start: Option<Continuation>,
    /// The value of `x-larimar-explain`.
    pub(super) explain: Option<&'static str>,
}

/// Makes values of a page's entities, of which this `$select` was asked for.
pub(super) type Reader<T> =
    Arc<dyn Fn(Table, Vec<DynamicEntity>, Option<String>) -> BoxFuture<'static, Result<Vec<T>>> + Send + Sync>;

impl Table {
    /// A query of this table's entities: all of them, until it is narrowed.
    pub fn query<E: Entity + Send + 'static>(&self) -> Query<E> {
        let ask = Ask {
            table: self.clone(),
            filter: Filter::everything(),
            select: None,
            page_size: None,
            limit: None,
            start: None,
            explain: None,
        };
        Query { ask, read: entity_reader() }
    }
}

impl<T: Send + 'static> Query<T> {
    /// Asks only for this partition, which is what makes a query quick: it reads one part of the table.
    pub fn partition(self, partition_key: impl AsRef<str>) -> Self {
        self.filter(keys::partition_key().eq(partition_key.as_ref()))
    }

    /// Asks only for entities that pass this filter, and every other that was given.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.ask.filter = self.ask.filter.and(filter);
        self
    }

    /// The most entities of one page, from 1 to 1000; other numbers are clamped.
    ///
    /// It is a matter of how many requests there are. [`Query::limit`] says how many entities are wanted.
    pub fn page_size(mut self, page_size: usize) -> Self {
        self.ask.page_size = Some(page_size.clamp(1, PAGE_SIZE_MAX));
        self
    }

    /// The most entities in all. No more than these are asked for.
    pub fn limit(mut self, limit: usize) -> Self {
        self.ask.limit = Some(limit);
        self
    }

    /// Has the service send only these properties, and the keys. Any other is absent from the entities.
    ///
    /// [`Query::project`] names the properties of a type by itself.
    pub fn select<I>(mut self, properties: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let mut select = KEYS.map(Cow::Borrowed).to_vec();
        for property in properties {
            if !select.iter().any(|name| name == property.as_ref()) {
                select.push(Cow::Owned(property.as_ref().to_owned()));
            }
        }
        self.ask.select = Some(select);
        self
    }

    /// Reads the entities into another type, usually a smaller one, and has the service send only what that type reads
    /// ([`Entity::columns`]).
    pub fn project<P: Entity + Send + 'static>(mut self) -> Query<P> {
        self.ask.select = P::columns();
        Query { ask: self.ask, read: entity_reader() }
    }

    /// Makes the values of the answer by a function, for a table that holds entities of several types.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = larimar_embedded::Larimar::ephemeral().await?;
    /// # let account = larimar_client::Account::connect(&server.connection_string())?;
    /// # let table = account.table("Company");
    /// # table.create_if_missing().await?;
    /// use larimar_client::DynamicEntity;
    ///
    /// #[derive(Debug, PartialEq)]
    /// enum Record {
    ///     Department { budget: i64 },
    ///     Employee { name: String },
    /// }
    ///
    /// table.insert(&DynamicEntity::new("Sales", "department").with("Budget", 5_000_i64)).await?;
    /// table.insert(&DynamicEntity::new("Sales", "employee_1").with("Name", "Don")).await?;
    /// let records = table.query::<DynamicEntity>().partition("Sales").resolve(|entity| {
    ///     Ok(match entity.row_key.as_str() {
    ///         "department" => Record::Department { budget: entity.get("Budget")? },
    ///         _ => Record::Employee { name: entity.get("Name")? },
    ///     })
    /// });
    /// let records = records.all().await?;
    /// assert_eq!(records, [Record::Department { budget: 5_000 }, Record::Employee { name: "Don".to_owned() }]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn resolve<U, F>(self, resolver: F) -> Query<U>
    where
        U: Send + 'static,
        F: Fn(DynamicEntity) -> Result<U, EntityError> + Send + Sync + 'static,
    {
        let resolver = Arc::new(resolver);
        let read: Reader<U> = Arc::new(move |table, entities, select| {
            let resolver = Arc::clone(&resolver);
            Box::pin(async move {
                let entities: Vec<DynamicEntity> = table.open_all(entities, select.as_deref()).await?;
                Ok(entities.into_iter().map(&*resolver).collect::<Result<_, _>>()?)
            })
        });
        Query { ask: self.ask, read }
    }

    /// Makes other values of those of the answer, by a function.
    ///
    /// ```
    /// # use larimar_client::{Account, DynamicEntity};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let table = Account::connect("UseDevelopmentStorage=true")?.table("Employees");
    /// let ages = table.query::<DynamicEntity>().partition("Sales").try_map(|employee| employee.get::<i32>("Age"));
    /// # let _: larimar_client::Query<i32> = ages;
    /// # Ok(()) }
    /// ```
    pub fn try_map<U, F>(self, map: F) -> Query<U>
    where
        U: Send + 'static,
        F: Fn(T) -> Result<U, EntityError> + Send + Sync + 'static,
    {
        let (map, read) = (Arc::new(map), self.read);
        let read: Reader<U> = Arc::new(move |table, entities, select| {
            let (map, values) = (Arc::clone(&map), read(table, entities, select));
            Box::pin(async move { Ok(values.await?.into_iter().map(&*map).collect::<Result<_, _>>()?) })
        });
        Query { ask: self.ask, read }
    }

    /// Starts where a page of the same query ended, be it in another process.
    pub fn start_at(mut self, continuation: Continuation) -> Self {
        self.ask.start = Some(continuation);
        self
    }

    /// Asks the server to explain each page: how it found the rows, how many it read, and how long that took
    /// ([`Page::explanation`]). Larimar does so, unless it is strict; other services ignore it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = larimar_embedded::Larimar::ephemeral().await?;
    /// # let account = larimar_client::Account::connect(&server.connection_string())?;
    /// # let table = account.table("Employees");
    /// # table.create_if_missing().await?;
    /// use larimar_client::{Column, DynamicEntity};
    /// # for (row, age) in [("1", 31), ("2", 45), ("3", 29)] {
    /// #     table.insert(&DynamicEntity::new("Sales", row).with("Age", age)).await?;
    /// # }
    ///
    /// let age: Column<i32> = Column::named("Age");
    /// let query = table.query::<DynamicEntity>().partition("Sales").filter(age.gt(30));
    /// let explanation = query.clone().explain().page().await?.explanation.expect("Larimar explains");
    /// assert_eq!(explanation.plan, r#"partition-scan ["Sales"/"" .. "Sales\0"/"")"#);
    /// assert_eq!((explanation.rows_read, explanation.rows_returned), (3, 2));
    ///
    /// let planned = query.plan().await?.expect("Larimar explains");
    /// assert_eq!((planned.plan, planned.rows_read), (explanation.plan, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn explain(mut self) -> Self {
        self.ask.explain = Some("true");
        self
    }

    /// Has the server plan the query without running it. None if it does not explain queries: see [`Query::explain`].
    ///
    /// # Errors
    /// A table that does not exist, or a filter that the service does not take.
    pub async fn plan(mut self) -> Result<Option<Explanation>> {
        self.ask.explain = Some("plan");
        // A service that ignores the header runs the query: one entity is enough.
        Ok(pages::fetch(&self.ask, &self.read, self.ask.start.as_ref(), Some(1)).await?.explanation)
    }

    /// The entities, as they are asked for: a page is fetched when the one before it is used up, and dropping the
    /// stream ends the query. The stream ends after an error.
    ///
    /// An entity that is not a `T` fails the page it is on; [`DynamicEntity`] takes all of them.
    pub fn stream(self) -> impl Stream<Item = Result<T>> + Send + Unpin + use<T> {
        // A boxed stream needs no pinning by the caller.
        self.pages().map_ok(|page| stream::iter(page.entities.into_iter().map(Ok))).try_flatten().boxed()
    }

    /// The entities in pages. A page may have fewer entities than [`Query::page_size`], or none, before the last one.
    ///
    /// With a [`Query::limit`], the last page within it has the continuation of what is beyond it.
    pub fn pages(self) -> impl Stream<Item = Result<Page<T>>> + Send + Unpin + use<T> {
        pages::pages(self)
    }

    /// One page: one request. [`Page::continuation`] is for the next.
    ///
    /// # Errors
    /// A table that does not exist, a filter that the service does not take, or an entity that is not a `T`.
    pub async fn page(self) -> Result<Page<T>> {
        match self.ask.limit {
            Some(0) => Ok(Page { entities: Vec::new(), continuation: self.ask.start, explanation: None }),
            limit => pages::fetch(&self.ask, &self.read, self.ask.start.as_ref(), limit).await,
        }
    }

    /// All entities of the answer, in memory. Use [`Query::stream`] for many.
    ///
    /// # Errors
    /// A table that does not exist, a filter that the service does not take, or an entity that is not a `T`.
    pub async fn all(self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        let mut pages = self.pages();
        while let Some(page) = pages.try_next().await? {
            all.extend(page.entities);
        }
        Ok(all)
    }

    /// The first entity of the answer, if there is one. No other is asked for.
    ///
    /// # Errors
    /// A table that does not exist, a filter that the service does not take, or an entity that is not a `T`.
    pub async fn first(self) -> Result<Option<T>> {
        let limit = self.ask.limit.map_or(1, |limit| limit.min(1));
        self.limit(limit).stream().try_next().await
    }
}

impl<T> Clone for Query<T> {
    fn clone(&self) -> Self {
        Self { ask: self.ask.clone(), read: Arc::clone(&self.read) }
    }
}

impl<T> fmt::Debug for Query<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ask.fmt(f)
    }
}

fn entity_reader<E: Entity + Send + 'static>() -> Reader<E> {
    Arc::new(|table, entities, select| Box::pin(async move { table.open_all(entities, select.as_deref()).await }))
}

const KEYS: [&str; 2] = ["PartitionKey", "RowKey"];

/// The most entities that the service sends at once.
pub(super) const PAGE_SIZE_MAX: usize = 1000;
