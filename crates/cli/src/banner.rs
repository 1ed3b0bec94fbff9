//! What a starting server prints to standard output: where it listens, where its data is, how to connect.

use crate::settings::account::Account;
use crate::settings::engine::EngineChoice;
use crate::settings::value::Durability;
use crate::settings::{Settings, Source};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses that a server listens on; none for what it does not serve.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Addresses {
    pub(crate) table: Option<SocketAddr>,
    pub(crate) queue: Option<SocketAddr>,
    pub(crate) blob: Option<SocketAddr>,
    pub(crate) admin: Option<SocketAddr>,
}

impl Addresses {
    /// Whether only this machine can reach the services.
    pub(crate) fn are_loopback(&self) -> bool {
        self.services().all(|(_, _, address)| address.ip().to_canonical().is_loopback())
    }

    /// The services in the order of their usual ports, each with its name in connection strings.
    fn services(&self) -> impl Iterator<Item = (&'static str, &'static str, SocketAddr)> {
        let all = [
            ("blob endpoint", "Blob", self.blob),
            ("queue endpoint", "Queue", self.queue),
            ("table endpoint", "Table", self.table),
        ];
        all.into_iter().filter_map(|(name, word, address)| Some((name, word, address?)))
    }
}

/// The banner of a server that listens on these addresses and has its accounts' keys and its admin token from here.
pub(crate) fn banner(settings: &Settings, addresses: &Addresses, keys_from: &Source, admin_token: &str) -> String {
    let scheme = if settings.tls_certificate.is_some() { "https" } else { "http" };
    let mut lines = Vec::new();
    for account in &settings.accounts {
        for (name, word, address) in addresses.services() {
            let endpoints = endpoints(settings, scheme, account, addresses, word, address);
            lines.extend(endpoints.into_iter().map(|endpoint| (name, endpoint)));
        }
    }
    lines.push(match &settings.engine {
        EngineChoice::Local => ("data directory", data(settings)),
        EngineChoice::Postgres(url) => ("database", format!("{url} ({})", settings.dialect)),
    });
    for account in &settings.accounts {
        lines.push(("connection string", connection_string(settings, scheme, account, addresses)));
        if account.is_development() && scheme == "http" && is_development(addresses) {
            lines.push(("or", "UseDevelopmentStorage=true".to_owned()));
        }
    }
    if settings.accounts.iter().any(|account| !account.is_development()) {
        lines.push(("account keys", format!("not shown; they come from {keys_from}")));
    }
    if let Some(admin) = addresses.admin {
        let host = reachable(&settings.admin_host, admin);
        lines.push(("admin token", admin_token.to_owned()));
        if settings.console {
            lines.push(("console", format!("{scheme}://{host}:{}/", admin.port())));
        }
        lines.push(("admin endpoint", format!("{scheme}://{host}:{} (/health /ready /metrics)", admin.port())));
    }
    let mut text = format!("Larimar {}\n", env!("CARGO_PKG_VERSION"));
    for (name, value) in lines {
        writeln!(text, "  {name:<18} {value}").expect("a string takes every write");
    }
    text
}

/// Where a service of an account is: in path style, unless services share the port, and below the suffixes of the
/// service.
fn endpoints(
    settings: &Settings,
    scheme: &str,
    account: &Account,
    addresses: &Addresses,
    word: &str,
    address: SocketAddr,
) -> Vec<String> {
    let is_shared = addresses.services().filter(|(_, _, other)| *other == address).count() > 1;
    let (name, port) = (&account.name, address.port());
    let path_style = format!("{scheme}://{}:{port}/{name}", reachable(&settings.host, address));
    let service = word.to_ascii_lowercase();
    let below = settings.host_suffixes.iter().filter_map(|suffix| {
        let first = suffix.split('.').next().unwrap_or_default();
        match ["blob", "queue", "table"].contains(&first) {
            true if first == service => Some(format!("{scheme}://{name}.{suffix}:{port}")),
            true => None,
            // The service has to be named where the port does not tell it.
            false if is_shared => Some(format!("{scheme}://{name}.{service}.{suffix}:{port}")),
            false => Some(format!("{scheme}://{name}.{suffix}:{port}")),
        }
    });
    Some(path_style).filter(|_| !is_shared).into_iter().chain(below).collect()
}

/// The connection string of the first account of a server with these settings, on this machine.
pub(crate) fn local_connection_string(settings: &Settings) -> Option<String> {
    let ip = settings.host.parse().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let address = |is_served: bool, port: u16| (is_served && port > 0).then(|| SocketAddr::new(ip, port));
    let addresses = Addresses {
        table: address(settings.table, settings.table_port),
        queue: address(settings.queue, settings.queue_port),
        blob: address(settings.serves_blobs(), settings.blob_port),
        admin: None,
    };
    let scheme = if settings.tls_certificate.is_some() { "https" } else { "http" };
    let account = settings.accounts.first()?;
    Some(with_key(settings, scheme, account, &addresses, &account.key))
}

/// The address of the admin endpoint of the server that the settings describe, as this machine reaches it.
pub(crate) fn local_admin_url(settings: &Settings) -> String {
    let ip = settings.admin_host.parse().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let host = reachable(&settings.admin_host, SocketAddr::new(ip, settings.admin_port));
    let scheme = if settings.tls_certificate.is_some() { "https" } else { "http" };
    format!("{scheme}://{host}:{}", settings.admin_port)
}

fn connection_string(settings: &Settings, scheme: &str, account: &Account, addresses: &Addresses) -> String {
    // This key is public.
    let key = if account.is_development() { account.key.clone() } else { format!("(key of {})", account.name) };
    with_key(settings, scheme, account, addresses, &key)
}

fn with_key(settings: &Settings, scheme: &str, account: &Account, addresses: &Addresses, key: &str) -> String {
    let name = &account.name;
    let mut text = format!("DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={key};");
    for (_, word, address) in addresses.services() {
        if let Some(endpoint) = endpoints(settings, scheme, account, addresses, word, address).first() {
            write!(text, "{word}Endpoint={endpoint};").expect("a string takes every write");
        }
    }
    text
}

fn data(settings: &Settings) -> String {
    let folder = settings.data_dir.display();
    match settings.durability {
        Durability::Sync => format!("{folder} (sync: an acknowledged write survives a power loss)"),
        Durability::Async => format!("{folder} (async: a power loss may lose the last 100 ms)"),
        Durability::Memory => "none (memory: all data ends with the process)".to_owned(),
    }
}

/// A host that a client on this machine can use: the name as it was given, since a certificate may be for it, and
/// the loopback address for a server that listens on all.
fn reachable(host: &str, bound: SocketAddr) -> String {
    let address = match host.parse::<IpAddr>() {
        Err(_) => return host.to_owned(),
        Ok(_) => bound.ip(),
    };
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        IpAddr::V6(address) if address.is_unspecified() => format!("[{}]", Ipv6Addr::LOCALHOST),
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Whether all that is served is where clients look for the development storage.
fn is_development(addresses: &Addresses) -> bool {
    let is_usual = |word: &str, address: SocketAddr| {
        let port = match word {
            "Blob" => 10000,
            "Queue" => 10001,
            _ => 10002,
        };
        address.port() == port && (address.ip().is_loopback() || address.ip().is_unspecified())
    };
    addresses.services().all(|(_, word, address)| is_usual(word, address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::engine::DatabaseUrl;

    fn tables_at(address: &str) -> Addresses {
        Addresses { table: Some(address.parse().expect("an address")), ..Addresses::default() }
    }

    #[test]
    fn a_server_without_configuration_tells_how_to_connect() {
        let at = |port| Some(SocketAddr::from(([127, 0, 0, 1], port)));
        let addresses = Addresses { table: at(10002), queue: at(10001), blob: at(10000), admin: at(10003) };
        let text = banner(&Settings::default(), &addresses, &Source::Default, "in a file");
        let expected = format!(
            "Larimar {}
  blob endpoint      http://127.0.0.1:10000/devstoreaccount1
  queue endpoint     http://127.0.0.1:10001/devstoreaccount1
  table endpoint     http://127.0.0.1:10002/devstoreaccount1
  data directory     larimar-data (sync: an acknowledged write survives a power loss)
  connection string  DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={};BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;
  or                 UseDevelopmentStorage=true
  admin token        in a file
  console            http://127.0.0.1:10003/
  admin endpoint     http://127.0.0.1:10003 (/health /ready /metrics)
",
            env!("CARGO_PKG_VERSION"),
            Account::development().key,
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn the_banner_follows_the_settings_and_hides_keys() {
        let account = |name: &str| Account { name: name.into(), key: "c2VjcmV0".into(), key2: Some("b3RoZXI=".into()) };
        let settings = Settings {
            host: "::".into(),
            accounts: vec![account("alpha"), account("beta")],
            host_suffixes: vec!["table.example.com".into()],
            tls_certificate: Some("cert.pem".into()),
            tls_key: Some("key.pem".into()),
            durability: Durability::Memory,
            ..Settings::default()
        };
        let text = banner(&settings, &tables_at("[::]:4711"), &Source::Environment("LARIMAR_ACCOUNTS".into()), "");
        for expected in [
            "  table endpoint     https://[::1]:4711/alpha\n",
            "  table endpoint     https://alpha.table.example.com:4711\n",
            "  table endpoint     https://[::1]:4711/beta\n",
            "  table endpoint     https://beta.table.example.com:4711\n",
            "AccountName=alpha;AccountKey=(key of alpha);TableEndpoint=https://[::1]:4711/alpha;\n",
            "AccountName=beta;AccountKey=(key of beta);TableEndpoint=https://[::1]:4711/beta;\n",
            "  account keys       not shown; they come from environment LARIMAR_ACCOUNTS\n",
            "  data directory     none (memory",
        ] {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
        for absent in ["c2VjcmV0", "b3RoZXI=", "UseDevelopmentStorage", "admin", "console"] {
            assert!(!text.contains(absent), "{absent} in\n{text}");
        }
    }

    #[test]
    fn each_service_has_its_own_suffix_and_on_a_shared_port_only_that() {
        let suffixes = ["blob.example.com", "queue.example.com", "table.example.com"];
        let at = |port| Some(SocketAddr::from(([127, 0, 0, 1], port)));
        let settings = Settings { host_suffixes: suffixes.map(str::to_owned).to_vec(), ..Settings::default() };
        let apart = Addresses { table: at(3), queue: at(2), blob: at(1), admin: None };
        let text = banner(&settings, &apart, &Source::Default, "in a file");
        for (service, port) in [("blob", 1), ("queue", 2), ("table", 3)] {
            let lines: Vec<_> =
                text.lines().filter(|line| line.starts_with(&format!("  {service} endpoint"))).collect();
            let host = format!("http://devstoreaccount1.{service}.example.com:{port}");
            assert!(lines.len() == 2 && lines[1].ends_with(&host), "{text}");
        }
        let shared = Addresses { table: at(1), queue: at(1), blob: at(1), admin: None };
        let text = banner(&settings, &shared, &Source::Default, "in a file");
        assert!(!text.contains("127.0.0.1"), "{text}");
        assert!(text.contains(";QueueEndpoint=http://devstoreaccount1.queue.example.com:1;TableEndpoint="), "{text}");
        let settings = Settings { host_suffixes: vec!["example.com".to_owned()], ..Settings::default() };
        let text = banner(&settings, &shared, &Source::Default, "in a file");
        assert!(text.contains("  table endpoint     http://devstoreaccount1.table.example.com:1\n"), "{text}");
    }

    #[test]
    fn the_database_is_named_without_its_password() {
        let url = DatabaseUrl::parse("postgres://larimar:secret@one:5432,two/tables").expect("a URL");
        let settings = Settings { engine: EngineChoice::Postgres(url), ..Settings::default() };
        let text = banner(&settings, &tables_at("127.0.0.1:10002"), &Source::Default, "in a file");
        let expected = "  database           postgres://larimar:***@one:5432,two/tables (postgres)\n";
        assert!(text.contains(expected) && !text.contains("data directory"), "{text}");
    }

    #[test]
    fn hosts_are_shown_as_clients_can_use_them() {
        for (host, bound, expected) in [
            ("127.0.0.1", "127.0.0.1:1", "127.0.0.1"),
            ("0.0.0.0", "0.0.0.0:1", "127.0.0.1"),
            ("::1", "[::1]:1", "[::1]"),
            ("localhost", "127.0.0.1:1", "localhost"),
        ] {
            assert_eq!(reachable(host, bound.parse().expect("an address")), expected, "{host}");
        }
    }
}
