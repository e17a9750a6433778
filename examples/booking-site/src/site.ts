/** The pages of the site. All of them are made here, on the server; the API key never leaves it, and no page has a script. */

import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { ApiError, ConflictError, verifyWebhook, WebhookVerificationError, type RentalClient } from "@rental-platform/client";
import type { Confirmations } from "./confirmations.js";
import * as pages from "./pages.js";
import { parseBooking, parseStay } from "./parse.js";

export interface Site {
  rental: RentalClient;
  secret: string;
  confirmations: Confirmations;
  /** Name of the rental company. */
  name: string;
}

const STYLE = readFileSync(new URL("../../public/style.css", import.meta.url));
const LARGEST_FORM = 16 * 1024;
const LARGEST_EVENT = 1024 * 1024;
const MOST_OFFERS = 30;

const SECURITY = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
};

/** A refusal with a status and a text for the visitor. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export function site(of: Site): Server {
  return createServer((request, response) => {
    answer(of, request, response).catch((error: unknown) => {
      const [status, text] = refusal(error);
      if (status >= 500) console.error(error);
      if (response.headersSent) response.destroy();
      else html(response, pages.problem(of.name, text), status);
    });
  });
}

function refusal(error: unknown): [number, string] {
  if (error instanceof Refusal) return [error.status, error.message];
  if (error instanceof ApiError && error.status < 500 && error.errors.length > 0) {
    return [400, error.errors.map((one) => one.message).join(" ")];
  }
  return [503, "We cannot reach our booking system. Nothing was booked. Please try again in a minute."];
}

async function answer(of: Site, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const target = `http://site${request.url ?? "/"}`;
  if (!URL.canParse(target)) throw new Refusal(400, "There is no such page.");
  const url = new URL(target);
  const route = `${request.method} ${url.pathname}`;
  if (route === "GET /style.css") {
    response.writeHead(200, { ...SECURITY, "Content-Type": "text/css", "Cache-Control": "max-age=3600" }).end(STYLE);
  } else if (route === "GET /") html(response, await search(of, url.searchParams));
  else if (route === "GET /book") html(response, await form(of, url.searchParams));
  else if (route === "POST /book") await book(of, request, response);
  else if (route === "POST /webhooks") await webhook(of, request, response);
  else if (route.startsWith("GET /booking/")) html(response, await booking(of, url.pathname.slice("/booking/".length)));
  else throw new Refusal(404, "There is no such page.");
}

function html(response: ServerResponse, page: string, status = 200): void {
  response.writeHead(status, { ...SECURITY, "Content-Type": "text/html; charset=utf-8" }).end(page);
}

async function body(request: IncomingMessage, most: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > most) throw new Refusal(413, "This is too long.");
    parts.push(part);
  }
  return Buffer.concat(parts);
}

async function search(of: Site, query: URLSearchParams): Promise<string> {
  if (!query.has("from")) return pages.search(of.name);
  const stay = parseStay(query);
  if (typeof stay === "string") return pages.search(of.name, { query, problem: stay });
  const offers = await of.rental.vehicles.available({ from: stay.from, to: stay.to }).toArray(MOST_OFFERS);
  return pages.search(of.name, { query, stay, offers });
}

async function form(of: Site, query: URLSearchParams): Promise<string> {
  const stay = parseStay(query);
  if (typeof stay === "string") throw new Refusal(400, stay);
  const offers = of.rental.vehicles.available({ from: stay.from, to: stay.to, vehicle: query.get("vehicle") ?? "" });
  const [vehicle] = await offers.toArray(1);
  if (!vehicle) throw new Refusal(409, "This car is not free on these days any more. Please choose another one.");
  return pages.form(of.name, vehicle, stay);
}

/** Books for a visitor. The code of the form is the idempotency key, so a double click books once. */
async function book(of: Site, request: IncomingMessage, response: ServerResponse): Promise<void> {
  // The browser says which page sent the form. `Referrer-Policy: no-referrer` makes it `null` for pages of our own.
  const origin = request.headers.origin ?? "null";
  if (origin !== "null" && !(URL.canParse(origin) && new URL(origin).host === request.headers.host)) {
    throw new Refusal(403, "This form belongs to another site.");
  }
  const wanted = parseBooking(new URLSearchParams((await body(request, LARGEST_FORM)).toString("utf8")));
  if (typeof wanted === "string") throw new Refusal(400, wanted);
  const [known] = await of.rental.customers.list({ email: wanted.email }).toArray(1);
  const customer =
    known ??
    (await of.rental.customers.create(
      { full_name: wanted.name, email: wanted.email },
      { idempotencyKey: `customer-${wanted.code}` },
    ));
  try {
    await of.rental.rentals.create(
      {
        booking_id: wanted.code,
        vehicle_id: wanted.vehicle,
        customer_id: customer.id,
        start_date: wanted.from,
        end_date: wanted.to,
        status: "APPROVED",
      },
      { idempotencyKey: wanted.code },
    );
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error;
    throw new Refusal(409, "Somebody else has just booked this car. Nothing was booked. Please choose another one.");
  }
  response.writeHead(303, { ...SECURITY, Location: `/booking/${wanted.code}` }).end();
}

/** Confirms what the webhook says, not what the form said: a person may have changed or cancelled the booking. */
async function booking(of: Site, code: string): Promise<string> {
  const [rental] = /^[0-9a-f]{32}$/.test(code) ? await of.rental.rentals.list({ booking_id: code }).toArray(1) : [];
  if (!rental?.vehicle_id) throw new Refusal(404, "There is no such booking.");
  const vehicle = await of.rental.vehicles.get(rental.vehicle_id);
  return pages.booking(of.name, vehicle, rental, of.confirmations.status(code));
}

async function webhook(of: Site, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const raw = await body(request, LARGEST_EVENT);
  try {
    of.confirmations.take(verifyWebhook(raw, request.headers["service-signature"], [of.secret]));
    response.writeHead(204).end();
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    response.writeHead(400).end();
  }
}
