//! The derive macros of `larimar-client`, which re-exports them.
