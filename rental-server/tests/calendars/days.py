"""Prints the entries of an iCalendar file as JSON, one a line: what the package `icalendar` reads in it."""

import json
import sys

try:
    from icalendar import Calendar
except ImportError:
    sys.exit(77)

with open(sys.argv[1], "rb") as file:
    calendar = Calendar.from_ical(file.read())
if calendar.errors:
    sys.exit(str(calendar.errors))
for event in calendar.walk("VEVENT"):
    if event.errors:
        sys.exit(str(event.errors))
    start, end = event.decoded("DTSTART"), event.decoded("DTEND")
    row = {
        "uid": str(event["UID"]),
        "start": start.isoformat(),
        "end": end.isoformat(),
        "summary": str(event["SUMMARY"]),
        "changed": event.decoded("DTSTAMP").strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    print(json.dumps(row))
print(json.dumps({"name": str(calendar["NAME"])}))
