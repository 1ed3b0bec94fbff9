//! Reads and writes of one entity.

use super::Table;
use super::address::entity_path;
use super::json;
use super::write::{Write, WriteKind};
use crate::pipeline::{Call, Failed, Reply};
use crate::{DynamicEntity, ETag, Entity, Error, IfMatch, Result};
use http::header::IF_MATCH;
use http::{HeaderName, Method};
use tokio::time::Instant;

impl Table {
    /// The entity with these keys, if it exists (a point query).
    ///
    /// # Errors
    /// A table that does not exist, or an entity that is not an `E`.
    pub async fn get<E: Entity>(&self, partition_key: &str, row_key: &str) -> Result<Option<E>> {
        self.read(partition_key, row_key, None).await
    }

    /// The entity with these keys, if it exists, with only the properties that `E` reads ([`Entity::columns`]) sent by
    /// the service.
    ///
    /// # Errors
    /// A table that does not exist, or an entity that is not an `E`.
    pub async fn get_projection<E: Entity>(&self, partition_key: &str, row_key: &str) -> Result<Option<E>> {
        self.read(partition_key, row_key, E::columns().map(|columns| self.select(columns))).await
    }

    async fn read<E: Entity>(&self, partition_key: &str, row_key: &str, select: Option<String>) -> Result<Option<E>> {
        let mut call = self.get_call(partition_key, row_key);
        if let Some(select) = &select {
            call = call.parameter("$select", select);
        }
        match self.fetch(call, partition_key, row_key).await? {
            Some(entity) => self.open(entity, select.as_deref()).await.map(Some),
            None => Ok(None),
        }
    }

    /// The entity as it is stored, from the primary: a secondary may not have the last write yet.
    pub(super) async fn fetch_latest(&self, partition_key: &str, row_key: &str) -> Result<Option<DynamicEntity>> {
        self.fetch(self.get_call(partition_key, row_key).changing(), partition_key, row_key).await
    }

    fn get_call(&self, partition_key: &str, row_key: &str) -> Call {
        Call::new("GetEntity", Method::GET, entity_path(self.name(), partition_key, row_key))
    }

    async fn fetch(&self, call: Call, partition_key: &str, row_key: &str) -> Result<Option<DynamicEntity>> {
        match self.send(call).await {
            Ok(reply) => {
                let mut entity = json::read_entity(&reply.body)?;
                entity.etag = entity.etag.take().or_else(|| etag(&reply));
                // A projection need not name the keys, which are known.
                entity.partition_key = partition_key.to_owned();
                entity.row_key = row_key.to_owned();
                Ok(Some(entity))
            }
            Err(Failed { error, .. }) if error.is_entity_not_found() => Ok(None),
            Err(failed) => Err(failed.error),
        }
    }

    /// Inserts an entity, which must be new.
    ///
    /// # Errors
    /// An entity with the same keys exists ([`Error::is_conflict`]).
    pub async fn insert<E: Entity>(&self, entity: &E) -> Result<ETag> {
        self.write_entity(WriteKind::Insert, entity).await
    }

    /// Replaces an entity, all its properties.
    ///
    /// # Errors
    /// The entity is not there ([`Error::is_not_found`]), or changed meanwhile ([`Error::is_changed`]).
    pub async fn replace<E: Entity>(&self, entity: &E, condition: impl Into<IfMatch>) -> Result<ETag> {
        self.write_entity(WriteKind::Replace(condition.into()), entity).await
    }

    /// Changes properties of an entity and leaves those alone that are not named.
    ///
    /// # Errors
    /// The entity is not there ([`Error::is_not_found`]), or changed meanwhile ([`Error::is_changed`]).
    pub async fn merge<E: Entity>(&self, entity: &E, condition: impl Into<IfMatch>) -> Result<ETag> {
        self.write_entity(WriteKind::Merge(condition.into()), entity).await
    }

    /// Inserts an entity, or replaces the existing one.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn insert_or_replace<E: Entity>(&self, entity: &E) -> Result<ETag> {
        self.write_entity(WriteKind::InsertOrReplace, entity).await
    }

    /// Inserts an entity, or changes the properties of the existing one.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn insert_or_merge<E: Entity>(&self, entity: &E) -> Result<ETag> {
        self.write_entity(WriteKind::InsertOrMerge, entity).await
    }

    /// Deletes an entity.
    ///
    /// # Errors
    /// The entity is not there ([`Error::is_not_found`]), or changed meanwhile ([`Error::is_changed`]).
    pub async fn delete(&self, partition_key: &str, row_key: &str, condition: impl Into<IfMatch>) -> Result<()> {
        let entity = DynamicEntity::new(partition_key, row_key);
        self.write(Write { kind: WriteKind::Delete(condition.into()), entity }).await.map(drop)
    }

    async fn write_entity<E: Entity>(&self, kind: WriteKind, entity: &E) -> Result<ETag> {
        let write = self.seal(Write::new(kind, entity)?).await?;
        let etag = self.write(write).await?;
        etag.ok_or_else(|| Error::Answer("a write was answered without an ETag".to_owned()))
    }

    async fn write(&self, write: Write) -> Result<Option<ETag>> {
        Ok(self.write_once(&write).await?)
    }

    /// Sends a write. If the answer to an earlier attempt was lost and a later one is refused, what is stored shows
    /// whether the write took place.
    pub(super) async fn write_once(&self, write: &Write) -> Result<Option<ETag>, Failed> {
        let not_sent = |error| Failed { error, after_ambiguous: false };
        let started = Instant::now();
        match self.send(self.write_call(write).map_err(not_sent)?).await {
            Ok(reply) => Ok(etag(&reply)),
            Err(Failed { error, after_ambiguous: true }) if matches!(error.status(), Some(404 | 409 | 412)) => {
                let ambiguous = |error| Failed { error, after_ambiguous: true };
                let (partition, row) = (&write.entity.partition_key, &write.entity.row_key);
                let stored = self.look_up_since(started, self.fetch_latest(partition, row)).await.map_err(ambiguous)?;
                match write.is_done(stored.as_ref()) {
                    true => Ok(stored.and_then(|stored| stored.etag)),
                    false => Err(ambiguous(error)),
                }
            }
            Err(failed) => Err(failed),
        }
    }

    /// Looks up what became of a write that started at this time and whose answer was lost. The time limit is that of
    /// the write, and what is not found out stays ambiguous.
    pub(super) async fn look_up_since<T>(&self, started: Instant, found: impl Future<Output = Result<T>>) -> Result<T> {
        let limit = self.timeout.unwrap_or(self.pipeline.timeouts.call);
        match tokio::time::timeout(limit.saturating_sub(started.elapsed()), found).await {
            Ok(found) => found.map_err(Error::after_lost_answer),
            Err(_) => Err(Error::Timeout(limit)),
        }
    }

    fn write_call(&self, write: &Write) -> Result<Call> {
        let is_merge = matches!(write.kind, WriteKind::Merge(_) | WriteKind::InsertOrMerge);
        // Cosmos DB knows MERGE only behind a POST.
        let behind_post = is_merge && self.pipeline.primary.is_cosmos();
        let method = if behind_post { Method::POST } else { write.method() };
        let mut call = Call::new(write.name(), method, write.path(self.name()));
        if behind_post {
            call = call.header(X_HTTP_METHOD, "MERGE");
        }
        if let Some(condition) = write.if_match() {
            // Some services take an empty one for none.
            if condition.is_empty() {
                return Err(Error::Invalid("expected an ETag that is not empty".to_owned()));
            }
            call = call.header_text(IF_MATCH, condition)?;
        }
        if let Some(body) = write.body() {
            call = call.body("application/json;odata=nometadata", body);
        }
        if write.kind == WriteKind::Insert {
            call = call.header(PREFER, "return-no-content");
        }
        Ok(call)
    }
}

fn etag(reply: &Reply) -> Option<ETag> {
    reply.headers.get(http::header::ETAG)?.to_str().ok().map(ETag::new)
}

pub(super) const PREFER: HeaderName = HeaderName::from_static("prefer");
const X_HTTP_METHOD: HeaderName = HeaderName::from_static("x-http-method");
