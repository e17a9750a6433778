"""The simulated fleet: what really happened, and what the fleet recorded of it."""

import random
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from oracle import day_of, instants

HOUR = 3600
# Clocks are set back in the first two zones on 2025-11-02; Phoenix has one time all year.
ZONES = ["America/New_York", "America/Chicago", "America/Phoenix"]
BEGIN, END = date(2025, 8, 20), date(2025, 12, 10)
STATES = ["NY", "NJ", "PA", "FL", "CT", "ON"]


def stamp(zone, day, hours):
    local = datetime(day.year, day.month, day.day, tzinfo=zone) + timedelta(hours=hours)
    return int(local.timestamp())


class Fleet:
    """One organization with its vehicles, customers and rentals."""

    def __init__(self, seed, number, vehicles):
        self.random = random.Random(f"{seed}-{number}")
        # Numbers of their own, so that mistakes do not change the truth of a seed.
        self.changes = random.Random(f"changes of {seed}-{number}")
        self.moves = random.Random(f"moves of {seed}-{number}")
        self.zone_name, self.number = ZONES[number % len(ZONES)], number
        self.zone = ZoneInfo(self.zone_name)
        # Some of its agencies have their clocks elsewhere.
        self.other_zone_name = ZONES[(number + 1) % len(ZONES)]
        self.customers = 60
        self.vehicles, self.rentals = [], []
        for n in range(vehicles):
            tag = f"004{self.random.randrange(10**8):08}" if n % 7 else None
            # Some plate numbers exist in two states.
            plate = f"SIM{number}{n // 2 * 2 if n % 10 < 2 else n:03}X"
            state = STATES[n % 2] if n % 10 < 2 else STATES[n % len(STATES)]
            vehicle = {"tag": tag, "plate": plate, "state": state, "index": n, "drives": []}
            self.vehicles.append(vehicle)
            self.live(vehicle)
        self.swap_vehicles(vehicles)
        self.move_numbers()

    def swap_vehicles(self, first):
        """Some customers get one of two spare vehicles in the middle of their rental."""
        r, zone = self.moves, self.zone
        spares = []
        for n in range(first, first + 2):
            spare = {"tag": f"005{r.randrange(10**8):08}", "plate": f"SPARE{self.number}{n}", "state": "NJ", "index": n, "drives": []}
            self.vehicles.append(spare)
            spares.append((spare, 0))
        candidates = [drive for vehicle in self.vehicles for drive in vehicle["drives"] if drive["back"] - drive["pickup"] > 40 * HOUR]
        for drive in sorted(candidates, key=lambda one: one["pickup"]):
            rental = self.rentals[drive["rental"]]
            at = max(instants(zone, r.randrange(drive["pickup"] + 12 * HOUR, drive["back"] - 6 * HOUR)))
            spare, free_from = spares[0]
            if rental["status"] != "COMPLETED" or not rental["start"] or rental["activated"] is None or rental["first"] or at < free_from:
                continue
            if r.random() < 0.4:
                continue
            rental["swap"] = {"at": at, "to": spare["index"], "late": r.random() < 0.4}
            spare["drives"].append({**drive, "pickup": at, "vehicle": spare["index"]})
            spares = [*spares[1:], (spare, drive["back"] + HOUR)]
            drive["back"] = at

    def move_numbers(self):
        """Pairs of vehicles exchange their tags, and some get other plates. `moved` is when; `late` ones are recorded after the
        statements are imported."""
        r = self.moves
        tagged = [one for one in self.vehicles if one["tag"] and one["index"] % 10 > 1 and one["drives"]]
        r.shuffle(tagged)
        for a, b in zip(tagged[0:6:2], tagged[1:6:2]):
            at = stamp(self.zone, BEGIN + timedelta(days=r.randrange(25, 90)), 13 + r.random() * 3)
            late = r.random() < 0.5
            for one, tag in ((a, b["tag"]), (b, a["tag"])):
                one["moved"] = {"at": at, "late": late, "other": (b if one is a else a)["index"], "tag": tag, "plate": one["plate"]}
        for one in tagged[6:8]:
            at = stamp(self.zone, BEGIN + timedelta(days=r.randrange(25, 90)), 13 + r.random() * 3)
            one["moved"] = {"at": at, "late": r.random() < 0.5, "other": None, "tag": one["tag"], "plate": one["plate"] + "N"}

    def shown(self, vehicle, at):
        """The tag, plate and state that a vehicle has at a time."""
        moved = vehicle.get("moved")
        later = moved and at >= moved["at"]
        return {"tag": moved["tag"] if later else vehicle["tag"], "plate": moved["plate"] if later else vehicle["plate"],
                "state": vehicle["state"]}

    def live(self, vehicle):
        """The truth of one vehicle from the first day to the last one."""
        r, zone = self.random, self.zone
        now = stamp(zone, BEGIN, r.uniform(6, 20) + 24 * r.randrange(3))
        last, previous = stamp(zone, END, 0), None
        while True:
            gap = r.choice([0.5, 1, 2, 4]) if r.random() < 0.35 else r.uniform(5, 90)
            extends = previous is not None and r.random() < 0.08
            pickup = now if extends else now + int(gap * HOUR)
            length = r.uniform(2, 9) if r.random() < 0.12 else r.choice([1, 2, 2, 3, 3, 4, 5, 7, 14]) * 24 + r.uniform(-8, 8)
            back = pickup + int(length * HOUR)
            # Nobody hands a vehicle over in the repeated hour: its local time would not say when.
            pickup, back = (max(instants(zone, one)) for one in (pickup, back))
            if back >= last:
                break
            customer = previous if extends else r.randrange(self.customers)
            drive = {"customer": customer, "pickup": pickup, "back": back, "vehicle": vehicle["index"]}
            vehicle["drives"].append(drive)
            self.record(drive, extends)
            now, previous = back, customer
            if r.random() < 0.05:
                self.no_show(vehicle, pickup, back)
        self.record_last(vehicle, now + int(r.uniform(3, 60) * HOUR))

    def add(self, vehicle, customer, status, start, end, activated, completed):
        rental = {"vehicle": vehicle, "customer": customer, "status": status, "start": start, "end": end,
                  "activated": activated, "completed": completed, "number": len(self.rentals)}
        rental["first"] = self.mistakes(rental)
        self.rentals.append(rental)
        return rental

    def mistakes(self, rental):
        """What the fleet writes down first of some rentals, and corrects after the statements are imported."""
        r, first = self.changes, {}
        if r.random() > 0.12:
            return first
        kind = r.randrange(4)
        if kind == 0:
            first["customer"] = (rental["customer"] + 1 + r.randrange(self.customers - 1)) % self.customers
        elif kind == 1 and rental["start"]:
            first["activated"] = first["completed"] = None
            if rental["status"] == "COMPLETED" and rental["end"]:
                first["status"] = r.choice(["COMPLETED", "APPROVED", "ACTIVE"])
        elif kind == 2 and rental["start"] and rental["end"]:
            days = timedelta(days=r.choice([-2, -1, 1, 2]))
            first["start"], first["end"] = rental["start"] + days, rental["end"] + days
        elif rental["status"] in ("CANCELLED", "NEW"):
            first["status"] = "APPROVED"
        return first

    def record(self, drive, extends):
        """What the fleet writes down of a finished rental. A time that is not recorded was on its planned day."""
        r, zone = self.random, self.zone
        start, end = day_of(zone, drive["pickup"]), day_of(zone, drive["back"])
        knows_pickup, knows_back = r.random() < 0.6, r.random() < 0.6
        style = r.random()
        if style < 0.06 and not extends:
            start, knows_pickup = start + timedelta(days=r.choice([-1, 1])), True
        if 0.04 < style < 0.14:
            end, knows_back = end + timedelta(days=r.choice([-2, -1, 1])), True
        if end < start:
            start, end = day_of(zone, drive["pickup"]), day_of(zone, drive["back"])
        status = "COMPLETED"
        if style > 0.97:
            start = end = None
            knows_pickup = knows_back = True
        elif style > 0.95:
            # Nobody marked it as given back.
            status, knows_pickup, knows_back = "ACTIVE", True, False
        elif style > 0.94:
            status, knows_pickup = "APPROVED", True
        forgotten = self.moves.random()
        if forgotten < 0.05 and status == "COMPLETED" and start and not extends:
            status, start, end, knows_pickup, knows_back = self.forgotten(drive, int(forgotten * 100))
        drive["rental"] = self.add(
            drive["vehicle"], drive["customer"], status, start, end,
            drive["pickup"] if knows_pickup else None,
            drive["back"] if knows_back and status != "ACTIVE" else None,
        )["number"]

    def forgotten(self, drive, kind):
        """What is recorded of a rental that nobody marked as it went: status, days, whether pickup and return are known."""
        r, (start, end) = self.moves, (day_of(self.zone, drive[name]) for name in ("pickup", "back"))
        knows = r.random() < 0.5
        if kind == 0:
            # It came back early, and somebody cancelled it then.
            return "CANCELLED", start, end + timedelta(days=r.randrange(4)), True, False
        if kind == 1:
            return "APPROVED", start, end, False, False
        if kind == 2:
            return "ACTIVE", start, None, knows, False
        if kind == 3:
            # Its planned days were over before the pickup.
            return "ACTIVE", start - timedelta(days=3), start - timedelta(days=1), True, False
        return "ACTIVE", start, max(start, end - timedelta(days=r.randrange(3))), knows, False

    def no_show(self, vehicle, pickup, back):
        """A booking that never took place, on days when somebody else had the vehicle."""
        r, zone = self.random, self.zone
        start = day_of(zone, r.randrange(pickup, back))
        status = r.choice(["APPROVED", "CANCELLED", "NEW", "CANCELLED"])
        end = start + timedelta(days=r.randrange(4))
        self.add(vehicle["index"], r.randrange(self.customers), status, start, end, None, None)

    def record_last(self, vehicle, pickup):
        """The rental that is still going on: with dates, or without."""
        r, zone = self.random, self.zone
        if r.random() < 0.4:
            return
        drive = {"customer": r.randrange(self.customers), "pickup": pickup, "back": stamp(zone, END, 24 * 30),
                 "vehicle": vehicle["index"]}
        vehicle["drives"].append(drive)
        dated, known = r.random() < 0.5, r.random() < 0.8
        start = day_of(zone, pickup) if dated or not known else None
        end = END + timedelta(days=20) if dated else None
        drive["rental"] = self.add(
            vehicle["index"], drive["customer"], "ACTIVE", start, end, pickup if known else None, None
        )["number"]

    def driver(self, vehicle, at):
        """The customer who really had the vehicle; `None` for the fleet itself. In the second of a return, the one who gave it back."""
        for drive in vehicle["drives"]:
            if drive["pickup"] <= at <= drive["back"]:
                return drive["customer"]
        return None

    def of_vehicle(self, index):
        """The rentals of a vehicle. A swap is a recorded return of the one vehicle and a recorded pickup of the other one."""
        found = []
        for one in self.rentals:
            swap = one.get("swap")
            if one["vehicle"] == index:
                found.append({**one, "completed": swap["at"], "status": "COMPLETED"} if swap else one)
            elif swap and swap["to"] == index:
                found.append({**one, "activated": swap["at"], "start": day_of(self.zone, swap["at"])})
        return found
