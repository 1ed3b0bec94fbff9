//! Descriptions to start from: the worked examples of the guide, and ten others. `larimar design --example NAME` prints one.

/// An example.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Its name.
    pub name: &'static str,
    /// The description, as TOML with comments.
    pub text: &'static str,
}

impl Example {
    /// What it is about: its first comment.
    #[must_use]
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

/// The example with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Example> {
    ALL.iter().find(|example| example.name == name)
}

macro_rules! examples {
    ($($name:literal)*) => {
        &[$(Example { name: $name, text: include_str!(concat!("examples/", $name, ".toml")) }),*]
    };
}

/// All examples: first those of the guide.
pub const ALL: &[Example] = examples! {
    "employees"
    "email"
    "email-busy"
    "last-name"
    "reviews"
    "manager"
    "expense-claims"
    "logins"
    "messages-per-hour"
    "access-log"
    "log-data"
    "daily-counts"
    "photos"
    "telemetry"
    "chat"
    "orders"
    "audit-log"
    "saas-users"
    "leaderboard"
    "sessions"
    "catalogue"
    "followers"
    "jobs"
};
