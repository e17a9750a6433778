"""Runs the code blocks of a document as its reader would: in order, in one bash, beginning in a clean directory.

The words after the language say what a block is:

  sh                 commands for the reader's terminal
  sh terminal        commands for a terminal of its own: they run until the end
  sh terminal paste  the same; the line with `export ` that it prints is pasted into the reader's terminal
  sh terminal NAME   the same; `text NAME` is what it prints, now or later
  sh release         the same in the folder of a release's files, which RENTAL_RELEASE names; not run without it
  sh ignore          not run
  js receiver.mjs    a file (any language): the block is its content
  rust some/file.rs  a file of the repository: the block must equal it
  text               each line stands in what the block before it printed

Ports that a document names are replaced by free ones, in every block.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PORT = re.compile(r"\b(808\d|300\d)\b")
PATIENCE = 300.0
REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass
class Block:
    language: str
    words: list[str]
    text: str
    line: int


def part(document: Path, section: str) -> list[tuple[int, str]]:
    """The numbered lines of a document; with a section, those above the first section and those of this one."""
    chosen: list[tuple[int, str]] = []
    wanted, seen, in_block = True, False, False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        in_block ^= line.startswith("```")
        if line.startswith("## ") and not in_block and section:
            wanted = line.removeprefix("## ").lower().replace(" ", "-") == section
            seen |= wanted
        if wanted:
            chosen.append((number, line))
    assert seen or not section, f"{document} has no section {section}"
    return chosen


def blocks(document: Path, section: str = "") -> list[Block]:
    found: list[Block] = []
    opened: Block | None = None
    for number, line in part(document, section):
        if line.startswith("```") and opened is None:
            language, *words = line.removeprefix("```").split() or [""]
            opened = Block(language, words, "", number)
        elif line == "```" and opened is not None:
            found.append(opened)
            opened = None
        elif opened is not None:
            opened.text += line + "\n"
    assert opened is None, f"{document}: the block of line {opened.line} does not end"
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Reader:
    """One reader at work: a directory, an environment, terminals. To be used in a `with`."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.directory = directory
        self.state = directory.parent / f"{directory.name}-shell"
        self.environment = environment
        self.ports: dict[str, str] = {}
        self.terminals: list[subprocess.Popen[bytes]] = []
        self.named: dict[str, Path] = {}
        directory.mkdir(parents=True, exist_ok=True)
        self.state.mkdir()
        (self.state / "variables").write_text(f"cd {directory}\n")

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        for terminal in self.terminals:
            if terminal.poll() is None:
                os.killpg(terminal.pid, signal.SIGINT)
        for terminal in self.terminals:
            try:
                terminal.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(terminal.pid, signal.SIGKILL)

    def with_free_ports(self, text: str) -> str:
        return PORT.sub(lambda found: self.ports.setdefault(found[0], str(free_port())), text)

    def run(self, commands: str) -> str:
        """What the commands print, both streams. Variables, functions and the directory stay for the next ones."""
        keep = 'status=$?; { declare -px | grep -v "^declare -[a-z]*r"; declare -p $(compgen -v | grep "^[a-z]") 2>/dev/null; declare -f; echo "cd $PWD"; } >"$VARIABLES"; exit $status'
        script = f'set -e\n. "$VARIABLES" 2>/dev/null\ntrap \'{keep}\' EXIT\n{self.with_free_ports(commands)}'
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.directory,
            env={**self.environment, "VARIABLES": str(self.state / "variables")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=300,
        )
        printed = done.stdout.decode()
        assert done.returncode == 0, f"{commands}\nended with {done.returncode}:\n{printed}"
        return printed

    def open_terminal(self, commands: str) -> Path:
        """Starts the commands. Returns the file that has what they print."""
        output = self.state / f"terminal-{len(self.terminals)}"
        script = f'. "$VARIABLES" 2>/dev/null\n{self.with_free_ports(commands)}'
        with output.open("wb") as file:
            self.terminals.append(
                subprocess.Popen(
                    ["bash", "-c", script],
                    cwd=self.directory,
                    env={**self.environment, "VARIABLES": str(self.state / "variables")},
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
        return output

    def wait_for(self, output: Path, wanted: str) -> str:
        """The text in the file, as soon as `wanted` is in it."""
        until = time.monotonic() + PATIENCE
        while wanted not in output.read_text():
            terminal = self.terminals[int(output.name.removeprefix("terminal-"))]
            ended = terminal.poll() is not None and wanted not in output.read_text()
            assert not ended, f"the terminal ended:\n{output.read_text()}"
            assert time.monotonic() < until, f"{wanted!r} did not appear in:\n{output.read_text()}"
            time.sleep(0.05)
        return output.read_text()

    def read(self, document: Path, section: str = "") -> None:
        """Follows the whole document, or what is above its sections and one of them."""
        printed: str | Path = ""
        for block in blocks(document, section):
            try:
                printed = self.follow(block, printed)
            except AssertionError as error:
                raise AssertionError(f"{document.name}, line {block.line}: {error}") from error

    def follow(self, block: Block, printed: str | Path) -> str | Path:
        """Does what one block says. `printed` is what the block before it printed, or the file that gets it."""
        word = block.words[0] if block.words else ""
        if not block.language or word == "ignore":
            return printed
        if word == "release":
            folder = self.environment.get("RENTAL_RELEASE")
            return self.run(f"cd {folder}\n{block.text}cd {self.directory}\n") if folder else printed
        if block.language == "text":
            output = self.named[word] if word else printed
            for line in self.with_free_ports(block.text).splitlines():
                if isinstance(output, Path):
                    self.wait_for(output, line)
                else:
                    assert line in output, f"{line!r} is not in:\n{output}"
            return printed
        if block.language == "sh" and word == "terminal":
            opened = self.open_terminal(block.text)
            name = block.words[1] if len(block.words) > 1 else ""
            if name == "paste":
                line = next(one for one in self.wait_for(opened, "export ").splitlines() if "export " in one)
                self.run(line[line.index("export ") :])
            self.named[name] = opened
            return opened
        if block.language == "sh":
            return self.run(block.text)
        if "/" in word:
            assert (REPOSITORY / word).read_text(encoding="utf-8") == block.text, f"{word} differs from the block"
        elif word:
            (self.directory / word).write_text(self.with_free_ports(block.text), encoding="utf-8")
        return printed


def main() -> None:
    """Follows documents, each in an empty directory. Arguments: the directory for all of them, then the documents."""
    top = Path(sys.argv[1])
    for name in sys.argv[2:]:
        document = Path(name).resolve()
        begun = time.monotonic()
        with Reader(top / document.stem, dict(os.environ)) as reader:
            reader.read(document)
        print(f"{document.relative_to(REPOSITORY)}: each block works as shown ({time.monotonic() - begun:.0f} s)")


if __name__ == "__main__":
    main()
