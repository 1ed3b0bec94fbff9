//! Restores of single tables, queues and containers into the server, as its admin endpoint starts, shows and cancels them.

use super::place;
use larimar_backup::{Key, SingleJob, Wanted};
use larimar_bytes::AnyBytes;
use larimar_engine::{Engine, SpaceKind};
use larimar_server::{NotStarted, RestoreRequest, Restores, Storage};
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::RwLock;

/// The restores of a server.
pub(crate) struct ServedRestores<E> {
    job: SingleJob<E, AnyBytes>,
    storage: Arc<Storage<E>>,
    /// The key of the places of backups.
    key: Option<Key>,
}

impl<E: Engine> ServedRestores<E> {
    pub(crate) fn new(
        engine: Arc<E>,
        bytes: Option<Arc<AnyBytes>>,
        storage: Arc<Storage<E>>,
        key: Option<Key>,
        removal: Arc<RwLock<()>>,
    ) -> Self {
        let are_payloads_local = !matches!(bytes.as_deref(), Some(AnyBytes::Objects(_)));
        Self { job: SingleJob::new(engine, bytes, are_payloads_local, removal), storage, key }
    }

    /// What a request asks for.
    fn wanted(&self, request: &RestoreRequest) -> Result<Vec<Wanted>, String> {
        let served = self.storage.account_names();
        let account = match (&request.account, &served[..]) {
            (Some(account), _) => account,
            (None, [only]) => only,
            _ => return Err("the server has several accounts: say which one the backup's is (account)".to_owned()),
        };
        let to_account = request.to_account.as_ref().unwrap_or(account);
        if !served.contains(to_account) {
            return Err(format!("{to_account:?} is not an account of this server, which has {}", served.join(", ")));
        }
        let kinds = [
            (SpaceKind::Table, &request.tables),
            (SpaceKind::Queue, &request.queues),
            (SpaceKind::Container, &request.containers),
        ];
        let names = kinds.iter().flat_map(|(kind, names)| names.iter().map(|name| (*kind, name)));
        let wanted: Vec<Wanted> =
            names.map(|(kind, name)| Wanted::read(kind, name, account, to_account)).collect::<Result<_, _>>()?;
        let mut targets = HashSet::new();
        match wanted.iter().find(|wanted| !targets.insert((wanted.kind, &wanted.to_name))) {
            Some(twice) => Err(format!("{twice} is the name of two of them")),
            None => Ok(wanted),
        }
    }
}

impl<E: Engine> Restores for ServedRestores<E> {
    fn start(&self, request: &RestoreRequest) -> Result<(), NotStarted> {
        let place = place("FROM", &request.from).map_err(|error| NotStarted::Refused(error.to_string()))?;
        if let Some(path) = place.as_directory().filter(|path| !path.is_absolute()) {
            return Err(NotStarted::Refused(format!("expected an absolute path, found {}", path.display())));
        }
        let place = match &self.key {
            Some(key) => place.encrypted(key),
            None => place,
        };
        let rate = request.rate.as_deref().map(str::parse).transpose().map_err(NotStarted::Refused)?;
        let wanted = self.wanted(request).map_err(NotStarted::Refused)?;
        let started = self.job.start(place, request.generation.clone(), wanted, rate.unwrap_or_default());
        started.map_err(|running| NotStarted::Running(running.to_string()))
    }

    fn status(&self) -> String {
        serde_json::to_string(&self.job.status()).expect("a status has no map") + "\n"
    }

    fn cancel(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(self.job.cancel())
    }
}
