#!/usr/bin/env python3
"""Measures how long the server takes to say what is free. See README.md."""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from urllib.request import Request, urlopen

from client import Server

FIRST = date(2031, 6, 1)  # the month that is asked for, far enough in the future
NIGHTS = 30
PROMISE = 2.0  # milliseconds of server time


def night(number):
    return (FIRST + timedelta(days=number)).isoformat()


def fleet(server, vehicles, rentals, pool):
    """An organization whose vehicles each have so many rentals. Returns its key, and which vehicles the rentals leave free.

    The rentals of half of the vehicles are in the month, with free nights between them. Those of the others are on both sides of it.
    """
    organization = server.send("POST", "/admin/v1/organizations", {"name": "Availability"})["id"]
    key = server.send("POST", "/admin/v1/api_keys", {"organization_id": organization, "scope": "read_write"})["key"]
    create = lambda path, body: server.send("POST", path, body, key)["id"]
    customer = create("/v1/customers", {"full_name": "Customer"})
    cars = list(pool.map(lambda n: create("/v1/vehicles", {"name": f"Car {n}"}), range(vehicles)))

    def book(place):
        car, turn = place
        inside = turn * NIGHTS // rentals
        begin = inside if car % 2 else (-2 * (turn + 1) if turn % 2 else NIGHTS + 2 * turn)
        create("/v1/rentals", {"vehicle_id": cars[car], "customer_id": customer, "status": "APPROVED",
                               "start_date": night(begin), "end_date": night(begin + 1), "final_price": 100})

    list(pool.map(book, [(car, turn) for car in range(vehicles) for turn in range(rentals)]))
    return key, {car for number, car in enumerate(cars) if number % 2 == 0}


def time_in_server(server):
    """Requests for what is free that the server answered so far, and the seconds that it needed for them."""
    request = Request(f"http://{server.place}/metrics", headers={"Authorization": f"Bearer {server.token}"})
    with urlopen(request, timeout=60) as response:
        lines = [line for line in response.read().decode().splitlines() if 'path="/v1/availability"' in line]
    of = lambda part: sum(float(line.split()[-1]) for line in lines if f"duration_seconds_{part}" in line)
    return of("count"), of("sum")


def measured(server, key, path, query, requests):
    """Milliseconds of each request, as the client sees them."""
    taken = []
    for _ in range(requests):
        begun = time.perf_counter()
        server.send("GET", path, key=key, query=query)
        taken.append((time.perf_counter() - begun) * 1000)
    return sorted(taken)


def show(what, taken, server_time):
    part = lambda share: taken[min(len(taken) - 1, int(share * len(taken)))]
    print(f"| {what} | {server_time} | {part(0.5):.2f} ms | {part(0.99):.2f} ms |", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--program", default="target/release/rental-server", help="server to start")
    arguments.add_argument("--vehicles", type=int, default=500)
    arguments.add_argument("--rentals", type=int, default=20, help="of each vehicle; at most 30")
    arguments.add_argument("--requests", type=int, default=2000, help="of each line of the table")
    given = arguments.parse_args()
    if not 1 <= given.rentals <= NIGHTS:
        sys.exit(f"--rentals must be from 1 to {NIGHTS}: each of them has a night of its own.")
    server, slowest = Server(None, given.program), 0.0
    try:
        with ThreadPoolExecutor(8) as pool:
            key, free = fleet(server, given.vehicles, given.rentals, pool)
        month = {"from": night(0), "to": night(NIGHTS)}
        found = {vehicle["id"] for vehicle in server.pages("/v1/availability", key, query=month)}
        if found != free:
            sys.exit(f"{len(found - free)} vehicles are not free and listed, {len(free - found)} are free and not listed.")
        print("| Request | Time in the server, mean | p50 at the client | p99 at the client |\n|---|---:|---:|---:|")
        show("`GET /v1/me`, to compare", measured(server, key, "/v1/me", None, given.requests), "")
        for what, nights in ("a month", NIGHTS), ("a week", 7), ("a night", 1):
            query = {"from": night(0), "to": night(nights), "limit": 100}
            count, before = time_in_server(server)
            taken = measured(server, key, "/v1/availability", query, given.requests)
            after, since = time_in_server(server)
            if after - count != given.requests:
                sys.exit(f"the server counted {after - count} requests instead of {given.requests}")
            mean = (since - before) / given.requests * 1000
            slowest = max(slowest, mean)
            show(f"what is free for {what}", taken, f"{mean:.2f} ms")
    finally:
        server.stop()
    if slowest > PROMISE:
        sys.exit(f"The server needs more than {PROMISE} ms.")


if __name__ == "__main__":
    main()
