//! How each shell asks for candidates, and how it gets them. The program reads the typed words as the shell would: without the quotes and
//! backslashes of names with spaces. zsh, fish and the others quote a candidate themselves; bash inserts it as it is.

use crate::commands::shell_words::{Rules, Word, quoted, words};
use clap::Command;
use clap_complete::{
    engine::complete,
    env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh},
};
use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    path::Path,
    sync::OnceLock,
};

/// Variable with the name of the shell that asks for candidates.
pub(crate) const VARIABLE: &str = "RENTAL_CLI_COMPLETE";
/// Variable with the text that bash replaces by a candidate: the end of the word at the cursor, from the last character at which
/// bash itself begins a word, such as a quote, `@`, `:` or `=`.
const REPLACED: &str = "_RENTAL_CLI_REPLACED";

/// The script of bash. It passes the line up to the cursor, because bash has its own idea of words.
const SCRIPT_OF_BASH: &str = r#"
_rental_cli_complete() {
    local reply
    COMPREPLY=()
    while IFS= read -r reply; do
        [[ -z $reply ]] || COMPREPLY+=("$reply")
    done <<< "$(_RENTAL_CLI_REPLACED="$2" VARIABLE=bash COMPLETER -- "${COMP_LINE:0:COMP_POINT}" 2> /dev/null)"
    if [[ ${#COMPREPLY[@]} -ne 1 || ! ${COMPREPLY[0]} =~ [=/:]$ ]]; then
        compopt +o nospace 2> /dev/null
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _rental_cli_complete BIN
else
    complete -o nospace -o bashdefault -F _rental_cli_complete BIN
fi
"#;

/// The words of the command line that is completed, as the program would get them.
static TYPED: OnceLock<Vec<String>> = OnceLock::new();

/// The shells that have completions.
pub(crate) const fn shells() -> Shells<'static> {
    Shells(&[&Quoting, &Elvish, &Other(&Fish, unquoting), &Other(&Powershell, plain), &Other(&Zsh, unquoting)])
}

/// The words of the command line that is completed, up to the cursor.
pub(super) fn typed_so_far() -> &'static [String] {
    TYPED.get_or_init(|| {
        let words = env::args_os().skip_while(|word| word != "--").skip(1);
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    })
}

/// Remembers the words for the candidates, which get no more than the word at the cursor.
fn remembered(words: Vec<String>) -> Vec<OsString> {
    TYPED.get_or_init(|| words).iter().map(OsString::from).collect()
}

/// bash.
struct Quoting;

impl EnvCompleter for Quoting {
    fn name(&self) -> &'static str {
        Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        Bash.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let word = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let parts = [("VARIABLE", variable.to_owned()), ("BIN", word(bin)), ("COMPLETER", word(completer))];
        let script = parts.iter().fold(SCRIPT_OF_BASH.to_owned(), |script, (name, part)| script.replace(name, part));
        out.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        args: Vec<OsString>,
        directory: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let line = args.first().map(|line| line.to_string_lossy().into_owned()).unwrap_or_default();
        let words = words(&line, Rules::Posix);
        let last = words.last().cloned().unwrap_or_default();
        let replaced = env::var(REPLACED).unwrap_or_default();
        let kept = Word::read(last.typed.strip_suffix(&replaced).unwrap_or(""), Rules::Posix).text;
        let args = remembered(words.into_iter().map(|word| word.text).collect());
        let index = args.len().saturating_sub(1);
        for candidate in complete(command, args, index, directory)? {
            if let Some(rest) = candidate.get_value().to_string_lossy().strip_prefix(&kept) {
                writeln!(out, "{}", quoted(rest, last.open))?;
            }
        }
        Ok(())
    }
}

/// Completes the typed words for a shell.
type Completing = fn(&dyn EnvCompleter, &mut Command, Vec<OsString>, Option<&Path>, &mut dyn Write) -> io::Result<()>;

/// A shell with the script of clap and candidates of its own.
struct Other(&'static dyn EnvCompleter, Completing);

impl EnvCompleter for Other {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn is(&self, name: &str) -> bool {
        self.0.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        bin: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.0.write_registration(variable, name, bin, completer, out)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        args: Vec<OsString>,
        directory: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        (self.1)(self.0, command, args, directory, out)
    }
}

/// The script of PowerShell evaluates what was typed and inserts a candidate as it is. So names with characters that mean something there
/// are not offered: a vehicle named `$(...)` would be run.
fn plain(
    _: &dyn EnvCompleter,
    command: &mut Command,
    args: Vec<OsString>,
    directory: Option<&Path>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let index = args.len().saturating_sub(1);
    for candidate in complete(command, args, index, directory)? {
        let value = candidate.get_value().to_string_lossy();
        if is_plain(&value) {
            let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
            writeln!(out, "{value}\t{}", help.lines().next().unwrap_or_default())?;
        }
    }
    Ok(())
}

fn is_plain(text: &str) -> bool {
    !text.starts_with('@') && text.chars().all(|c| c.is_alphanumeric() || "-_./:=+%@".contains(c))
}

/// fish and zsh pass words as they were typed, and quote candidates themselves. fish has read all words but the last.
fn unquoting(
    shell: &dyn EnvCompleter,
    command: &mut Command,
    args: Vec<OsString>,
    directory: Option<&Path>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let is_fish = shell.is("fish");
    let last = args.len().saturating_sub(1);
    let read = |(at, typed): (usize, &OsString)| {
        let typed = typed.to_string_lossy();
        match is_fish {
            true if at < last => typed.into_owned(),
            true => Word::read(&typed, Rules::Fish).text,
            false => Word::read(&typed, Rules::Posix).text,
        }
    };
    let args = remembered(args.iter().enumerate().map(read).collect());
    shell.write_complete(command, args, directory, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powershell_is_offered_no_name_that_it_would_run() {
        for text in ["White-Model-3", "--all", "ada@example.com", "Ärö", "rental:BK-1", "a/b.csv"] {
            assert!(is_plain(text), "{text}");
        }
        for text in ["$(x)", "a;b", "a b", "a`b", "a'b", "a\"b", "a|b", "@a", "a&b", "(x)", "{x}", "a,b", "a\tb"] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
