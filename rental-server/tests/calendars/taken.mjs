// Prints the first day and the day of return of each occurrence in an iCalendar file, as JSON: what `ical.js` reads in it. The
// arguments are the file, the time zone, and the first and the last day of the window.

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

const [file, timeZone, first, last] = process.argv.slice(2);
const calendar = new ICAL.Component(ICAL.parse(readFileSync(file, "utf8")));
for (const zone of calendar.getAllSubcomponents("vtimezone")) {
  ICAL.TimezoneService.register(zone);
}
const written = new Intl.DateTimeFormat("en-CA", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" });
const day = (time) => (time.isDate ? time.toString() : written.format(time.toJSDate()));
const found = new Set();
const add = (item, start, end) => {
  const component = item.component;
  const taken =
    component.getFirstPropertyValue("status") !== "CANCELLED" && component.getFirstPropertyValue("transp") !== "TRANSPARENT";
  const days = [day(start), day(end)];
  if (taken && days[1] > first && days[0] < last) {
    found.add(JSON.stringify(days));
  }
};
const components = calendar.getAllSubcomponents("vevent");
const changes = components.filter((component) => component.hasProperty("recurrence-id"));
const uid = (component) => component.getFirstPropertyValue("uid");
for (const component of components.filter((component) => !changes.includes(component))) {
  const exceptions = changes.filter((change) => uid(change) === uid(component));
  const event = new ICAL.Event(component, { exceptions });
  if (!event.isRecurring()) {
    add(event, event.startDate, event.endDate);
    continue;
  }
  const iterator = event.iterator();
  for (let next = iterator.next(); next && next.toString() < last; next = iterator.next()) {
    const { item, startDate, endDate } = event.getOccurrenceDetails(next);
    add(item, startDate, endDate);
  }
}
console.log(`[${[...found].sort().join(",")}]`);
