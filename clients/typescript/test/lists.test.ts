/** Walks through lists. */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Schemas } from "@rental-platform/client";
import { client, scripted } from "./support.js";

let newest: string[] = [];

before(async () => {
  const created: Schemas["Vehicle"][] = [];
  for (const name of ["1", "2", "3", "4", "5"])
    created.push(await client.vehicles.create({ name: `List ${name}`, status: "unavailable" }));
  newest = created.map((one) => one.id).reverse();
});

test("three pages, each object once, newest first", async () => {
  const sizes: number[] = [];
  const walked: string[] = [];
  for await (const page of client.vehicles.list({ status: "unavailable", limit: 2 }).pages()) {
    sizes.push(page.data.length);
    walked.push(...page.data.map((one) => one.id));
    if (sizes.length === 3) break;
  }
  assert.equal(sizes.length, 3);
  assert.deepEqual(walked.slice(0, 5), newest);
  assert.equal(new Set(walked).size, walked.length);
});

test("for await gives the objects of all pages", async () => {
  const whole: string[] = [];
  for await (const vehicle of client.vehicles.list({ limit: 3 })) whole.push(vehicle.id);
  const large = await client.vehicles.list({ limit: 100 }).toArray(100_000);
  assert.deepEqual(
    whole,
    large.map((one) => one.id),
  );
  assert.ok(whole.length > 6);
});

test("a loop that is left requests no further page", async (context) => {
  const page = { object: "list", data: [{ id: "1" }, { id: "2" }], has_more: true, next_cursor: "2" };
  const { client, seen } = await scripted(context, [{ status: 200, body: page }]);
  for await (const vehicle of client.vehicles.list({ status: "available", plate: undefined as never })) {
    if (vehicle.id === "2") break;
  }
  assert.deepEqual(
    seen.map((one) => one.url),
    ["/v1/vehicles?status=available"],
  );
  assert.deepEqual(await client.vehicles.list().toArray(0), []);
});

test("a server that repeats its cursor does not make an endless walk", async (context) => {
  const page = { object: "list", data: [{ id: "1" }], has_more: true, next_cursor: "1" };
  const { client, seen } = await scripted(context, [{ status: 200, body: page }]);
  assert.equal((await client.vehicles.list().toArray(100)).length, 2);
  assert.equal(seen.length, 2);
});
