/** The classes of errors: those that a real server causes, and those that it should not. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { test } from "node:test";
import * as rental from "@rental-platform/client";
import { BASE, client, closedPort, environment, problem, scripted } from "./support.js";

async function errorOf(promise: Promise<unknown>): Promise<rental.ApiError> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof rental.ApiError, String(error));
    assert.match(error.requestId ?? "", /^req_/);
    return error;
  }
  throw new Error("no error");
}

test("every bad field is named", async () => {
  const error = await errorOf(client.customers.create({ full_name: "", email: "ada" }));
  assert.ok(error instanceof rental.InvalidRequestError);
  assert.equal(error.status, 400);
  assert.deepEqual(error.errors.map((one) => one.param).sort(), ["email", "full_name"]);
  assert.equal(error.param, error.errors[0]?.param);
});

test("an unknown id is a NotFoundError", async () => {
  const error = await errorOf(client.rentals.get("nothing"));
  assert.ok(error instanceof rental.NotFoundError);
  assert.equal(error.code, "resource_missing");
});

test("a vehicle that is taken is a ConflictError that names the rental", async () => {
  const vehicle = await client.vehicles.create({ name: "White Tesla" });
  const customer = await client.customers.create({ full_name: "Ada Lovelace" });
  const body = {
    vehicle_id: vehicle.id,
    customer_id: customer.id,
    start_date: "2031-01-01",
    end_date: "2031-01-03",
    status: "APPROVED",
  } as const;
  const first = await client.rentals.create(body);
  const error = await errorOf(client.rentals.create(body));
  assert.ok(error instanceof rental.ConflictError);
  assert.equal(error.code, "vehicle_unavailable");
  assert.equal(error.conflictingRentalId, first.id);
  assert.equal(error.conflictingBlockId, undefined);
});

test("a wrong key is an AuthenticationError", async () => {
  const error = await errorOf(new rental.RentalClient({ apiKey: "rk_live_wrong" }).me());
  assert.ok(error instanceof rental.AuthenticationError);
});

test("a read key that writes is a PermissionError", async () => {
  const reader = new rental.RentalClient({ apiKey: environment("RENTAL_READ_KEY") });
  const error = await errorOf(reader.vehicles.create({ name: "White Tesla" }));
  assert.ok(error instanceof rental.PermissionError);
  assert.equal(error.code, "insufficient_scope");
});

test("an idempotency key for another request is an IdempotencyError", async () => {
  const idempotencyKey = `errors-${Date.now()}`;
  await client.vehicles.create({ name: "One" }, { idempotencyKey });
  const error = await errorOf(client.vehicles.create({ name: "Two" }, { idempotencyKey }));
  assert.ok(error instanceof rental.IdempotencyError);
  assert.equal(error.code, "idempotency_key_reused");
});

test("too many requests are a RateLimitError", async (context) => {
  const limited = await scripted(context, [problem(429, "rate_limit_error", "rate_limited")], { maxRetries: 0 });
  assert.ok((await errorOf(limited.client.me())) instanceof rental.RateLimitError);
});

test("an answer of a proxy is a ServerError with the status", async (context) => {
  const proxied = await scripted(context, [{ status: 502, body: "<html>Bad Gateway</html>" }], { maxRetries: 0 });
  await assert.rejects(
    proxied.client.me(),
    (error) => error instanceof rental.ServerError && error.code === "http_502",
  );
});

test("a type that this version does not know is an ApiError", async (context) => {
  const newer = await scripted(context, [problem(418, "teapot_error", "short_and_stout")]);
  const error = await errorOf(newer.client.me());
  assert.equal(error.constructor, rental.ApiError);
  assert.equal(error.type, "teapot_error");
});

test("an answer that is no JSON object says so", async (context) => {
  const page = await scripted(context, [{ status: 200, body: "<html>" }]);
  await assert.rejects(page.client.me(), /not a JSON object/);
});

test("no server is a ConnectionError with its reason", async () => {
  const baseUrl = await closedPort();
  const nobody = new rental.RentalClient({ baseUrl, maxRetries: 0 });
  await assert.rejects(
    nobody.me(),
    (error) => error instanceof rental.ConnectionError && /ECONNREFUSED/.test(error.message),
  );
});

test("a client without address or key is refused, and no message has the key", () => {
  assert.throws(() => new rental.RentalClient({ baseUrl: "rental.example.com" }), /https:/);
  assert.throws(
    () => new rental.RentalClient({ apiKey: "rk_live a\nb" }),
    (error) => error instanceof rental.RentalError && !error.message.includes("rk_live"),
  );
  const shown = inspect(client, { depth: 9, showHidden: true });
  assert.ok(!shown.includes(environment("RENTAL_API_KEY")), shown);
});

test("a secret in the place of the address is not in the message", () => {
  for (const secret of ["rk_live_secret", "rat_secret", "op_secret", "whsec_secret", " RK_live_secret"])
    for (const baseUrl of [secret, `ftp://${secret}`])
      assert.throws(
        () => new rental.RentalClient({ baseUrl, apiKey: BASE }),
        (error) => error instanceof rental.RentalError && !error.message.includes("_secret") && /key/.test(error.message),
        baseUrl,
      );
  assert.throws(() => new rental.RentalClient({ apiKey: BASE }), /API key is an address/);
});

test("a base URL that ends in /v1 says what to leave away", () => {
  for (const baseUrl of [`${BASE}/v1`, `${BASE}/v1/`, "https://example.com/rental/v1"])
    assert.throws(() => new rental.RentalClient({ baseUrl }), /leave the \/v1 away/);
  assert.ok(new rental.RentalClient({ baseUrl: "https://example.com/v12" }));
});

test("an empty key is not that of the environment", () => {
  for (const apiKey of ["", " ", "\n"]) assert.throws(() => new rental.RentalClient({ apiKey }), /no API key/);
});

test("a key with a character that no key has is refused and not shown", () => {
  const flaws = [[" ", /white space/], ["\n", /white space/], ["\u00e9", /not printable ASCII/]] as const;
  for (const [inside, flaw] of flaws)
    assert.throws(
      () => new rental.RentalClient({ apiKey: `rk_live${inside}secret` }),
      (error) => error instanceof rental.RentalError && flaw.test(error.message) && !/rk_live|secret/.test(error.message),
    );
});

test("white space around a key is no part of it", async () => {
  const key = environment("RENTAL_API_KEY");
  try {
    for (const apiKey of [`${key}\n`, `${key}\r\n`, ` ${key} `, `\t${key}\n\n`]) {
      assert.equal((await new rental.RentalClient({ apiKey }).me()).object, "me");
      process.env["RENTAL_API_KEY"] = apiKey;
      assert.equal((await new rental.RentalClient().me()).object, "me");
    }
  } finally {
    process.env["RENTAL_API_KEY"] = key;
  }
});

test("a key can be in the file that the environment names", async () => {
  const key = environment("RENTAL_API_KEY");
  const folder = mkdtempSync(join(tmpdir(), "key-"));
  const file = join(folder, "key");
  writeFileSync(file, `${key}\n`);
  try {
    process.env["RENTAL_API_KEY_FILE"] = file;
    process.env["RENTAL_API_KEY"] = "rk_live_wrong";
    assert.ok((await errorOf(new rental.RentalClient().me())) instanceof rental.AuthenticationError, "the variable wins");
    delete process.env["RENTAL_API_KEY"];
    assert.equal((await new rental.RentalClient().me()).object, "me");
    process.env["RENTAL_API_KEY_FILE"] = join(folder, "nothing");
    assert.throws(() => new rental.RentalClient(), /cannot read RENTAL_API_KEY_FILE: .*nothing/);
  } finally {
    process.env["RENTAL_API_KEY"] = key;
    delete process.env["RENTAL_API_KEY_FILE"];
    rmSync(folder, { recursive: true });
  }
});

test("a number that JSON cannot have is not sent", async (context) => {
  const scripts = await scripted(context, [{ status: 200 }]);
  for (const daily_rate of [NaN, Infinity, -Infinity])
    await assert.rejects(scripts.client.vehicles.create({ name: "White Tesla", daily_rate }), /`daily_rate` is (NaN|-?Infinity)/);
  await assert.rejects(scripts.client.vehicles.list({ limit: NaN }).firstPage(), /`limit` is NaN/);
  assert.equal(scripts.seen.length, 0);
});

test("https where the server speaks http says so", async () => {
  const wrong = new rental.RentalClient({ baseUrl: BASE.replace("http:", "https:"), maxRetries: 0 });
  await assert.rejects(wrong.me(), /\S\)\. The server seems to listen without TLS: use http:\/\//);
});

test("a page cannot use the client", () => {
  Object.assign(globalThis, { document: {} });
  assert.throws(() => new rental.RentalClient({ baseUrl: BASE }), /belongs on servers/);
  Reflect.deleteProperty(globalThis, "document");
});

test("the version is that of the package", () => {
  const url = new URL("../package.json", import.meta.resolve("@rental-platform/client"));
  assert.equal((JSON.parse(readFileSync(url, "utf8")) as { version: string }).version, rental.VERSION);
});
