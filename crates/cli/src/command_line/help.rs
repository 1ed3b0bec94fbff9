//! The help of `larimar` itself: its commands in groups.

use super::HELP_COLUMNS;
use std::fmt::Write as _;

/// The command with help that has its commands in groups. `clap` has none, so they are hidden from its own list.
pub(super) fn grouped(mut command: clap::Command) -> clap::Command {
    // Adds the command `help`, which is to be hidden too.
    command.build();
    let groups = groups(&command);
    command
        .mut_subcommands(|subcommand| subcommand.hide(true))
        .before_help(groups)
        .override_usage("larimar [COMMAND] [FLAGS]")
        .help_template("{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}")
}

/// The commands, in the order of the help.
pub(super) fn names() -> Vec<String> {
    super::clap_command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

fn groups(command: &clap::Command) -> String {
    let mut text = String::new();
    // As wide as `clap` makes the rest, which would otherwise break these lines without their indentation.
    let columns = larimar_tool::output::terminal_columns().map_or(HELP_COLUMNS, |columns| columns.min(HELP_COLUMNS));
    let mut group = |heading: &str, is_of_group: &dyn Fn(&str) -> bool| {
        writeln!(text, "{heading}:").expect("a string takes every write");
        for command in command.get_subcommands().filter(|command| is_of_group(command.get_name())) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let mut line = format!("  {:<NAME_COLUMNS$}", command.get_name());
            for word in about.split(' ') {
                if line.chars().count() + 1 + word.chars().count() > columns {
                    writeln!(text, "{line}").expect("a string takes every write");
                    line = " ".repeat(NAME_COLUMNS + 2);
                }
                line.push(' ');
                line.push_str(word);
            }
            writeln!(text, "{line}").expect("a string takes every write");
        }
        text.push('\n');
    };
    group("Server", &|name| SERVER.contains(&name));
    group("Data of any account", &larimar_tool::is_command);
    group("Other", &|name| !SERVER.contains(&name) && !larimar_tool::is_command(name));
    text.truncate(text.trim_end().len());
    text
}

/// The commands of a server.
const SERVER: [&str; 9] =
    ["serve", "config", "repair", "migrate", "compact", "backup", "restore", "insights", "advise"];
/// The longest name of a command.
const NAME_COLUMNS: usize = 11;
