/** Every operation of `/v1`, against a real server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { NotFoundError, RentalClient, responseOf, VERSION } from "@rental-platform/client";
import { BASE, operationsOfTheDocument, operator } from "./support.js";

/** What was requested, as `GET /v1/vehicles/1`. */
const requested = new Set<string>();
const userAgents = new Set<string>();

const client = new RentalClient({
  userAgent: "tests/1.0",
  fetch: (input, init) => {
    requested.add(`${init?.method} ${new URL(String(input)).pathname}`);
    userAgents.add(new Headers(init?.headers).get("user-agent") ?? "");
    return fetch(input, init);
  },
});

const nights = { start_date: "2031-06-01", end_date: "2031-06-05" };

test("me", async () => {
  const me = await client.me();
  assert.equal(me.scope, "read_write");
  assert.equal(me.plan, "pro");
});

test("vehicles", async () => {
  const number = String(Date.now());
  const created = await client.vehicles.create({ name: "Red Corolla", plate: `TS ${number}`, daily_rate: 1234567.89 });
  assert.equal(created.daily_rate, 1234567.89);
  assert.equal(created.status, "available");
  assert.deepEqual(await client.vehicles.get(created.id), created);
  const changed = await client.vehicles.update(created.id, { status: "maintenance", make: null });
  assert.equal(changed.status, "maintenance");
  const found = await client.vehicles.list({ plate: `ts-${number}` }).toArray(10);
  assert.deepEqual(
    found.map((one) => one.id),
    [created.id],
  );
  const since = await client.vehicles.list({ "updated[gte]": changed.updated_at }).toArray(10);
  assert.ok(since.some((one) => one.id === created.id));
});

test("an unchanged object is not sent again, and a lost update is refused", async () => {
  const vehicle = await client.vehicles.create({ name: "Blue Corolla" });
  const { etag, requestId, replayed } = responseOf(vehicle);
  assert.ok(etag && requestId);
  assert.equal(replayed, false);
  assert.equal(await client.vehicles.getIfChanged(vehicle.id, etag), undefined);
  await client.vehicles.update(vehicle.id, { color: "Blue" }, { ifMatch: etag });
  const seen = await client.vehicles.getIfChanged(vehicle.id, etag);
  assert.equal(seen?.color, "Blue");
  await assert.rejects(client.vehicles.update(vehicle.id, { color: "Red" }, { ifMatch: etag }), {
    name: "PreconditionFailedError",
  });
});

test("customers", async () => {
  const email = `grace+${Date.now()}@example.com`;
  const created = await client.customers.create({ full_name: "Grace Hopper", email });
  assert.equal((await client.customers.get(created.id)).full_name, "Grace Hopper");
  assert.equal(
    (await client.customers.update(created.id, { preferred_language: "en-us" })).preferred_language,
    "en-US",
  );
  const [found] = await client.customers.list({ email }).toArray(1);
  assert.equal(found?.id, created.id);
});

test("rentals, availability and the calendar of a vehicle", async () => {
  const vehicle = await client.vehicles.create({ name: "White Tesla", daily_rate: 89.5 });
  const customer = await client.customers.create({ full_name: "Ada Lovelace" });
  const days = { from: nights.start_date, to: nights.end_date, vehicle: vehicle.id };
  assert.equal((await client.vehicles.available(days).toArray(10)).length, 1);
  const rental = await client.rentals.create({
    vehicle_id: vehicle.id,
    customer_id: customer.id,
    ...nights,
    status: "APPROVED",
  });
  assert.equal(rental.final_price, 358);
  assert.equal((await client.vehicles.available(days).toArray(10)).length, 0);
  const [held] = await client.vehicles
    .calendar(vehicle.id, { from: nights.start_date, to: nights.end_date })
    .toArray(10);
  assert.ok(held);
  assert.equal((await client.rentals.get(rental.id)).status, "APPROVED");
  assert.equal((await client.rentals.update(rental.id, { status: "ACTIVE" })).status, "ACTIVE");
  const own = await client.rentals.list({ vehicle: vehicle.id }).toArray(10);
  assert.deepEqual(
    own.map((one) => one.id),
    [rental.id],
  );
});

test("the calendar feed of a vehicle", async () => {
  const vehicle = await client.vehicles.create({ name: "White Tesla" });
  const { path } = await client.vehicles.createCalendarFeed(vehicle.id);
  const calendar = await fetch(BASE + path);
  assert.match(await calendar.text(), /^BEGIN:VCALENDAR/);
  assert.equal((await client.vehicles.calendarFeed(vehicle.id)).status, "active");
  assert.equal((await client.vehicles.deleteCalendarFeed(vehicle.id)).status, "revoked");
  assert.equal((await fetch(BASE + path)).status, 404);
});

test("blocks", async () => {
  const vehicle = await client.vehicles.create({ name: "Grey Camry" });
  const block = await client.blocks.create({ vehicle_id: vehicle.id, ...nights });
  assert.equal((await client.blocks.get(block.id)).status, "active");
  assert.equal((await client.blocks.update(block.id, { status: "cancelled" })).status, "cancelled");
  assert.equal((await client.blocks.list({ vehicle: vehicle.id }).toArray(10)).length, 1);
});

test("calendars of others", async () => {
  const vehicle = await client.vehicles.create({ name: "Blue Odyssey" });
  const url = "https://calendar.invalid/a.ics";
  const feed = await client.calendarFeeds.create({ vehicle_id: vehicle.id, url });
  assert.ok(!JSON.stringify(feed).includes("a.ics"), "the address is a secret");
  assert.equal((await client.calendarFeeds.poll(feed.id)).id, feed.id);
  assert.equal((await client.calendarFeeds.list({ vehicle: vehicle.id }).toArray(10)).length, 1);
  assert.equal((await client.calendarFeeds.get(feed.id)).vehicle_id, vehicle.id);
  assert.equal((await client.calendarFeeds.delete(feed.id)).id, feed.id);
  await assert.rejects(client.calendarFeeds.get(feed.id), NotFoundError);
});

test("invoices", async () => {
  const [first] = await client.invoices.list({ limit: 1 }).toArray(1);
  assert.ok(first);
  const invoice = await client.invoices.get(first.id);
  assert.equal(invoice.total, first.total);
  assert.ok(invoice.lines.length > 0 && invoice.lines.every((line) => line.amount >= 0));
});

test("credit notes", async () => {
  const rental = await client.rentals.list({ status: "COMPLETED" }).toArray(1);
  const customer = rental[0]?.customer_id ?? "";
  const { organization_id } = await client.me();
  const lines = [{ description: "Cleaning", amount: 25 }];
  const invoice = await operator("POST", `organizations/${organization_id}/invoices`, { customer_id: customer, lines });
  const invoice_id = invoice["id"] ?? "";
  await operator("POST", `organizations/${organization_id}/credit_notes`, { invoice_id });
  const [first] = await client.creditNotes.list({ invoice: invoice_id }).toArray(10);
  assert.ok(first);
  assert.equal((await client.creditNotes.get(first.id)).total, 25);
});

test("tolls", async () => {
  const customer = await client.customers.create({ full_name: "Katherine Johnson" });
  for await (const one of client.tolls.review({ limit: 1 })) {
    assert.equal(one.resource, "toll");
    break;
  }
  const [toll] = await client.tolls.list({ billed: false }).toArray(1);
  assert.ok(toll);
  assert.equal((await client.tolls.update(toll.id, { customer_id: customer.id })).customer_id, customer.id);
  assert.equal((await client.tolls.get(toll.id)).attribution, "manual");
});

test("violations", async () => {
  const customer = await client.customers.create({ full_name: "Dorothy Vaughan" });
  const looked = await client.violations.review().toArray(3);
  assert.ok(looked.every((one) => one.resource === "violation"));
  const [violation] = await client.violations.list({ billed: false }).toArray(1);
  assert.ok(violation);
  assert.equal((await client.violations.update(violation.id, { customer_id: customer.id })).customer_id, customer.id);
  assert.equal((await client.violations.get(violation.id)).attribution, "manual");
});

test("leads", async () => {
  const lead = await client.leads.create({ raw_data: { message: "Need an SUV in June", seats: 7 } });
  assert.deepEqual(lead.raw_data, { message: "Need an SUV in June", seats: 7 });
});

test("events", async () => {
  const [event] = await client.events.list({ type: "customer.created" }).toArray(1);
  assert.ok(event);
  assert.deepEqual(await client.events.get(event.id), event);
});

// The tests of a file run in order, so this one is last.
test("every operation of the document has run", () => {
  const missing = operationsOfTheDocument().filter(({ pattern }) => ![...requested].some((one) => pattern.test(one)));
  assert.deepEqual(
    missing.map(({ name }) => name),
    [],
    "add them to src/client.ts and to this file",
  );
  assert.deepEqual([...userAgents], [`tests/1.0 rental-client-typescript/${VERSION}`]);
});
