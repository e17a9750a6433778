/** The HTML of the pages. Every value from outside passes through `html`, which escapes it. */

import { randomBytes } from "node:crypto";
import type { Stay } from "./parse.js";

interface Vehicle {
  id: string;
  name: string;
  make?: string | null;
  model?: string | null;
  year?: number | null;
  seats?: number | null;
  daily_rate?: number | null;
  currency: string;
}

interface Rental {
  start_date: string | null;
  end_date: string | null;
  status: string;
  final_price: number | null;
  currency: string;
}

/** Markup that is safe already. */
class Markup {
  constructor(readonly text: string) {}
}

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function html(parts: TemplateStringsArray, ...values: (string | number | Markup | Markup[])[]): Markup {
  const shown = values.map((value) => {
    if (value instanceof Markup) return value.text;
    if (Array.isArray(value)) return value.map((one) => one.text).join("");
    return String(value).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? "");
  });
  return new Markup(parts.reduce((text, part, index) => text + (shown[index - 1] ?? "") + part));
}

const NOTHING = new Markup("");

function page(company: string, title: string, content: Markup, head = NOTHING): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · ${company}</title>
        <link rel="stylesheet" href="/style.css" />
        ${head}
      </head>
      <body>
        <header><a href="/">${company}</a></header>
        <main>
          <h1>${title}</h1>
          ${content}
        </main>
        <footer>Prices include all nights. Tolls and fines during the rental are billed afterwards.</footer>
      </body>
    </html>`.text.replace(/\n\s+/g, "\n");
}

function money(amount: number, currency: string): string {
  return new Intl.NumberFormat("en-US", { style: "currency", currency }).format(amount);
}

/** Nights times the daily rate, in cents, so that no rounding takes part. */
function price(vehicle: Vehicle, stay: Stay): string {
  if (vehicle.daily_rate == null) return "price on request";
  return money((Math.round(vehicle.daily_rate * 100) * stay.nights) / 100, vehicle.currency);
}

function nights(stay: Stay): string {
  return stay.nights === 1 ? "1 night" : `${stay.nights} nights`;
}

function details(vehicle: Vehicle): string {
  return [vehicle.year, vehicle.make, vehicle.model].filter((one) => one != null).join(" ");
}

export interface Found {
  query: URLSearchParams;
  problem?: string;
  stay?: Stay;
  offers?: Vehicle[];
}

export function search(company: string, found?: Found): string {
  const [from, to] = [found?.query.get("from") ?? "", found?.query.get("to") ?? ""];
  const offers = found?.offers ?? [];
  return page(
    company,
    "Find a car",
    html`<form class="search" action="/" method="get">
        <label>Pickup <input type="date" name="from" value="${from}" required /></label>
        <label>Return <input type="date" name="to" value="${to}" required /></label>
        <button>Search</button>
      </form>
      ${found?.problem ? html`<p class="problem" role="alert">${found.problem}</p>` : NOTHING}
      ${found?.stay && offers.length === 0 ? html`<p>No car is free on all of these nights.</p>` : NOTHING}
      <ul class="offers">
        ${found?.stay ? offers.map((one) => offer(one, found.stay!)) : NOTHING}
      </ul>`,
  );
}

function offer(vehicle: Vehicle, stay: Stay): Markup {
  const link = `/book?${new URLSearchParams({ vehicle: vehicle.id, from: stay.from, to: stay.to })}`;
  return html`<li>
    <h2>${vehicle.name}</h2>
    <p>${details(vehicle)}</p>
    <p class="price"><strong>${price(vehicle, stay)}</strong> for ${nights(stay)}</p>
    <a class="button" href="${link}" aria-label="Book ${vehicle.name}">Book</a>
  </li>`;
}

export function form(company: string, vehicle: Vehicle, stay: Stay): string {
  return page(
    company,
    vehicle.name,
    html`<p>${stay.from} to ${stay.to}: <strong>${price(vehicle, stay)}</strong> for ${nights(stay)}</p>
      <form class="book" action="/book" method="post">
        <input type="hidden" name="vehicle" value="${vehicle.id}" />
        <input type="hidden" name="from" value="${stay.from}" />
        <input type="hidden" name="to" value="${stay.to}" />
        <input type="hidden" name="code" value="${randomBytes(16).toString("hex")}" />
        <label>Name <input name="name" autocomplete="name" maxlength="255" required /></label>
        <label>Email <input type="email" name="email" autocomplete="email" maxlength="254" required /></label>
        <button>Book now</button>
      </form>`,
  );
}

const WORDS: Record<string, [string, string]> = {
  APPROVED: ["Your booking is confirmed", "We look forward to seeing you."],
  ACTIVE: ["Have a good trip", "You have the car."],
  COMPLETED: ["Thank you", "The car is back with us."],
  CANCELLED: ["Your booking is cancelled", "Nothing will be billed for it."],
};

/** `told` is what a webhook said; without it the page looks again every two seconds. */
export function booking(company: string, vehicle: Vehicle, rental: Rental, told: string | undefined): string {
  const [title, text] = WORDS[told ?? ""] ?? ["We are confirming your booking", "This takes a few seconds."];
  const again = told === undefined ? html`<meta http-equiv="refresh" content="2" />` : NOTHING;
  return page(
    company,
    title,
    html`<p role="status">${text}</p>
      <dl>
        <dt>Car</dt>
        <dd>${vehicle.name}</dd>
        <dt>Pickup</dt>
        <dd>${rental.start_date ?? ""}</dd>
        <dt>Return</dt>
        <dd>${rental.end_date ?? ""}</dd>
        <dt>Price</dt>
        <dd>${rental.final_price == null ? "on request" : money(rental.final_price, rental.currency)}</dd>
      </dl>
      <p class="small">Keep the address of this page: it always shows your booking.</p>`,
    again,
  );
}

export function problem(company: string, text: string): string {
  return page(
    company,
    "This did not work",
    html`<p class="problem" role="alert">${text}</p>
      <a class="button" href="/">Back to the search</a>`,
  );
}
