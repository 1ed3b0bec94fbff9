//! Exports to a bucket, over HTTP and with credentials from the environment: whole, refused half-way, and interrupted.

#[path = "../../bytes/tests/stores/s3.rs"]
mod s3;

use crate::export_import::{Fixture, rows};
use larimar_client::{BulkOperation, DynamicEntity};
use larimar_tool::{Context, Error};
use s3::{BUCKET, S3};
use s3s::access::{S3Access, S3AccessContext};
use s3s::{S3Result, s3_error};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Grants so many parts of uploads, and everything else.
#[derive(Clone)]
struct Granted {
    parts: usize,
    sent: Arc<AtomicUsize>,
}

impl Granted {
    fn new(parts: usize) -> Self {
        Self { parts, sent: Arc::default() }
    }
}

impl S3Access for Granted {
    fn check<'a: 'f, 'b: 'f, 'c: 'f, 'f>(
        &'a self,
        context: &'b mut S3AccessContext<'c>,
    ) -> Pin<Box<dyn Future<Output = S3Result<()>> + Send + 'f>> {
        let is_part = context.s3_op().name() == "UploadPart";
        Box::pin(async move {
            match is_part && self.sent.fetch_add(1, Ordering::Relaxed) >= self.parts {
                true => Err(s3_error!(AccessDenied)),
                false => Ok(()),
            }
        })
    }
}

/// A server with a table of about 30 MiB, the environment of a bucket, and the folder that it is in.
async fn start(access: Granted) -> (Fixture, S3, Context) {
    let fixture = Fixture::new().await;
    let table = fixture.table("Large");
    table.create().await.expect("created");
    let entities = (0..500).map(|row| {
        let text = format!("{row:04}").repeat(7_500);
        BulkOperation::insert(&DynamicEntity::new("p", format!("{row:04}")).with("A", text.clone()).with("B", text))
    });
    table.bulk().submit(entities.map(|insert| insert.expect("an entity"))).await.into_result().expect("inserted");
    let s3 = S3::start(&fixture.path("s3"), access).await;
    let environment = s3.variables().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let context = fixture.context(environment);
    (fixture, s3, context)
}

/// The files of the server: objects of the bucket, and parts of uploads that are neither finished nor aborted.
fn files(folder: &Path) -> (Vec<String>, Vec<String>) {
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    };
    let parts = names(folder).into_iter().filter(|name| name.starts_with(".upload")).collect();
    (names(&folder.join(BUCKET)), parts)
}

#[tokio::test]
async fn every_format_goes_to_a_bucket_and_comes_back() {
    let (fixture, _s3, context) = start(Granted::new(usize::MAX)).await;
    let formats: &[&str] = if cfg!(feature = "parquet") { &["csv", "jsonl", "parquet"] } else { &["csv", "jsonl"] };
    let expected = rows(&fixture.table("Large")).await;
    for format in formats {
        let to = format!("s3://{BUCKET}/Large.{format}");
        fixture.run_in(context.clone(), &["export", "Large", "--to", &to]).await.expect("exported");
        let object = fixture.path("s3").join(BUCKET).join(format!("Large.{format}"));
        let table = format!("Back{format}");
        let path = object.display().to_string();
        fixture.run(&["import", &table, &path]).await.expect("imported");
        assert!(rows(&fixture.table(&table)).await == expected, "{format}");
    }
    assert!(files(&fixture.path("s3")).1.is_empty());
}

#[tokio::test]
async fn a_store_that_refuses_half_way_keeps_nothing() {
    // The first part, and the last one, which is sent when all rows are read.
    for parts in [1, 3] {
        let (fixture, _s3, context) = start(Granted::new(parts)).await;
        let to = format!("s3://{BUCKET}/Large.jsonl");
        let refused = fixture.run_in(context, &["export", "Large", "--to", &to]).await.expect_err("refused");
        assert!(matches!(&refused, Error::Failed(reason) if reason.starts_with(&to)), "{refused}");
        assert_eq!(files(&fixture.path("s3")), (Vec::new(), Vec::new()), "after {parts} parts");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_export_keeps_nothing() {
    let granted = Granted::new(usize::MAX);
    let (fixture, _s3, context) = start(granted.clone()).await;
    let (aborts, folder, fixture) = (context.aborts.clone(), fixture.path("s3"), Arc::new(fixture));
    let exporting = Arc::clone(&fixture);
    let export = tokio::spawn(async move {
        // One request at a time, so that it is not done before it is interrupted.
        let to = format!("s3://{BUCKET}/Large.jsonl");
        exporting.run_in(context, &["export", "Large", "--parallel", "1", "--to", &to]).await
    });
    while granted.sent.load(Ordering::Relaxed) == 0 && !export.is_finished() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    export.abort();
    assert!(export.await.is_err_and(|error| error.is_cancelled()), "it is interrupted before its end");
    aborts.finish().await;
    assert_eq!(files(&folder), (Vec::new(), Vec::new()));
}
