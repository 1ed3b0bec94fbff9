//! `--seed`: fills an empty store from exported files before the server serves, and again after `POST /reset`.
//!
//! The rows go the way of `larimar import`: over the protocol, to a Table service on a port of its own, with a key that
//! only this process knows. A record in the store (`larimar_engine::SeedRecord`) says that it is not complete. After a
//! crash the next start finds the record, drops the tables that it names and fills them anew.

use crate::serve::Running;
use crate::settings::engine::EngineChoice;
use crate::settings::{Resolved, Settings, SettingsError};
use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_engine::table::{delete_table, list_tables};
use larimar_engine::{
    Clock as _, Engine, EngineError, Reject, SeedRecord, SystemClock, load_seed_record, remove_seed_record,
    store_seed_record,
};
use larimar_server::{Account, AccountKey, AdminToken, Listener, ListenerSettings, Metrics, Storage, TableService};
use larimar_tool::seed::{self, SeedFile};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

/// What a server fills its store with.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    directory: PathBuf,
    /// The accounts of the server.
    accounts: Vec<String>,
    files: Vec<SeedFile>,
}

impl Seed {
    /// The files of the directory that the settings name.
    pub(crate) fn find(resolved: &Resolved) -> Result<Option<Self>, SettingsError> {
        let Settings { seed, accounts, .. } = &resolved.settings;
        let Some(directory) = seed.clone() else { return Ok(None) };
        let accounts: Vec<String> = accounts.iter().map(|account| account.name.clone()).collect();
        let files =
            find_files(&directory, &accounts).map_err(|error| resolved.refused_because("seed", error.to_string()))?;
        Ok(Some(Self { directory, accounts, files }))
    }
}

/// Refuses a store that is only partly filled.
pub(crate) async fn check_filled(engine: &impl Engine) -> anyhow::Result<()> {
    let record = load_seed_record(engine).await?;
    ensure!(
        record.is_none_or(|record| record.tables.is_empty()),
        "the store holds only a part of the files that another start was filling it with; start with --seed and their \
         directory to fill it again, or with --seed and an empty directory to drop those tables"
    );
    Ok(())
}

/// Fills a store.
pub(crate) struct Seeder<E> {
    engine: Arc<E>,
    seed: Seed,
    /// Whether other servers may use the store.
    is_shared: bool,
    one: Mutex<()>,
}

impl<E: Engine> Seeder<E> {
    pub(crate) fn new(engine: Arc<E>, seed: Seed, settings: &Settings) -> Self {
        Self { engine, seed, is_shared: settings.engine != EngineChoice::Local, one: Mutex::default() }
    }

    /// Fills the store if it is empty or was not filled completely. Waits while another server fills it.
    pub(crate) async fn fill_if_empty(&self) -> anyhow::Result<()> {
        let _one = self.one.lock().await;
        let directory = self.seed.directory.display();
        let Some(claim) = self.claim(true).await? else {
            tracing::info!(%directory, "the store is not empty, so it is not filled");
            return Ok(());
        };
        self.fill(claim, &self.seed.files.iter().collect::<Vec<_>>()).await
    }

    /// Fills accounts that were emptied.
    pub(crate) async fn fill_again(&self, accounts: &[String]) -> anyhow::Result<()> {
        let _one = self.one.lock().await;
        // They may be others than at the start.
        let found = find_files(&self.seed.directory, &self.seed.accounts)?;
        let files: Vec<_> = found.iter().filter(|file| accounts.contains(&file.account)).collect();
        if files.is_empty() {
            return Ok(());
        }
        match self.claim(false).await? {
            Some(claim) => self.fill(claim, &files).await,
            None => Ok(()),
        }
    }

    /// Claims the store, if it is empty or that does not matter. The record that is returned names the tables of a filling
    /// that was not finished.
    async fn claim(&self, only_if_empty: bool) -> anyhow::Result<Option<SeedRecord>> {
        let engine = &*self.engine;
        let (mut seen, mut since) = (None, Instant::now());
        loop {
            let found = load_seed_record(engine).await?;
            if found.is_none() && only_if_empty && !self.is_empty().await? {
                return Ok(None);
            }
            let version = found.as_ref().map(|record| record.version);
            if version != seen {
                if seen.is_none() && self.is_shared && version.is_some() {
                    tracing::info!("another server fills the store, or did not finish; waiting for it");
                }
                (seen, since) = (version, Instant::now());
            }
            if self.is_shared && version.is_some() && since.elapsed() < STALE_AFTER {
                tokio::time::sleep(POLL).await;
                continue;
            }
            let unfinished = found.as_ref().map_or_else(Vec::new, |record| record.tables.clone());
            let claimed = store_seed_record(engine, found.as_ref(), unfinished, SystemClock.now()).await?;
            let Some(claim) = claimed else { continue };
            // Another server may have filled the store between the look at it and the claim.
            if only_if_empty && claim.tables.is_empty() && !self.is_empty().await? {
                remove_seed_record(engine, &claim, SystemClock.now()).await?;
                return Ok(None);
            }
            return Ok(Some(claim));
        }
    }

    /// Whether the accounts that are filled have no table.
    async fn is_empty(&self) -> anyhow::Result<bool> {
        for account in accounts(self.seed.files.iter()) {
            if !list_tables(&*self.engine, account, "", 1).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fills the store. What an earlier filling left is dropped first.
    async fn fill(&self, claim: SeedRecord, files: &[&SeedFile]) -> anyhow::Result<()> {
        let engine = &*self.engine;
        for (account, table) in &claim.tables {
            match delete_table(engine, account, table).await {
                Ok(()) | Err(EngineError::Reject(Reject::TableNotFound)) => {}
                Err(error) => return Err(error).context("what an earlier start wrote cannot be dropped"),
            }
        }
        let directory = self.seed.directory.display();
        tracing::info!(%directory, tables = files.len(), "filling the store");
        let tables = files.iter().map(|file| (file.account.clone(), file.table.clone())).collect();
        let mut record = store_seed_record(engine, Some(&claim), tables, SystemClock.now()).await?.context(TAKEN)?;
        let mut importing = std::pin::pin!(self.import(files));
        let rows = loop {
            tokio::select! {
                rows = &mut importing => break rows.with_context(|| format!("the store cannot be filled from {directory}"))?,
                () = tokio::time::sleep(RENEW_EVERY), if self.is_shared => {
                    // Other servers see that the filling goes on.
                    let renewed = store_seed_record(engine, Some(&record), record.tables.clone(), SystemClock.now());
                    record = renewed.await?.context(TAKEN)?;
                }
            }
        };
        ensure!(remove_seed_record(engine, &record, SystemClock.now()).await?, TAKEN);
        tracing::info!(%directory, tables = files.len(), rows, "filled the store");
        Ok(())
    }

    /// Imports the files one after the other. Returns the number of rows.
    async fn import(&self, files: &[&SeedFile]) -> anyhow::Result<u64> {
        let key = STANDARD.encode(AdminToken::generate().context("no key could be made")?);
        let account_key = AccountKey::from_base64(&key)?;
        let account = |name: &str| Account { name: name.to_owned(), keys: vec![account_key.clone()] };
        let accounts = accounts(files.iter().copied()).into_iter().map(account).collect();
        let settings = larimar_server::Settings { accounts, ..larimar_server::Settings::default() };
        let metrics = Arc::new(Metrics::default());
        let storage = Storage::new(Arc::clone(&self.engine), Arc::new(SystemClock), settings, Arc::clone(&metrics));
        let socket = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on 127.0.0.1")?;
        let address = socket.local_addr()?;
        let listener = Listener::new(Arc::new(TableService::new(storage)), metrics, ListenerSettings::default());
        let _service = Running::start(listener, socket);
        let mut rows = 0;
        for file in files {
            let SeedFile { account, table, .. } = file;
            let endpoint = format!("TableEndpoint=http://{address}/{account}");
            let imported = file.import(&format!("AccountName={account};AccountKey={key};{endpoint}")).await?;
            tracing::info!(account, table = table.as_str(), rows = imported, "filled a table");
            rows += imported;
        }
        Ok(rows)
    }
}

fn find_files(directory: &Path, accounts: &[String]) -> larimar_tool::Result<Vec<SeedFile>> {
    seed::find(directory, &accounts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The accounts of files, each once.
fn accounts<'a>(files: impl Iterator<Item = &'a SeedFile>) -> BTreeSet<&'a str> {
    files.map(|file| file.account.as_str()).collect()
}

const TAKEN: &str = "another server took over the filling of the store";
/// How often a server shows the others that it still fills the store.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// After this time without such a sign another server takes over. A statement of the database may take 15 seconds.
const STALE_AFTER: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(250);
