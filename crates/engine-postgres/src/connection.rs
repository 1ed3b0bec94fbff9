//! One connection: opened, set up, and watched until it ends.

use crate::connections::OpenGuard;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::health::Health;
use crate::settings::{Target, chain};
use crate::statements::{FromRow, Query, Statement};
use futures_util::future::poll_fn;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::error::Elapsed;
use tokio_postgres::error::Severity;
use tokio_postgres::{AsyncMessage, Client, Error, Row, RowStream, Statement as Prepared};

/// A session with the database. Dropping it ends the session at once, also while a statement runs.
pub(crate) struct Connection {
    client: Client,
    driver: AbortHandle,
    /// By their names.
    prepared: Mutex<FxHashMap<&'static str, Prepared>>,
    /// Whether the database warned since the last commit.
    warned: Arc<AtomicBool>,
    dialect: Dialect,
    timeout: Duration,
    lock_timeout: Mutex<Duration>,
    health: Arc<Health>,
    _open_guard: OpenGuard,
}

impl Connection {
    /// Connects and sets the session up. A statement fails if it waits longer than `lock_timeout` for a lock.
    pub(crate) async fn open(
        target: &Target,
        lock_timeout: Duration,
        health: &Arc<Health>,
        open_guard: OpenGuard,
    ) -> Result<Self, ConnectError> {
        let config = target.config().await?;
        let (client, connection) = tokio::time::timeout(target.timeout, config.connect(target.tls.clone())).await??;
        let warned = Arc::new(AtomicBool::new(false));
        let driver = drive(connection, Arc::clone(&warned)).abort_handle();
        let connection = Self {
            client,
            driver,
            prepared: Mutex::default(),
            warned,
            dialect: target.dialect,
            timeout: target.timeout,
            lock_timeout: Mutex::new(lock_timeout),
            health: Arc::clone(health),
            _open_guard: open_guard,
        };
        let locked = target.timeout.min(lock_timeout).as_millis();
        let limits = format!("SET statement_timeout = {}; SET lock_timeout = {locked};", target.timeout.as_millis());
        connection.run(&limits).await?;
        connection.run(target.dialect.session()).await?;
        Ok(connection)
    }

    /// Changes how long a statement waits for a lock.
    pub(crate) async fn set_lock_timeout(&self, lock_timeout: Duration) -> Result<(), Failure> {
        if *self.lock_timeout.lock() != lock_timeout {
            self.run(&format!("SET lock_timeout = {}", self.timeout.min(lock_timeout).as_millis())).await?;
            *self.lock_timeout.lock() = lock_timeout;
        }
        Ok(())
    }

    /// Whether the session has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Prepares a statement, once per connection.
    pub(crate) async fn prepare(&self, statement: &(impl Statement + ?Sized)) -> Result<Prepared, Failure> {
        let sql = statement.sql();
        if let Some(prepared) = self.prepared.lock().get(sql.name) {
            return Ok(prepared.clone());
        }
        let prepared = match self.within(self.client.prepare(sql.text)).await {
            // Nothing was run yet.
            Err(Failure::Unknown(reason)) => return Err(Failure::Elsewhere(reason)),
            other => other?,
        };
        self.prepared.lock().insert(sql.name, prepared.clone());
        Ok(prepared)
    }

    /// Runs a statement and returns its rows.
    pub(crate) async fn query<Q: Query>(&self, query: &Q) -> Result<Vec<Q::Row>, Failure> {
        let prepared = self.prepare(query).await?;
        let rows = self.within(self.client.query(&prepared, &query.parameters())).await?;
        rows.into_iter().map(Q::Row::from_row).collect()
    }

    /// Runs a statement that returns at most one row.
    pub(crate) async fn query_first<Q: Query>(&self, query: &Q) -> Result<Option<Q::Row>, Failure> {
        Ok(self.query(query).await?.into_iter().next())
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) async fn execute(&self, statement: &impl Statement) -> Result<u64, Failure> {
        let prepared = self.prepare(statement).await?;
        self.within(self.client.execute(&prepared, &statement.parameters())).await
    }

    /// Runs a prepared statement and returns its rows without decoding them, for statements that are sent together.
    pub(crate) async fn query_prepared(
        &self,
        prepared: &Prepared,
        statement: &dyn Statement,
    ) -> Result<Vec<Row>, Error> {
        self.client.query(prepared, &statement.parameters()).await
    }

    /// Runs a prepared statement and returns its rows as they arrive.
    pub(crate) async fn stream(
        &self,
        prepared: &Prepared,
        statement: &(impl Statement + ?Sized),
    ) -> Result<RowStream, Failure> {
        self.within(self.client.query_raw(prepared, statement.parameters())).await
    }

    /// Runs statements without parameters.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), Failure> {
        self.within(self.client.batch_execute(sql)).await
    }

    /// The driver's client, for statements that are sent together.
    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for an answer as long as the database may take. The database ends statements itself at their time limit;
    /// if not even that error arrives, the connection is dead. No cancel request is ever sent: a commit that waits for
    /// a standby would then be reported as a success.
    pub(crate) async fn within<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        match tokio::time::timeout(self.timeout + ANSWER_GRACE, answer).await {
            Ok(Ok(value)) => {
                self.health.answered();
                Ok(value)
            }
            Ok(Err(error)) => {
                let failure = self.failure(&error);
                if !failure.ends_connection() {
                    self.health.answered();
                }
                Err(failure)
            }
            Err(_) => {
                self.health.silent(NO_ANSWER);
                // Closed here, so that no other caller gets it.
                self.driver.abort();
                Err(Failure::Unknown(NO_ANSWER.to_owned()))
            }
        }
    }

    /// What the error of a statement means.
    pub(crate) fn failure(&self, error: &Error) -> Failure {
        Failure::of(error, self.dialect)
    }

    /// Fails if the database sent a warning since the last commit: a commit whose wait for a standby was cut short is
    /// reported as done, with only a warning.
    pub(crate) fn check_commit(&self) -> Result<(), Failure> {
        match self.warned.swap(false, Ordering::AcqRel) {
            true => Err(Failure::Unknown("the database sent a warning during the commit".to_owned())),
            false => Ok(()),
        }
    }
}

/// Why a connection could not be opened.
#[derive(Debug)]
pub(crate) struct ConnectError {
    pub(crate) reason: String,
    /// Whether another attempt would fail too: a wrong password, an unknown database, a certificate that is not
    /// trusted.
    pub(crate) is_final: bool,
    /// Whether there was no answer at all.
    pub(crate) is_silent: bool,
}

impl ConnectError {
    /// An error that may be gone at the next attempt.
    pub(crate) const fn passing(reason: String) -> Self {
        Self { reason, is_final: false, is_silent: false }
    }
}

impl From<Elapsed> for ConnectError {
    fn from(_: Elapsed) -> Self {
        Self { is_silent: true, ..Self::passing(NO_ANSWER.to_owned()) }
    }
}

/// A session that cannot be set up.
impl From<Failure> for ConnectError {
    fn from(failure: Failure) -> Self {
        Self::passing(failure.into_unavailable().to_string())
    }
}

impl From<Error> for ConnectError {
    fn from(error: Error) -> Self {
        let reason = chain(&error);
        let is_refused =
            error.code().is_some_and(|code| code.code().starts_with("28") || code.code().starts_with("3D"));
        let is_misconfigured = ["certificate", "invalid configuration"].iter().any(|word| reason.contains(word));
        Self { is_final: is_refused || is_misconfigured, is_silent: false, reason }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Reads what the database sends, in a task of its own.
fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, warned: Arc<AtomicBool>) -> JoinHandle<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notice(notice)) => {
                    if notice.parsed_severity() == Some(Severity::Warning) {
                        tracing::warn!(code = notice.code().code(), "warning of the database: {}", notice.message());
                        warned.store(true, Ordering::Release);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(error = chain(&error), "a connection ended");
                    return;
                }
            }
        }
    })
}

const NO_ANSWER: &str = "no answer in time";
/// How much later than the database itself the server stops waiting for a statement.
const ANSWER_GRACE: Duration = Duration::from_secs(1);
