//! What the server does when the world around it fails: a full disk, a damaged journal, a container that is
//! deleted, and a large table dropped while others work. The engine's own fault tests are in `engine-local/tests`; these are about the process.

mod access_log_disk;
mod archive_disk;
mod backup_disk;
mod damage;
mod disk_full;
mod drop_container;
mod drop_table;
mod full_disk;
mod gate;
mod hanging_place;
mod restores;
mod single_restores;

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
