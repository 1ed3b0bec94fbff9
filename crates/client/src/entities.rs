//! Guide: types as entities.
