//! Copies a container: its settings, then its blobs page by page, several at a time.

use super::blob::{self, Outcome};
use super::checksum::{self, Checksum};
use super::state::Prepared;
use super::{Copier, Difference, prepare};
use crate::{Error, Result};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use larimar_client::{BlobItem, BlobPage, Container, ListOptions};

impl Copier {
    pub(super) async fn copy_container(&self, name: &str) -> Result<()> {
        let (from, to) = (self.from.account.container(name), self.to.account.container(name));
        self.prepare_container(name, &from, &to).await?;
        let with_tags = self.has_tags(&from, name).await?;
        while let Some(marker) = self.state.with(|state| {
            let container = &state.containers[name];
            (!container.is_copied).then(|| container.marker.clone())
        }) {
            let page = page(&from, marker, with_tags).await?;
            let copies = page.blobs.into_iter().map(|item| async {
                let name = item.name.clone();
                let outcome = blob::copy(&self.reader, &from, &to, item, with_tags).await;
                self.progress.add(1);
                outcome.map(|outcome| (name, outcome)).map_err(Error::from)
            });
            let outcomes: Vec<_> = stream::iter(copies).buffer_unordered(self.parallel).try_collect().await?;
            self.state.with(|state| {
                let container = state.containers.get_mut(name).expect("the plan has it");
                for (blob, outcome) in outcomes {
                    match outcome {
                        Outcome::Copied(digest) => container.done.add(digest),
                        Outcome::Gone => {}
                        Outcome::Refused(reason) => {
                            container.refused_count += 1;
                            if container.refused.len() < REFUSED_NAMED {
                                container.refused.push(format!("{blob}: {reason}"));
                            }
                        }
                    }
                }
                container.is_copied = page.marker.is_none();
                container.marker = page.marker;
            });
            self.state.save_sometimes()?;
        }
        self.state.save()
    }

    async fn prepare_container(&self, name: &str, from: &Container, to: &Container) -> Result<()> {
        let prepared = self.state.with(|state| state.containers[name].prepared);
        if prepared == Prepared::Yes {
            return Ok(());
        }
        if prepared == Prepared::Replace {
            to.delete_container_if_exists().await?;
        }
        prepare::create(|| to.create_if_missing()).await?;
        let metadata = from.metadata().await?;
        if !metadata.is_empty() {
            to.set_metadata(&metadata).await?;
        }
        let access = async {
            let access = from.access().await?;
            if access != larimar_client::ContainerAccess::default() { to.set_access(&access).await } else { Ok(()) }
        };
        self.note_refusal(access.await, || format!("public access and stored policies of container '{name}'"))?;
        self.state.with(|state| state.containers.get_mut(name).expect("the plan has it").prepared = Prepared::Yes);
        self.state.save()
    }

    /// Whether blobs can be listed with their tags. Some accounts have none, and some signatures do not show them.
    async fn has_tags(&self, container: &Container, name: &str) -> Result<bool> {
        let mut pages = container.list_pages(ListOptions::default().tags(true).page_size(1));
        match pages.try_next().await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.status(), Some(400 | 403 | 409 | 501)) => {
                page(container, None, false).await?;
                self.progress.note(&format!("tags in container '{name}' are not copied: {error}"));
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Compares the container at the destination with what was read at the source.
    pub(super) async fn verify_container(&self, name: &str) -> Result<Option<Difference>> {
        let container = self.to.account.container(name);
        let state = self.state.with(|state| state.containers[name].clone());
        let with_tags = self.has_tags(&container, name).await?;
        let mut found = Checksum::default();
        let mut marker = None;
        loop {
            let page = page(&container, marker, with_tags).await?;
            let digests = page.blobs.into_iter().map(|item| self.digest(&container, item));
            let digests: Vec<_> = stream::iter(digests).buffer_unordered(self.parallel).try_collect().await?;
            digests.into_iter().for_each(|digest| found.add(digest));
            marker = page.marker;
            if marker.is_none() {
                break;
            }
        }
        if state.refused_count > 0 {
            let named = state.refused.join("; ");
            let text = format!("{} blobs of container '{name}' were not copied: {named}", state.refused_count);
            return Ok(Some(Difference(text)));
        }
        Ok(Difference::between("container", name, state.done, found))
    }

    async fn digest(&self, container: &Container, item: BlobItem) -> Result<u128> {
        let blob = container.blob(item.name.as_str());
        let content = self.reader.read(&blob, &item, |_| async { Ok(()) }).await?;
        self.progress.add(1);
        Ok(checksum::blob(&item, content))
    }
}

async fn page(container: &Container, marker: Option<String>, with_tags: bool) -> Result<BlobPage> {
    let options = ListOptions::default().tags(with_tags).page_size(PAGE_BLOBS);
    let options = match marker {
        Some(marker) => options.start_at(marker),
        None => options,
    };
    Ok(container.list_pages(options).try_next().await?.unwrap_or_default())
}

/// Blobs between two entries in the state file.
const PAGE_BLOBS: usize = 200;
/// Blobs that the report names.
const REFUSED_NAMED: usize = 10;
