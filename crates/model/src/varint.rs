//! Numbers of variable length, as stored rows and entity bodies have them: seven bits a byte, least significant first, the
//! high bit set on all bytes but the last.

/// Appends a number.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number off the front of bytes; `None` if they are cut short or the number has more than 64 bits.
#[inline]
#[must_use]
pub fn take(input: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = input.split_first()?;
    if first < 0x80 {
        *input = rest;
        return Some(u64::from(first));
    }
    take_long(input)
}

fn take_long(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (&byte, shift) in input.iter().zip((0..64).step_by(7)) {
        let bits = u64::from(byte & 0x7F);
        value |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
        if byte < 0x80 {
            *input = &input[shift as usize / 7 + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for number in [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, 1 << 32, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            for length in 0..bytes.len() {
                assert_eq!(take(&mut &bytes[..length]), None, "{number} cut to {length} bytes");
            }
            bytes.push(9);
            let mut input = &bytes[..];
            assert_eq!(take(&mut input), Some(number));
            assert_eq!(input, [9]);
        }
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_refused() {
        assert_eq!(take(&mut &[0xFF; 40][..]), None);
        let mut over = [0xFF; 10];
        over[9] = 2;
        assert_eq!(take(&mut &over[..]), None);
        over[9] = 1;
        assert_eq!(take(&mut &over[..]), Some(u64::MAX));
    }
}
