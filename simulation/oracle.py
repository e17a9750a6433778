"""Which customers can have had a vehicle: possible worlds of what is recorded.

A world gives each rental one pickup and one return. Recorded times are true. A planned day means some time on that day. No two
rentals have the vehicle at once. This file knows nothing about the product's code; it follows docs/attribution.md.
"""

from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

FIRST, LAST = -(10**12), 10**12


def midnight(zone, day):
    """The first second of a local day. A day whose midnight is skipped begins at the end of the gap."""
    local = datetime(day.year, day.month, day.day, tzinfo=zone)
    return int(local.timestamp())


def day_of(zone, at):
    return datetime.fromtimestamp(at, zone).date()


def instants(zone, at):
    """Both instants at which clocks showed the time of this one."""
    local = datetime.fromtimestamp(at, zone).replace(tzinfo=None)
    return sorted({int(local.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1)})


class Window:
    """The recorded facts of one rental as ranges of its pickup and return."""

    def __init__(self, rental, zone):
        self.rental, self.customer = rental, rental["customer"]
        start, end = rental["start"], rental["end"]
        up, back, status = rental["activated"], rental["completed"], rental["status"]
        self.last_day = midnight(zone, end) if end else None
        self.exists = status in ("ACTIVE", "COMPLETED") or (status == "APPROVED" and (up or back) is not None)
        self.doubtful = (status == "APPROVED" and not self.exists and start is not None) or (
            status == "CANCELLED" and up is not None
        )
        self.known_up, self.known_back = up is not None, back is not None
        self.plan_from = midnight(zone, start) if start else None
        self.plan_to = midnight(zone, end + timedelta(days=1)) if end else None
        if up is not None:
            self.p1 = self.p2 = up
        elif start is not None:
            self.p1, self.p2 = self.plan_from, self.plan_to_of(zone, start) - 1
        else:
            self.p1, self.p2 = FIRST, back if back is not None else LAST
        end_counts = end is not None and self.p1 < self.plan_to
        # The status says that the vehicle is out, but the planned return is over: it may have come back since.
        self.overdue_from = None
        if back is not None:
            self.b1 = self.b2 = back
        elif status == "COMPLETED" or self.doubtful:
            self.b1, self.b2 = (self.last_day, self.plan_to - 1) if end_counts else (self.p1, LAST)
            if status == "CANCELLED":
                self.b1 = self.p1
            if not end_counts:
                self.overdue_from = self.p1
        else:
            # Still out. A plan that was over before the pickup leaves the day of the pickup.
            late = lambda: midnight(zone, day_of(zone, self.p1) + timedelta(days=1))
            self.b1 = self.plan_to if end_counts else (LAST if end is None else late())
            self.b2 = LAST
            if end is not None:
                self.overdue_from = self.b1
        self.is_out = self.exists and back is None and status != "COMPLETED"
        self.b1, self.p2 = max(self.b1, self.p1), min(self.p2, self.b2)

    def follow(self, windows):
        """A rental that is still out can have ended where the plan of another one begins: on the planned day of the return, and at any
        time when none is planned."""
        if not self.is_out or self.rental["start"] is None and not self.known_up:
            return
        for other in windows:
            can_begin_later = self.p1 < other.p2 + 1 and self.p2 < other.b2
            if other is self or other.plan_from is None or not (self.p2 < other.p1 or can_begin_later):
                continue
            if self.last_day is None:
                begin = max(other.p1, self.p1)
                self.b1 = min(self.b1, begin)
                self.overdue_from = begin if self.overdue_from is None else min(self.overdue_from, begin)
            elif self.last_day <= other.p1 and not other.known_up:
                self.b1 = min(self.b1, max(other.p1, self.p1))

    @staticmethod
    def plan_to_of(zone, day):
        return midnight(zone, day + timedelta(days=1))

    def contested(self, windows):
        """Whether two rentals claim to be going on: this one without a recorded pickup, and an earlier one."""
        earlier = lambda other: other is not self and other.is_out and other.p1 <= self.p1
        return self.rental["status"] == "ACTIVE" and not self.known_up and any(map(earlier, windows))

    def item(self):
        return (self.p1, self.p2, self.b1, self.b2, self.doubtful)


class Vehicle:
    """The rentals of one vehicle, and the answers about it."""

    def __init__(self, rentals, zone):
        self.zone = zone
        windows = [Window(one, zone) for one in rentals]
        self.windows = [one for one in windows if one.exists or one.doubtful]
        for one in self.windows:
            one.follow(self.windows)
        self.tighten()

    def tighten(self):
        """Open windows end where another rental certainly had the vehicle."""
        sure = [one for one in self.windows if one.exists]
        for one in self.windows:
            for other in sure:
                if other is one:
                    continue
                core = (other.p2, max(other.b1, other.p2))
                if one.b2 == LAST and one.p2 <= core[0] and other.known_up and other.p1 >= one.p2:
                    one.b2 = min(one.b2, other.p2)
                    one.b1 = min(one.b1, one.b2)
                if one.p1 == FIRST and one.known_back and core[1] <= one.b1 and other is not one:
                    one.p1 = max(one.p1, min(core[1], one.b1))

    def near(self, begin, end):
        """The rentals that can matter between two instants: neighbours of neighbours, three steps far."""
        chosen = [one for one in self.windows if one.p1 <= end and begin <= one.b2]
        for _ in range(3):
            low = min([one.p1 for one in chosen if one.p1 > FIRST] + [begin])
            high = max([one.b2 for one in chosen if one.b2 < LAST] + [end])
            more = [one for one in self.windows if one.p1 <= high and low <= one.b2]
            if len(more) == len(chosen) or len(more) > 11:
                break
            chosen = more
        return chosen

    def holders(self, begin, end):
        """The rentals that can have had the vehicle at some time from `begin` until just before `end`; `end` is `begin` + 1
        for an instant. Also whether nobody can have had it at `begin`."""
        near = self.near(begin, end)
        items = [one.item() for one in near]
        if not feasible(items):
            # A rental that nobody marked as given back can have ended on the planned day of its return.
            days = {one: one.last_day or one.p1 for one in near if one.is_out}
            items = [(p1, p2, max(p1, days.get(one, b1)) if one in days else b1, b2, d)
                     for one, (p1, p2, b1, b2, d) in zip(near, items)]
        if not feasible(items):
            # Plans contradict what is recorded: a planned pickup can have been later.
            items = [(p1, p2 if one.known_up else max(p2, b2), b1, b2, d) for one, (p1, p2, b1, b2, d) in zip(near, items)]
            if not feasible(items):
                return None, None
        found = []
        for at, one in enumerate(near):
            p1, p2, b1, b2, _ = items[at]
            # A recorded return is at any time of its second.
            changed = (p1, min(p2, end - 1), max(b1, begin if one.known_back else begin + 1), b2, False)
            if changed[0] <= changed[1] and changed[2] <= changed[3] and feasible(items[:at] + [changed] + items[at + 1 :]):
                found.append(one)
        empty = feasible(items + [(begin, begin, begin + 1, begin + 1, False)])
        return found, empty

    def parked(self, at):
        """The rentals whose vehicle came back before, on that day or the day before: it may have been parked where it was
        ticketed. A recorded pickup since then rules them out."""
        found = []
        for one in self.windows:
            if one.rental["status"] != "COMPLETED":
                continue
            back = one.rental["completed"]
            day = day_of(self.zone, back) if back is not None else one.rental["end"]
            if day is None:
                continue
            begin = back if back is not None else midnight(self.zone, day + timedelta(days=1))
            # Somebody certainly took the vehicle since, at a recorded time or on a planned day that is over.
            first = midnight(self.zone, day)
            took = lambda other: other.known_up and one.b1 <= other.p1 <= at or other.exists and first <= other.p1 and other.p2 < at
            since = [other for other in self.windows if other is not one and took(other)]
            if begin <= at < midnight(self.zone, day + timedelta(days=2)) and not since:
                found.append(one)
        later = lambda one: [other for other in found if other is not one and (other.p1, other.b2) > (one.p1, one.b2)]
        return [one for one in found if not later(one)]


def feasible(items):
    """Whether an order exists in which all rentals that are not doubtful follow each other."""
    count = len(items)
    best = {0: FIRST}
    for chosen in range(1 << count):
        now = best.get(chosen)
        if now is None:
            continue
        for at, (p1, p2, b1, b2, doubtful) in enumerate(items):
            if chosen >> at & 1:
                continue
            pickup = max(p1, now)
            if pickup <= p2 and max(b1, pickup) <= b2:
                after = chosen | 1 << at
                back = max(b1, pickup)
                if back < best.get(after, LAST + 1):
                    best[after] = back
            if doubtful:
                after = chosen | 1 << at
                if now < best.get(after, LAST + 1):
                    best[after] = now
    return (1 << count) - 1 in best
