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
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::Notify;

/// What the store does with parts of uploads; everything else is granted.
#[derive(Clone)]
enum Parts {
    /// Grants so many.
    Granted(Arc<AtomicUsize>),
    /// Does not answer, and tells when the first one came.
    Stalled(Arc<Notify>),
}

impl Parts {
    fn granted(parts: usize) -> Self {
        Self::Granted(Arc::new(AtomicUsize::new(parts)))
    }
}

impl S3Access for Parts {
    fn check<'a: 'f, 'b: 'f, 'c: 'f, 'f>(
        &'a self,
        context: &'b mut S3AccessContext<'c>,
    ) -> Pin<Box<dyn Future<Output = S3Result<()>> + Send + 'f>> {
        let is_part = context.s3_op().name() == "UploadPart";
        Box::pin(async move {
            match self {
                _ if !is_part => Ok(()),
                Self::Granted(left) => match left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) {
                    Ok(_) => Ok(()),
                    Err(_) => Err(s3_error!(AccessDenied)),
                },
                Self::Stalled(came) => {
                    came.notify_one();
                    std::future::pending().await
                }
            }
        })
    }
}

/// A server with a table of two parts: 8 MiB, and some more.
async fn filled() -> Fixture {
    let fixture = Fixture::new().await;
    let table = fixture.table("Large");
    table.create().await.expect("created");
    let entities = (0..160).map(|row| {
        let text = format!("{row:04}").repeat(7_500);
        BulkOperation::insert(&DynamicEntity::new("p", format!("{row:04}")).with("A", text.clone()).with("B", text))
    });
    table.bulk().submit(entities.map(|insert| insert.expect("an entity"))).await.into_result().expect("inserted");
    fixture
}

/// A store in a folder of the fixture, and the context of a command with its environment.
async fn store(fixture: &Fixture, folder: &str, parts: Parts) -> (S3, Context) {
    let s3 = S3::start(&fixture.path(folder), parts).await;
    let environment = s3.variables().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    (s3, fixture.context(environment))
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
    let fixture = filled().await;
    let (_s3, context) = store(&fixture, "s3", Parts::granted(usize::MAX)).await;
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
    let fixture = filled().await;
    let to = format!("s3://{BUCKET}/Large.jsonl");
    // The first part is refused, or the last one, which is sent when all rows are read.
    for (folder, parts) in [("first", 0), ("last", 1)] {
        let (_s3, context) = store(&fixture, folder, Parts::granted(parts)).await;
        let refused = fixture.run_in(context, &["export", "Large", "--to", &to]).await.expect_err("refused");
        assert!(matches!(&refused, Error::Failed(reason) if reason.starts_with(&to)), "{refused}");
        assert_eq!(files(&fixture.path(folder)), (Vec::new(), Vec::new()), "{folder}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_export_keeps_nothing() {
    let (fixture, came) = (Arc::new(filled().await), Arc::new(Notify::new()));
    let (_s3, context) = store(&fixture, "s3", Parts::Stalled(Arc::clone(&came))).await;
    let (uploads, exporting) = (context.uploads.clone(), Arc::clone(&fixture));
    let export = tokio::spawn(async move {
        let to = format!("s3://{BUCKET}/Large.jsonl");
        exporting.run_in(context, &["export", "Large", "--to", &to]).await
    });
    came.notified().await;
    assert_eq!(files(&fixture.path("s3")).1.len(), 1, "an upload is under way");
    export.abort();
    // As the process does it, which does not wait for the command itself: it may be busy for a while.
    uploads.closed().await;
    assert!(export.await.is_err_and(|error| error.is_cancelled()), "it is interrupted before its end");
    assert_eq!(files(&fixture.path("s3")), (Vec::new(), Vec::new()));
}
