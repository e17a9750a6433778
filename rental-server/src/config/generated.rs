//! `--generate`: the manual page and the completions, made from the flags.

use clap::{Command, ValueEnum};
use clap_complete::Shell;
use std::io;

/// What `--generate` prints.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Generated {
    Man,
    Bash,
    Zsh,
    Fish,
}

/// The text of `kind` about these flags.
pub(crate) fn generate(kind: Generated, mut flags: Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let shell = match kind {
        Generated::Man => {
            clap_mangen::Man::new(flags).render(&mut text)?;
            return Ok(text);
        }
        Generated::Bash => Shell::Bash,
        Generated::Zsh => Shell::Zsh,
        Generated::Fish => Shell::Fish,
    };
    clap_complete::generate(shell, &mut flags, "rental-server", &mut text);
    Ok(text)
}
