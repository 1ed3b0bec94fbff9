//! Azurite's flags, as ours: what means the same is translated, what does not is refused with what to use instead.

use std::ffi::OsString;

/// A command line with our flags in the place of Azurite's.
pub(super) struct Translated {
    pub(super) arguments: Vec<OsString>,
    /// What was translated, for the user to see.
    pub(super) notes: Vec<String>,
}

/// What one of Azurite's flags is here.
enum Meaning {
    /// This flag, with its value.
    Flag(&'static str),
    /// These arguments, without a value.
    Switch(&'static [&'static str]),
    /// Nothing has to be said for it.
    Always(&'static str),
    /// Larimar has no such flag; what to do instead.
    Refused(&'static str),
}

/// Translates a command line, or says what to use instead.
pub(super) fn translate(arguments: impl IntoIterator<Item = OsString>) -> Result<Translated, String> {
    let mut translated = Translated { arguments: Vec::new(), notes: Vec::new() };
    let mut host: Option<OsString> = None;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        let (name, value) = text.split_once('=').map_or((&*text, None), |(name, value)| (name, Some(value)));
        let Some((_, meaning)) = FLAGS.iter().find(|(names, _)| names.contains(&name)) else {
            translated.arguments.push(argument);
            continue;
        };
        match meaning {
            Meaning::Flag(ours) => {
                let value = value.map(OsString::from).or_else(|| arguments.next());
                let value = value.ok_or_else(|| format!("{name} needs a value; here it is {ours}"))?;
                translated.notes.push(format!("Azurite's {name} is taken as {ours}"));
                if *ours == "--host" && host.replace(value.clone()).is_some_and(|other| other != value) {
                    return Err(format!("{name}: all services listen on one address here, --host"));
                }
                translated.arguments.extend([OsString::from(ours), value]);
            }
            Meaning::Switch(ours) => {
                translated.notes.push(format!("Azurite's {name} is taken as {}", ours.join(" ")));
                translated.arguments.extend(ours.iter().map(OsString::from));
            }
            Meaning::Always(why) => translated.notes.push(format!("Azurite's {name} is not needed: {why}")),
            Meaning::Refused(instead) => return Err(format!("{name} is a flag of Azurite: {instead}")),
        }
    }
    Ok(translated)
}

const FLAGS: &[(&[&str], Meaning)] = &[
    (&["--location", "-l"], Meaning::Flag("--data-dir")),
    (&["--blobHost", "--queueHost", "--tableHost"], Meaning::Flag("--host")),
    (&["--blobPort"], Meaning::Flag("--blob-port")),
    (&["--queuePort"], Meaning::Flag("--queue-port")),
    (&["--tablePort"], Meaning::Flag("--table-port")),
    (&["--cert"], Meaning::Flag("--tls-certificate")),
    (&["--key"], Meaning::Flag("--tls-key")),
    (&["--inMemoryPersistence"], Meaning::Switch(&["--durability", "memory"])),
    (&["--silent", "-s"], Meaning::Switch(&["--log-level", "warn"])),
    (&["--loose", "-L"], Meaning::Always("unknown headers and parameters are accepted unless --strict is given")),
    (&["--skipApiVersionCheck"], Meaning::Always("every x-ms-version is accepted unless --strict is given")),
    (&["--disableTelemetry"], Meaning::Always("nothing is reported to anybody")),
    (&["--disableProductStyleUrl"], Meaning::Always("hosts that name no known account are read as path style")),
    (&["--debug", "-d"], Meaning::Refused("use --log-level debug; log lines go to standard error")),
    (&["--pwd"], Meaning::Refused("give the certificate and its key in PEM, with --tls-certificate and --tls-key")),
    (&["--oauth"], Meaning::Refused("tokens are not supported; use account keys or shared access signatures")),
    (&["--extentMemoryLimit"], Meaning::Refused("use --memory for the caches and --in-flight-bytes-max for requests")),
    (
        &["--blobKeepAliveTimeout", "--queueKeepAliveTimeout", "--tableKeepAliveTimeout"],
        Meaning::Refused("use --idle-timeout"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<(String, usize), String> {
        let translated = translate(arguments.iter().map(OsString::from))?;
        let arguments: Vec<_> = translated.arguments.iter().map(|text| text.to_string_lossy()).collect();
        Ok((arguments.join(" "), translated.notes.len()))
    }

    #[test]
    fn what_means_the_same_is_translated_and_told() {
        for (arguments, ours, notes) in [
            (&["larimar", "--location", "d", "--silent"][..], "larimar --data-dir d --log-level warn", 2),
            (&["--blobPort=1", "--tablePort", "2"], "--blob-port 1 --table-port 2", 2),
            (&["--blobHost", "h", "--tableHost=h"], "--host h --host h", 2),
            (&["--inMemoryPersistence", "--loose", "--skipApiVersionCheck"], "--durability memory", 3),
            (&["serve", "--data-dir", "x", "--strict"], "serve --data-dir x --strict", 0),
        ] {
            assert_eq!(read(arguments), Ok((ours.to_owned(), notes)), "{arguments:?}");
        }
    }

    #[test]
    fn what_does_not_is_refused_with_what_to_use() {
        for (arguments, word) in [
            (&["--debug", "log"][..], "--log-level debug"),
            (&["--oauth=basic"], "account keys"),
            (&["--blobHost", "a", "--queueHost", "b"], "--host"),
            (&["--location"], "--data-dir"),
        ] {
            let said = read(arguments).expect_err("refused");
            assert!(said.contains(word), "{said}");
        }
    }
}
