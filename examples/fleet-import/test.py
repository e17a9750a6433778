#!/usr/bin/env python3
"""Follows README.md against a real server, and compares every toll and every cent with what is known.

Environment: RENTAL_BASE_URL, RENTAL_ADMIN_TOKEN or its file, `rental-cli` on the PATH. The package `rental_client` is installed.
"""

import csv
import email
import email.policy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from blocks import Reader  # noqa: E402

from rental_client import RentalClient  # noqa: E402

# Who pays when a colleague drives.
OWN_USE = "fleet@sunrise-rentals.example"
# Who had the two tolls on the day of a return and a pickup without times: by the notes of the people at the desk.
NOTES = {"10": "Denise Laurent", "14": "keiko.mori@example.com"}
# The toll that the page credits.
CREDITED = "61231236633"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file, delimiter=";" if "sunpass" in path.name else ","))


def file_sum(path: Path) -> Decimal:
    """The sum of a statement, by a reading of its own: charges above zero, payments below. Unreadable amounts are none."""
    total = Decimal(0)
    for row in rows(path):
        charge = row.get("Amount") or row.get("DEBIT(-)") or ""
        sign = -1 if "ezpass" in path.name else 1
        if row.get("CREDIT(+)"):
            charge, sign = row["CREDIT(+)"], -1
        if re.fullmatch(r"\$-?[0-9.]+", charge):
            total += sign * Decimal(charge.replace("$", ""))
    return total


def renter_with_plate_like(folder: Path, plate: str, day: str) -> str:
    """The customer who had, on that day, the car whose plate differs in the last letter."""
    names = {row["email"]: row["full_name"] for row in rows(folder / "fleet/customers.csv")}
    for row in rows(folder / "fleet/rentals.csv"):
        if row["plate"][:-1] == plate[:-1] and row["start_date"] <= day <= row["end_date"]:
            return names[row["email"]]
    raise AssertionError(f"nobody had {plate} on {day}")


def decide(folder: Path) -> int:
    """Fills the column `decision` as README.md advises."""
    questions = rows(folder / "review.csv")
    for row in questions:
        if row["why"].startswith("No vehicle"):
            row["decision"] = renter_with_plate_like(folder, row["plate"].split()[1], row["when"][:10])
        elif row["why"].startswith("2 rentals"):
            row["decision"] = NOTES[row["when"][11:13]]
        elif row["why"].startswith("What is recorded"):
            row["decision"] = OWN_USE
        else:
            row["decision"] = "nobody"
    with (folder / "review.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, questions[0].keys())
        writer.writeheader()
        writer.writerows(questions)
    return len(questions)


def table_of(printed: str) -> dict[str, Decimal]:
    lines = [re.split(r"  +", line) for line in printed.splitlines()[1:]]
    return {name: Decimal(amount.replace(",", "")) for name, amount in lines}


def check_sums(printed: str, folder: Path, imports: tuple[str, ...]) -> dict[str, Decimal]:
    """Conservation: what the files add up to is what the lines of the table add up to."""
    sums = table_of(printed)
    of_files = sum((file_sum(file) for name in imports for file in (folder / name).glob("*.csv")), Decimal(0))
    assert sums.pop("all statements") == of_files, (printed, of_files)
    assert sum(sums.values()) == of_files, (printed, of_files)
    return sums


def check_tolls(client: RentalClient, expected: list[dict[str, str]], decided: bool) -> None:
    names = {one.id: one.full_name for one in client.customers.list()}
    tolls = {one.transaction_id: one for one in client.tolls.list()}
    wanted = [row for row in expected if row["fate"] not in ("duplicate", "skipped", "replaced")]
    assert len(tolls) == len(wanted), (len(tolls), len(wanted))
    for row in wanted:
        toll = tolls[row["transaction_id"]]
        if row["amount"]:
            assert toll.amount == Decimal(row["amount"]), (row, toll.amount)
        if row["fate"] != "review":
            assert toll.customer_id and names[toll.customer_id] == row["customer"], (row, toll)
            assert toll.attribution == "automatic", row
        elif not decided:
            assert toll.customer_id is None, (row, toll)


def check_invoices(client: RentalClient, outbox: Path) -> None:
    """Each invoice has its email with its PDF, and what invoices bill of tolls is what tolls say."""
    billed = Decimal(0)
    for invoice in client.invoices.list():
        message = email.message_from_bytes((outbox / f"{invoice.invoice_number}.eml").read_bytes(), policy=email.policy.default)
        (pdf,) = message.iter_attachments()
        assert pdf.get_content().startswith(b"%PDF-"), invoice.invoice_number
        assert message["To"] == client.customers.get(invoice.customer_id).email
        assert sum(line.amount for line in invoice.lines) == invoice.total
        billed += sum((line.amount for line in invoice.lines if line.toll_id), Decimal(0))
    (own_use,) = client.customers.list(email=OWN_USE)
    attached = [one for one in client.tolls.list() if one.customer_id not in (None, own_use.id)]
    assert billed == sum(one.amount for one in attached) == sum(one.amount_billed or 0 for one in attached)


def main() -> None:
    expected = rows(HERE / "expected.csv")
    fates = Counter(row["fate"] for row in expected)
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "fleet-import"
        shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("work", "venv", "__pycache__"))
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        with Reader(folder, {**os.environ, "PATH": path}) as reader:
            section = re.split(r"(?m)^(?=## )", (folder / "README.md").read_text())
            part = ["".join(section[:3]), *section[3:7]]
            follow(reader, folder, part, expected, fates)
    print(f"fleet-import: {len(expected)} rows of three statements, every toll and every cent where it belongs")


def follow(reader: Reader, folder: Path, part: list[str], expected: list[dict[str, str]], fates: Counter[str]) -> None:
    def read(text: str) -> None:
        (folder / "part.md").write_text(text)
        reader.read(folder / "part.md")

    read(part[0])
    client = RentalClient(api_key=(folder / "work/api-key").read_text().strip())
    check_tolls(client, expected, decided=False)
    sums = check_sums(reader.run("python3 fleet.py sums"), folder, ("statements", "statements-again"))
    known = sum(Decimal(row["amount"]) for row in expected if row["fate"] == "review")
    assert sums["waits for a decision"] == known and sums["billed"] == sums["nobody pays"] == 0, sums
    replaced = sum(Decimal(row["amount"]) for row in expected if row["fate"] == "replaced")
    assert sums["replaced by a correction of the agency"] == replaced, sums
    assert os.stat(folder / "work/api-key").st_mode & 0o077 == 0

    read(part[1])
    assert decide(folder) == fates["review"]
    spoiled = (folder / "review.csv").read_text(encoding="utf-8-sig").replace("Denise Laurent\n", "Denise Lorent\n")
    (folder / "spoiled.csv").write_text(spoiled)
    told = reader.run("python3 fleet.py decide spoiled.csv || true")
    assert "0 customers are called `Denise Lorent`" in told, told
    check_tolls(client, expected, decided=False)
    told = reader.run("python3 fleet.py decide review.csv")
    assert "11 tolls are decided, 0 wait." in told, told
    check_tolls(client, expected, decided=True)

    read(part[2])
    check_invoices(client, folder / "work/outbox")
    assert "0 emails" in reader.run("python3 fleet.py send")
    assert "0 invoices over 0.00 are created" in reader.run("python3 fleet.py bill")
    read(part[3])
    check_refund(reader, client)
    sums = check_sums(reader.run("python3 fleet.py sums"), folder, ("statements", "statements-again"))
    (own_use,) = client.customers.list(email=OWN_USE)
    own = sum(one.amount for one in client.tolls.list(customer=own_use.id))
    assert sums["waits for a decision"] == 0 and sums["attached, not billed"] == own > 0, sums
    billed = sum(line.amount for one in client.invoices.list() for line in one.lines if line.toll_id)
    assert sums["billed"] == billed and sums["replaced by a correction of the agency"] == replaced, sums
    read(part[4])


def check_refund(reader: Reader, client: RentalClient) -> None:
    """The toll of the page was credited once, mailed, and given back."""
    (note,) = client.credit_notes.list()
    assert note.refunded_at and note.refund_method == "card", note
    assert client.invoices.get(note.invoice_id).amount_credited == note.total
    assert [client.tolls.get(line.toll_id or "").transaction_id for line in note.lines] == [CREDITED], note
    again = reader.run(f"python3 fleet.py credit {CREDITED} --reason 'Not on the bridge at that time' || true")
    assert "fleet.py: rental-cli invoices credit:" in again, again


if __name__ == "__main__":
    main()
