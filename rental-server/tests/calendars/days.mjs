// Prints the entries of an iCalendar file as JSON, one a line: what the package `ical.js` reads in it.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

let ICAL;
try {
  // Found by NODE_PATH, which imports do not follow.
  const loaded = createRequire(import.meta.url)("ical.js");
  ICAL = loaded.default ?? loaded;
} catch {
  process.exit(77);
}

const calendar = new ICAL.Component(ICAL.parse(readFileSync(process.argv[2], "utf8")));
for (const component of calendar.getAllSubcomponents("vevent")) {
  const event = new ICAL.Event(component, { strictExceptions: true });
  const changed = component.getFirstPropertyValue("dtstamp").toString();
  const [start, end] = [event.startDate, event.endDate].map((time) => time.toString());
  console.log(JSON.stringify({ uid: event.uid, start, end, summary: event.summary, changed }));
}
console.log(JSON.stringify({ name: calendar.getFirstPropertyValue("name") }));
