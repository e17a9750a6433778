//! Words of a command line that is still typed: what the program would get of them, and how a value is written as the rest of such a
//! word. No I/O.

/// Which characters quote others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Rules {
    /// bash and zsh: nothing is special inside single quotes.
    Posix,
    /// fish: a backslash quotes a quote or a backslash also inside single quotes.
    Fish,
}

/// A word that may be incomplete.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Word {
    /// What was typed.
    pub(super) typed: String,
    /// What the program would get of it.
    pub(super) text: String,
    /// The quote that is open at its end.
    pub(super) open: Option<char>,
    /// Whether it ends in a backslash, which quotes the next character.
    escaped: bool,
}

impl Word {
    /// Reads one word, in which blanks do not end it.
    pub(super) fn read(typed: &str, rules: Rules) -> Self {
        let mut word = Self::default();
        typed.chars().for_each(|letter| word.push(letter, rules));
        word
    }

    fn push(&mut self, letter: char, rules: Rules) {
        self.typed.push(letter);
        if std::mem::take(&mut self.escaped) {
            let is_quoted = match self.open {
                None => true,
                Some('"') => "\"\\$`".contains(letter),
                Some(_) => "'\\".contains(letter),
            };
            self.text.extend((!is_quoted).then_some('\\').into_iter().chain([letter]));
            return;
        }
        match (self.open, letter) {
            (Some('\''), '\\') if rules == Rules::Posix => self.text.push(letter),
            (_, '\\') => self.escaped = true,
            (None, '\'' | '"') => self.open = Some(letter),
            (Some(open), _) if open == letter => self.open = None,
            _ => self.text.push(letter),
        }
    }
}

/// The words of a line up to the cursor. The last one is the word at the cursor, which is empty after a blank.
pub(super) fn words(line: &str, rules: Rules) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    for letter in line.chars() {
        let ends = letter.is_whitespace() && word.as_ref().is_none_or(|word| word.open.is_none() && !word.escaped);
        if ends {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(letter, rules);
        }
    }
    words.push(word.unwrap_or_default());
    words
}

/// Writes a text for bash as the rest of a word, in which this quote is open. bash closes it behind the text, except where
/// the text ends with that quote: such a text closes it.
pub(super) fn quoted(text: &str, open: Option<char>) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-.@+:/,=%".contains(letter);
    let mut quoted = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (open, letter) {
            (Some(open), _) if open == letter && letters.peek().is_none() => quoted.extend([open, '\\', open]),
            (Some('\''), '\'') => quoted.push_str(r"'\''"),
            // A backslash would stay there, and bash would still take `!` for its history without it.
            (Some('"'), '!') => quoted.push_str(r#""'!'""#),
            (Some('"'), '"' | '\\' | '$' | '`') => quoted.extend(['\\', letter]),
            (None, _) if !is_plain(letter) => quoted.extend(['\\', letter]),
            _ => quoted.push(letter),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(typed: &str, rules: Rules, text: &str, open: Option<char>) {
        let word = Word::read(typed, rules);
        assert_eq!((word.text.as_str(), word.open), (text, open), "{typed}");
    }

    #[test]
    fn a_word_is_read_as_the_shell_reads_it() {
        for rules in [Rules::Posix, Rules::Fish] {
            check("Whi", rules, "Whi", None);
            check("'Whi", rules, "Whi", Some('\''));
            check("\"Whi", rules, "Whi", Some('"'));
            check(r"White\ M", rules, "White M", None);
            check(r"Grace\ ", rules, "Grace ", None);
            check(r"Grace\", rules, "Grace", None);
            check("'White '\"Mo\"d", rules, "White Mod", None);
            check("--vehicle='White M", rules, "--vehicle=White M", Some('\''));
            check(r#""a\"b\$c\d'e"#, rules, r#"a"b$c\d'e"#, Some('"'));
        }
        check(r"'O\'Neil", Rules::Posix, r"O\Neil", None);
        check(r"'O\'Neil", Rules::Fish, "O'Neil", Some('\''));
    }

    #[test]
    fn a_line_ends_with_the_word_at_the_cursor() {
        let texts = |line| words(line, Rules::Posix).into_iter().map(|word| word.text).collect::<Vec<_>>();
        assert_eq!(texts("rental-cli vehicles  get "), ["rental-cli", "vehicles", "get", ""]);
        assert_eq!(texts("get 'White M"), ["get", "White M"]);
        assert_eq!(texts(r"get '' White\ M"), ["get", "", "White M"]);
        assert_eq!(texts(""), [""]);
    }

    /// Whatever quote is open: bash gets the value back when it has closed the quote.
    #[test]
    fn what_is_quoted_is_read_as_the_value() {
        for value in ["White Model 3", "Sun & Sea", "O'Neil \"Bob\"", r"a\b$c`d`!e*?[f]~ #;|<>(){}", "東京 Van", "'"]
        {
            for (before, open) in [("", None), ("'", Some('\'')), ("\"", Some('"'))] {
                let text = quoted(value, open);
                let after = if open.is_some_and(|open| text.ends_with(open)) { "" } else { before };
                let typed = format!("{before}{text}{after}");
                check(&typed, Rules::Posix, value, None);
                assert_eq!(words(&typed, Rules::Posix).len(), 1, "{typed}");
            }
        }
    }
}
