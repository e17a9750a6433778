/** What visitors type. A value that is returned is good; a text is what is wrong with it. */

export interface Stay {
  from: string;
  to: string;
  nights: number;
}

export interface Booking extends Stay {
  vehicle: string;
  name: string;
  email: string;
  code: string;
}

const DAY = 24 * 60 * 60 * 1000;
const MOST_NIGHTS = 60;

export function parseStay(query: URLSearchParams): Stay | string {
  const [from, to] = [query.get("from") ?? "", query.get("to") ?? ""];
  const [first, last] = [day(from), day(to)];
  if (first === undefined || last === undefined) return "Please give both days.";
  const nights = (last - first) / DAY;
  if (first < Date.now() - DAY) return "The pickup is in the past.";
  if (nights < 1) return "The return must be after the pickup.";
  if (nights > MOST_NIGHTS) return `Please call us for more than ${MOST_NIGHTS} nights.`;
  return { from, to, nights };
}

function day(text: string): number | undefined {
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : NaN;
  return Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== text ? undefined : time;
}

export function parseBooking(form: URLSearchParams): Booking | string {
  const stay = parseStay(form);
  if (typeof stay === "string") return stay;
  const [vehicle, code] = [form.get("vehicle") ?? "", form.get("code") ?? ""];
  const [name, email] = [(form.get("name") ?? "").trim(), (form.get("email") ?? "").trim()];
  if (!vehicle || !/^[0-9a-f]{32}$/.test(code)) return "Please begin with the search.";
  if (!name || name.length > 255) return "Please give your name.";
  if (!/^\S+@\S+$/.test(email) || email.length > 254) return "Please give an email address.";
  return { ...stay, vehicle, name, email, code };
}
