//! T5, denormalisation: an entity carries what is wanted of another, and one transaction changes both.
//!
//! To show a department with its manager's name takes two reads, unless the department carries the name. A table has
//! no join, so the copy is kept where it is read; both entities lie in one partition, so one transaction keeps
//! them in step.
//!
//! ```text
//! PartitionKey  RowKey        Name   Phone      ManagerId  ManagerName  ManagerPhone
//! Sales         department    Sales             000123     Don Hall     555-0100
//! Sales         empid_000123  Don Hall 555-0100                  ↑ written together ↑
//! ```
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = larimar_embedded::Larimar::ephemeral().await?;
//! # let account = larimar_client::Account::connect(&server.connection_string())?;
//! # account.table("Company").create_if_missing().await?;
//! use larimar_client::Entity;
//! use larimar_patterns::denormalised::{Denormalised, Embeds};
//!
//! #[derive(Entity)]
//! struct Employee {
//!     #[entity(partition_key)]
//!     department: String,
//!     #[entity(row_key)]
//!     id: String,
//!     name: String,
//! }
//!
//! #[derive(Entity)]
//! #[entity(row_key = "department")]
//! struct Department {
//!     #[entity(partition_key)]
//!     name: String,
//!     manager_id: String,
//!     manager_name: String,
//! }
//!
//! impl Embeds<Employee> for Department {
//!     fn embeds(&self, manager: &Employee) -> bool {
//!         self.manager_id == manager.id
//!     }
//!
//!     fn embed(&mut self, manager: &Employee) {
//!         self.manager_id.clone_from(&manager.id);
//!         self.manager_name.clone_from(&manager.name);
//!     }
//! }
//!
//! let company = account.table("Company");
//! # let (department, id, name) = ("Sales".to_owned(), "empid_000123".to_owned(), "Don Hall".to_owned());
//! # company.insert(&Employee { department, id, name }).await?;
//! # let [name, manager_id, manager_name] = ["Sales", "", ""].map(str::to_owned);
//! # company.insert(&Department { name, manager_id, manager_name }).await?;
//! let managers = Denormalised::<Employee, Department>::new(company.clone());
//! managers.assign("Sales", "empid_000123", "department").await?;
//! managers.update("Sales", "empid_000123", &["department"], |don| don.name = "Donald Hall".to_owned()).await?;
//! let sales = company.get::<Department>("Sales", "department").await?.expect("it is there");
//! assert_eq!(sales.manager_name, "Donald Hall");
//! # Ok(()) }
//! ```
//!
//! **Guarantees.** [`Denormalised::update`] and [`Denormalised::assign`] change both entities in one transaction under
//! the condition of both versions. A reader sees the old pair or the new one, and writers that meet cannot leave a copy
//! that differs. This holds while the embedded properties are changed only through this type, and an update is given
//! all entities that embed the one it changes.
//!
//! **Cost.** Reading the department with its manager is one request. A change reads the entities side by side, one
//! request for each, and writes them with one.

use crate::contention::Contention;
use crate::stored::{Versioned, check_keys};
use crate::{Error, Result};
use futures_util::future::{try_join, try_join_all};
use larimar_client::{Entity, Table};
use std::marker::PhantomData;

/// An entity that carries properties of another one.
pub trait Embeds<S>: Entity {
    /// Whether it carries those of this one.
    fn embeds(&self, source: &S) -> bool;

    /// Takes over the properties of this one, and what identifies it.
    fn embed(&mut self, source: &S);
}

/// Entities of type `H` that carry properties of entities of type `S`, in the same partition.
#[derive(Debug)]
pub struct Denormalised<S, H> {
    table: Table,
    types: PhantomData<fn() -> (S, H)>,
}

impl<S, H> Denormalised<S, H>
where
    S: Entity + Send + Sync,
    H: Embeds<S> + Send + Sync,
{
    /// The pairs of a table, which must be there.
    #[must_use]
    pub const fn new(table: Table) -> Self {
        Self { table, types: PhantomData }
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Changes an entity by a function, and with it those of the holders that carry its properties: one request for the
    /// entity and for each holder, and one for the transaction. If another writer was faster, all is done again.
    ///
    /// What was written comes back; `None` if the entity is not there. A holder that does not exist, or carries another
    /// entity's properties, is left alone. Properties that `S` and `H` do not know ([`Entity::columns`]) are kept.
    ///
    /// # Errors
    /// More than 99 holders, [`Error::Contended`] if other writers are always faster, or a request that failed.
    pub async fn update(
        &self,
        partition_key: &str,
        source: &str,
        holders: &[&str],
        mut change: impl FnMut(&mut S) + Send,
    ) -> Result<Option<S>> {
        if holders.len() > HOLDERS_MAX {
            return Err(Error::Invalid(format!("expected at most {HOLDERS_MAX} holders, found {}", holders.len())));
        }
        let mut contention = Contention::default();
        let row_key = source;
        loop {
            let read = try_join(
                self.table.get::<Versioned<S>>(partition_key, row_key),
                try_join_all(holders.iter().map(|holder| self.table.get::<Versioned<H>>(partition_key, holder))),
            );
            let (Some(mut source), holders) = read.await? else { return Ok(None) };
            let holders = holders.into_iter().flatten().filter(|holder| holder.entity.embeds(&source.entity));
            let mut holders: Vec<_> = holders.collect();
            change(&mut source.entity);
            check_keys(&source.entity, partition_key, row_key)?;
            for holder in &mut holders {
                holder.entity.embed(&source.entity);
            }
            match self.write(&source, &holders).await {
                Err(Error::Changed) => contention.wait("an entity").await?,
                other => return other.map(|()| Some(source.entity)),
            }
        }
    }

    /// Has a holder carry the properties of this entity, and no longer those of another: three requests. If another
    /// writer was faster, all is done again.
    ///
    /// What the holder became comes back. Properties that `S` and `H` do not know ([`Entity::columns`]) are kept.
    ///
    /// # Errors
    /// [`Error::NotFound`] if one of them is not there, [`Error::Contended`] if other writers are always faster, or a
    /// request that failed.
    pub async fn assign(&self, partition_key: &str, source: &str, holder: &str) -> Result<H> {
        let mut contention = Contention::default();
        loop {
            let read = try_join(
                self.table.get::<Versioned<S>>(partition_key, source),
                self.table.get::<Versioned<H>>(partition_key, holder),
            );
            let (Some(source), Some(mut holder)) = read.await? else { return Err(Error::NotFound) };
            holder.entity.embed(&source.entity);
            // The entity is written unchanged: a concurrent writer then sees this holder.
            match self.write(&source, std::slice::from_ref(&holder)).await {
                Err(Error::Changed) => contention.wait("an entity").await?,
                other => return other.map(|()| holder.entity),
            }
        }
    }

    async fn write(&self, source: &Versioned<S>, holders: &[Versioned<H>]) -> Result<()> {
        let mut transaction = self.table.transaction();
        transaction.replace(source, &source.etag).map_err(larimar_client::Error::from)?;
        for holder in holders {
            transaction.replace(holder, &holder.etag).map_err(larimar_client::Error::from)?;
        }
        match transaction.submit().await {
            // A deleted entity changed too: the next read shows it.
            Err(error) if error.is_changed() || error.is_entity_not_found() => Err(Error::Changed),
            other => Ok(other.map(drop)?),
        }
    }
}

impl<S, H> Clone for Denormalised<S, H> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), types: PhantomData }
    }
}

/// Together with the entity itself, as many as a transaction takes.
const HOLDERS_MAX: usize = 99;
