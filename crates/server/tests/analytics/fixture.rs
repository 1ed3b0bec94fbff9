//! Servers over one engine, each with a writer that works when the test says so.

use crate::analytics::moody::MoodyBytes;
use larimar_engine::blob::{AccessConditions, BlobRef, Blobs, ListItem, ListQuery};
use larimar_engine::{Clock, Engine, MemoryEngine, SystemClock};
use larimar_model::Timestamp;
use larimar_model::blob::ContainerName;
use larimar_server::{
    Account, AccountKey, AnalyticsWriter, BlobService, Handler, Listener, ListenerSettings, Metrics, QueueService,
    Settings, Storage, TableService,
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
pub(crate) struct Fixture<E = MemoryEngine> {
    pub(crate) runtime: Runtime,
    pub(crate) engine: Arc<E>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) bytes: Arc<MoodyBytes>,
}

/// One of the servers.
pub(crate) struct Server<'f, E: Engine = MemoryEngine> {
    fixture: &'f Fixture<E>,
    writer: AnalyticsWriter<E, MoodyBytes>,
    pub(crate) client: Client,
    pub(crate) queues: Client,
    pub(crate) blobs: Client,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::over_engine()
    }
}

impl<E: Engine + Default> Fixture<E> {
    /// The clock shows about the time that clients think it is, as signatures have a date; it starts with a minute.
    pub(crate) fn over_engine() -> Self {
        let clock = ManualClock::new(Period::Minute.start(SystemClock.now()));
        let runtime = Runtime::new().expect("a runtime");
        Self { runtime, engine: Arc::default(), clock: Arc::new(clock), bytes: Arc::default() }
    }

    pub(crate) fn server(&self) -> Server<'_, E> {
        let key = AccountKey::from_base64(KEY).expect("the well-known key");
        let accounts = vec![Account { name: ACCOUNT.to_owned(), keys: vec![key] }];
        let metrics = Arc::new(Metrics::default());
        let settings = Settings { accounts, ..Settings::default() };
        let clock = Arc::clone(&self.clock);
        let storage = Storage::new(Arc::clone(&self.engine), clock, settings, Arc::clone(&metrics));
        let mut writer = AnalyticsWriter::new(Arc::clone(&storage), Some(Arc::new(self.blobs())));
        self.runtime.block_on(writer.load());
        let client = self.serve(Service::Table, TableService::new(Arc::clone(&storage)), &metrics);
        let queues = self.serve(Service::Queue, QueueService::new(Arc::clone(&storage)), &metrics);
        let blobs = self.serve(Service::Blob, BlobService::new(storage, Arc::new(self.blobs())), &metrics);
        Server { fixture: self, writer, client, queues, blobs }
    }

    fn serve<H: Handler>(&self, service: Service, handler: H, metrics: &Arc<Metrics>) -> Client {
        let listener = Listener::new(Arc::new(handler), Arc::clone(metrics), listener_settings());
        let socket = self.runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = socket.local_addr().expect("a bound socket");
        self.runtime.spawn(listener.serve(socket, std::future::pending()));
        Client::of_service(address, service)
    }

    fn blobs(&self) -> Blobs<E, MoodyBytes> {
        Blobs::new(Arc::clone(&self.engine), Arc::clone(&self.bytes))
    }

    /// All logs that there are, in the order of their names; nothing if there is no place for them.
    pub(crate) fn logs(&self) -> Option<Vec<Log>> {
        self.runtime.block_on(async {
            let (blobs, now) = (self.blobs(), self.now());
            let container = blobs.find_container(ACCOUNT, &ContainerName::logs(), now).await.ok()?.id;
            let query = ListQuery { items_max: 5000, ..ListQuery::default() };
            let page = blobs.list_blobs(container, &query, now).await.expect("a page");
            let mut logs = Vec::new();
            for item in page.items {
                let ListItem::Blob(blob) = item else { panic!("{item:?}") };
                let name = blob.name.parse().expect("a name");
                let at = BlobRef { container, name: &name };
                let mut open = blobs.open(at, None, None, &AccessConditions::default(), now).await.expect("a blob");
                let mut text = String::new();
                while let Some(bytes) = open.content.next().await.expect("bytes") {
                    text.push_str(std::str::from_utf8(&bytes).expect("text"));
                }
                let metadata = &blob.properties.metadata;
                let metadata = ["StartTime", "EndTime", "LogType", "LogVersion"]
                    .map(|name| metadata.get(name).unwrap_or_default().to_owned());
                logs.push(Log { name: blob.name, text, metadata });
            }
            Some(logs)
        })
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

/// A blob of `$logs`.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) name: String,
    pub(crate) text: String,
    /// `StartTime`, `EndTime`, `LogType`, `LogVersion`.
    pub(crate) metadata: [String; 4],
}

impl Log {
    /// The lines, each cut into its fields. What is in quotes is taken out of them.
    pub(crate) fn lines(&self) -> Vec<Vec<String>> {
        self.text.lines().map(fields).collect()
    }
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ';' if !is_quoted => fields.push(String::new()),
            other => fields.last_mut().expect("one at least").push(other),
        }
    }
    fields
}

impl<E: Engine + Default> Server<'_, E> {
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
        set_properties(&self.client, parts);
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

/// Sets the properties of a service.
pub(crate) fn set_properties(client: &Client, parts: &str) {
    let xml = format!("<StorageServiceProperties>{parts}</StorageServiceProperties>");
    client.put("/?restype=service&comp=properties", xml).send().is_status(202);
}

/// The part of the properties that says what is logged.
pub(crate) fn logging_part(version: &str, switches: [bool; 3], retention_days: Option<u32>) -> String {
    let [read, write, delete] = switches;
    format!(
        "<Logging><Version>{version}</Version><Delete>{delete}</Delete><Read>{read}</Read><Write>{write}</Write>{}\
         </Logging>",
        retention_part(retention_days)
    )
}

fn retention_part(days: Option<u32>) -> String {
    let retention = match days {
        Some(days) => format!("<Enabled>true</Enabled><Days>{days}</Days>"),
        None => "<Enabled>false</Enabled>".to_owned(),
    };
    format!("<RetentionPolicy>{retention}</RetentionPolicy>")
}

/// A switched-on or switched-off part of the properties.
pub(crate) fn metrics_part(name: &str, is_on: bool, retention_days: Option<u32>) -> String {
    let apis = if is_on { "<IncludeAPIs>true</IncludeAPIs>" } else { "" };
    format!("<{name}><Version>1.0</Version><Enabled>{is_on}</Enabled>{apis}{}</{name}>", retention_part(retention_days))
}

fn listener_settings() -> ListenerSettings {
    ListenerSettings {
        connections_max: 16,
        header_bytes_max: 64 << 10,
        header_timeout: Duration::from_secs(30),
        idle_timeout: Duration::from_secs(30),
        shutdown_grace: Duration::ZERO,
        ..ListenerSettings::default()
    }
}
