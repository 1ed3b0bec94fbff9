//! The question before data is deleted.

use crate::{Error, Result};
use clap::Args;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// The flag that answers the question.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// Delete without asking; needed where there is no terminal to ask on
    #[arg(long, short)]
    yes: bool,
}

impl ConfirmArgs {
    /// Asks whether to do what the question says. Anything but yes is an error.
    pub(crate) fn ask(self, question: &str) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            return Err(Error::Usage(format!("{question} needs --yes where there is no terminal to ask on")));
        }
        eprint!("{question}? [y/N] ");
        std::io::stderr().flush().map_err(|error| Error::io("standard error", error))?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).map_err(|error| Error::io("standard input", error))?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Error::Failed("nothing was deleted".to_owned())),
        }
    }
}
