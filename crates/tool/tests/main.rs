//! The commands on data against a server in this process.

mod copy;
mod export_import;
mod ranges;
