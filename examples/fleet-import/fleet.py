#!/usr/bin/env python3
"""From the statements of toll agencies to invoices, credits and refunds, without an id in sight.

  fleet.py start NAME              make the organization and its key, and keep both in the folder `work`
  fleet.py load FOLDER             load vehicles.csv, customers.csv and rentals.csv
  fleet.py import FOLDER           import the statements that statements.json names, and attach what is clear
  fleet.py review FILE             write what a person has to decide as a spreadsheet (CSV)
  fleet.py decide FILE             carry out what the column `decision` says: a name, an email address, or `nobody`
  fleet.py bill [--dry-run]        make an invoice for each completed rental
  fleet.py send                    put an email with the PDF of each invoice and credit note in work/outbox, once each
  fleet.py paid NUMBER...          mark invoices as paid
  fleet.py credit TRANSACTION --reason TEXT
                                   credit a toll, named by the agency's transaction number
  fleet.py refund NUMBER --method TEXT
                                   note that the money of a credit note was given back
  fleet.py sums                    show where the money of the statements is

Vehicles, customers and rentals go through the API with the organization's key (the package `rental_client`). Everything else
is an operator's work: `rental-cli`, with the operator's token.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from rental_client import RentalClient, RentalError, models

WORK = Path(os.environ.get("FLEET_WORK", "work"))
SENDER = "billing@sunrise-rentals.example"


class Stop(Exception):
    """The message for the person at the keyboard."""


# What the programs share: the server, the organization, its key.


def cli(*words: str, key: bool = False) -> Any:
    """Runs rental-cli and returns its JSON. Its own error message ends the program."""
    environment = {**os.environ}
    settings = WORK / "organization.json"
    if settings.exists():
        environment["RENTAL_ORGANIZATION"] = json.loads(settings.read_text())["id"]
    if key:
        environment["RENTAL_API_KEY_FILE"] = str(WORK / "api-key")
    program = os.environ.get("RENTAL_CLI", "rental-cli")
    done = subprocess.run([program, "--json", *words], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
        try:
            last = json.loads(last)["error"]["message"]
        except (ValueError, KeyError, TypeError):
            pass
        raise Stop(f"rental-cli {' '.join(words[:2])}: {last}")
    return json.loads(done.stdout, parse_float=Decimal) if done.stdout.strip() else None


def api() -> RentalClient:
    key = WORK / "api-key"
    if not key.exists():
        raise Stop("There is no organization yet. Run: fleet.py start NAME")
    return RentalClient(api_key=key.read_text().strip())


def rows(path: Path) -> list[dict[str, str]]:
    # utf-8-sig: Excel begins its files with a byte order mark.
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def given(row: dict[str, str]) -> dict[str, Any]:
    """The fields of a row that are not blank."""
    return {name: value for name, value in row.items() if value}


def numbers(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with year and daily rate as numbers, as the API wants them."""
    kinds: dict[str, Callable[[str], Any]] = {"year": int, "daily_rate": Decimal}
    return {name: kinds[name](value) if name in kinds else value for name, value in fields.items()}


def money(amount: Decimal | int | None) -> str:
    return f"{amount or 0:,.2f}"


def table(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> None:
    lines = [head, *lines]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


# Preparation.


def start(name: str) -> None:
    if (WORK / "organization.json").exists():
        raise Stop(f"{WORK} belongs to an organization already. Go on with: fleet.py load FOLDER")
    WORK.mkdir(parents=True, exist_ok=True)
    organization = cli(
        "organizations", "create", "--name", name, "--time-zone", "America/New_York", "--contact-email", SENDER,
        "--address", "120 Harbor Street\nBrooklyn, NY 11201", "--payment-instructions", "Pay within 14 days by bank transfer.",
    )  # fmt: skip
    issued = cli("api-keys", "create", "--organization", organization["id"], "--scope", "read_write", "--name", "fleet-import")
    file = WORK / "api-key"
    file.touch(mode=0o600)
    file.write_text(issued["key"])
    # Written last: an interrupted start can be repeated.
    (WORK / "organization.json").write_text(json.dumps({"id": organization["id"], "name": name}))
    print(f"{name} is ready. The key is in {file}: only you can read it.")


def load(folder: Path) -> None:
    """Loads the fleet. What is there already stays as it is, so an interrupted load can be repeated."""
    client = api()
    vehicles: dict[str, str] = {}
    customers: dict[str, str] = {}
    made = 0
    for row in rows(folder / "vehicles.csv"):
        found = client.vehicles.list(plate=row["plate"]).take(1)
        made += not found
        vehicle = found[0] if found else client.vehicles.create(**numbers(given(row)))
        vehicles[row["plate"]] = vehicle.id
    for row in rows(folder / "customers.csv"):
        found_customers = client.customers.list(email=row["email"]).take(1)
        made += not found_customers
        customer = found_customers[0] if found_customers else client.customers.create(**given(row))
        customers[row["email"]] = customer.id
    for row in rows(folder / "rentals.csv"):
        if client.rentals.list(booking_id=row["booking_id"]).take(1):
            continue
        fields = given({name: value for name, value in row.items() if name not in ("plate", "email")})
        client.rentals.create(
            **fields, vehicle_id=vehicles[row["plate"]], customer_id=customers[row["email"]], status="COMPLETED"
        )
        made += 1
    print(f"{len(vehicles)} vehicles, {len(customers)} customers and their rentals are loaded; {made} of them are new.")


# Statements.


COUNTS = ("received", "created", "updated", "duplicates", "skipped", "invalid")


def import_all(folder: Path) -> None:
    """Tries every file first. When one is refused as a whole, nothing of any of them is recorded."""
    commands: list[list[str]] = []
    for name, how in json.loads((folder / "statements.json").read_text()).items():
        kind = ["--format", how["format"]] if "format" in how else ["--mapping", str(folder / how["mapping"])]
        commands.append([str(folder / name), *kind])
    for command in commands:
        cli("tolls", "import", "--dry-run", *command)
    (WORK / "imports").mkdir(exist_ok=True)
    lines: list[tuple[str, ...]] = []
    refused: list[str] = []
    for command in commands:
        name = Path(command[0]).name
        result = cli("tolls", "import", *command)
        number = len(list((WORK / "imports").iterdir())) + 1
        (WORK / "imports" / f"{number:04}-{name}.json").write_text(json.dumps(result, default=str))
        lines.append((name, *(str(result[count]) for count in COUNTS)))
        lines.append(("  amounts", *(money(result["amounts"][count]) for count in COUNTS)))
        refused += [f"{name}, line {error['row']}: {error['message']}" for error in result["errors"]]
    table(("statement", *COUNTS), lines)
    for line in refused:
        print(line)
    cli("tolls", "suggest", "--attach")
    waiting = len(cli("tolls", "review")["data"])
    print(f"What is clear is attached to its customer. {waiting} tolls wait for a decision: fleet.py review FILE")


def cell(text: str | None) -> str:
    """A text that a spreadsheet shows as it is: long numbers keep their digits, and nothing is run as a formula."""
    text = text or ""
    if text.isdigit():
        return f'="{text}"'
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def number_in(text: str) -> str:
    """A number that `cell` wrote, with or without what a spreadsheet made of it."""
    return text.strip().removeprefix('="').removesuffix('"')


QUESTIONS = ("agency", "transaction_id", "when", "plaza", "plate", "transponder", "amount", "why", "may_have_been", "decision")


def why(item: dict[str, Any]) -> str:
    twin = item["twin"]
    if twin:
        payer = twin["customer_name"] or "nobody"
        return f"Probably the passage of {twin['when']} at {twin['place']}, which {payer} pays: {money(twin['amount'])}"
    return str(item["reason"])


def review(file: Path) -> None:
    questions = []
    for item in cli("tolls", "review")["data"]:
        plate = " ".join(filter(None, (item["plate_state"], item["plate"])))
        candidates = "; ".join(f"{one['customer_name']} ({one['reason']})" for one in item["candidates"])
        told = (item["agency"], item["number"], item["when"], item["place"], plate, item["transponder_number"])
        questions.append([*map(cell, told), money(item["amount"]), cell(why(item)), cell(candidates), ""])
    with file.open("w", newline="", encoding="utf-8-sig") as out:
        csv.writer(out).writerows([QUESTIONS, *questions])
    print(f"{len(questions)} tolls are in {file}. Write a name, an email address or `nobody` in the column `decision`, save it")
    print(f"as CSV, and run: fleet.py decide {file}")


def the_customer(decision: str, customers: list[models.Customer]) -> str | None:
    if decision.casefold() == "nobody":
        return None
    wanted = decision.casefold()
    found = [one for one in customers if wanted in (one.full_name.casefold(), (one.email or "").casefold())]
    if len(found) != 1:
        raise Stop(f"{len(found)} customers are called `{decision}`. Write the email address. Nothing was decided.")
    return found[0].id


def the_toll(client: RentalClient, transaction: str, agency: str | None = None) -> models.Toll:
    found = [one for one in client.tolls.list(transaction_id=transaction) if agency in (None, one.agency)]
    if len(found) != 1:
        raise Stop(f"{len(found)} tolls have the transaction number `{transaction}`. Look at the agency's statement.")
    return found[0]


def decide(file: Path) -> None:
    client = api()
    customers = list(client.customers.list())
    # All of them are read before the first one is carried out, so a slip changes nothing.
    decided = [
        (the_toll(client, number_in(row["transaction_id"]), row["agency"]), the_customer(row["decision"].strip(), customers))
        for row in rows(file)
        if row["decision"].strip()
    ]
    for toll, customer in decided:
        client.tolls.update(toll.id, customer_id=customer)
    waiting = len(cli("tolls", "review")["data"])
    print(f"{len(decided)} tolls are decided, {waiting} wait.")


# Money.


def bill(dry_run: bool) -> None:
    client = api()
    names = {one.id: one.full_name for one in client.customers.list()}
    run = cli("invoices", "draft-all", *(["--dry-run"] if dry_run else []))
    table(
        ("invoice", "customer", "tolls", "violations", "total", "problem"),
        (
            (
                one["invoice_number"] or "-",
                names[one["customer_id"]],
                str(one["tolls"]),
                str(one["violations"]),
                money(one["total"]),
                one["problem"] or "",
            )
            for one in run["data"]
        ),
    )
    done = "would be created" if dry_run else "are created"
    print(f"{run['invoices']} invoices over {money(run['total'])} {done}, {run['skipped']} rentals are skipped.")


def email(number: str, kind: str, customer: models.Customer, what: str) -> bool:
    """Puts an email with the PDF in the outbox, unless it is there."""
    outbox = WORK / "outbox"
    outbox.mkdir(exist_ok=True)
    file = outbox / f"{number}.eml"
    if file.exists() or not customer.email:
        return False
    pdf = outbox / f"{number}.pdf"
    cli(kind, "pdf", number, "--to", str(pdf), "--force")
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = SENDER, customer.email, what
    message.set_content(f"Dear {customer.full_name},\n\n{what} is attached.\n\nSunrise Rentals\n")
    message.add_attachment(pdf.read_bytes(), maintype="application", subtype="pdf", filename=pdf.name)
    draft = file.with_suffix(".part")
    draft.write_bytes(bytes(message))
    draft.rename(file)
    return True


def send() -> None:
    client = api()
    customers = {one.id: one for one in client.customers.list()}
    sent = 0
    for invoice in client.invoices.list():
        if invoice.status != "void":
            number = invoice.invoice_number
            sent += email(number, "invoices", customers[invoice.customer_id], f"Invoice {number}")
    for note in client.credit_notes.list():
        number = note.credit_note_number
        sent += email(number, "credit-notes", customers[note.customer_id], f"Credit note {number}")
    print(f"{sent} emails are in {WORK / 'outbox'}.")


def paid(numbers: list[str]) -> None:
    for number in numbers:
        cli("invoices", "pay", number)
    print(f"{len(numbers)} invoices are paid.")


def credit(transaction: str, reason: str) -> None:
    client = api()
    toll = the_toll(client, transaction)
    invoices = [client.invoices.get(one) for one in toll.invoice_ids]
    if len(invoices) != 1:
        raise Stop(f"{len(invoices)} invoices bill the toll {transaction}, so there is not one to credit.")
    invoice = invoices[0]
    line = next(place for place, one in enumerate(invoice.lines) if one.toll_id == toll.id)
    note = cli("invoices", "credit", invoice.invoice_number, "--line", str(line), "--reason", reason)
    print(f"{note['credit_note_number']} credits {money(note['total'])} of {invoice.invoice_number}.")


def refund(number: str, method: str) -> None:
    note = cli("credit-notes", "refund", number, "--method", method)
    print(f"{money(note['total'])} of {note['credit_note_number']} are given back by {method}.")


def sums() -> None:
    """Every cent of the statements is in one of these lines."""
    amounts = {count: Decimal(0) for count in COUNTS}
    for file in sorted((WORK / "imports").iterdir()):
        for count, amount in json.loads(file.read_text())["amounts"].items():
            if count in amounts:
                amounts[count] += Decimal(str(amount))
    waiting = {one["id"] for one in cli("tolls", "review")["data"]}
    places = dict.fromkeys(("billed", "attached, not billed", "waits for a decision", "nobody pays"), Decimal(0))
    for toll in api().tolls.list():
        if toll.id in waiting:
            place = "waits for a decision"
        elif toll.invoice_ids:
            place = "billed"
        else:
            place = "attached, not billed" if toll.customer_id else "nobody pays"
        places[place] += toll.amount
    recorded = sum(places.values(), Decimal(0))
    lines = [(name, money(amount)) for name, amount in places.items()]
    lines.append(("replaced by a correction of the agency", money(amounts["created"] + amounts["updated"] - recorded)))
    others = (("duplicates", "known already"), ("skipped", "payments and fees"), ("invalid", "refused rows"))
    lines += [(what, money(amounts[count])) for count, what in others]
    table(("where", "amount"), [*lines, ("all statements", money(amounts["received"]))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[..., None]) -> argparse.ArgumentParser:
        one = commands.add_parser(name)
        one.set_defaults(run=run)
        return one

    command("start", start).add_argument("name")
    command("load", load).add_argument("folder", type=Path)
    command("import", import_all).add_argument("folder", type=Path)
    command("review", review).add_argument("file", type=Path)
    command("decide", decide).add_argument("file", type=Path)
    command("bill", bill).add_argument("--dry-run", action="store_true")
    command("send", send)
    command("paid", paid).add_argument("numbers", nargs="+")
    one = command("credit", credit)
    one.add_argument("transaction")
    one.add_argument("--reason", required=True)
    one = command("refund", refund)
    one.add_argument("number")
    one.add_argument("--method", required=True)
    command("sums", sums)
    given_arguments = vars(parser.parse_args())
    run = given_arguments.pop("run")
    try:
        run(**given_arguments)
    except (Stop, RentalError, OSError, KeyError) as error:
        text = f"the column {error} is missing" if isinstance(error, KeyError) else str(error)
        sys.exit(f"fleet.py: {text}")


if __name__ == "__main__":
    main()
