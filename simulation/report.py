"""Compares what the product decided with what is known, and prints a table."""

import re
import sys
from collections import defaultdict

from oracle import Vehicle, day_of, instants, midnight
from datetime import timedelta


class Table:
    def __init__(self, shown):
        self.shown, self.numbers, self.faults = shown, {}, defaultdict(list)

    def add(self, name, count=1):
        self.numbers[name] = self.numbers.get(name, 0) + count

    def fault(self, name, case):
        self.faults[name].append(case)

    def finish(self):
        for name, cases in self.faults.items():
            for case in cases[: self.shown]:
                print(f"{name}: {case}", file=sys.stderr)
        print("| What | Count |\n|---|---:|")
        for name in self.numbers:
            print(f"| {name} | {self.numbers[name]:,} |")
        for name in FAULTS:
            print(f"| **{name}** | **{len(self.faults.get(name, []))}** |")
        missed, certain = len(self.faults.get(MISSED, [])), self.numbers.get("with a certain payer", 0)
        wrong = [name for name in FAULTS if name != MISSED and self.faults.get(name)]
        return 1 if wrong or missed * 200 > certain else 0


MISSED = "certain, but not attached (at most 0.5 %)"
FAULTS = [
    "attached to the wrong customer", MISSED, "attached though the records allow several",
    "ambiguous, but not listed with every customer who comes into question", "reasons that are not true",
    "statements whose counts or sums are wrong", "amounts that differ after all imports",
    "differences after another order of imports", "passages that two tolls bill, or none", "cents that bills lose, double or move",
]


def compare(organization, tolls, violations, judged, table):
    fleet = organization.fleet
    vehicles = [Vehicle(fleet.of_vehicle(n), fleet.zone) for n in range(len(fleet.vehicles))]
    for plural, number, charges in (("tolls", "transaction_id", tolls), ("violations", "summons_number", violations)):
        numbered = {one["number"]: one for one in charges}
        passages = {(one["plaza"], one["told"], one["cents"]): one for one in tolls}
        for stored in organization.objects(plural):
            charge = numbered.get(stored[number])
            if charge is None and plural == "tolls":
                charge = find_passage(stored, passages, tolls)
            if charge is not None:
                charge["stored"], charge["all"] = stored, charges
                weigh(organization, vehicles, charge, stored, judged[stored["id"]], table)


def find_passage(stored, passages, tolls):
    """A toll of a format without numbers: by plaza, time and amount."""
    if not hasattr(find_passage, "of") or find_passage.of is not tolls:
        find_passage.of = tolls
        find_passage.known = {
            (one["plaza"], None if one["day_only"] else one["told"], one["cents"]): one
            for one in tolls if one["kind"] in ("ezpass-nj", "ezpass-nj-18", "ezpass-pa")
        }
    from datetime import datetime
    when = stored["occurred_at"] and int(datetime.fromisoformat(stored["occurred_at"].replace("Z", "+00:00")).timestamp())
    return find_passage.known.get((stored["plaza"], when, round(stored["amount"] * 100)))


def weigh(organization, vehicles, charge, stored, row, table):
    """Judges one toll or violation."""
    fleet = organization.fleet
    index = charge["vehicle"]["index"]
    table.add("tolls" if "plaza" in charge else "violations")
    twins = [one for one in fleet.vehicles if one["plate"] == charge["vehicle"]["plate"]]
    truth = fleet.driver(charge["vehicle"], charge["at"])
    case = describe(organization, charge, stored, row)
    attached = stored["customer_id"]
    if charge["mode"] == "bare" and len(twins) > 1:
        table.add("ambiguous by their plate")
        if attached or row["verdict"] != "unclear" or "vehicles" not in row["reason"]:
            table.fault(FAULTS[3], case)
        return
    vehicle, told = vehicles[index], charge["told"]
    if not attached and row["reason"].startswith("PROBABLE_TWIN"):
        table.add("probable twins")
        near = [one for one in charge["all"] if one is not charge and one["vehicle"]["index"] == index and abs(one["told"] - told) <= 120]
        if not near:
            table.fault(FAULTS[4], case)
        return
    found, empty = possible(vehicle, charge)
    if found is None:
        table.add("records that contradict themselves")
        return
    if charge.get("parking") and empty:
        parked = [one for one in vehicle.parked(told) if one not in found]
    else:
        parked = []
    customers = {one.customer for one in found + parked}
    sure = [one for one in found if not one.doubtful and not overdue(one, told) and not one.contested(vehicle.windows)]
    found = found + parked
    certain = len(customers) == 1 and bool(sure) and covers(sure, charge)
    expected = organization.customers[next(iter(customers))] if customers else None
    if attached and truth is not None and attached != organization.customers[truth]:
        table.fault(FAULTS[0], case)
    elif attached and truth is None and expected != attached:
        table.fault(FAULTS[0], case)
    if certain:
        table.add("with a certain payer")
        if not attached:
            table.fault(MISSED, f"{case} possible {[one.rental for one in found]}")
        elif attached != expected:
            table.fault(FAULTS[0], case)
        return
    if not customers:
        table.add("nobody can have had the vehicle")
        if attached:
            table.fault(FAULTS[0], case)
        check_reasons(organization, vehicle, charge, row, table, case)
        return
    table.add("ambiguous or not certain")
    if attached and len(customers) > 1:
        table.fault(FAULTS[2], f"{case} possible {[one.rental for one in found]}")
    elif not attached:
        shown = {one["customer_id"] for one in row["candidates"]}
        if row["verdict"] != "unclear" or not row["reason"] or not {organization.customers[one] for one in customers} <= shown:
            table.fault(FAULTS[3], f"{case} possible {[one.rental for one in found]}")
        check_reasons(organization, vehicle, charge, row, table, case)


def meant(charge):
    """The instants that the statement can mean. Only local times can mean two."""
    return instants(charge["zone"], charge["told"]) if charge["zone"] else [charge["told"]]


def possible(vehicle, charge):
    """The rentals that can have had the vehicle, for each instant that the statement can mean."""
    if charge["day_only"]:
        zone = charge["zone"]
        day = day_of(zone, charge["at"])
        return vehicle.holders(midnight(zone, day), midnight(zone, day + timedelta(days=1)))
    found, empty = [], False
    for at in meant(charge):
        some, none = vehicle.holders(at, at + length(at))
        if some is None:
            return None, None
        found += [one for one in some if one not in found]
        empty = empty or none
    return found, empty


def overdue(one, told):
    return one.overdue_from is not None and told >= one.overdue_from


def length(at):
    """Seconds that a time can mean. One whose seconds are 0 can lack them, and so mean its whole minute."""
    return 60 if at % 60 == 0 else 1


def covers(sure, charge):
    """Whether a rental reaches over all that the time can mean: the whole day, or the whole minute."""
    told = charge["told"]
    if not charge["day_only"]:
        # In the second of a recorded return nobody knows which was first.
        ends = [one.b2 if one.known_back else one.b2 + 1 for one in sure]
        begin = min(one.p1 for one in sure)
        return all(begin <= at and at + length(at) <= max(ends) for at in meant(charge))
    zone = charge["zone"]
    day = day_of(zone, told)
    begin, end = midnight(zone, day), midnight(zone, day + timedelta(days=1))
    latest = lambda one: one.b2 + 1 if not one.known_back and one.overdue_from is None else 0
    return any(one.p1 <= begin and end <= max(one.b1, latest(one)) for one in sure)


REASONS = [
    (r"^Handed over before and given back after it", lambda one, at: one["activated"] <= at < one["completed"]),
    (r"but given back later", lambda one, at: one["completed"] is not None and at < one["completed"]),
    (r"never marked as handed over", lambda one, at: one["status"] == "APPROVED" and not (one["activated"] or one["completed"])),
    (r"^Cancelled", lambda one, at: one["status"] == "CANCELLED" and one["activated"] is not None),
    (r"not yet given back", lambda one, at: one["completed"] is None and one["status"] != "COMPLETED"),
    (r"it is not recorded when it was given back", lambda one, at: one["completed"] is None),
    (r"but handed over earlier", lambda one, at: one["activated"] is not None and one["activated"] <= at),
    (r"but handed over later", lambda one, at: one["activated"] is None or one["activated"] > at),
    (r"Given back (earlier that day|the day before)|but given back before", lambda one, at: one["completed"] is None or one["completed"] <= at),
]


def check_reasons(organization, vehicle, charge, row, table, case):
    """What the reasons of the candidates claim, against the records."""
    rentals = {organization.rentals[one["number"]]: one for one in organization.fleet.of_vehicle(charge["vehicle"]["index"])}
    if charge["day_only"]:
        return
    many = re.match(r"^(\d+) rentals come into question", row["reason"])
    if many and int(many[1]) > len(row["candidates"]):
        table.fault(FAULTS[4], case)
    for candidate in row["candidates"]:
        rental = rentals.get(candidate["rental_id"])
        if rental is None or organization.customers[rental["customer"]] != candidate["customer_id"]:
            table.fault(FAULTS[4], case)
            continue
        for pattern, holds in REASONS:
            if re.search(pattern, candidate["reason"]) and not any(
                holds(rental, at) for at in meant(charge)
            ):
                table.fault(FAULTS[4], f"{candidate['reason']} of {rental}; {case}")


def describe(organization, charge, stored, row):
    near = [one for one in organization.fleet.of_vehicle(charge["vehicle"]["index"])
            if not one["start"] or abs((one["start"] - day_of(organization.fleet.zone, charge["at"])).days) < 16]
    from datetime import datetime, timezone
    shown = lambda at: None if at is None else datetime.fromtimestamp(at, organization.fleet.zone).strftime("%m-%d %H:%M")
    lines = [f"#{one['number']} c{one['customer']} {one['status']} {one['start']}..{one['end']} "
             f"{shown(one['activated'])} -> {shown(one['completed'])}" for one in near]
    who = organization.customers.index(stored["customer_id"]) if stored["customer_id"] else None
    truth = organization.fleet.driver(charge["vehicle"], charge["at"])
    return (f"{charge['kind']} {charge['number']} {charge['mode']} {shown(charge['at'])} day_only={charge['day_only']} "
            f"{charge.get('text', '')} stored plate {stored.get('plate')}/{stored.get('plate_state') or stored.get('state')}: "
            f"attached c{who}, truth c{truth}, {row['verdict']}: {row['reason']} "
            f"{[(organization.customers.index(one['customer_id']), one['reason']) for one in row['candidates']]}; rentals "
            + "; ".join(lines))


def balance(organization, tolls, table):
    """All money of the statements is in the recorded tolls, each once."""
    stored = organization.objects("tolls")
    total = sum(round(one["amount"] * 100) for one in stored)
    expected = sum(one["final"] for one in tolls)
    if len(stored) != len(tolls) or total != expected:
        table.fault(FAULTS[6], f"{len(stored)} tolls of {total} cents instead of {len(tolls)} of {expected}")
    amounts = {one["number"]: one["final"] for one in tolls}
    for one in stored:
        number = one["transaction_id"]
        if number in amounts and amounts[number] != round(one["amount"] * 100):
            table.fault(FAULTS[6], f"{number}: {one['amount']} instead of {amounts[number]}")


def pairs(tolls, table):
    """Of two postings of one passage, at most one is attached, and at most one waits as the twin of the other one."""
    for second in tolls:
        if "first" not in second or not all("stored" in one for one in (second, second["first"])):
            continue
        table.add("passages that were posted twice")
        both = [second["stored"], second["first"]["stored"]]
        waiting = [one for one in both if (one["review_reason"] or "").startswith("PROBABLE_TWIN")]
        attached = [one for one in both if one["customer_id"]]
        paid = second["final"] and second["first"]["final"]
        if (len(attached) == 2 and paid) or len(waiting) == 2:
            table.fault(FAULTS[8], str(both))


def same(one, other, table):
    """Two organizations with the same statements hold the same."""
    def state(organization):
        index = {id: at for at, id in enumerate(organization.customers)}
        tolls = list(organization.objects("tolls"))
        # Of two probable twins the one that was recorded first is attached.
        second = [toll for toll in tolls if (toll["review_reason"] or "").startswith("PROBABLE_TWIN")]
        twins = {toll["id"] for toll in second} | {re.search(r"toll ([0-9a-f-]{36})", toll["review_reason"])[1] for toll in second}
        return sorted(
            str([toll["transaction_id"], toll["plaza"], toll["occurred_at"], toll["amount"], toll["occurred_on"],
                 None if toll["id"] in twins else index.get(toll["customer_id"])])
            for toll in tolls)
    for a, b in zip(state(one), state(other)):
        if a != b:
            table.fault(FAULTS[7], f"{a} and {b}")
