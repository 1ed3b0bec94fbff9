//! Facts about the machine, without which the numbers mean nothing.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::azurite;
use crate::histogram::Histogram;
use crate::settings::{Engine, Settings};
use crate::target::Target;

const SYNCS: usize = 300;
const SYNC_BYTES: usize = 4096;
const SYNC_TIME_MAX: Duration = Duration::from_secs(10);

/// Facts in words, each a name and a value.
pub(crate) fn facts(settings: &Settings) -> anyhow::Result<Vec<(&'static str, String)>> {
    let cores = std::thread::available_parallelism()?;
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into());
    let memory_kib: u64 = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.trim_end_matches(" kB").parse().ok())
        .unwrap_or_default();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let syncs = match settings.engine {
        Engine::Local => sync_latency(&settings.paths.work)?,
        // Where clusters are made.
        Engine::Postgres => sync_latency(&std::env::temp_dir())?,
    };
    let mut facts = vec![
        ("processor", format!("{cores} cores, {processor}")),
        ("memory", format!("{:.0} GiB", memory_kib as f64 / (1 << 20) as f64)),
        ("system", format!("{} {}", std::env::consts::OS, kernel.trim())),
        (
            "disk",
            format!(
                "4 KiB append and `fdatasync`: p50 {:.2} ms, p99 {:.2} ms",
                syncs.percentile(0.5).as_secs_f64() * 1e3,
                syncs.percentile(0.99).as_secs_f64() * 1e3
            ),
        ),
        ("client", "on the same machine, one thread, HTTP/1.1 keep-alive, every request signed".into()),
    ];
    if settings.targets.contains(&Target::Larimar) {
        let version = output(Command::new(&settings.paths.larimar).arg("--version"));
        let how = match settings.engine {
            Engine::Local => "default settings: acknowledged means synced to disk",
            Engine::Postgres => "default settings over PostgreSQL: acknowledged means committed there",
        };
        facts.push(("Larimar", format!("{version}, {how}")));
    }
    if settings.targets.contains(&Target::Azurite) {
        let node = output(Command::new("node").arg("--version"));
        let version = azurite::VERSION;
        facts
            .push(("Azurite", format!("{version} on Node.js {node}, its default: kept in memory, saved now and then")));
    }
    Ok(facts)
}

/// The first line of what a program says.
pub(crate) fn output(command: &mut Command) -> String {
    let said = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&said).lines().next().unwrap_or("unknown").trim().to_owned()
}

/// A value of a `name : value` file of the kernel.
fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// How long the disk takes to make a small append durable: the floor of a durable write.
fn sync_latency(folder: &Path) -> anyhow::Result<Histogram> {
    let mut latencies = Histogram::default();
    let path = folder.join("sync-probe");
    let mut file = File::create(&path)?;
    let (block, begun) = ([0x5a; SYNC_BYTES], Instant::now());
    for _ in 0..SYNCS {
        let start = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        latencies.record(start.elapsed());
        if begun.elapsed() > SYNC_TIME_MAX {
            break;
        }
    }
    std::fs::remove_file(path)?;
    Ok(latencies)
}
