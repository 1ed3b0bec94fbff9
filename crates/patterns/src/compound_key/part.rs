//! The parts of a compound key, and tuples of them.
//!
//! Numbers and times have a fixed width and end with `_`, which the eye finds. Text is escaped and ends with `!`, which
//! sorts before all that escaped text can go on with.

use crate::key_text::{self, KeyError};
use larimar_client::Timestamp;
use std::cmp::Reverse;
use std::fmt;

/// A value that can be part of a compound key.
///
/// It is implemented for [`Digits`], the integers of up to 64 bits, `bool`, `String`, [`Timestamp`], and the reverse of
/// a
/// [`Timestamp`].
pub trait KeyPart: Sized {
    /// The sign that ends this part when another follows: `_` if all values have the same width, or else `!`.
    const END: char = '_';

    /// Writes the part to the end of a key.
    fn write(&self, key: &mut String);

    /// Reads the part; `None` if the text is none that [`KeyPart::write`] writes.
    fn read(text: &str) -> Option<Self>;

    /// How many characters the part has; `None` if that differs.
    #[must_use]
    fn width() -> Option<usize>;
}

/// A number that is written with `N` digits, such as `000123`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digits<const N: usize>(u64);

impl<const N: usize> Digits<N> {
    /// The greatest number of `N` digits.
    pub const MAX: Self = {
        assert!(N > 0, "expected at least one digit");
        Self(if N < 20 { 10_u64.pow(N as u32) - 1 } else { u64::MAX })
    };

    /// The number, if `N` digits are enough for it.
    ///
    /// # Errors
    /// A number with more digits.
    pub const fn new(value: u64) -> Result<Self, KeyError> {
        if value <= Self::MAX.0 { Ok(Self(value)) } else { Err(KeyError::TooLarge { digits: N, value }) }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl<const N: usize> fmt::Display for Digits<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0N$}", self.0)
    }
}

impl<const N: usize> KeyPart for Digits<N> {
    fn write(&self, key: &mut String) {
        push_digits(key, self.0, N);
    }

    fn read(text: &str) -> Option<Self> {
        Self::new(read_digits(text, N)?).ok()
    }

    fn width() -> Option<usize> {
        Some(N)
    }
}

macro_rules! unsigned {
    ($($type:ty, $digits:literal;)+) => {$(
        impl KeyPart for $type {
            fn write(&self, key: &mut String) {
                push_digits(key, u64::from(*self), $digits);
            }

            fn read(text: &str) -> Option<Self> {
                Self::try_from(read_digits(text, $digits)?).ok()
            }

            fn width() -> Option<usize> {
                Some($digits)
            }
        }
    )+};
}

unsigned! { u8, 3; u16, 5; u32, 10; u64, 20; }

/// Signed numbers are moved up by half their range, so that the least one is written as zeros.
macro_rules! signed {
    ($($type:ty, $unsigned:ty;)+) => {$(
        impl KeyPart for $type {
            fn write(&self, key: &mut String) {
                (self.cast_unsigned() ^ (1 << (<$unsigned>::BITS - 1))).write(key);
            }

            fn read(text: &str) -> Option<Self> {
                Some((<$unsigned>::read(text)? ^ (1 << (<$unsigned>::BITS - 1))).cast_signed())
            }

            fn width() -> Option<usize> {
                <$unsigned>::width()
            }
        }
    )+};
}

signed! { i8, u8; i16, u16; i32, u32; i64, u64; }

impl KeyPart for bool {
    fn write(&self, key: &mut String) {
        key.push(if *self { '1' } else { '0' });
    }

    fn read(text: &str) -> Option<Self> {
        match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }

    fn width() -> Option<usize> {
        Some(1)
    }
}

/// Any text, escaped by [`key_text::escape`].
impl KeyPart for String {
    const END: char = '!';

    fn write(&self, key: &mut String) {
        key_text::escape_into(key, self);
    }

    fn read(text: &str) -> Option<Self> {
        key_text::unescape(text).ok()
    }

    fn width() -> Option<usize> {
        None
    }
}

/// The ticks since the year 1, earliest first. For the latest first, see [`crate::log_tail`].
impl KeyPart for Timestamp {
    fn write(&self, key: &mut String) {
        push_digits(key, self.ticks().min(Self::MAX.ticks()), TICKS_DIGITS);
    }

    fn read(text: &str) -> Option<Self> {
        let ticks = read_digits(text, TICKS_DIGITS)?;
        (ticks <= Self::MAX.ticks()).then(|| Self::from_ticks(ticks))
    }

    fn width() -> Option<usize> {
        Some(TICKS_DIGITS)
    }
}

/// The ticks that are left until the year 10000, so that the latest time comes first.
///
/// ```
/// use larimar_client::Timestamp;
/// use larimar_patterns::compound_key::CompoundKey;
/// use std::cmp::Reverse;
/// let key = |time: &str| time.parse().map(|time: Timestamp| CompoundKey::new(("Don".to_owned(), Reverse(time))));
/// let [older, newer] = [key("2026-02-14T00:00:00Z")?, key("2026-02-15T00:00:00Z")?];
/// assert_eq!(newer.to_string(), "Don!2516311871999999999");
/// assert!(newer.to_string() < older.to_string());
/// # Ok::<(), larimar_client::TimestampError>(())
/// ```
impl KeyPart for Reverse<Timestamp> {
    fn write(&self, key: &mut String) {
        push_digits(key, Timestamp::MAX.ticks().saturating_sub(self.0.ticks()), TICKS_DIGITS);
    }

    fn read(text: &str) -> Option<Self> {
        let left = read_digits(text, TICKS_DIGITS)?;
        Timestamp::MAX.ticks().checked_sub(left).map(|ticks| Self(Timestamp::from_ticks(ticks)))
    }

    fn width() -> Option<usize> {
        Some(TICKS_DIGITS)
    }
}

/// Tuples of one to five parts.
pub trait KeyParts: Sized {
    /// The sign that ends the last part when the key continues.
    const END: char;

    /// Writes the parts, each after the sign that ends the one before it.
    fn write(&self, key: &mut String);

    /// Reads the parts.
    ///
    /// # Errors
    /// A key that has other parts.
    fn read(key: &str) -> Result<Self, KeyError>;
}

macro_rules! tuple {
    ($($part:ident $index:tt),+; $last:ident) => {
        impl<$($part: KeyPart),+> KeyParts for ($($part,)+) {
            const END: char = $last::END;

            fn write(&self, key: &mut String) {
                // What ends the part before; nothing comes before the first.
                let mut end = None;
                $(
                    key.extend(end);
                    self.$index.write(key);
                    end = Some($part::END);
                )+
                let _ = end;
            }

            fn read(key: &str) -> Result<Self, KeyError> {
                let mut rest = Some(key);
                let parts = ($(take::<$part>(&mut rest, key)?,)+);
                match rest {
                    None => Ok(parts),
                    Some(_) => Err(KeyError::malformed("no further part", key)),
                }
            }
        }
    };
}

tuple!(A 0; A);
tuple!(A 0, B 1; B);
tuple!(A 0, B 1, C 2; C);
tuple!(A 0, B 1, C 2, D 3; D);
tuple!(A 0, B 1, C 2, D 3, E 4; E);

/// Reads one part and leaves what follows the sign that ends it; `None` if nothing does.
fn take<P: KeyPart>(rest: &mut Option<&str>, key: &str) -> Result<P, KeyError> {
    let text = rest.ok_or_else(|| KeyError::malformed("another part", key))?;
    let (part, after) = match P::width() {
        None => text.split_once(P::END).map_or((text, None), |(part, after)| (part, Some(after))),
        Some(width) => {
            let (part, after) =
                text.split_at_checked(width).ok_or_else(|| KeyError::malformed("a part of fixed width", key))?;
            match after.strip_prefix(P::END) {
                None if after.is_empty() => (part, None),
                Some(after) => (part, Some(after)),
                None => return Err(KeyError::malformed("a sign that ends the part", key)),
            }
        }
    };
    *rest = after;
    P::read(part).ok_or_else(|| KeyError::malformed("a part of the right type", key))
}

fn push_digits(key: &mut String, value: u64, width: usize) {
    key.push_str(&format!("{value:0width$}"));
}

fn read_digits(text: &str, width: usize) -> Option<u64> {
    let is_number = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Enough for the ticks of the year 9999.
pub(crate) const TICKS_DIGITS: usize = 19;
