#!/usr/bin/env python3
"""Compares the product with a simulated fleet whose answers are known. See README.md."""

import argparse
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import billing
import report
import statements
from client import Server
from statements import make_statements, make_tolls
from violations import make_violations, violation_file
from world import Fleet


def at(seconds):
    return None if seconds is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Organization:
    """An organization of the server that has recorded what a fleet knows."""

    def __init__(self, server, fleet):
        self.server, self.fleet = server, fleet
        self.id = server.send("POST", "/admin/v1/organizations", {
            "name": f"Fleet {fleet.number}", "time_zone": fleet.zone_name, "booking_policy": "open",
        })["id"]
        self.path = f"/admin/v1/organizations/{self.id}"
        key = server.send("POST", "/admin/v1/api_keys", {"organization_id": self.id, "scope": "read_write"})
        self.key = key["key"]

    def post(self, path, body):
        return self.server.send("POST", path, body, self.key)

    def record_fleet(self, pool):
        """Vehicles, customers and rentals, as the fleet knows them."""
        self.customers = list(pool.map(lambda n: self.post("/v1/customers", {"full_name": f"Customer {n}"})["id"],
                                       range(self.fleet.customers)))
        self.vehicles = list(pool.map(lambda one: self.post("/v1/vehicles", {
            "name": f"Car {one['index']}", "plate": one["plate"], "plate_state": one["state"],
            **({"transponder_number": one["tag"]} if one["tag"] else {}),
        })["id"], self.fleet.vehicles))
        self.rentals = list(pool.map(self.record_rental, self.fleet.rentals))
        self.record_moves(late=False)
        self.record_swaps(pool, late=False)

    def record_swaps(self, pool, late):
        """Notes which customers got another vehicle, and when. Returns the number."""
        swaps = [one for one in self.fleet.rentals if one.get("swap") and one["swap"]["late"] == late]
        list(pool.map(lambda one: self.server.send("PATCH", f"/v1/rentals/{self.rentals[one['number']]}", {
            "vehicle_id": self.vehicles[one["swap"]["to"]], "vehicle_changed_at": at(one["swap"]["at"]),
        }, self.key), swaps))
        return len(swaps)

    def record_moves(self, late):
        """Notes which tags and plates moved, and when. Returns the number of vehicles."""
        moved = [one for one in self.fleet.vehicles if "moved" in one and one["moved"]["late"] == late]
        for one in moved:
            other = one["moved"]["other"]
            if other is None:
                self.change_numbers([one])
            elif one["index"] < other:
                self.change_numbers([one, self.fleet.vehicles[other]])
        return len(moved)

    def change_numbers(self, vehicles):
        """The fields get the present numbers, and the assignments their times. Of two vehicles that exchange tags, the first one
        loses its number for a moment, because no two vehicles can have one number at the same time."""
        path = lambda one: f"/v1/vehicles/{self.vehicles[one['index']]}"
        for one in vehicles[1:]:
            self.server.send("PATCH", path(one), {"transponder_number": None}, self.key)
        for one in vehicles:
            fields = {"transponder_number": one["moved"]["tag"], "plate": one["moved"]["plate"]}
            self.server.send("PATCH", path(one), fields, self.key)
        for step, one in enumerate(vehicles if len(vehicles) == 1 else [*vehicles, vehicles[0]]):
            since = at(one["moved"]["at"])
            now, before = [], []
            for kind, field, state in (("toll_tag", "tag", None), ("plate", "plate", one["state"])):
                if one["moved"][field] == one[field]:
                    now.append({"kind": kind, "number": one[field], "state": state})
                else:
                    now.append({"kind": kind, "number": one["moved"][field], "state": state, "from": since})
                    before.append({"kind": kind, "number": one[field], "state": state, "to": since})
            if step == 0 and len(vehicles) > 1:
                # The other vehicle still has this number until a moment ago.
                now = [{**each, "from": at(time.time() + 1) if "from" in each else None} for each in now]
            self.server.send("PUT", f"/admin{path(one)}/assignments", {"assignments": now + before})

    def correct(self, pool):
        """Corrects what was written down wrong, and waits until the attachments follow. Returns the number of changes."""
        wrong = [one for one in self.fleet.rentals if one["first"]]
        list(pool.map(self.correct_rental, wrong))
        counts = len(wrong), self.record_swaps(pool, late=True), self.record_moves(late=True)
        self.settle()
        return counts

    def settle(self):
        """Waits until no vehicle waits for its attachments. The server counts them each second, so the first count can be old."""
        time.sleep(3)
        while self.server.metric("rental_attachments_vehicles_waiting"):
            time.sleep(1)

    def correct_rental(self, rental):
        days = {"start_date": rental["start"] and str(rental["start"]), "end_date": rental["end"] and str(rental["end"])}
        self.server.send("PATCH", f"/v1/rentals/{self.rentals[rental['number']]}", {
            "customer_id": self.customers[rental["customer"]], **days, "status": rental["status"],
            "activated_at": at(rental["activated"]), "completed_at": at(rental["completed"]),
        }, self.key)

    def record_rental(self, truth):
        rental = {**truth, **truth["first"]}
        body = {"vehicle_id": self.vehicles[rental["vehicle"]], "customer_id": self.customers[rental["customer"]],
                "final_price": rental["number"] * 1371 % 90000 / 100}
        days = {"start_date": str(rental["start"]), "end_date": str(rental["end"])} if rental["start"] else {}
        if rental["start"] and not rental["end"]:
            del days["end_date"]
        times = {"activated_at": at(rental["activated"]), "completed_at": at(rental["completed"])}
        if rental["number"] % 3 == 0:
            # Step by step; times that nobody recorded are emptied again.
            made = self.post("/v1/rentals", {**body, **days})["id"]
            change = {"status": rental["status"], **times}
            self.server.send("PATCH", f"/v1/rentals/{made}", change, self.key)
            return made
        times = {name: value for name, value in times.items() if value}
        return self.post("/v1/rentals", {**body, **days, **times, "status": rental["status"]})["id"]

    def import_file(self, plural, file, found):
        """Imports a file and compares the summary with what is known."""
        kind = {"generic-local": "generic", "ezpass-nj-18": "ezpass-nj"}.get(file.kind, file.kind)
        query = {"format": kind, "time_zone": file.zone_name}
        summary = self.server.send("POST", f"{self.path}/{plural}/import", file.text().encode(), None, query, "text/csv")
        expected = dict(file.counts, received=sum(file.counts.values()))
        sums = dict(file.sums, received=sum(file.sums.values()))
        got = {name: summary[name] for name in expected}
        money = {name: round(summary["amounts"][name] * 100) for name in sums}
        if got != expected or money != sums:
            found.append(f"{file.kind}: counts {got} instead of {expected}, sums {money} instead of {sums}, "
                         f"{summary['errors'][:3]}")
        return sum(expected.values()) // 2

    def judged(self, plural):
        return {row["id"]: row for row in self.server.pages(f"{self.path}/{plural}/suggestions", None, "POST")}

    def objects(self, plural):
        return list(self.server.pages(f"/v1/{plural}", self.key))


def simulate(server, seed, fleets, vehicles, tolls, violations, table, pool):
    for number in range(fleets):
        fleet = Fleet(seed, number, vehicles)
        organization = Organization(server, fleet)
        organization.record_fleet(pool)
        table.add("vehicles", len(fleet.vehicles))
        table.add("rentals", len(fleet.rentals))
        passages = make_tolls(fleet, tolls)
        files, corrections = make_statements(fleet, passages, 120)
        books = []
        again = random.Random(seed).sample(files, len(files) // 8)
        for file in files + corrections + [one.again() for one in again]:
            organization.import_file("tolls", file, books)
        table.add("statements", len(files) + len(corrections) + len(again))
        rows = sum(sum(file.counts.values()) for file in files + corrections + again)
        table.add("rows of statements", rows)

        tickets = make_violations(fleet, violations)
        file = violation_file(tickets, fleet)
        organization.import_file("violations", file, books)
        organization.import_file("violations", file.again(), books)
        for line in books:
            table.fault("statements whose counts or sums are wrong", line)

        judged = {**organization.judged("tolls"), **organization.judged("violations")}
        corrected = organization.correct(pool)
        table.add("rentals corrected after the import", corrected[0])
        table.add("swaps", sum("swap" in one for one in fleet.rentals))
        table.add("of them recorded after the import", corrected[1])
        table.add("vehicles whose tag or plate moved", sum("moved" in one for one in fleet.vehicles))
        table.add("of them recorded later", corrected[2])
        # What became clear is attached, and what nobody attached is judged by what is recorded now.
        judged = {**judged, **organization.judged("tolls"), **organization.judged("violations")}
        report.compare(organization, passages, tickets, judged, table)
        report.balance(organization, passages, table)
        report.pairs(passages, table)
        billing.check(organization, table)

        # The same statements in another order, in another organization with the same fleet.
        if number == 0:
            other = Organization(server, fleet)
            other.record_fleet(pool)
            shuffled = files[:]
            random.Random(seed + 1).shuffle(shuffled)
            for file in shuffled + corrections:
                other.import_file("tolls", file, books)
            other.judged("tolls")
            other.correct(pool)
            other.judged("tolls")
            report.same(organization, other, table)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--server", help="URL of a running server; RENTAL_ADMIN_TOKEN is its token")
    arguments.add_argument("--program", default="target/debug/rental-server", help="server to start without --server")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--vehicles", type=int, default=22, help="of each of the three fleets")
    arguments.add_argument("--tolls", type=int, default=5000, help="of each fleet")
    arguments.add_argument("--violations", type=int, default=250, help="of each fleet")
    arguments.add_argument("--show", type=int, default=3, help="cases that are printed of each kind of fault")
    arguments.add_argument("--spelled-states", action="store_true", help="states also by their names")
    given = arguments.parse_args()
    statements.SPELLED_OUT = given.spelled_states
    server = Server(given.server, given.program)
    table = report.Table(given.show)
    try:
        with ThreadPoolExecutor(8) as pool:
            simulate(server, given.seed, 3, given.vehicles, given.tolls, given.violations, table, pool)
    finally:
        server.stop()
    sys.exit(table.finish())


if __name__ == "__main__":
    main()
