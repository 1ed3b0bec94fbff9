//! How names of fields and variants become names of properties and texts.

use syn::LitStr;

/// A way to write a name of several words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// As it is written in the program.
    None,
    Pascal,
    Camel,
    Snake,
    Kebab,
    Lower,
    Upper,
}

const PROPERTY_CASES: [(&str, Case); 4] =
    [("PascalCase", Case::Pascal), ("camelCase", Case::Camel), ("snake_case", Case::Snake), ("none", Case::None)];
const TEXT_CASES: [(&str, Case); 7] = [
    ("PascalCase", Case::Pascal),
    ("camelCase", Case::Camel),
    ("snake_case", Case::Snake),
    ("kebab-case", Case::Kebab),
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("none", Case::None),
];

impl Case {
    /// A case that names of properties may have.
    pub(crate) fn of_properties(text: &LitStr) -> syn::Result<Self> {
        Self::find(text, &PROPERTY_CASES)
    }

    /// A case that texts may have.
    pub(crate) fn of_texts(text: &LitStr) -> syn::Result<Self> {
        Self::find(text, &TEXT_CASES)
    }

    fn find(text: &LitStr, cases: &[(&str, Self)]) -> syn::Result<Self> {
        let found = cases.iter().find(|(name, _)| *name == text.value());
        found.map(|(_, case)| *case).ok_or_else(|| {
            let known: Vec<_> = cases.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            syn::Error::new(text.span(), format!("expected one of {}", known.join(", ")))
        })
    }

    pub(crate) fn apply(self, name: &str) -> String {
        let words = words(name);
        let lower = || words.iter().map(|word| word.to_lowercase());
        match self {
            Self::None => name.to_owned(),
            Self::Pascal => words.iter().map(|word| capitalised(word)).collect(),
            Self::Camel => {
                let rest = words.iter().skip(1).map(|word| capitalised(word));
                lower().take(1).chain(rest).collect()
            }
            Self::Snake => lower().collect::<Vec<_>>().join("_"),
            Self::Kebab => lower().collect::<Vec<_>>().join("-"),
            Self::Lower => lower().collect(),
            Self::Upper => words.iter().map(|word| word.to_uppercase()).collect(),
        }
    }
}

/// The words of a name: underscores part them, and so does a capital after a small letter.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && !before.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("there is a first word").push(c);
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_by_their_words() {
        for (name, pascal, camel, snake) in [
            ("last_name", "LastName", "lastName", "last_name"),
            ("id", "Id", "id", "id"),
            ("address2", "Address2", "address2", "address2"),
            ("_hidden", "Hidden", "hidden", "hidden"),
            ("größe_über", "GrößeÜber", "größeÜber", "größe_über"),
            ("OnLeave", "OnLeave", "onLeave", "on_leave"),
            ("x__y", "XY", "xY", "x_y"),
        ] {
            assert_eq!(Case::Pascal.apply(name), pascal);
            assert_eq!(Case::Camel.apply(name), camel);
            assert_eq!(Case::Snake.apply(name), snake);
            assert_eq!(Case::None.apply(name), name);
        }
        assert_eq!(Case::Kebab.apply("OnLeave"), "on-leave");
        assert_eq!(Case::Upper.apply("OnLeave"), "ONLEAVE");
        assert_eq!(Case::Lower.apply("OnLeave"), "onleave");
    }
}
