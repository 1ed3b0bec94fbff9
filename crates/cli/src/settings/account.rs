//! Storage accounts: how they are spelled, which names and keys are refused, and why.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD};
use larimar_server::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};

/// A storage account and its keys, in Base64.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) key2: Option<String>,
}

impl Account {
    /// The account of the development storage, whose key is public.
    pub(crate) fn development() -> Self {
        Self { name: DEVELOPMENT_ACCOUNT.to_owned(), key: DEVELOPMENT_KEY.to_owned(), key2: None }
    }

    pub(crate) fn is_development(&self) -> bool {
        *self == Self::development()
    }

    /// Whether one of its keys is the public one.
    pub(crate) fn has_well_known_key(&self) -> bool {
        self.keys().any(|key| key == DEVELOPMENT_KEY)
    }

    /// Whether one of its keys can be guessed by trying.
    pub(crate) fn has_short_key(&self) -> bool {
        self.keys().any(|key| key.len() < SHORT_KEY_CHARS)
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        [Some(self.key.as_str()), self.key2.as_deref()].into_iter().flatten()
    }

    fn read(entry: &str) -> Result<Self, String> {
        let mut fields = entry.split(':').map(str::trim);
        let name = fields.next().unwrap_or_default();
        check_name(name)?;
        let of = |fault: String| format!("{name:?}: {fault}");
        let key = fields.next().ok_or_else(|| of("it has no key; expected name:key[:key2]".to_owned()))?;
        let key = read_key("key", key).map_err(of)?;
        let key2 = fields.next().map(|key| read_key("key2", key)).transpose().map_err(of)?;
        if fields.next().is_some() {
            return Err(of("it has more than two keys; expected name:key[:key2]".to_owned()));
        }
        Ok(Self { name: name.to_owned(), key, key2 })
    }
}

/// Keys are secrets, also in a log line that prints the settings.
impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({})", self.name)
    }
}

/// Accounts as Azurite's variable spells them: `name:key[:key2];…`. The error names the entry and its fault, and no
/// key.
pub(crate) fn accounts(text: &str) -> Result<Vec<Account>, String> {
    let mut accounts: Vec<Account> = Vec::new();
    for entry in text.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let of = |fault: String| format!("account {}: {fault}", accounts.len() + 1);
        let account = Account::read(entry).map_err(of)?;
        if let Some(other) = accounts.iter().find(|other| other.name.eq_ignore_ascii_case(&account.name)) {
            let (name, other) = (&account.name, &other.name);
            return Err(of(match name == other {
                true => format!("{name:?} is there twice"),
                false => format!("{name:?} differs from {other:?} only in case, which host names do not keep"),
            }));
        }
        accounts.push(account);
    }
    if accounts.is_empty() { Err("expected at least one account, as name:key[:key2]".to_owned()) } else { Ok(accounts) }
}

/// `[[accounts]]` tables in the spelling of the variable.
pub(super) fn text_of_tables(items: &[toml::Value]) -> Result<String, String> {
    let mut parts = Vec::new();
    for (index, table) in items.iter().filter_map(toml::Value::as_table).enumerate() {
        let of = |fault: String| format!("account {}: {fault}", index + 1);
        if let Some(field) = table.keys().find(|field| !FIELDS.contains(&field.as_str())) {
            return Err(of(format!("there is no field {field:?}; expected name, key and perhaps key2")));
        }
        let mut texts = Vec::new();
        for field in FIELDS {
            match table.get(field).map(toml::Value::as_str) {
                Some(Some(text)) if !text.contains([':', ';']) => texts.push(text),
                Some(Some(_)) => return Err(of(format!("{field} holds a colon or a semicolon"))),
                Some(None) => return Err(of(format!("{field} is not a text"))),
                None if field == "key2" => {}
                None => return Err(of(format!("it has no {field}"))),
            }
        }
        parts.push(texts.join(":"));
    }
    Ok(parts.join(";"))
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() {
        return Err("it has no name; expected name:key[:key2]".to_owned());
    }
    if name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
        // What does not look like a name may be a key in its place.
        return Err(format!("its name is not {NAME_EXPECTED}"));
    }
    match name.strip_suffix("-secondary") {
        Some(primary) => Err(format!(
            "{name:?} cannot be reached: names that end in -secondary address the secondary of {primary:?}"
        )),
        None => Ok(()),
    }
}

/// A key in strict Base64. Azurite decodes as Node does: padding may be missing, the alphabet may be the one of URLs,
/// and bits that make no byte are dropped.
fn read_key(field: &str, text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err(format!("{field} is empty"));
    }
    let text = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
    if let Some(place) = text.chars().position(|c| !(c.is_ascii_alphanumeric() || c == '+' || c == '/')) {
        return Err(format!("{field} is not Base64: see its character {}", place + 1));
    }
    let whole = if text.len() % 4 == 1 { &text[..text.len() - 1] } else { &text };
    let bytes = LOOSE.decode(whole).map_err(|_| format!("{field} is not Base64"))?;
    if bytes.len() < KEY_BYTES_MIN {
        let found = bytes.len();
        return Err(format!(
            "{field} has {found} bytes; expected Base64 of at least {KEY_BYTES_MIN}, better 32 or more"
        ));
    }
    Ok(STANDARD.encode(bytes))
}

const LOOSE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

const FIELDS: [&str; 3] = ["name", "key", "key2"];
/// The length of a label of a host name.
const NAME_CHARS_MAX: usize = 63;
const NAME_EXPECTED: &str = "of 1 to 63 letters, digits, - and _";
/// Azurite's documentation has the key `key1`, which is three bytes; less is a mistake.
const KEY_BYTES_MIN: usize = 3;
/// The Base64 of 16 bytes.
const SHORT_KEY_CHARS: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_may_be_as_loose_as_azurite_takes_them() {
        for (text, key) in [
            ("a2V5", "a2V5"),
            ("key1", "key1"),
            ("b3RoZXI", "b3RoZXI="),
            ("b3RoZXI=", "b3RoZXI="),
            ("-_-_", "+/+/"),
            ("key12", "key1"),
            ("b3RoZXJ=", "b3RoZXI="),
        ] {
            let read = accounts(&format!("one:{text}")).expect(text);
            assert_eq!(read[0].key, key, "{text}");
        }
    }

    #[test]
    fn a_refusal_names_the_entry_and_the_fault_and_no_key() {
        for (text, fault) in [
            ("", "expected at least one account, as name:key[:key2]"),
            ("one", "account 1: \"one\": it has no key; expected name:key[:key2]"),
            ("one:", "account 1: \"one\": key is empty"),
            ("one:a2V5;two:c2Vj%cmV0", "account 2: \"two\": key is not Base64: see its character 5"),
            ("one:a2V5:b3%", "account 1: \"one\": key2 is not Base64: see its character 3"),
            (":a2V5", "account 1: it has no name; expected name:key[:key2]"),
            ("a b:a2V5", "account 1: its name is not of 1 to 63 letters, digits, - and _"),
            ("one:a2V5:a2V5:a2V5", "account 1: \"one\": it has more than two keys; expected name:key[:key2]"),
            ("one:a2V5;one:b3Ro", "account 2: \"one\" is there twice"),
            (
                "shop:a2V5;Shop:b3Ro",
                "account 2: \"Shop\" differs from \"shop\" only in case, which host names do not keep",
            ),
            (
                "x-secondary:a2V5",
                "account 1: \"x-secondary\" cannot be reached: names that end in -secondary address the secondary of \"x\"",
            ),
            ("one:eA==", "account 1: \"one\": key has 1 bytes; expected Base64 of at least 3, better 32 or more"),
        ] {
            assert_eq!(accounts(text).map_err(|fault| fault.to_string()), Err(fault.to_owned()), "{text}");
        }
    }
}
