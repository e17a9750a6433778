"""Prints the first day and the day of return of each occurrence in an iCalendar file, as JSON: what `icalendar` and
`recurring_ical_events` read in it. The arguments are the file, the time zone, and the first and the last day of the window."""

import json
import sys
from datetime import date, datetime
from zoneinfo import ZoneInfo

try:
    import recurring_ical_events
    from icalendar import Calendar
except ImportError:
    sys.exit(77)

file, zone, first, last = sys.argv[1:]
with open(file, "rb") as opened:
    calendar = Calendar.from_ical(opened.read())


def day(value):
    if isinstance(value, datetime):
        return value.astimezone(ZoneInfo(zone)).date().isoformat()
    return value.isoformat()


found = set()
between = recurring_ical_events.of(calendar).between(date.fromisoformat(first), date.fromisoformat(last))
for event in between:
    if event.get("STATUS") != "CANCELLED" and event.get("TRANSP") != "TRANSPARENT":
        found.add((day(event.start), day(event.end)))
print(json.dumps(sorted(found)))
