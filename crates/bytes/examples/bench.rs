//! How fast payloads are written to files and read back, beside plain files in the same folder.
//!
//! `cargo run --release -p larimar-bytes --example bench [folder]`

use larimar_bytes::{Admission, Durability, FileBytes, FileSettings};
use larimar_engine::SpaceId;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Bytes, Extent, Owner};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const OWNER: Owner<'static> = Owner { space: SpaceId(1), blob: "bench/blob" };
const CALLERS: usize = 16;
const SMALL: usize = 4 << 10;
const LARGE: u64 = 64 << 20;
const PIECE: usize = 64 << 10;
const ROUND: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let base = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(base)?;
    plain_small(folder.path())?;
    plain_large(folder.path())?;
    for durability in [Durability::Sync, Durability::System] {
        let settings = FileSettings {
            folder: folder.path().join(format!("{durability:?}")),
            durability,
            grace: Duration::from_secs(600),
            admission: Admission::default(),
        };
        let store = Arc::new(FileBytes::open(&settings)?);
        println!("{durability:?}");
        let extents = small_puts(&store).await?;
        small_reads(&store, &extents).await?;
        for writers in [1, 4] {
            large(&store, writers).await?;
        }
    }
    Ok(())
}

/// What one writer with a file of its own and a sync for each write reaches.
fn plain_small(folder: &Path) -> Result<(), Failure> {
    let mut file = File::create(folder.join("plain-small"))?;
    let (started, mut count) = (Instant::now(), 0);
    while started.elapsed() < ROUND {
        file.write_all(&[7; SMALL])?;
        file.sync_data()?;
        count += 1;
    }
    println!("plain file: {} appends of 4 KiB a second, each synced", rate(count, started));
    Ok(())
}

fn plain_large(folder: &Path) -> Result<(), Failure> {
    let path = folder.join("plain-large");
    let piece = vec![7; 1 << 20];
    let started = Instant::now();
    let mut file = File::create(&path)?;
    for _ in 0..LARGE >> 20 {
        file.write_all(&piece)?;
    }
    let written = started.elapsed();
    file.sync_data()?;
    println!(
        "plain file: 64 MiB written at {} MB/s, synced at {} MB/s",
        speed(LARGE, written),
        speed(LARGE, started.elapsed())
    );
    let started = Instant::now();
    let mut file = File::open(&path)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? > 0 {}
    println!("plain file: 64 MiB read at {} MB/s", speed(LARGE, started.elapsed()));
    Ok(())
}

async fn small_puts(store: &Arc<FileBytes>) -> Result<Vec<Extent>, Failure> {
    let started = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let bytes = Bytes::from(vec![5; SMALL]);
                let mut extents = Vec::new();
                while started.elapsed() < ROUND {
                    let mut writer = store.begin(OWNER, Some(SMALL as u64)).await?;
                    writer.write(bytes.clone()).await?;
                    extents.push(writer.finish().await?);
                }
                Ok::<_, Failure>(extents)
            })
        })
        .collect();
    let mut extents = Vec::new();
    for caller in callers {
        extents.extend(caller.await??);
    }
    println!("  {} puts of 4 KiB a second by {CALLERS} callers", rate(extents.len(), started));
    Ok(extents)
}

async fn small_reads(store: &Arc<FileBytes>, extents: &[Extent]) -> Result<(), Failure> {
    let started = Instant::now();
    let mut callers = Vec::new();
    for caller in 0..CALLERS {
        let store = Arc::clone(store);
        let extents: Vec<_> = extents.iter().skip(caller).step_by(CALLERS).copied().collect();
        callers.push(tokio::spawn(async move {
            let mut count = 0;
            while started.elapsed() < ROUND {
                for extent in extents.iter().take(100) {
                    store.read(extent, 0..SMALL as u64).await?;
                    count += 1;
                }
            }
            Ok::<_, Failure>(count)
        }));
    }
    let mut count = 0;
    for caller in callers {
        count += caller.await??;
    }
    println!("  {} reads of 4 KiB a second by {CALLERS} callers", rate(count, started));
    Ok(())
}

async fn large(store: &Arc<FileBytes>, writers: u64) -> Result<(), Failure> {
    let started = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|_| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut writer = store.begin(OWNER, Some(LARGE)).await?;
                let piece = Bytes::from(vec![9; PIECE]);
                for _ in 0..LARGE / PIECE as u64 {
                    writer.write(piece.clone()).await?;
                }
                Ok::<_, Failure>(writer.finish().await?)
            })
        })
        .collect();
    let mut extents = Vec::new();
    for task in tasks {
        extents.push(task.await??);
    }
    println!("  {writers} x 64 MiB written at {} MB/s", speed(LARGE * writers, started.elapsed()));
    let started = Instant::now();
    let tasks: Vec<_> = extents
        .into_iter()
        .map(|extent| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut at = 0;
                while at < extent.length {
                    at += store.read(&extent, at..extent.length).await?.len() as u64;
                }
                Ok::<_, Failure>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    println!("  {writers} x 64 MiB read at {} MB/s", speed(LARGE * writers, started.elapsed()));
    Ok(())
}

fn rate(count: usize, started: Instant) -> u64 {
    (count as f64 / started.elapsed().as_secs_f64()) as u64
}

fn speed(bytes: u64, time: Duration) -> u64 {
    (bytes as f64 / time.as_secs_f64() / 1e6) as u64
}
