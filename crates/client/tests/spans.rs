//! What those who watch get to see of a call: a span with its service, operation, request id, attempts and status.

use crate::common::faults::{Fault, faulty_table};
use larimar_client::DynamicEntity;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Empty, Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Instrument as _, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

/// Sees the spans of one target, and has no others be made.
#[derive(Clone)]
struct Watcher {
    target: &'static str,
    spans: Arc<Mutex<BTreeMap<u64, Fields>>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Fields(BTreeMap<&'static str, String>);

impl Fields {
    fn text(&self, name: &str) -> String {
        self.0.get(name).map_or("", |text| text.trim_matches('"')).to_owned()
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: Subscriber> Layer<S> for Watcher {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().split("::").next() == Some(self.target)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let mut spans = self.spans.lock().expect("no panic");
        // Numbers are used again when spans are gone, so they are counted here.
        let seen = spans.len() as u64;
        let fields = spans.entry(seen << 32 | id.into_u64() & 0xffff_ffff).or_default();
        attributes.record(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut spans = self.spans.lock().expect("no panic");
        let latest = spans.iter_mut().rev().find(|(key, _)| **key & 0xffff_ffff == id.into_u64() & 0xffff_ffff);
        values.record(latest.expect("a span that was made").1);
    }
}

impl Watcher {
    /// Watches this thread until what is returned goes out of scope.
    fn watch(target: &'static str) -> (Self, DefaultGuard) {
        let watcher = Self { target, spans: Arc::default() };
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(watcher.clone()));
        (watcher, guard)
    }

    fn spans(&self) -> Vec<Fields> {
        self.spans.lock().expect("no panic").values().cloned().collect()
    }
}

#[tokio::test]
async fn every_call_is_a_span() {
    let (_server, table, faults) = faulty_table().await;
    let (watcher, watching) = Watcher::watch("larimar_client");
    faults.plan([Fault::Answer(503, vec![("x-ms-error-code", "ServerBusy")])]);
    table.insert(&DynamicEntity::new("p", "secret")).await.expect("inserted");
    table.get::<DynamicEntity>("p", "missing").await.expect("read");
    drop(watching);
    let spans = watcher.spans();
    assert!(spans.iter().all(|span| span.text("request_id").len() == 36), "{spans:?}");
    let seen: Vec<_> =
        spans.iter().map(|span| ["service", "operation", "attempts", "status"].map(|name| span.text(name))).collect();
    assert_eq!(seen, [["table", "InsertEntity", "2", "204"], ["table", "GetEntity", "1", "404"]]);
    assert!(!format!("{spans:?}").contains("secret"), "keys and values are not shown");
}

#[tokio::test]
async fn the_spans_of_others_are_left_alone() {
    let (_server, table, _faults) = faulty_table().await;
    let (watcher, watching) = Watcher::watch(env!("CARGO_CRATE_NAME"));
    let span = tracing::info_span!("request", status = Empty, attempts = Empty);
    table.get::<DynamicEntity>("p", "r").instrument(span.clone()).await.expect("read");
    span.record("status", 200);
    drop((span, watching));
    assert_eq!(watcher.spans(), [Fields(BTreeMap::from([("status", "200".to_owned())]))]);
}
