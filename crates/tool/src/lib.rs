//! The commands of the `larimar` binary that work on data: they talk to any endpoint of the protocol through
//! `larimar-client`.
