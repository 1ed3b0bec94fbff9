//! A bounded number of bytes: the whole budget, or an account's part of it.

/// What is at most this size is small.
pub(super) const SMALL_BYTES: u64 = 64 << 10;

/// How large a need is. The last eighth of a pool is for small needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Small,
    Large,
}

impl Size {
    pub(super) const fn of(bytes: u64) -> Self {
        if bytes > SMALL_BYTES { Self::Large } else { Self::Small }
    }

    /// Its index in arrays of both.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

#[derive(Debug)]
pub(super) struct Pool {
    limit_bytes: u64,
    used_bytes: u64,
    /// What of it small needs use.
    small_bytes: u64,
}

impl Pool {
    pub(super) const fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, used_bytes: 0, small_bytes: 0 }
    }

    pub(super) const fn set_limit(&mut self, limit_bytes: u64) {
        self.limit_bytes = limit_bytes;
    }

    pub(super) const fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// The most that one need can get.
    pub(super) const fn need_bytes_max(&self, size: Size) -> u64 {
        match size {
            Size::Small => self.limit_bytes,
            Size::Large => self.limit_bytes / 8 * 7,
        }
    }

    /// Whether so many bytes are free. Small needs may use everything, but only their own eighth while a large one waits:
    /// otherwise many small ones could keep it waiting. What they use of their eighth is not taken from the large ones.
    pub(super) fn fits(&self, size: Size, bytes: u64, large_waits: bool) -> bool {
        let eighth = self.limit_bytes / 8;
        match size {
            Size::Small => {
                let is_within = !large_waits || self.small_bytes + bytes <= eighth;
                is_within && self.used_bytes + bytes <= self.limit_bytes
            }
            Size::Large => self.used_bytes - self.small_bytes.min(eighth) + bytes <= self.need_bytes_max(size),
        }
    }

    pub(super) fn add(&mut self, size: Size, bytes: u64) {
        self.used_bytes += bytes;
        if size == Size::Small {
            self.small_bytes += bytes;
        }
    }

    pub(super) fn subtract(&mut self, size: Size, bytes: u64) {
        self.used_bytes -= bytes;
        if size == Size::Small {
            self.small_bytes -= bytes;
        }
    }
}
