//! Stores of bytes keep their promises: the common ones, and those of their own kind.

mod again;
mod crash;
mod damage;
mod disk_full;
mod files;
mod memory;
mod objects;
mod packs;
mod s3;
