// The browser that the checks of the pages use, and how they say what is wrong.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(`${process.env.NODE_PATH}/`);
export const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const base = process.env.RENTAL_BASE_URL;
export const key = process.env.RENTAL_API_KEY;
export const token = process.env.RENTAL_ADMIN_TOKEN;

export function launch() {
  // As root, chromium has no sandbox. It opens the pages of this server only.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
}

let failures = 0;

/** Counts a condition that does not hold. */
export function holds(condition, message) {
  if (condition) return;
  failures += 1;
  console.error(`FAILED: ${message}`);
}

export function failed() {
  return failures;
}

/** A page that counts what no page may do: break its policy, load from elsewhere, throw. */
export async function watched(context) {
  const page = await context.newPage();
  const at = () => new URL(page.url()).pathname;
  page.on("pageerror", (error) => holds(false, `${at()} threw ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    const expected = /Failed to load resource: the server responded with a status of [45]|net::ERR_FAILED/;
    if (message.type() === "error" && !expected.test(text)) holds(false, `${at()} complained: ${text}`);
    if (/Content Security Policy|[Pp]assword/.test(text)) holds(false, `${at()}: ${text}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    holds(url.startsWith(`${base}/`) || url.startsWith(`blob:${base}/`), `${at()} asked ${url}`);
    for (const secret of [key, token]) holds(!url.includes(secret), `${at()} has a secret in a URL`);
  });
  return page;
}

/** The rules of WCAG 2.2 AA and of good practice that axe finds broken. */
export async function accessible(page, where) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const { violations } = await window.axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id} x${nodes.length}: ${nodes[0].target} ${nodes[0].failureSummary}`);
  });
  for (const violation of found) holds(false, `${where}: ${violation}`);
}
