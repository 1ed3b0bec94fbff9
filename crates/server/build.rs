//! Lists the files of the web console for `src/admin/console/files.rs`, which embeds them.
//!
//! `console/` is the page as it was built from `ui/` and committed, so that building the server needs nothing but Rust.

#![expect(clippy::disallowed_methods, reason = "Cargo tells a build script by variables where its files are")]

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=console");
    let of_cargo = |name: &str| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let folder = of_cargo("CARGO_MANIFEST_DIR").join("console");
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let below = file.strip_prefix(&folder).map_err(io::Error::other)?;
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        let path = parts.join("/");
        writeln!(list, "    ({path:?}, include_bytes!({:?})),", file.display().to_string())
            .map_err(io::Error::other)?;
    }
    list.push_str("]\n");
    fs::write(of_cargo("OUT_DIR").join("console_files.rs"), list)
}

/// Adds the files below a directory.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => collect(&entry.path(), files)?,
            false => files.push(entry.path()),
        }
    }
    Ok(())
}
