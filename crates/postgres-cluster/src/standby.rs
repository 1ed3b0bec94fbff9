//! A standby that replicates a cluster: every commit waits for it, until it is promoted.

use crate::Cluster;
use crate::home::{Home, output_of};
use std::time::{Duration, Instant};

/// How long a standby may take until it replicates synchronously.
const WAIT_MAX: Duration = Duration::from_secs(60);

impl Cluster {
    /// Starts a synchronous standby of this cluster. From now on a commit is acknowledged when both have it on disk.
    /// After [`Self::promote`] the standby commits alone.
    ///
    /// # Panics
    /// If it does not start or replicate in time.
    #[must_use]
    pub fn standby(&self) -> Self {
        let standby = self.copy().unwrap_or_else(|said| panic!("the standby did not start: {said}"));
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("SELECT pg_reload_conf()");
        let until = Instant::now() + WAIT_MAX;
        while self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1" {
            assert!(Instant::now() < until, "the standby does not replicate");
            std::thread::sleep(Duration::from_millis(20));
        }
        standby
    }

    /// A copy of this cluster that replicates it. It is made before the primary waits for a standby, so that the
    /// promoted copy does not wait for one either.
    fn copy(&self) -> Result<Self, String> {
        let mut home = Home::create(&self.home.binaries)?;
        let mut copy = home.command("pg_basebackup");
        copy.args(["--write-recovery-conf", "--no-sync", "--checkpoint=fast", "--dbname", self.url()]);
        output_of(copy.arg("--pgdata").arg(home.data()))?;
        home.start_somewhere()?;
        Ok(self.sibling(home))
    }

    /// Makes a standby the primary, and waits until it accepts writes.
    ///
    /// # Panics
    /// If it is not a standby.
    pub fn promote(&self) {
        self.control(&["promote", "--wait", "--silent"]);
    }
}
