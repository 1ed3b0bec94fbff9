//! The commands on data against a server in this process.

#![allow(clippy::disallowed_methods, reason = "tests take their settings from the environment")]

mod copy;
mod design;
mod export_import;
mod object_stores;
mod ranges;
