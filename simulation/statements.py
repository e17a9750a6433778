"""Statements of the simulated agencies, and what an import must say about each row."""

from datetime import datetime, timezone

from zoneinfo import ZoneInfo

from oracle import day_of, instants

NAMES = {"NY": "New York", "NJ": "New Jersey", "PA": "Pennsylvania", "FL": "Florida", "CT": "Connecticut", "ON": "Ontario"}
FORMATS = ["generic", "generic-local", "ezpass-ny", "ezpass-ny-fleet", "ezpass-nj", "ezpass-nj-18", "ezpass-pa", "sunpass"]
# Formats of agencies whose clocks are not where the fleet is.
ELSEWHERE = {"sunpass", "ezpass-nj-18"}
NUMBERED = {"generic", "generic-local", "ezpass-ny", "ezpass-ny-fleet", "sunpass"}
HEADERS = {
    "generic": "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount",
    "ezpass-ny": '"Lane Txn ID","Tag/Plate #","Agency","Entry Plaza","Exit Plaza","Class","Date","Exit Time","Amount"',
    "ezpass-ny-fleet": "Lane Txn ID,Tag/Plate #,Posted Date,Agency,Entry Plaza,Exit Plaza,Class,Date,Time,Amount,Post Txn Balance",
    "ezpass-nj": "POSTING DATE,TRANSACTION DATE,TAG/PLATE NUMBER,AGENCY,DESCRIPTION,ENTRY TIME,ENTRY PLAZA,ENTRY LANE,EXIT TIME,EXIT PLAZA,EXIT LANE,VEHICLE TYPE CODE,AMOUNT",
    "ezpass-nj-18": "POSTING DATE,TRANSACTION DATE,TAG/PLATE NUMBER,AGENCY,DESCRIPTION,ENTRY TIME,ENTRY PLAZA,ENTRY LANE,EXIT TIME,EXIT PLAZA,EXIT LANE,VEHICLE TYPE CODE,AMOUNT,PLAZA ID",
    "ezpass-pa": "Posting Date,Transaction,Transponder,License State,Entry Date,Entry Interchange,Exit Date,Exit Interchange,Class,Amount",
    "sunpass": "POSTED DATE,TRANSACTION DATE,TRANSACTION TIME,TRANSACTION NUMBER,TRANSPONDER/LICENSE PLATE,AGENCY NAME,LANE,AXLE,DESCRIPTION / PLAZA NAME,DEBIT(-),CREDIT(+),BALANCE",
}
HEADERS["generic-local"] = HEADERS["generic"]


def zone_name(fleet, kind):
    """Where the clocks are that a format shows."""
    return fleet.other_zone_name if kind in ELSEWHERE else fleet.zone_name


def money(cents):
    return f"{cents // 100}.{cents % 100:02}"


def amount_in(kind, cents, credit):
    """An amount as the format prints it; a credit has the other sign."""
    if kind in ("generic", "generic-local", "ezpass-pa", "ezpass-nj-18"):
        return ("-$" if credit else "$") + money(cents) if kind != "generic" else ("-" if credit else "") + money(cents)
    if kind == "ezpass-ny":
        return f"${'' if credit else '-'}{money(cents)}"
    return f"${money(cents)}" if credit else f"(${money(cents)})"


SPELLED_OUT = False


def spelling(random, state):
    """A state as agencies write it."""
    forms = [state, state, state.lower(), f"{'CA' if state == 'ON' else 'US'}-{state}"]
    return random.choice(forms + [NAMES[state]] if SPELLED_OUT else forms)


def identifiers(random, vehicle, mode):
    """Plate, state and tag of a row. `mode` is `tag`, `plate`, `both` or `bare`: a plate without its state."""
    tag, plate, state = vehicle["tag"], vehicle["plate"], vehicle["state"]
    if mode == "tag" or (mode == "both" and random.random() < 0.5):
        tag = random.choice([tag, f"{tag[:3]} {tag[3:]}", tag[3:], f'="{tag}"' if '"' not in tag else tag])
    spelled = spelling(random, state)
    shown = random.choice([plate, plate.lower(), f"{plate[:3]}-{plate[3:]}"])
    return (shown if mode != "tag" else "", "" if mode in ("tag", "bare") else spelled, tag if mode in ("tag", "both") else "")


def combined(random, vehicle, mode):
    """The value of a column for tags and plates."""
    tag, plate, state = vehicle["tag"], vehicle["plate"], vehicle["state"]
    if mode in ("tag", "both"):
        return random.choice([f" {tag}", tag, f"{tag[:3]} {tag[3:]}"])
    if mode == "bare":
        return plate
    return random.choice([f"{state} {plate}", f"{plate}-{state}", f"{plate} - {state}"])


def row(random, kind, zone, toll, cents, credit=False, number=None, price=None):
    """One line of a statement."""
    at, vehicle, mode = toll["at"], toll["shown"], toll["mode"]
    local = datetime.fromtimestamp(at, zone)
    number = toll["number"] if number is None else number
    price = amount_in(kind, cents, credit) if price is None else price
    us, clock = local.strftime("%m/%d/%Y"), local.strftime("%H:%M:%S")
    shown = "" if toll["day_only"] else random.choice([clock, local.strftime("%I:%M:%S %p")])
    plaza, agency = toll["plaza"], toll["agency"]
    ident = toll["spelled"].setdefault(kind, combined(random, vehicle, mode)) if not kind.startswith("generic") else None
    if kind == "generic":
        when = random.choice([local.isoformat(), datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")])
        return ",".join([number, when, agency, plaza, *_quoted(identifiers(random, vehicle, mode)), price])
    if kind == "generic-local":
        when = local.strftime("%Y-%m-%d") + (f" {shown}" if shown else "")
        return ",".join([number, when, agency, plaza, *_quoted(identifiers(random, vehicle, mode)), price])
    if kind == "ezpass-ny":
        cells = [number, ident, agency, "-", plaza, "31", us, shown, price]
        return ",".join(f'"{cell}"' for cell in cells)
    if kind == "ezpass-ny-fleet":
        return ",".join([number, ident, us, agency, "-", plaza, "31", us, shown, price, "$1.00"])
    if kind.startswith("ezpass-nj"):
        rest = [us, us, ident, agency, "TOLL", "-", "-", "-", shown, plaza, "02X", "1", price]
        return ",".join(rest + (["77"] if kind.endswith("18") else []))
    if kind == "ezpass-pa":
        when = us + (f" {shown}" if shown else "")
        state = vehicle["state"] if mode == "plate" and random.random() < 0.5 else ""
        return ",".join([us, "TOLL CHARGE", ident, state, "", "", when, plaza, "2L", price])
    debit, paid = ("", f"${money(cents)}") if credit else (f"${money(cents)}", "")
    if price != amount_in(kind, cents, credit):
        debit = price
    return ",".join([us, us, shown, number, ident, agency, "03", "2", plaza, debit, paid, "$9.00"])


def _quoted(cells):
    return ['"' + cell.replace('"', '""') + '"' if '"' in cell else cell for cell in cells]


def payment(kind, cents):
    """Money that the fleet paid in. Generic files have no such rows."""
    if kind == "ezpass-ny":
        return f'"","","","-","-","-","09/09/2025","","${money(cents)}"'
    if kind == "ezpass-ny-fleet":
        return f",,09/09/2025,,-,-,-,09/09/2025,,${money(cents)},$1.00"
    if kind == "sunpass":
        return f"9/9/2025,9/9/2025,1:00:00 PM,,,,,,AUTO REPLENISHMENT,,${money(cents)},$9.00"
    return None


class Statement:
    """A file with the outcomes that its import must have: counts and sums in cents."""

    def __init__(self, kind, zone_name):
        self.kind, self.zone_name, self.lines = kind, zone_name, []
        self.counts = dict.fromkeys(["created", "updated", "duplicates", "skipped", "invalid"], 0)
        self.sums = dict(self.counts)

    def add(self, line, outcome, cents):
        self.lines.append(line)
        self.counts[outcome] += 1
        self.sums[outcome] += cents

    def again(self):
        """The same file after it was imported."""
        other = Statement(self.kind, self.zone_name)
        other.lines = self.lines
        other.counts = dict(self.counts, created=0, duplicates=self.counts["created"] + self.counts["duplicates"])
        other.sums = dict(self.sums, created=0, duplicates=self.sums["created"] + self.sums["duplicates"])
        return other

    def text(self):
        return "\n".join([HEADERS[self.kind], *self.lines]) + "\n"


def make_tolls(fleet, count):
    """The passages of a fleet: mostly of customers, some of its own staff."""
    r, tolls = fleet.random, []
    while len(tolls) < count:
        if tolls and (second := twin(fleet, tolls[-1], len(tolls))):
            tolls.append(second)
            continue
        vehicle = r.choice(fleet.vehicles)
        if not vehicle["drives"]:
            continue
        drive = r.choice(vehicle["drives"])
        edge = r.random()
        if edge < 0.12:
            at = drive["pickup"] + r.randrange(6 * 3600)
        elif edge < 0.24:
            at = drive["back"] - 1 - r.randrange(6 * 3600)
        elif edge < 0.27:
            at = drive["back"] + r.randrange(8 * 3600)
        elif edge < 0.28:
            # In the very second of a pickup or return.
            at = r.choice([drive["pickup"], drive["back"]])
        else:
            at = r.randrange(drive["pickup"], max(min(drive["back"], drive["pickup"] + 40 * 86400), drive["pickup"] + 1))
        modes = ["tag", "tag", "both", "plate", "plate", "bare"] if vehicle["tag"] else ["plate", "plate", "plate", "bare"]
        n = len(tolls)
        toll = {
            "vehicle": vehicle, "at": at, "mode": r.choice(modes), "cents": r.randrange(50, 2500),
            "plaza": f"P{r.randrange(40)}", "agency": r.choice(["MTAB&T", "NYSTA", "PANYNJ"]), "n": n,
            "number": f"{6 + fleet.number}{n:09}", "spelled": {}, "shown": fleet.shown(vehicle, at),
        }
        kind = r.choice(FORMATS)
        if kind == "ezpass-pa":
            toll["agency"] = "PA Turnpike"
        toll["kind"] = kind
        toll["day_only"] = kind not in ("generic", "ezpass-nj", "ezpass-nj-18") and r.random() < 0.03
        shown = ZoneInfo(zone_name(fleet, kind))
        if "moved" in vehicle and day_of(shown, at) == day_of(shown, vehicle["moved"]["at"]):
            toll["day_only"] = False
        # What a statement with local times can say: the earlier instant of the repeated hour. Times with an offset are exact.
        toll["zone"] = None if kind == "generic" else shown
        toll["told"] = at if kind == "generic" else min(instants(shown, at))
        tolls.append(toll)
    return tolls


def twin(fleet, toll, n):
    """The second posting of some passages: an agency read the tag, and for the same passage also the plate."""
    r = fleet.moves
    if toll["mode"] != "tag" or toll["day_only"] or toll["kind"] not in NUMBERED or toll["vehicle"]["index"] % 10 < 2 or r.random() > 0.03:
        return None
    later = r.randrange(5, 90)
    second = {**toll, "mode": "plate", "n": n, "number": f"{6 + fleet.number}{n:09}", "spelled": {}, "at": toll["at"] + later,
              "told": toll["told"] + later, "cents": toll["cents"] + r.randrange(300), "first": toll}
    second["shown"] = fleet.shown(toll["vehicle"], second["at"])
    return second


def make_statements(fleet, tolls, size):
    """Statements in the order of the agencies, a file of corrections at the end, and the final amount of each toll."""
    r = fleet.random
    by_kind = {}
    for toll in tolls:
        by_kind.setdefault(toll["kind"], []).append(toll)
    files, corrections = [], []
    for kind, members in by_kind.items():
        name = zone_name(fleet, kind)
        zone = ZoneInfo(name)
        for begin in range(0, len(members), size):
            part = members[begin : begin + size]
            file = Statement(kind, name)
            lines = []
            for toll in part:
                toll["final"] = toll["cents"]
                line = row(r, kind, zone, toll, toll["cents"])
                file.add(line, "created", toll["cents"])
                lines.append((toll, line))
            dirt(r, kind, zone, file, lines)
            files.append(file)
        if kind in NUMBERED:
            file = Statement(kind, name)
            for toll in r.sample(members, len(members) // 25):
                if r.random() < 0.6:
                    toll["final"] = r.randrange(50, 2500)
                    if toll["final"] == toll["cents"]:
                        continue
                    file.add(row(r, kind, zone, toll, toll["final"]), "updated", toll["final"])
                else:
                    back = r.randrange(1, toll["cents"] + 1)
                    toll["final"] -= back
                    file.add(row(r, kind, zone, toll, back, credit=True), "updated", -back)
            corrections.append(file)
    return files, corrections


def dirt(r, kind, zone, file, lines):
    """Rows that are lost, damaged or repeated."""
    for toll, line in r.sample(lines, max(1, len(lines) // 20)):
        file.add(line, "duplicates", toll["cents"])
    for _ in range(2):
        paid = payment(kind, 5000)
        if paid:
            file.add(paid, "skipped", -5000)
    if kind not in NUMBERED:
        return
    for lost in ["#N/A", "6.12312E10", "########", "N/A"]:
        toll, _ = r.choice(lines)
        if kind != "generic" or lost:
            file.add(row(r, kind, zone, dict(toll, spelled={}), 777, number=lost), "invalid", 777)
    toll, _ = r.choice(lines)
    file.add(row(r, kind, zone, toll, 100, number=toll["number"] + "9", price="€6.94"), "invalid", 0)
    # The number of a passage, but another time.
    other = dict(toll, at=toll["at"] + 7 * 86400, spelled={})
    file.add(row(r, kind, zone, other, 321), "invalid", 321)
    file.add(row(r, kind, zone, toll, toll["cents"], number=f"'{toll['number']}.0"), "duplicates", toll["cents"])
