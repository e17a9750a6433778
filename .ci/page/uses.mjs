// The pages in use: search, copy, key, requests, and a first booking.

import { base, holds, key, token, watched } from "./browser.mjs";

export async function uses(browser) {
  for (const width of [390, 1280]) {
    for (const use of [search, keyboard, copying, secrets, reading, writing, lostResponse, refused, operators, firstBooking]) {
      const context = await browser.newContext({ viewport: { width, height: 900 }, permissions: ["clipboard-read", "clipboard-write"] });
      const page = await watched(context);
      page.setDefaultTimeout(10_000);
      try {
        await use(page, (condition, message) => holds(condition, `${use.name} at ${width} px: ${message}`));
      } catch (error) {
        holds(false, `${use.name} at ${width} px: ${error.message}`);
      }
      await context.close();
    }
  }
}

async function open(page, path, secret = key) {
  await page.goto(base + path);
  if (secret) {
    await page.fill("#secret", secret);
    await page.press("#secret", "Enter");
  }
}

async function found(page, words) {
  await page.keyboard.press("/");
  await page.keyboard.type(words);
  await page.locator("#found [role=option]").first().waitFor();
  return page.locator("#found [role=option]").allInnerTexts();
}

async function search(page, check) {
  await page.goto(`${base}/docs`);
  for (const [words, title, address] of [
    ["create rental", "Create rental", "/docs/rentals#createRental"],
    ["daily_rate", "vehicle.daily_rate", "/docs/vehicles#vehicle.daily_rate"],
    ["vehicle_unavailable", "vehicle_unavailable", "/docs/errors#vehicle_unavailable"],
    ["invoice.paid", "invoice.paid", "/docs/webhooks#invoice.paid"],
    ["signature", "Verify before you trust the body", "/docs/webhooks#verifying"],
    ["webhook signature", "Verify before you trust the body", "/docs/webhooks#verifying"],
    ["service-signature", "Service-Signature", "/docs/webhooks#header.Service-Signature"],
    ["verify", "Verify before you trust the body", "/docs/webhooks#verifying"],
    ["pagination", "Lists", "/docs#lists"],
    ["Idempotency-Key", "Idempotency-Key", "/docs#header.Idempotency-Key"],
    ["retry", "Retries", "/docs#retries"],
    ["retries", "Retries", "/docs#retries"],
    ["etag", "ETag", "/docs#header.ETag"],
    ["if-match", "If-Match", "/docs#header.If-Match"],
    ["rate limit", "RateLimit", "/docs#header.RateLimit"],
    ["refunds", "Credit notes", "/docs/credit_notes"],
    ["cancel booking", "Rentals", "/docs/rentals"],
    ["page size", "Lists", "/docs#lists"],
    ["x-request-id", "Request ids", "/docs#request-ids"],
    ["cors", "Clients", "/docs#clients"],
    ["How can I cancel a booking?", "Rentals", "/docs/rentals"],
    ["what is an ETag?", "ETag", "/docs#header.ETag"],
  ]) {
    const [first] = await found(page, words);
    check(first?.includes(title), `"${words}" found ${first}`);
    await page.keyboard.press("Enter");
    await page.waitForURL(base + address);
    const id = address.split("#")[1];
    const target = page.locator(id ? `[id="${id}"]` : "h1");
    check(await target.isVisible(), `${address} is shown`);
    await page.evaluate(() => document.activeElement.blur());
  }
  const some = await found(page, "rental");
  await page.keyboard.type(" zzz");
  await page.getByText("Nothing has all of these words. Nearest:").waitFor();
  const nearest = await page.locator("#found [data-address]").allInnerTexts();
  check(nearest.length > 5 && /rental/i.test(nearest[0]), `"rental zzz" found ${nearest[0]}`);
  await page.keyboard.press("Escape");
  await page.evaluate(() => document.activeElement.blur());
  for (const [words, note] of [["zzz", "Nothing found. All pages:"], ["how of the", "All pages:"]]) {
    const [said, ...pages] = await found(page, words);
    check(said === note && pages.some((one) => one.includes("Rentals")), `"${words}" found ${said}: ${pages}`);
    const before = page.url();
    await page.keyboard.press("Enter");
    check(page.url() === before && (await page.locator("#found").isVisible()), "Enter leads nowhere without a choice");
    await page.keyboard.press("Escape");
    await page.evaluate(() => document.activeElement.blur());
  }
  await found(page, "rental");
  check(some.length > 5, `"rental" found ${some.length}`);
  await page.keyboard.press("Escape");
  check(!(await page.locator("#found").isVisible()), "Escape closes the results");
  check(!(await page.evaluate(() => document.querySelector("#found").textContent)).includes("admin"), "operators are apart");
}

/** Everything can be reached and used with the keyboard alone. */
async function keyboard(page, check) {
  await page.goto(`${base}/docs/vehicles`);
  await page.keyboard.press("Tab");
  check(await page.locator(".skip").evaluate((link) => link === document.activeElement), "the first stop skips to the content");
  await page.keyboard.press("Enter");
  check(await page.locator("main").evaluate((main) => main === document.activeElement), "the content has the focus");
  await page.locator("#listVehicles .tabs input").first().focus();
  await page.keyboard.press("ArrowRight");
  check(await page.locator("#listVehicles .panel[data-language=typescript]").isVisible(), "an arrow chooses the language");
  check(await page.locator("#getVehicle .panel[data-language=typescript]").isVisible(), "it is chosen everywhere");
  await page.goto(`${base}/docs/customers`);
  check(await page.locator("#getCustomer .panel[data-language=typescript]").isVisible(), "and on the next page");
  await page.locator("#createCustomer details > summary", { hasText: "Try it" }).focus();
  await page.keyboard.press("Enter");
  check(await page.locator("#createCustomer form").isVisible(), "Enter opens the form");
}

async function copying(page, check) {
  await page.goto(`${base}/docs/vehicles`);
  const block = page.locator("#createVehicle .panel[data-language=curl]");
  await block.locator(".copy").click();
  await block.getByText("Copied").waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  check(copied === (await block.locator("pre").textContent()), "the clipboard has the example");
  check(copied.includes(`curl -X POST "${base}/v1/vehicles"`) && copied.includes("$RENTAL_API_KEY"), copied);
}

async function secrets(page, check) {
  await open(page, "/docs/vehicles");
  await page.locator("#secret-state", { hasText: "scope read_write" }).waitFor();
  const text = (language) => page.locator(`#getVehicle .panel[data-language=${language}] pre`).textContent();
  for (const language of ["curl", "typescript", "python", "cli"]) {
    const example = await text(language);
    check(example.includes(key) && example.includes(base), `${language} is filled: ${example}`);
  }
  await page.goto(`${base}/docs/rentals`);
  check((await page.inputValue("#secret")) === key, "the next page of the tab has the key");
  const kept = await page.evaluate(() => [JSON.stringify(localStorage), document.cookie, location.href].join());
  check(!kept.includes(key), "the key is only in the storage of the tab");
  const own = await page.evaluate(() => sessionStorage.length);
  for (const pasted of [
    `Bearer ${key}`, `Authorization: Bearer ${key}`, `"${key}"`, `'${key}'`, `  ${key}\u00a0`, `RENTAL_API_KEY=${key}`,
    `export RENTAL_API_KEY="${key}"`, `"Bearer ${key}"`,
  ]) {
    await page.click("#forget");
    await page.fill("#secret", pasted);
    await page.press("#secret", "Enter");
    await page.locator("#secret-state", { hasText: "scope read_write" }).waitFor();
    check((await page.inputValue("#secret")) === key, `the key is found in ${pasted}`);
  }
  check((await page.evaluate(() => sessionStorage.length)) === own, "it is stored once");
  await page.click("#forget");
  check(!(await page.content()).includes(key), "a forgotten key is nowhere on the page");
  check(!(await page.evaluate(() => JSON.stringify(sessionStorage))).includes(key), "nor in the storage");
  await page.fill("#secret", "rk_live_wrong");
  await page.press("#secret", "Enter");
  await page.locator("#secret-state.bad").waitFor();
}

async function reading(page, check) {
  await open(page, "/docs/vehicles", "");
  const article = page.locator("#listVehicles");
  await article.getByText("Try it").first().click();
  await article.locator("[type=submit]").click();
  check((await article.locator("[role=status]").textContent()).includes("API key"), "it asks for the key first");
  await page.fill("#secret", key);
  await page.press("#secret", "Enter");
  await article.locator("summary", { hasText: "Optional" }).click();
  await article.locator("[name=limit]").fill("2");
  const [request] = await Promise.all([page.waitForRequest(/\/v1\/vehicles\?/), article.locator("[type=submit]").click()]);
  check(request.url() === `${base}/v1/vehicles?limit=2`, request.url());
  await article.locator(".result strong").waitFor();
  const result = await article.locator(".result").innerText();
  for (const part of ["200 OK", "request-id", "\"object\": \"list\"", "Use"]) check(result.includes(part), `${part} in ${result}`);
  check((await article.locator(".choices li").count()) === 2, "two vehicles can be chosen");
  const choice = await article.locator(".choices li").first().innerText();
  check(/[A-Z]\w+.*, [\d.]+ USD a day, \w+/.test(choice), `name, price and status in ${choice}`);
}

async function writing(page, check) {
  await open(page, "/docs/customers");
  const article = page.locator("#createCustomer");
  await article.getByText("Try it").first().click();
  const requests = [];
  page.on("request", (request) => request.method() === "POST" && requests.push(request));
  await article.locator("[type=submit]").click();
  check((await article.locator("[role=status]").textContent()).includes("required"), "a required field is asked for");
  await article.locator("[name=full_name]").fill("Grace Hopper");
  await article.locator("[type=submit]").click();
  await page.locator("#question[open]").waitFor();
  await page.keyboard.press("Escape");
  await article.getByText("Not sent.").waitFor();
  check(requests.length === 0, "nothing is sent without a yes");
  await article.locator("[type=submit]").click();
  check((await page.locator("#question pre").textContent()).includes("Grace Hopper"), "the question shows the body");
  await page.click("#question .strong");
  await article.locator(".result .good").waitFor();
  check(requests.length === 1, `${requests.length} requests`);
  const headers = await requests[0].allHeaders();
  check(/^docs-[0-9a-f]{32}$/.test(headers["idempotency-key"]), "it has an idempotency key");
  check(headers.authorization === `Bearer ${key}` && !headers.cookie && !headers.referer, "it has the key, no cookie, no referrer");
  await article.locator("summary", { hasText: "as JSON" }).click();
  await page.waitForFunction(() => document.querySelector("#createCustomer [data-in=json]").value.includes("Grace Hopper"));
  await article.locator("[data-in=json]").fill("{\"full_name\": \"Katherine Johnson\"}");
  await article.locator("[type=submit]").click();
  await page.click("#question .strong");
  await article.locator(".result", { hasText: "\"full_name\": \"Katherine Johnson\"" }).waitFor();
  const keys = await Promise.all(requests.map(async (request) => (await request.allHeaders())["idempotency-key"]));
  check(new Set(keys).size === 2, "another request has another key");
}

/** A request whose response was lost takes effect once when it is sent again. */
async function lostResponse(page, check) {
  await open(page, "/docs/leads");
  const article = page.locator("#createLead");
  await article.getByText("Try it").first().click();
  const keys = [];
  let lose = true;
  await page.route("**/v1/leads", async (route) => {
    keys.push((await route.request().allHeaders())["idempotency-key"]);
    if (!lose) return route.continue();
    lose = false;
    await route.fetch();
    return route.abort();
  });
  for (const shown of [".bad >> text=No response", ".result .good"]) {
    await article.locator("[type=submit]").click();
    await page.click("#question .strong");
    await article.locator(shown).waitFor();
  }
  check(keys.length === 2 && keys[0] === keys[1], "it has the same key");
  check((await article.locator(".result").innerText()).includes("idempotent-replayed"), "the response is the first one");
}

async function refused(page, check) {
  await open(page, "/docs/vehicles");
  const article = page.locator("#getVehicle");
  await article.getByText("Try it").first().click();
  await article.locator("[name=id]").fill("0190d0f2-7c3a-7cc0-8000-0000000fffff");
  await article.locator("[type=submit]").click();
  await article.locator(".result .bad").waitFor();
  const link = article.locator(".result a", { hasText: "resource_missing" });
  check((await link.getAttribute("href")).startsWith("/docs/errors#"), "the code leads to its explanation");
  await article.locator("[name=id]").fill("../customers?x=1#y");
  const [request] = await Promise.all([page.waitForRequest(/\/v1\//), article.locator("[type=submit]").click()]);
  check(request.url() === `${base}/v1/vehicles/..%2Fcustomers%3Fx%3D1%23y`, request.url());
}

async function operators(page, check) {
  await open(page, "/docs/admin/organizations", token);
  await page.getByText("The server takes this token.").waitFor();
  const article = page.locator("#listOrganizations");
  await article.getByText("Try it").first().click();
  await article.locator("[type=submit]").click();
  await article.locator(".result .good").waitFor();
  check((await page.locator("#listOrganizations .panel[data-language=curl] pre").textContent()).includes(token), "curl is filled");
  await page.goto(`${base}/docs/vehicles`);
  check((await page.inputValue("#secret")) === "", "the token is not on the pages for keys");
  check((await found(page, "organizations create")).every((one) => !one.includes("/admin/")), "nor the calls");
  await open(page, "/docs/admin/tolls", token);
  const upload = page.locator("#importTolls");
  await upload.getByText("Try it").first().click();
  await upload.locator("[name=organization]").fill("0190d0f2-7c3a-7cc0-8000-000000000000");
  const csv = await upload.locator("[data-file] pre").textContent();
  await upload.locator("[type=file]").setInputFiles({ name: "tolls.csv", mimeType: "text/csv", buffer: Buffer.from(csv) });
  await upload.locator("[type=submit]").click();
  await page.click("#question .strong");
  await upload.locator(".result .good").waitFor();
  check((await upload.locator(".result").innerText()).includes("\"received\": 1"), "the file was imported");
}

/** Somebody who has only a browser and a key. */
async function firstBooking(page, check) {
  await open(page, "/docs");
  const step = (at) => page.locator(".steps > li").nth(at);
  const send = async (at) => {
    await step(at).locator("[type=submit]").click();
    if (await step(at).locator("form[data-method=POST]").count()) await page.click("#question .strong");
    await step(at).locator(".result .good").waitFor();
  };
  await send(0);
  const year = 2040 + Math.floor(Math.random() * 50);
  await step(1).locator("[name=from]").fill(`${year}-06-01`);
  await step(1).locator("[name=to]").fill(`${year}-06-05`);
  await send(1);
  await step(1).locator(".choices button").first().click();
  await step(2).locator("[name=full_name]").fill("Grace Hopper");
  await send(2);
  await send(3);
  const rental = JSON.parse(await step(3).locator(".result pre").textContent());
  check(rental.status === "APPROVED" && rental.start_date === `${year}-06-01` && rental.rental_days === 4, JSON.stringify(rental));
  await send(4);
  check(JSON.parse(await step(4).locator(".result pre").textContent()).id === rental.id, "the last step shows the booking");
}
