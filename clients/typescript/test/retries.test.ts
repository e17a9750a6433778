/** What is sent again, with which key, after which pause; and that a lost answer changes nothing twice. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionError, RentalError, responseOf, ServerError, TimeoutError } from "@rental-platform/client";
import { client, droppingProxy, problem, scripted, type Answer } from "./support.js";

const vehicle: Answer = { status: 200, body: { id: "1", object: "vehicle" } };
const unavailable = problem(503, "api_error", "service_unavailable");

for (const lost of [1, 2]) {
  test(`a POST whose answer is lost ${lost} times creates one object`, async (context) => {
    const proxied = await droppingProxy(context, lost);
    const email = `dropped-${lost}-${Date.now()}@example.com`;
    const created = await proxied.client.customers.create({ full_name: "Ada Lovelace", email });
    const all = await client.customers.list({ email }).toArray(10);
    assert.deepEqual(
      all.map((one) => one.id),
      [created.id],
    );
    assert.equal(responseOf(created).replayed, true);
    assert.equal(proxied.forwarded.length, lost + 1);
    const [first, ...again] = proxied.forwarded;
    assert.match(String(first?.headers["idempotency-key"]), /^[0-9a-f-]{36}$/);
    for (const one of again) {
      assert.equal(one.headers["idempotency-key"], first?.headers["idempotency-key"]);
      assert.equal(one.body, first?.body);
    }
  });
}

test("a PATCH with If-Match whose answer is lost is not a conflict with itself", async (context) => {
  const proxied = await droppingProxy(context, 1);
  const before = await client.vehicles.create({ name: "White Tesla" });
  const { etag } = responseOf(before);
  assert.ok(etag);
  const changed = await proxied.client.vehicles.update(before.id, { color: "White" }, { ifMatch: etag });
  assert.equal(changed.color, "White");
  assert.equal(proxied.forwarded.length, 2);
});

const again: Answer[] = [408, 429, 500, 502, 503, 504].map((status) => problem(status, "api_error", "again"));
for (const answer of [...again, "drop" as const]) {
  test(`sent again after ${typeof answer === "string" ? "a broken connection" : answer.status}`, async (context) => {
    const { client, seen } = await scripted(context, [answer, vehicle]);
    await client.vehicles.create({ name: "White Tesla" });
    assert.equal(seen.length, 2);
    assert.equal(seen[0]?.headers["idempotency-key"], seen[1]?.headers["idempotency-key"]);
  });
}

test("a request that still runs is waited for", async (context) => {
  const { client, seen } = await scripted(context, [
    problem(409, "idempotency_error", "idempotency_key_in_use"),
    vehicle,
  ]);
  await client.vehicles.create({ name: "White Tesla" });
  assert.equal(seen.length, 2);
});

for (const [status, code] of [
  [400, "parameter_invalid"],
  [401, "api_key_invalid"],
  [403, "insufficient_scope"],
  [404, "resource_missing"],
  [409, "vehicle_unavailable"],
  [412, "precondition_failed"],
  [413, "request_too_large"],
  [422, "idempotency_key_reused"],
] as const) {
  test(`not sent again after ${status} ${code}`, async (context) => {
    const { client, seen } = await scripted(context, [problem(status, "invalid_request_error", code), vehicle]);
    await assert.rejects(client.vehicles.create({ name: "White Tesla" }), { status, code });
    assert.equal(seen.length, 1);
  });
}

test("two retries, then the error", async (context) => {
  const { client, seen } = await scripted(context, [unavailable]);
  await assert.rejects(client.vehicles.get("1"), ServerError);
  assert.equal(seen.length, 3);
  const pauses = [1, 2].map((at) => (seen[at]?.at ?? 0) - (seen[at - 1]?.at ?? 0));
  assert.ok(pauses[0]! >= 240 && pauses[0]! < 1500 && pauses[1]! >= 490 && pauses[1]! < 2500, String(pauses));
});

test("maxRetries 0 sends once", async (context) => {
  const { client, seen } = await scripted(context, ["drop"], { maxRetries: 0 });
  await assert.rejects(client.vehicles.get("1"), ConnectionError);
  assert.equal(seen.length, 1);
});

test("the pause is at least Retry-After", async (context) => {
  const { client, seen } = await scripted(context, [{ ...unavailable, headers: { "Retry-After": "1" } }, vehicle]);
  await client.vehicles.get("1");
  assert.ok((seen[1]?.at ?? 0) - (seen[0]?.at ?? 0) >= 990);
});

test("a Retry-After of more than 10 seconds is left to the caller", async (context) => {
  const { client, seen } = await scripted(context, [{ ...unavailable, headers: { "Retry-After": "11" } }, vehicle]);
  await assert.rejects(client.vehicles.get("1"), { retryAfterSeconds: 11 });
  assert.equal(seen.length, 1);
});

test("your own idempotency key is sent", async (context) => {
  const { client, seen } = await scripted(context, [vehicle]);
  await client.vehicles.create({ name: "White Tesla" }, { idempotencyKey: "order-1042" });
  await client.vehicles.get("1");
  assert.deepEqual(
    seen.map((one) => one.headers["idempotency-key"]),
    ["order-1042", undefined],
  );
});

test("a server that does not answer is a TimeoutError", async (context) => {
  const { client, seen } = await scripted(context, ["hang"], { timeoutMs: 100, maxRetries: 1 });
  await assert.rejects(client.vehicles.get("1"), TimeoutError);
  assert.equal(seen.length, 2);
});

test("a signal ends request and pauses", async (context) => {
  const { client, seen } = await scripted(context, [unavailable]);
  const started = Date.now();
  const signal = AbortSignal.timeout(100);
  await assert.rejects(client.vehicles.get("1", { signal, maxRetries: 9 }), {
    name: "TimeoutError",
    message: /aborted/,
  });
  assert.ok(Date.now() - started < 2000 && seen.length === 1);
});

test("a redirect is not followed", async (context) => {
  const { client, seen } = await scripted(context, [{ status: 307, headers: { Location: "/elsewhere" } }]);
  await assert.rejects(client.vehicles.get("1"), { code: "http_307" });
  assert.equal(seen.length, 1);
});

test("an id cannot change the path", async (context) => {
  const { client, seen } = await scripted(context, [vehicle]);
  await client.vehicles.get("../me?x=1#");
  assert.equal(seen[0]?.url, "/v1/vehicles/..%2Fme%3Fx%3D1%23");
  for (const id of ["", ".", ".."]) await assert.rejects(async () => client.vehicles.get(id), RentalError);
  assert.equal(seen.length, 1);
});
