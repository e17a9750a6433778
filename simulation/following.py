#!/usr/bin/env python3
"""Measures how long attachments of tolls take to follow a change of what they rest on. See README.md."""

import argparse
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from client import Server

DAY = 86400
FIRST = 1735689600  # 2025-01-01
TURN = 3  # days from the beginning of a rental to that of the next one of its vehicle
PROMISE = 5.0


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def day(seconds):
    return at(seconds)[:10]


class Fleet:
    """An organization whose tolls are all attached: each rental has two days, and the same number of tolls."""

    def __init__(self, server, vehicles, rentals, tolls, pool):
        self.server, self.pool, self.random = server, pool, random.Random(vehicles)
        self.turns, self.tolls_each = rentals // vehicles, tolls // rentals
        self.id = server.send("POST", "/admin/v1/organizations", {"name": "Following", "booking_policy": "open"})["id"]
        self.path = f"/admin/v1/organizations/{self.id}"
        key = server.send("POST", "/admin/v1/api_keys", {"organization_id": self.id, "scope": "read_write"})
        self.key = key["key"]
        create = lambda path, body: server.send("POST", path, body, self.key)["id"]
        self.customers = list(pool.map(lambda n: create("/v1/customers", {"full_name": f"Customer {n}"}), range(1000)))
        name = lambda n: {"name": f"Car {n}", "transponder_number": self.tag(n)}
        self.vehicles = list(pool.map(lambda n: create("/v1/vehicles", name(n)), range(vehicles)))
        self.spare = create("/v1/vehicles", {"name": "Spare"})
        self.rentals = {}
        places = [(car, turn) for turn in range(self.turns) for car in range(vehicles)]
        for place, made in zip(places, pool.map(lambda place: create("/v1/rentals", self.rental(*place)), places)):
            self.rentals[place] = made
        self.import_tolls()

    def tag(self, car):
        return f"004{car:08}"

    def begin(self, turn):
        return FIRST + turn * TURN * DAY + DAY // 2

    def customer(self, car, turn):
        return self.customers[(car * 7 + turn) % len(self.customers)]

    def rental(self, car, turn):
        begin = self.begin(turn)
        return {"vehicle_id": self.vehicles[car], "customer_id": self.customer(car, turn), "status": "COMPLETED",
                "start_date": day(begin), "end_date": day(begin + 2 * DAY), "final_price": 100,
                "activated_at": at(begin), "completed_at": at(begin + 2 * DAY)}

    def passed(self, turn, number):
        """When the toll of a rental was caused: half of them before the middle of the rental."""
        return self.begin(turn) + (2 * number + 1) * DAY // self.tolls_each

    def import_tolls(self):
        rows = [f"T-{car}-{turn}-{number},{at(self.passed(turn, number))},Agency,{self.tag(car)},2.50"
                for car, turn in self.rentals for number in range(self.tolls_each)]
        for first in range(0, len(rows), 20000):
            file = "transaction_id,occurred_at,agency,transponder_number,amount\n" + "\n".join(rows[first:first + 20000])
            found = self.server.send("POST", f"{self.path}/tolls/import", file.encode(), None, {"format": "generic"}, "text/csv")
            if found["created"] != found["received"]:
                raise RuntimeError(f"not every toll was recorded: {found}")
        for _ in self.server.pages(f"{self.path}/tolls/suggestions", None, "POST"):
            pass
        self.settle()
        self.tolls = {}
        for vehicle in range(len(self.vehicles)):
            for toll in self.server.pages("/v1/tolls", self.key, query={"vehicle": self.vehicles[vehicle]}):
                car, turn, number = map(int, toll["transaction_id"].split("-")[1:])
                if toll["customer_id"] != self.customer(car, turn):
                    raise RuntimeError(f"not attached to its renter: {toll}")
                self.tolls[car, turn, number] = toll["id"]

    def settle(self):
        """Waits until no vehicle waits for its attachments."""
        time.sleep(3)
        while self.server.metric("rental_attachments_vehicles_waiting"):
            time.sleep(0.5)

    def patch(self, place, body):
        self.server.send("PATCH", f"/v1/rentals/{self.rentals[place]}", body, self.key)

    def expected(self, place, customer, numbers=None):
        numbers = range(self.tolls_each) if numbers is None else numbers
        return [(self.tolls[(*place, number)], customer) for number in numbers]

    # Each kind of change returns the tolls that it changes, with the customer that each gets.

    def other_customer(self, car, turn):
        customer = self.customers[(self.customers.index(self.customer(car, turn)) + 1) % len(self.customers)]
        self.patch((car, turn), {"customer_id": customer})
        return self.expected((car, turn), customer)

    def earlier_return(self, car, turn):
        self.patch((car, turn), {"completed_at": at(self.begin(turn) + DAY), "end_date": day(self.begin(turn) + DAY)})
        return self.expected((car, turn), None, range(self.tolls_each // 2, self.tolls_each))

    def other_vehicle(self, car, turn):
        self.patch((car, turn), {"vehicle_id": self.spare})
        return self.expected((car, turn), None)

    def later_tag(self, car, turn):
        """The vehicle has its tag only since the end of this rental. The one before lost it earlier, so `turn` rises."""
        path = f"/admin/v1/vehicles/{self.vehicles[car]}/assignments"
        since = at(self.begin(turn) + 2 * DAY)
        self.server.send("PUT", path, {"assignments": [{"kind": "toll_tag", "number": self.tag(car), "from": since}]})
        return self.expected((car, turn), None)

    def until_true(self, expected, since):
        """Seconds until every toll has the customer that it must have."""
        for toll, customer in expected:
            while self.server.send("GET", f"/v1/tolls/{toll}", key=self.key)["customer_id"] != customer:
                if time.monotonic() - since > 120:
                    raise RuntimeError(f"toll {toll} does not get customer {customer}")
                time.sleep(0.01)
        return time.monotonic() - since


class Changes:
    """Changes that are left: each rental is changed once at most."""

    KINDS = ("other_customer", "earlier_return", "other_vehicle", "later_tag")

    def __init__(self, fleet):
        self.fleet, self.lock = fleet, threading.Lock()
        cars = list(range(len(fleet.vehicles)))
        fleet.random.shuffle(cars)
        # The tags of half of the vehicles change, and the rentals of the others.
        half = len(cars) // 2
        self.tags = [(car, turn) for turn in range(fleet.turns) for car in cars[:half]][::-1]
        self.rentals = [(car, turn) for turn in range(fleet.turns) for car in cars[half:]]
        fleet.random.shuffle(self.rentals)
        self.turn = 0

    def next(self):
        with self.lock:
            kind = self.KINDS[self.turn % len(self.KINDS)]
            self.turn += 1
            place = (self.tags if kind == "later_tag" else self.rentals).pop()
        return kind, place

    def change(self):
        """Makes one change. Returns when it was acknowledged, and what must become true."""
        kind, place = self.next()
        expected = getattr(self.fleet, kind)(*place)
        return time.monotonic(), expected

    def measured(self):
        time.sleep(random.random())
        since, expected = self.change()
        return self.fleet.until_true(expected, since)


class Load:
    """So many writes in a second that concern no attachment."""

    def __init__(self, fleet, rate):
        self.fleet, self.rate, self.made, self.ended = fleet, rate, 0, threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(4)]

    def run(self, number):
        due = time.monotonic()
        while not self.ended.is_set():
            customer = self.fleet.customers[self.made % len(self.fleet.customers)]
            self.fleet.server.send("PATCH", f"/v1/customers/{customer}", {"notes": f"{number} {self.made}"}, self.fleet.key)
            self.made += 1
            due += len(self.threads) / self.rate
            time.sleep(max(0.0, due - time.monotonic()))

    def __enter__(self):
        self.begun = time.monotonic()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()
        self.reached = self.made / (time.monotonic() - self.begun)


def show(what, seconds):
    """Prints one line. Returns whether the promise holds."""
    ordered = sorted(seconds)
    part = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    print(f"| {what} | {len(ordered)} | {part(0.5):.2f} s | {part(0.99):.2f} s | {ordered[-1]:.2f} s |", flush=True)
    return ordered[-1] <= PROMISE


def measure(fleet, given, pool):
    changes, holds = Changes(fleet), True
    print("| While | Changes | p50 | p99 | Longest |\n|---|---:|---:|---:|---:|")
    several = lambda: list(pool.map(lambda _: changes.measured(), range(given.changes)))
    holds &= show("the server is otherwise idle", several())
    with Load(fleet, given.rate) as load:
        seconds = several()
    holds &= show(f"clients make {load.reached:.0f} other writes a second", seconds)
    seconds = []
    for _ in range(given.kills):
        made = list(pool.map(lambda _: changes.change(), range(max(1, given.changes // given.kills // 4))))
        fleet.server.kill_and_start()
        since = time.monotonic()
        seconds += pool.map(lambda one: fleet.until_true(one[1], since), made)
    holds &= show(f"the server was killed {given.kills} times; from its start", seconds)
    return holds & burst(fleet, changes, given, pool)


def burst(fleet, changes, given, pool):
    """Every vehicle's tag changes at once. What another organization changes meanwhile must not wait for that."""
    other = Fleet(fleet.server, 20, 2000, 20000, pool)
    others = Changes(other)
    begun = time.monotonic()
    one = lambda car: fleet.server.send("PUT", f"/admin/v1/vehicles/{fleet.vehicles[car]}/assignments", {
        "assignments": [{"kind": "toll_tag", "number": fleet.tag(car), "from": at(FIRST + 400 * TURN * DAY)}]})
    list(pool.map(one, range(len(fleet.vehicles))))
    # Each step takes the next attachments of a vehicle, so the last toll of each vehicle tells.
    last = [(fleet.tolls[car, fleet.turns - 1, fleet.tolls_each - 1], None) for car in range(len(fleet.vehicles))]
    with ThreadPoolExecutor(1) as watch:
        whole = watch.submit(fleet.until_true, last, begun)
        seconds = []
        while not whole.done() or not seconds:
            seconds.append(others.measured())
    holds = show(f"all {len(fleet.vehicles)} tags of another organization change", seconds)
    print(f"\nThe {len(fleet.tolls)} tolls of these tags were derived again in {whole.result():.0f} s.")
    return holds


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--program", default="target/debug/rental-server", help="server to start")
    arguments.add_argument("--vehicles", type=int, default=200)
    arguments.add_argument("--rentals", type=int, default=2000)
    arguments.add_argument("--tolls", type=int, default=20000)
    arguments.add_argument("--changes", type=int, default=100, help="of each line of the table")
    arguments.add_argument("--rate", type=float, default=100, help="other writes in a second")
    arguments.add_argument("--kills", type=int, default=5)
    given = arguments.parse_args()
    server = Server(None, given.program)
    try:
        with ThreadPoolExecutor(8) as pool:
            begun = time.monotonic()
            fleet = Fleet(server, given.vehicles, given.rentals, given.tolls, pool)
            print(f"{given.tolls} tolls and {given.rentals} rentals of {given.vehicles} vehicles were recorded "
                  f"in {time.monotonic() - begun:.0f} s.\n", flush=True)
            holds = measure(fleet, given, pool)
    finally:
        server.stop()
    if not holds:
        sys.exit(f"An attachment followed later than {PROMISE:.0f} s.")


if __name__ == "__main__":
    main()
