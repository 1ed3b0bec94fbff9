//! Reads from the page cache, without ever waiting for the disk.

use std::fs::File;
use std::io::Error;

/// Fills the buffer from an offset of the file; fails if the read would block.
#[cfg(target_os = "linux")]
pub(super) fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> Result<(), Error> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let wanted = buffer.len();
    let found = preadv2(file, &mut [std::io::IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT)?;
    if found == wanted { Ok(()) } else { Err(std::io::ErrorKind::WouldBlock.into()) }
}

/// Only Linux supports such reads.
#[cfg(not(target_os = "linux"))]
pub(super) fn read_exact_at(_: &File, _: &mut [u8], _: u64) -> Result<(), Error> {
    Err(std::io::ErrorKind::WouldBlock.into())
}
