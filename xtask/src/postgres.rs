//! PostgreSQL for a run: found or installed, one cluster for everything.
//!
//! Where there is none and none may be installed, its suites count as skipped.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use larimar_postgres_cluster::{BINARIES_VARIABLE, Binaries, Cluster, Options, SHARED_VARIABLE};

use crate::debian;
use crate::gate;
use crate::shell::Repo;
use crate::tally::Tally;

/// Keeps Debian's packages from starting a cluster of their own, which the run would not use.
const DEBIAN_CLUSTERS: &str = "/etc/postgresql-common/createcluster.conf";

/// The cluster that every suite of a run shares; dropped, it is removed.
pub(crate) struct Postgres {
    cluster: Cluster,
}

/// Whether this machine has a PostgreSQL that serves.
pub(crate) fn is_here() -> bool {
    Binaries::find().is_some()
}

impl Postgres {
    /// Starts a cluster of this machine's PostgreSQL, or returns why there is none.
    pub(crate) fn start() -> Result<Self> {
        let binaries = Binaries::find().context("there is no PostgreSQL 15 or newer on this machine")?;
        let cluster = Cluster::try_start(&binaries, &Options::default()).map_err(|output| anyhow!("{output}"))?;
        Ok(Self { cluster })
    }

    /// [`Self::start`] for a run of everything: installs PostgreSQL if it may, and counts the outcome.
    pub(crate) fn prepare(repo: &Repo, tally: &mut Tally) -> Option<Self> {
        if !is_here()
            && let Err(error) = install(repo)
        {
            tally.skip("PostgreSQL suites", &format!("{error:#}"));
            return None;
        }
        let mut postgres = None;
        gate::step(tally, "PostgreSQL", || {
            postgres = Some(Self::start()?);
            Ok(())
        });
        postgres
    }

    /// The URL of a new schema.
    pub(crate) fn fresh_url(&self) -> String {
        self.cluster.fresh_url()
    }

    /// The variable by which tests find the cluster.
    pub(crate) fn variable(&self) -> (&'static str, &str) {
        (SHARED_VARIABLE, self.cluster.url())
    }
}

/// Installs Debian's packages, if we are root where there are any.
fn install(repo: &Repo) -> Result<()> {
    ensure!(env::var_os(BINARIES_VARIABLE).is_none(), "{BINARIES_VARIABLE} names a folder without it");
    debian::may_install()?;
    let clusters = Path::new(DEBIAN_CLUSTERS);
    if !clusters.exists() {
        fs::create_dir_all(clusters.parent().context("it has a parent")?)?;
        fs::write(clusters, "create_main_cluster = false\n").with_context(|| format!("write {DEBIAN_CLUSTERS}"))?;
    }
    debian::install(repo, &["postgresql", "postgresql-client"])?;
    ensure!(is_here(), "the system's packages are too old");
    Ok(())
}
