"""Parking and camera violations of a simulated fleet, in New York's open-data layout."""

from datetime import datetime

from oracle import instants
from statements import HEADERS, Statement, spelling

HEADERS["nyc-open-data"] = (
    "plate,state,license_type,summons_number,issue_date,violation_time,violation,judgment_entry_date,fine_amount,"
    "penalty_amount,interest_amount,reduction_amount,payment_amount,amount_due,precinct,county,issuing_agency,"
    "violation_status,summons_image"
)
KINDS = [("NO PARKING-DAY/TIME LIMITS", True), ("PHTO SCHOOL ZN SPEED VIOLATION", False), ("INSP. STICKER-EXPIRED", True),
         ("FAILURE TO STOP AT RED LIGHT", False)]


def make_violations(fleet, count):
    r, zone, made = fleet.random, fleet.zone, []
    while len(made) < count:
        vehicle = r.choice(fleet.vehicles)
        if not vehicle["drives"]:
            continue
        drive = r.choice(vehicle["drives"])
        text, parking = r.choice(KINDS)
        after = r.random()
        if after < 0.1 and parking:
            at = drive["back"] + r.randrange(20 * 3600)
        else:
            at = r.randrange(drive["pickup"], max(min(drive["back"], drive["pickup"] + 40 * 86400), drive["pickup"] + 1))
        at -= at % 60
        made.append({
            "vehicle": vehicle, "shown": fleet.shown(vehicle, at), "at": at, "told": min(instants(zone, at)), "zone": zone, "text": text, "parking": parking, "mode": "plate",
            "cents": r.choice([5000, 6500, 11500]), "number": f"{4 + fleet.number}{len(made):09}", "day_only": False,
            "kind": "nyc-open-data",
        })
    return made


def violation_file(violations, fleet):
    r, zone = fleet.random, fleet.zone
    file = Statement("nyc-open-data", fleet.zone_name)
    for one in violations:
        local = datetime.fromtimestamp(one["at"], zone)
        state = spelling(r, one["vehicle"]["state"])
        clock = local.strftime("%I:%M") + local.strftime("%p")[0]
        fine, penalty = one["cents"] // 100, r.choice([0, 10, 25])
        due = r.choice([str(fine + penalty), ""])
        line = (f"{one['shown']['plate']},{state},PAS,{one['number']},{local.strftime('%m/%d/%Y')},{clock},"
                f"{one['text']},,{fine},{penalty},0,0,0,{due},108,Q,TRAFFIC,,")
        one["cents"] = (fine + penalty) * 100
        file.add(line, "created", one["cents"])
    return file
