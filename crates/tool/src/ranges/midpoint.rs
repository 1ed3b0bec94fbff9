//! A key between two others, to divide a range of keys.

use super::span::compare;

/// A key after `low` and before `high` (any key, if there is none), roughly half-way. None if there is no such key that
/// can be used.
///
/// It has no control characters, which services refuse, and no characters from U+D800: those below are in the same
/// place in every order that a service may use, be it of UTF-16 or of UTF-8.
pub(super) fn midpoint(low: &str, high: Option<&str>) -> Option<String> {
    let low_text: Vec<char> = low.chars().collect();
    let high_text: Option<Vec<char>> = high.map(|high| high.chars().collect());
    let mut middle = String::new();
    // As long as the beginning is that of `high`, which then bounds the next character too.
    let mut bound = high_text.as_deref();
    for depth in 0..=low_text.len() {
        let from = low_text.get(depth).map_or(BEFORE_FIRST, |character| u32::from(*character).max(BEFORE_FIRST));
        let to = match bound {
            Some(high) => high.get(depth).map(|character| u32::from(*character)),
            None => None,
        };
        if let Some(character) = between(from, to, bound.is_some()) {
            middle.push(character);
            return Some(middle).filter(|middle| is_between(low, middle, high));
        }
        // The first character of `high` alone is between the two if `high` goes on after it.
        if let Some((high, to)) = bound.zip(to)
            && to > from
            && high.len() > depth + 1
        {
            let candidate: String = high[..=depth].iter().collect();
            if is_usable(&candidate) && is_between(low, &candidate, Some(&high.iter().collect::<String>())) {
                return Some(candidate);
            }
        }
        let next = low_text.get(depth)?;
        if !is_usable(next.encode_utf8(&mut [0; 4])) {
            return None;
        }
        middle.push(*next);
        bound = bound.filter(|high| high.get(depth) == Some(next));
    }
    None
}

/// A character between two others. The end is that of all characters if the text is not bounded here.
fn between(from: u32, to: Option<u32>, is_bounded: bool) -> Option<char> {
    let to = match (to, is_bounded) {
        (Some(to), _) => to.min(END),
        // The bound ends here: no text with the same beginning is before it.
        (None, true) => return None,
        // Most keys are of ASCII: whether any is beyond it is asked first.
        (None, false) if from < LAST_ASCII - 1 => return char::from_u32(LAST_ASCII),
        (None, false) => END,
    };
    let middle = from + to.checked_sub(from).filter(|room| *room >= 2)? / 2;
    let middle = match middle {
        CONTROLS_START..CONTROLS_END if to > CONTROLS_END && from < CONTROLS_END => CONTROLS_END,
        CONTROLS_START..CONTROLS_END => return None,
        usual => usual,
    };
    char::from_u32(middle)
}

fn is_usable(text: &str) -> bool {
    text.chars().all(|character| !character.is_control() && u32::from(character) < END)
}

fn is_between(low: &str, middle: &str, high: Option<&str>) -> bool {
    compare(low, middle).is_lt() && high.is_none_or(|high| compare(middle, high).is_lt())
}

/// One before the first character that keys may have.
const BEFORE_FIRST: u32 = 0x1F;
/// The last printable character of ASCII.
const LAST_ASCII: u32 = 0x7E;
/// Control characters after ASCII.
const CONTROLS_START: u32 = 0x7F;
const CONTROLS_END: u32 = 0xA0;
/// The first surrogate of UTF-16.
const END: u32 = 0xD800;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_middle_of_usual_keys() {
        for (low, high, middle) in [
            ("", None, Some("~")),
            ("", Some("~"), Some("N")),
            ("a", Some("c"), Some("b")),
            ("a", Some("b"), Some("a~")),
            ("a", Some("b1"), Some("b")),
            ("0000", Some("1"), Some("0~")),
            ("0009", Some("000~"), Some("000[")),
            ("a", Some("a!"), Some("a ")),
            ("a", Some("a "), None),
            ("a", Some("a"), None),
            ("b", Some("a"), None),
            ("~", None, Some("\u{6c3f}")),
            ("😀", Some("😁"), None),
            ("x😀", None, Some("~")),
        ] {
            assert_eq!(midpoint(low, high).as_deref(), middle, "{low:?} to {high:?}");
        }
    }

    proptest! {
        #[test]
        fn a_middle_is_strictly_between_and_the_search_ends(low: String, high: Option<String>) {
            let mut high = high;
            let mut steps = 0;
            while let Some(middle) = midpoint(&low, high.as_deref()) {
                prop_assert!(is_between(&low, &middle, high.as_deref()) && is_usable(&middle));
                high = Some(middle);
                steps += 1;
                prop_assert!(steps <= 20 * (low.chars().count() + 2), "{low:?} {high:?}");
            }
        }
    }
}
