"""Times the first hour of a stranger: the quick starts, followed as they are shown, from the files of a release.

Arguments: a folder for the work, and the folder with the files of the release. `examples/first-hour` makes both.

It prints how long the commands took, and how long with reading the text and pasting the blocks. It fails when a command fails, or when
the reading alone takes longer than the page says: that does not depend on the machine.
"""

import os
import re
import sys
import time
from pathlib import Path

from blocks import Reader, blocks, part

PAGES = Path(__file__).resolve().parent.parent / "docs/quickstart"
# What a person needs beside the commands.
WORDS_PER_MINUTE = 200
SECONDS_PER_BLOCK = 10
# Page, section, minutes that docs/quickstart/README.md promises.
ALONE = ("curl.md", "", 2)  # it begins with the files of the release; the others with what README.md says before
STAGES = [
    ("typescript.md", "", 5),
    ("python.md", "", 5),
    ("webhooks.md", "express", 10),
    ("webhooks.md", "flask", 10),
    ("operator.md", "", 5),
    ("month.md", "", 5),
]


def reading(page: Path, section: str) -> float:
    """Seconds for reading the text and pasting the blocks."""
    text = "\n".join(line for _, line in part(page, section))
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    pasted = [block for block in blocks(page, section) if block.language not in ("", "text") and "ignore" not in block.words]
    return len(prose.split()) * 60 / WORDS_PER_MINUTE + len(pasted) * SECONDS_PER_BLOCK


def promised() -> None:
    """The minutes are those that the page of the quick starts promises."""
    text = (PAGES / "README.md").read_text(encoding="utf-8")
    for page, _, minutes in [ALONE, *STAGES]:
        assert re.search(rf"\({page}\) \| {minutes} minutes[ |,]", text), f"README.md promises another time for {page}"


def main() -> None:
    promised()
    if not sys.argv[1:]:
        return
    work, release = Path(sys.argv[1]), Path(sys.argv[2])
    print(f"{'stage':<22} {'commands':>8} {'with reading':>13} {'promised':>9}")
    total, late = 0.0, []

    def follow(environment: dict[str, str], page: str, section: str, minutes: int) -> None:
        nonlocal total
        name = page.removesuffix(".md") + (f", {section}" if section else "")
        begun = time.monotonic()
        with Reader(work / name.replace(", ", "-"), environment) as reader:
            reader.read(PAGES / page, section)
            commands = time.monotonic() - begun
        read = reading(PAGES / page, section)
        total += commands + read
        print(f"{name:<22} {commands:>6.1f} s {commands + read:>11.0f} s {minutes * 60:>7} s", flush=True)
        if read > minutes * 60:
            late.append(name)

    follow({**os.environ, "RENTAL_RELEASE": str(release)}, *ALONE)
    # As a reader who put the exports in a profile: the stages begin with what the download set.
    names = ["PATH", "RENTAL_PACKAGES"]
    begun = time.monotonic()
    with Reader(release, dict(os.environ)) as reader:
        reader.read(PAGES / "README.md")
        values = reader.run("".join(f'echo "${name}"\n' for name in names)).splitlines()
    environment = {**os.environ, **dict(zip(names, values, strict=True))}
    commands, person = time.monotonic() - begun, reading(PAGES / "README.md", "")
    total += commands + person
    print(f"{'before you begin':<22} {commands:>6.1f} s {commands + person:>11.0f} s", flush=True)
    for stage in STAGES:
        follow(environment, *stage)
    print(f"{'all':<22} {'':>8} {total:>11.0f} s")
    assert not late, f"longer to read than promised: {', '.join(late)}"


if __name__ == "__main__":
    main()
