//! Servers over one engine, each with a writer that works when the test says so.

use larimar_engine::{Clock, MemoryEngine, SystemClock};
use larimar_model::Timestamp;
use larimar_server::{
    Account, AccountKey, AnalyticsWriter, Handler, Listener, ListenerSettings, Metrics, QueueService, Settings,
    Storage, TableService,
};
use larimar_testkit::ManualClock;
use larimar_testkit::http::{ACCOUNT, Client, KEY};
use larimar_wire::analytics::Period;
use larimar_wire::sas::Service;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Some servers, their engine and their clock.
pub(crate) struct Fixture {
    pub(crate) runtime: Runtime,
    pub(crate) engine: Arc<MemoryEngine>,
    pub(crate) clock: Arc<ManualClock>,
}

/// One of the servers.
pub(crate) struct Server<'f> {
    fixture: &'f Fixture,
    writer: AnalyticsWriter<MemoryEngine>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) client: Client,
    pub(crate) queues: Client,
}

impl Fixture {
    /// The clock shows about the time that clients think it is, as signatures have a date; it starts with a minute.
    pub(crate) fn new() -> Self {
        let clock = ManualClock::new(Period::Minute.start(SystemClock.now()));
        let runtime = Runtime::new().expect("a runtime");
        Self { runtime, engine: Arc::new(MemoryEngine::new()), clock: Arc::new(clock) }
    }

    pub(crate) fn server(&self) -> Server<'_> {
        let key = AccountKey::from_base64(KEY).expect("the well-known key");
        let accounts = vec![Account { name: ACCOUNT.to_owned(), keys: vec![key] }];
        let metrics = Arc::new(Metrics::default());
        let settings = Settings { accounts, ..Settings::default() };
        let clock = Arc::clone(&self.clock);
        let storage = Storage::new(Arc::clone(&self.engine), clock, settings, Arc::clone(&metrics));
        let mut writer = AnalyticsWriter::new(Arc::clone(&storage));
        self.runtime.block_on(writer.load());
        let client = self.serve(Service::Table, TableService::new(Arc::clone(&storage)), &metrics);
        let queues = self.serve(Service::Queue, QueueService::new(storage), &metrics);
        Server { fixture: self, writer, metrics, client, queues }
    }

    fn serve<H: Handler>(&self, service: Service, handler: H, metrics: &Arc<Metrics>) -> Client {
        let listener = Listener::new(Arc::new(handler), Arc::clone(metrics), listener_settings());
        let socket = self.runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = socket.local_addr().expect("a bound socket");
        self.runtime.spawn(listener.serve(socket, std::future::pending()));
        Client::of_service(address, service)
    }

    /// Whether a table is there, asked in a way that is not counted.
    pub(crate) fn has_table(&self, name: &str) -> bool {
        let name = name.parse().expect("a name");
        self.runtime.block_on(larimar_engine::table::find_table(&*self.engine, ACCOUNT, &name)).is_ok()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Server<'_> {
    /// Moves the clock of all servers and lets this one do what is due.
    pub(crate) fn after(&mut self, span: Duration) {
        self.fixture.clock.advance(span);
        self.tick();
    }

    pub(crate) fn tick(&mut self) {
        self.fixture.runtime.block_on(self.writer.tick());
    }

    pub(crate) fn flush(&mut self) {
        self.fixture.runtime.block_on(self.writer.flush());
    }

    /// Sets the properties of the Table service.
    pub(crate) fn set_properties(&self, parts: &str) {
        let xml = format!("<StorageServiceProperties>{parts}</StorageServiceProperties>");
        self.client.put("/?restype=service&comp=properties", xml).send().is_status(202);
    }

    /// The rows of a table of metrics in the period that a time lies in.
    pub(crate) fn rows(&self, table: &str, period: Period, time: Timestamp) -> Vec<Value> {
        let partition = period.partition(period.start(time));
        let filter = format!("PartitionKey eq '{partition}'");
        let response = self.client.get(&format!("/{table}()")).query("$filter", &filter).send();
        response.is_status(200);
        response.values()
    }
}

/// A switched-on or switched-off part of the properties.
pub(crate) fn metrics_part(name: &str, is_on: bool, retention_days: Option<u32>) -> String {
    let apis = if is_on { "<IncludeAPIs>true</IncludeAPIs>" } else { "" };
    let retention = match retention_days {
        Some(days) => format!("<Enabled>true</Enabled><Days>{days}</Days>"),
        None => "<Enabled>false</Enabled>".to_owned(),
    };
    format!(
        "<{name}><Version>1.0</Version><Enabled>{is_on}</Enabled>{apis}\
         <RetentionPolicy>{retention}</RetentionPolicy></{name}>"
    )
}

fn listener_settings() -> ListenerSettings {
    ListenerSettings {
        connections_max: 16,
        header_bytes_max: 64 << 10,
        header_timeout: Duration::from_secs(30),
        idle_timeout: Duration::from_secs(30),
        shutdown_grace: Duration::ZERO,
    }
}
