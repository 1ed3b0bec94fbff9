//! Which engine to use, and the address of its database, whose password is never shown.

use std::fmt;

/// An engine that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EngineChoice {
    /// The embedded engine, on files of its own.
    Local,
    /// The distributed engine, on a database that speaks PostgreSQL's protocol.
    Postgres(DatabaseUrl),
}

/// The URL of a database as PostgreSQL's own tools take it. It may hold a password, which no text made of it shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DatabaseUrl(String);

/// A password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(pub(crate) String);

impl EngineChoice {
    /// Whether it holds a password.
    pub(super) fn has_secret(&self) -> bool {
        match self {
            Self::Local => false,
            Self::Postgres(url) => url.without_secrets() != url.0,
        }
    }

    /// Its text without a password.
    pub(super) fn without_secrets(&self) -> String {
        match self {
            Self::Local => "local".to_owned(),
            Self::Postgres(url) => url.without_secrets(),
        }
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        match text {
            "local" => Some(Self::Local),
            _ => DatabaseUrl::parse(text).map(Self::Postgres),
        }
    }
}

impl DatabaseUrl {
    /// Whether a text means to be such a URL.
    pub(crate) fn is_meant(text: &str) -> bool {
        text.contains("://")
    }

    /// Reads a URL. A password with a `/`, `?` or `@` of its own that is not percent-encoded makes it unsound: what
    /// is shown would hold a piece of it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let Pieces { user, hosts, database, query, .. } = Pieces::of(text)?;
        let is_plain = |c: char| c.is_ascii_graphic();
        let is_sound = text.chars().all(is_plain)
            && !user.is_some_and(|user| user.contains('@'))
            && (hosts.split(',').all(is_host)
                || hosts.is_empty() && query.is_some_and(|query| query.contains("host=")))
            && !database.is_some_and(|database| database.contains(['/', '@']))
            && query.is_none_or(|query| query.split('&').all(is_parameter));
        is_sound.then(|| Self(text.to_owned()))
    }

    /// The URL with all it holds.
    pub(crate) fn with_secrets(&self) -> &str {
        &self.0
    }

    /// The URL with its passwords left out: still a URL.
    pub(crate) fn without_secrets(&self) -> String {
        let Some(Pieces { scheme, user, hosts, database, query }) = Pieces::of(&self.0) else { return String::new() };
        let user = user.map(|user| format!("{}@", user.split(':').next().unwrap_or_default())).unwrap_or_default();
        let database = database.map(|database| format!("/{database}")).unwrap_or_default();
        let parameters = query.into_iter().flat_map(|query| query.split('&'));
        let parameters: Vec<_> = parameters.filter(|text| !is_secret_parameter(text)).collect();
        let query = if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) };
        format!("{scheme}://{user}{hosts}{database}{query}")
    }
}

/// The parts of a URL.
struct Pieces<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    hosts: &'a str,
    database: Option<&'a str>,
    query: Option<&'a str>,
}

impl<'a> Pieces<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        if !["postgres", "postgresql"].contains(&scheme) {
            return None;
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, database) = rest.split_once('/').map_or((rest, None), |(rest, name)| (rest, Some(name)));
        let (user, hosts) = authority.rsplit_once('@').map_or((None, authority), |(user, rest)| (Some(user), rest));
        Some(Self { scheme, user, hosts, database, query })
    }
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, port)) => (address, Some(port.strip_prefix(':').unwrap_or("x"))),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._%:".contains(c);
    !host.is_empty() && host.chars().all(is_plain) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_parameter(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, value)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !value.contains('@')
    })
}

fn is_secret_parameter(text: &str) -> bool {
    text.split('=').next().is_some_and(|name| name.contains("password"))
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Pieces { scheme, user, hosts, database, query }) = Pieces::of(&self.0) else { return Ok(()) };
        write!(f, "{scheme}://")?;
        match user.map(|user| user.split_once(':').map_or((user, ""), |(name, _)| (name, ":***"))) {
            Some((name, password)) => write!(f, "{name}{password}@{hosts}")?,
            None => write!(f, "{hosts}")?,
        }
        if let Some(database) = database {
            write!(f, "/{database}")?;
        }
        for (index, parameter) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = if is_secret_parameter(parameter) { "***" } else { value };
            write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Postgres(url) => write!(f, "{url}"),
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_their_passwords() {
        for (text, shown) in [
            ("postgres://h", "postgres://h"),
            ("postgresql://u@h/d", "postgresql://u@h/d"),
            ("postgres://u:secret@h/d", "postgres://u:***@h/d"),
            ("postgres://u:s:e%2Fcret@h:1,h2:2/d?sslmode=require", "postgres://u:***@h:1,h2:2/d?sslmode=require"),
            ("postgres://u@[::1]:5432/d", "postgres://u@[::1]:5432/d"),
            ("postgres://u@/d?host=%2Frun&password=secret&x=1", "postgres://u@/d?host=%2Frun&password=***&x=1"),
            ("postgres://u@h/d?sslpassword=secret", "postgres://u@h/d?sslpassword=***"),
            ("postgres://u@h?options=-csearch_path%3Ds", "postgres://u@h?options=-csearch_path%3Ds"),
        ] {
            let url = DatabaseUrl::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((url.with_secrets(), url.to_string(), format!("{url:?}")), (text, shown.into(), shown.into()));
        }
    }

    #[test]
    fn a_url_that_would_show_a_piece_of_its_password_is_refused() {
        for text in [
            "postgres://u:se/cret@h/d",
            "postgres://u:12/34@h/d",
            "postgres://u:se?cret@h/d",
            "postgres://u:12?a=34@h/d",
            "postgres://u:se@cret@h/d",
            "postgres://u:12/34?a=56@h/d",
            "postgres://u@h/d?pass%77ord=secret",
            "postgres://u@h/d?secret",
            "postgres://u:se cret@h/d",
            "postgres://u@h:port/d",
            "postgres://u@h/d/e",
            "postgres://",
            "mysql://u:secret@h/d",
            "localhost",
        ] {
            assert!(EngineChoice::from_text(text).is_none(), "{text}");
        }
    }
}
