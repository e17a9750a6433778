#!/usr/bin/env python3
"""Writes the files of this example: the fleet, three statements, and `expected.csv` with the known fate of every row.

The files are in the repository, so nobody has to run this. `test.py` compares what the server did with `expected.csv`.
Everything is drawn from one seed: the same files come out each time.
"""

import csv
import random
import shutil
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

HERE = Path(__file__).parent
NEW_YORK, CHICAGO = ZoneInfo("America/New_York"), ZoneInfo("America/Chicago")
draw = random.Random(20260630)

CUSTOMERS = """Ada Okafor;ada.okafor@example.com;en
Benedikt Weiß;benedikt.weiss@example.com;de
Carmen Ibáñez;carmen.ibanez@example.com;es
Denise Laurent;denise.laurent@example.com;fr
Elif Yıldız;elif.yildiz@example.com;en
Farid Haddad;farid.haddad@example.com;en
Grace Nakamura;grace.nakamura@example.com;en
Hector Salazar;hector.salazar@example.com;es
Irina Petrova;irina.petrova@example.com;en
James O'Neill;james.oneill@example.com;en
Keiko Mori;keiko.mori@example.com;en
Luis Andrade;luis.andrade@example.com;es"""

# Who pays when a colleague drives.
OWN_USE = ["Sunrise Rentals (own use)", "fleet@sunrise-rentals.example", "en"]

VEHICLES = """Grey Camry;Toyota;Camry;2024;LZA7293;NY;00412345678;59
White Model 3;Tesla;Model 3;2023;LZA7301;NY;00412345679;89.50
Blue Civic;Honda;Civic;2022;KTR4410;NY;00412345680;48
Red Rogue;Nissan;Rogue;2023;KTR4427;NJ;00412345681;64
Silver Malibu;Chevrolet;Malibu;2022;IJNH27;FL;129143000017;52
Black Mustang;Ford;Mustang;2024;IJNH31;FL;129143000018;95
White Tucson;Hyundai;Tucson;2023;QRB88C;FL;129143000019;61
Green Outback;Subaru;Outback;2021;QRB91D;FL;129143000020;57
White F-150;Ford;F-150;2023;RVK4821;TX;20071145;79
Grey Tahoe;Chevrolet;Tahoe;2024;RVK4835;TX;20071146;98
Blue Corolla;Toyota;Corolla;2022;SGD1190;TX;20071147;45
Red Altima;Nissan;Altima;2023;SGD1204;TX;20071148;49"""


@dataclass
class Rental:
    booking: str
    vehicle: list[str]
    customer: list[str]
    pickup: datetime
    back: datetime
    recorded: bool = True


@dataclass
class Statement:
    name: str
    cars: range
    zone: ZoneInfo
    number: int
    rows: list[list[str]] = field(default_factory=list)
    # The damaged rows as the agency has them, by their damaged text.
    whole: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    # For each row: the time of its passage, and number, amount, fate and customer.
    fates: list[tuple[datetime, list[str]]] = field(default_factory=list)

    def next_number(self) -> str:
        self.number += draw.randrange(1, 90)
        return str(self.number)

    def sort(self) -> None:
        """In the order of the passages, as agencies do."""
        order = sorted(range(len(self.rows)), key=lambda index: self.fates[index][0])
        self.rows = [self.rows[index] for index in order]
        self.fates = [self.fates[index] for index in order]


rentals: list[Rental] = []
customers = [line.split(";") for line in CUSTOMERS.splitlines()]
vehicles = [line.split(";") for line in VEHICLES.splitlines()]


def book() -> None:
    """Five rentals for each vehicle in June 2026, with a day or two between them."""
    for index, vehicle in enumerate(vehicles):
        zone = NEW_YORK if index < 8 else CHICAGO
        day = datetime(2026, 6, 1, tzinfo=zone)
        for turn in range(5):
            nights = draw.randrange(3, 5)
            pickup = day.replace(hour=9) + timedelta(minutes=draw.randrange(0, 180, 5))
            back = (day + timedelta(days=nights)).replace(hour=16) + timedelta(minutes=draw.randrange(0, 120, 5))
            customer = customers[(index * 5 + turn * 7) % len(customers)]
            rentals.append(Rental(f"B{1001 + len(rentals)}", vehicle, customer, pickup, back))
            day = day + timedelta(days=nights + 2)
    # Two rentals that meet on one day, for which nobody wrote down when the keys changed hands.
    first, second = [one for one in rentals if one.vehicle is vehicles[4]][1:3]
    second.pickup = first.back.replace(hour=10)
    second.back = second.pickup + timedelta(days=3, hours=6)
    first.recorded = second.recorded = False


def passage(statement: Statement) -> tuple[Rental, datetime]:
    """A time at which a rental with recorded times surely had its vehicle."""
    own = [one for one in rentals if one.recorded and vehicles.index(one.vehicle) in statement.cars]
    rental = draw.choice(own)
    span = int((rental.back - rental.pickup).total_seconds())
    return rental, rental.pickup + timedelta(seconds=draw.randrange(3600, span - 3600))


def fate(statement: Statement, at: datetime, number: str, amount: str, what: str, customer: str = "") -> None:
    statement.fates.append((at, [number, amount, what, customer]))


def ezpass(statement: Statement, number: str, tag: str, at: datetime | None, amount: str, agency: str, plaza: str) -> None:
    day, time = (f"{at:%m/%d/%Y}", f"{at:%I:%M:%S %p}") if at else ("06/30/2026", "-")
    statement.rows.append([number, tag, agency, "-", plaza, "1" if agency else "", day, time, amount])


def sunpass(statement: Statement, number: str, tag: str, at: datetime | None, amount: str, agency: str, plaza: str) -> None:
    at = at or datetime(2026, 6, 30, 9, tzinfo=NEW_YORK)
    debit, credit = ("", amount.removeprefix("+")) if amount.startswith("+") else (amount, "")
    posted = at + timedelta(days=2)
    hour = f"{at:%I:%M:%S %p}".lstrip("0")
    days = [f"{one.month}/{one.day}/{one.year}" for one in (posted, at)]
    statement.rows.append([*days, hour, number, tag, agency, "03" if agency else "", "2" if agency else "", plaza, debit, credit, ""])


def txtag(statement: Statement, number: str, tag: str, at: datetime | None, amount: str, agency: str, plaza: str) -> None:
    at = at or datetime(2026, 6, 30, 9, tzinfo=CHICAGO)
    kind = "Toll" if agency else plaza
    tag, _, state = tag.partition("|")
    statement.rows.append([f"{at:%m/%d/%Y}", f"{at:%H:%M:%S}", number, kind, agency, plaza if agency else "", tag, state, amount])


PLACES = {
    "ezpass-ny": [("MTAB&T", "RKB", 694), ("MTAB&T", "QMT", 694), ("PANYNJ", "GWB", 1606), ("NYSTA", "TAP", 375), ("NYSTA", "Y05", 201)],
    "sunpass": [("Florida's Turnpike", "GOLDEN GLADES", 413), ("MDX", "NW 87TH AVE", 70), ("CFX", "UNIVERSITY", 128), ("THEA", "EAST PLAZA", 209)],
    "txtag": [("TxDOT", "SH130 MUSTANG RIDGE", 268), ("CTRMA", "183A PARK ST", 135), ("CTRMA", "MOPAC NB2", 417), ("NTTA", "PGBT FRANKFORD", 192)],
}
CHARGE = {"ezpass-ny": "$-{}", "sunpass": "${}", "txtag": "${}"}
WRITE = {"ezpass-ny": ezpass, "sunpass": sunpass, "txtag": txtag}


def plate_of(statement: Statement, vehicle: list[str]) -> str:
    plate, state = vehicle[4], vehicle[5]
    return {"ezpass-ny": f"{state} {plate}", "sunpass": f"{plate}-{state}", "txtag": f"{plate}|{state}"}[statement.name]


def toll(
    statement: Statement,
    tag: str,
    at: datetime,
    what: str,
    customer: str = "",
    place: tuple[str, str, int] | None = None,
    cents: int = 0,
) -> list[str]:
    agency, plaza, fixed = place or draw.choice(PLACES[statement.name])
    amount = f"{(cents or fixed) / 100:.2f}"
    number = statement.next_number()
    WRITE[statement.name](statement, number, tag, at, CHARGE[statement.name].format(amount), agency, plaza)
    fate(statement, at, number, amount, what, customer)
    return statement.rows[-1]


def faults(statement: Statement) -> None:
    """What real statements have beside tolls of one renter each."""
    name, write = statement.name, WRITE[statement.name]
    place = PLACES[name][0]
    column = {"ezpass-ny": 0, "sunpass": 3, "txtag": 2}[name]
    money = {"ezpass-ny": 8, "sunpass": 9, "txtag": 8}[name]

    # One passage, read by tag and by plate, posted under two numbers.
    rental, at = passage(statement)
    toll(statement, rental.vehicle[6], at, "attached", rental.customer[0], place)
    toll(statement, plate_of(statement, rental.vehicle), at + timedelta(seconds=20), "review", "", place, place[2] + 150)

    # A plate that the camera read wrongly: O for 0, or a letter missing.
    rental, at = passage(statement)
    wrong = plate_of(statement, rental.vehicle).replace(rental.vehicle[4], rental.vehicle[4][:-1] + "O")
    toll(statement, wrong, at, "review")

    # Between two rentals: a colleague drove it to the car wash.
    own = [one for one in rentals if one.recorded and one.vehicle is vehicles[statement.cars[1]]]
    toll(statement, own[0].vehicle[6], own[0].back + timedelta(hours=5), "review")

    # The same row twice, as in overlapping downloads.
    rental, at = passage(statement)
    row = toll(statement, rental.vehicle[6], at, "attached", rental.customer[0])
    for _ in range(2):
        statement.rows.append(list(row))
        fate(statement, at, row[column], row[money].strip("$-"), "duplicate")

    # Opened in a spreadsheet: the number of the transaction is rounded. Opened in another country: a foreign sign.
    for damage in ("rounded", "currency", "no amount"):
        rental, at = passage(statement)
        row = toll(statement, rental.vehicle[6], at, "invalid", rental.customer[0])
        whole = list(row)
        if damage == "rounded":
            row[column] = f"{float(row[column]):.5E}"
        elif damage == "currency":
            row[money] = row[money].replace("$", "€")
            statement.fates[-1][1][1] = ""
        else:
            row[money] = "#REF!"
            statement.fates[-1][1][1] = ""
        statement.whole[tuple(row)] = whole

    # No toll at all: a payment to the account, and its fee.
    number = statement.next_number()
    payment = {"ezpass-ny": "$400.00", "sunpass": "+$400.00", "txtag": "$-400.00"}[name]
    write(statement, number, "", None, payment, "", {"ezpass-ny": "-", "sunpass": "REPLENISHMENT", "txtag": "Account Payment"}[name])
    fate(statement, datetime(2026, 6, 30, 9, tzinfo=statement.zone), number, "-400.00", "skipped")


def statement_of(name: str, cars: range, zone: ZoneInfo, number: int, tolls: int) -> Statement:
    statement = Statement(name, cars, zone, number)
    faults(statement)
    while len(statement.rows) < tolls:
        rental, at = passage(statement)
        tag = rental.vehicle[6] if draw.random() < 0.8 else plate_of(statement, rental.vehicle)
        toll(statement, tag, at.astimezone(zone), "attached", rental.customer[0])
    return statement


def special(sun: Statement, tex: Statement) -> None:
    # A toll on the day on which two renters of unknown hours meet: either may have had the vehicle.
    first, second = [one for one in rentals if not one.recorded]
    for hour in (10, 14):
        toll(sun, first.vehicle[6], first.back.replace(hour=hour, minute=25), "review")
    # The agency corrects a toll that it has charged twice as high: the same number again, another amount.
    rental, at = passage(tex)
    row = toll(tex, rental.vehicle[6], at, "replaced", "", PLACES["txtag"][2], 834)
    tex.rows.append([*row[:8], "$4.17"])
    fate(tex, at, row[2], "4.17", "attached", rental.customer[0])


def save(path: str, header: str, rows: list[list[str]], delimiter: str = ",", quoted: bool = False) -> None:
    with (HERE / path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL, lineterminator="\n")
        writer.writerow(header.split(","))
        writer.writerows(rows)


EZPASS = "Lane Txn ID,Tag/Plate #,Agency,Entry Plaza,Exit Plaza,Class,Date,Exit Time,Amount"
SUNPASS = (
    "POSTED DATE,TRANSACTION DATE,TRANSACTION TIME,TRANSACTION NUMBER,TRANSPONDER/LICENSE PLATE,AGENCY NAME,LANE,AXLE,"
    "DESCRIPTION / PLAZA NAME,DEBIT(-),CREDIT(+),BALANCE"
)
TXTAG = "Transaction Date,Transaction Time,Trans ID,Transaction Type,Toll Authority,Exit Plaza,Tag/Plate,State,Amount"
RENTAL = "booking_id,plate,email,start_date,end_date,activated_at,completed_at"
VEHICLE = "name,make,model,year,plate,plate_state,transponder_number,daily_rate"


def main() -> None:
    book()
    ny = statement_of("ezpass-ny", range(0, 4), NEW_YORK, 61231234500, 104)
    sun = statement_of("sunpass", range(4, 8), NEW_YORK, 900100200300, 102)
    tex = statement_of("txtag", range(8, 12), CHICAGO, 4410027100, 101)
    special(sun, tex)
    for statement in (ny, sun, tex):
        statement.sort()
    save("fleet/vehicles.csv", VEHICLE, vehicles)
    save("fleet/customers.csv", "full_name,email,preferred_language", [*customers, OWN_USE])
    booked = []
    for one in rentals:
        days = [f"{one.pickup:%Y-%m-%d}", f"{one.back:%Y-%m-%d}"]
        times = [one.pickup.isoformat(), one.back.isoformat()] if one.recorded else ["", ""]
        booked.append([one.booking, one.vehicle[4], one.customer[1], *days, *times])
    save("fleet/rentals.csv", RENTAL, booked)
    save("statements/ezpass-ny-2026-06.csv", EZPASS, ny.rows, quoted=True)
    save("statements/sunpass-2026-06.csv", SUNPASS, sun.rows, delimiter=";")
    save("statements/txtag-2026-06.csv", TXTAG, tex.rows)
    # The same statements, downloaded again and never opened in a spreadsheet.
    (HERE / "statements-again").mkdir(exist_ok=True)
    for name in ("statements.json", "txtag.json"):
        shutil.copy(HERE / "statements" / name, HERE / "statements-again" / name)
    whole = [[one.whole.get(tuple(row), row) for row in one.rows] for one in (ny, sun, tex)]
    save("statements-again/ezpass-ny-2026-06.csv", EZPASS, whole[0], quoted=True)
    save("statements-again/sunpass-2026-06.csv", SUNPASS, whole[1], delimiter=";")
    save("statements-again/txtag-2026-06.csv", TXTAG, whole[2])
    told = [(one.name, line, fate) for one in (ny, sun, tex) for line, (_, fate) in enumerate(one.fates, start=2)]
    save("expected.csv", "statement,row,transaction_id,amount,fate,customer", [[name, str(line), *fate] for name, line, fate in told])


if __name__ == "__main__":
    main()
