/**
 * The site against a real server: RENTAL_BASE_URL, RENTAL_API_KEY, RENTAL_ADMIN_TOKEN, `rental-cli` on the PATH. The server
 * may send webhooks to this machine (`--webhook-allow-private`). With a Chromium, pages are looked at in it, too.
 */

import assert from "node:assert/strict";
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { RentalClient } from "@rental-platform/client";
import { Browser, CHROMIUM } from "./browser.js";

const rental = new RentalClient();
const folder = mkdtempSync(join(tmpdir(), "booking-site-"));
const confirmations = join(folder, "confirmations.jsonl");
/** Tells the car of this run from those of others on the same server. */
const run = String(Date.now());
let endpoint: string;
let port: number;
let secret: string;
let running: ChildProcess;
const at = (path: string): string => `http://127.0.0.1:${port}${path}`;

function cli(...words: string[]): Record<string, unknown> {
  return JSON.parse(execFileSync("rental-cli", ["--json", ...words], { encoding: "utf8" })) as Record<string, unknown>;
}

/** Another pair of days for each test, so that none disturbs another. */
let month = 0;
function stay(): { from: string; to: string } {
  month += 1;
  const text = String(month).padStart(2, "0");
  return { from: `2031-${text}-03`, to: `2031-${text}-06` };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => probe.once("listening", done));
  const { port: free } = probe.address() as AddressInfo;
  await new Promise((done) => probe.close(done));
  return free;
}

async function startSite(): Promise<void> {
  running = spawn(process.execPath, ["out/src/main.js"], {
    env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret, CONFIRMATIONS: confirmations },
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((done, fail) => {
    running.stdout?.once("data", done);
    running.once("exit", (code) => fail(new Error(`the site ended with ${code}`)));
  });
}

async function stopSite(): Promise<void> {
  const ended = new Promise((done) => running.once("exit", done));
  running.kill("SIGKILL");
  await ended;
}

before(async () => {
  port = await freePort();
  const { organization_id } = await rental.me();
  const made = cli("webhook-endpoints", "create", "--organization", organization_id, "--url", at("/webhooks"));
  [endpoint, secret] = [made["id"] as string, made["secret"] as string];
  await rental.vehicles.create({ name: `Roadster ${run} <b>&amp;`, daily_rate: 89.35 });
  await startSite();
});

after(async () => {
  await stopSite();
  cli("webhook-endpoints", "delete", endpoint, "--yes");
  rmSync(folder, { recursive: true });
});

async function page(path: string, status = 200): Promise<string> {
  const response = await fetch(at(path));
  const text = await response.text();
  assert.equal(response.status, status, text);
  return text;
}

/** The values of the hidden fields of the form for a car. */
async function formFor(name: string, days: { from: string; to: string }): Promise<URLSearchParams> {
  const found = await page(`/?${new URLSearchParams(days)}`);
  const link = found.split("<li>").find((one) => one.includes(name))?.match(/href="(\/book[^"]*)"/)?.[1];
  assert.ok(link, `${name} is offered`);
  const form = await page(link.replaceAll("&amp;", "&"));
  const fields = [...form.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, field, value]): [string, string] => [field!, value!]);
  return new URLSearchParams(fields);
}

async function send(form: URLSearchParams, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(at("/book"), { method: "POST", body: form, redirect: "manual", headers });
}

async function eventually(path: string, words: string): Promise<void> {
  for (const end = Date.now() + 20_000; !(await page(path)).includes(words); ) {
    assert.ok(Date.now() < end, `${path} does not say ${words}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

const NAME = `Roadster ${run} &lt;b&gt;&amp;amp;`;

test("a visitor searches, books, and the webhook confirms and cancels the booking", async () => {
  const days = stay();
  assert.match(await page(`/?${new URLSearchParams(days)}`), /\$268\.05<\/strong> for 3 nights/);
  const form = await formFor(NAME, days);
  form.set("name", "Zoë <script>alert(1)</script>");
  form.set("email", "zoe@example.com");
  const answer = await send(form);
  assert.equal(answer.status, 303);
  const booking = answer.headers.get("location")!;
  await eventually(booking, "Your booking is confirmed");
  assert.match(await page(booking), /\$268\.05/);

  const [made] = await rental.rentals.list({ booking_id: form.get("code")! }).toArray(2);
  assert.equal(made?.final_price, 268.05);
  assert.ok(!(await page(`/?${new URLSearchParams(days)}`)).includes(NAME), "it is not offered any more");

  await stopSite();
  await startSite();
  assert.match(await page(booking), /Your booking is confirmed/, "a restart forgets nothing");
  await rental.rentals.update(made!.id, { status: "CANCELLED" });
  await eventually(booking, "Your booking is cancelled");
});

test("a double click books once, and the second visitor is told so", async () => {
  const days = stay();
  const [first, second] = [await formFor(NAME, days), await formFor(NAME, days)];
  for (const [form, name] of [[first, "ann"], [second, "bob"]] as const) {
    form.set("name", name);
    form.set("email", `${name}@example.com`);
  }
  const clicks = await Promise.all([send(first), send(first)]);
  assert.deepEqual(clicks.map((one) => one.status), [303, 303]);
  assert.equal((await rental.rentals.list({ booking_id: first.get("code")! }).toArray(5)).length, 1);
  const late = await send(second);
  assert.equal(late.status, 409);
  assert.match(await late.text(), /Somebody else has just booked this car/);
});

test("what is not a booking is refused with a reason", async () => {
  const form = await formFor(NAME, stay());
  const bad = (name: string, value: string): URLSearchParams => {
    const changed = new URLSearchParams(form);
    changed.set("name", "Ann");
    changed.set("email", "ann@example.com");
    changed.set(name, value);
    return changed;
  };
  for (const [name, value, status] of [
    ["email", "nobody", 400], ["name", " ", 400], ["from", "2031-02-30", 400], ["to", "2020-01-01", 400],
    ["code", "1", 400], ["vehicle", "unknown", 400], ["name", "x".repeat(20_000), 413],
  ] as const) {
    const answer = await send(bad(name, value));
    assert.equal(answer.status, status, `${name}: ${await answer.text()}`);
  }
  assert.equal((await send(bad("name", "Ann"), { Origin: "https://evil.example" })).status, 403);
  assert.match(await page("/?from=2020-01-01&to=2020-01-02"), /The pickup is in the past/);
  await page("/booking/00000000000000000000000000000000", 404);
  await page("/booking/..%2f..", 404);
  await page("/none", 404);
});

test("a webhook without a genuine signature is refused", async () => {
  const body = JSON.stringify({ id: "x", type: "rental.updated", data: {} });
  const post = (headers: Record<string, string>): Promise<Response> =>
    fetch(at("/webhooks"), { method: "POST", body, headers });
  assert.equal((await post({})).status, 400);
  assert.equal((await post({ "Service-Signature": `t=${Math.floor(Date.now() / 1000)},v1=${"0".repeat(64)}` })).status, 400);
});

test("no page has the key, a script or a style of its own", async () => {
  const form = await formFor(NAME, stay());
  const days = new URLSearchParams({ from: form.get("from")!, to: form.get("to")! });
  for (const path of ["/", `/?${days}`, `/book?vehicle=${form.get("vehicle")}&${days}`, "/style.css"]) {
    const response = await fetch(at(path));
    const text = await response.text();
    assert.match(response.headers.get("content-security-policy") ?? "", /^default-src 'none'; style-src 'self'; form-action/);
    assert.ok(!text.includes("rk_live_") && !text.includes("whsec_") && !/<script|style=| on\w+=/.test(text), path);
  }
});

test("in a browser, on a phone and a desk", { skip: CHROMIUM ? false : "there is no Chromium" }, async () => {
  const browser = await Browser.start(CHROMIUM!);
  try {
    for (const [width, height] of [[390, 844], [1280, 800]] as const) {
      await browser.size(width, height);
      const days = stay();
      const look = async (name: string): Promise<void> => {
        const overflow = await browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert.equal(overflow, 0, `${name} at ${width} px is too wide by ${overflow} px`);
        const small = await browser.value("[...document.querySelectorAll('input:not([type=hidden]),button,.button')].filter(e => e.getBoundingClientRect().height < 44).length");
        assert.equal(small, 0, `${name}: everything to touch is 44 px high`);
        if (process.env["PICTURES"]) await browser.picture(join(process.env["PICTURES"], `${name}-${width}.png`));
      };
      await browser.open(at("/"));
      await look("search");
      await browser.value(`document.querySelector('[name=from]').value = '${days.from}'; document.querySelector('[name=to]').value = '${days.to}'; document.querySelector('button').click()`);
      await browser.until("document.querySelectorAll('.offers li').length > 0");
      await look("offers");
      await browser.value(`[...document.querySelectorAll('.offers li')].find(e => e.textContent.includes('${run}')).querySelector('a').click()`);
      await browser.until("!!document.querySelector('[name=email]')");
      await look("form");
      await browser.value(`document.querySelector('[name=name]').value = 'Pat'; document.querySelector('[name=email]').value = 'pat${width}@example.com'; document.querySelector('button').click()`);
      await browser.until("document.querySelector('h1').textContent === 'Your booking is confirmed'");
      await look("confirmed");
    }
    assert.deepEqual(browser.complaints.filter((one) => !one.includes("favicon")), []);
  } finally {
    await browser.close();
  }
});
