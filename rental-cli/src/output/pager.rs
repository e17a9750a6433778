//! Shows a list that is longer than the terminal in a pager, as git does: a pager that ends early is no error, and one that
//! cannot be started leaves the list to the terminal.

use signal_hook::{consts::SIGINT, flag};
use std::{
    env, io,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Variables with a command line for the shell; the first that is set wins. Empty or `cat`: no pager.
const VARIABLES: [&str; 2] = ["RENTAL_PAGER", "PAGER"];
/// The pager without any of them.
const USUAL: &str = "less";
/// Options of `less`, unless the user has set others: end if it fits, show colours, leave the text on the screen.
const LESS: (&str, &str) = ("LESS", "FRX");
/// Exit codes of a shell that cannot run a program, and of one that does not find it.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Shows a text of this program in a pager if it has more lines than the terminal. Returns whether it was shown.
pub(super) fn shows(text: &str) -> bool {
    let height = terminal_size::terminal_size().map_or(usize::MAX, |(_, height)| usize::from(height.0));
    let command = (text.lines().count() >= height).then(command).flatten();
    let pager = command.and_then(|mut command| command.stdin(Stdio::piped()).spawn().ok());
    pager.is_some_and(|pager| was_shown(pager, text))
}

/// The pager that the environment chooses; `None` for no pager.
fn command() -> Option<Command> {
    let chosen = VARIABLES.iter().find_map(env::var_os);
    let mut command = match chosen {
        Some(line) if line.is_empty() || line == "cat" => return None,
        Some(line) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(line);
            shell
        }
        None => Command::new(USUAL),
    };
    if env::var_os(LESS.0).is_none() {
        command.env(LESS.0, LESS.1);
    }
    Some(command)
}

/// Gives the text to the pager and waits for its end. Returns whether there was a pager.
fn was_shown(mut pager: Child, text: &str) -> bool {
    // Ctrl-C is for the pager, which this program must outlive: else both the pager and the shell would read the keyboard.
    let has_ended = Arc::new(AtomicBool::new(false));
    let _ = flag::register_conditional_default(SIGINT, Arc::clone(&has_ended));
    if let Some(mut input) = pager.stdin.take() {
        // A pager that ends early does not read the rest.
        let _ = io::Write::write_all(&mut input, text.as_bytes());
    }
    let ended = pager.wait();
    has_ended.store(true, Ordering::Relaxed);
    ended.is_ok_and(|status| !status.code().is_some_and(|code| NOT_STARTED.contains(&code)))
}
