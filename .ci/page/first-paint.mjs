// Serves our pages and Redoc from one small server, compressed or not, and measures them in turn in new browsers.
// First contentful paint: something is there. Content: its first paragraphs are there. Redoc shows a spinner first.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { base, launch } from "./browser.mjs";

const [, , runs, ...redocs] = process.argv;
const NETWORK = { offline: false, latency: 150, downloadThroughput: 1.6e6 / 8, uploadThroughput: 750e3 / 8 };
const PROCESSOR = 4;

const files = new Map();
for (const path of ["/docs", "/docs/vehicles", "/docs.css", "/docs.js", "/openapi.json"]) {
  const response = await fetch(base + path);
  files.set(path, [response.headers.get("content-type"), Buffer.from(await response.arrayBuffer())]);
}
const results = { "/docs": [], "/docs/vehicles": [] };
for (const redoc of redocs) {
  const path = `/${redoc.split("/").at(-1)}`;
  // The bundle of 3.0.1 is a module. That of 2.5.4 throws as a module ("reading 'null'"), and as a classic script it needs a
  // charset: Chromium reads it as windows-1252 without one, and a regular expression in it is then invalid.
  const type = redoc.split("redoc-").at(-1).startsWith("2.") ? "" : ' type="module"';
  const html = `<!doctype html><html><head><meta charset="utf-8"></head><body><redoc spec-url="/openapi.json"></redoc><script${type} src="${path}.js"></script></body></html>`;
  files.set(path, ["text/html; charset=utf-8", Buffer.from(html)]);
  files.set(`${path}.js`, ["text/javascript; charset=utf-8", readFileSync(`${redoc}.js`)]);
  results[path] = [];
}

for (const compressed of [false, true]) {
  const server = createServer((request, response) => {
    const [media, content] = files.get(request.url) ?? ["text/plain", Buffer.from("")];
    response.setHeader("Content-Type", media);
    if (compressed) response.setHeader("Content-Encoding", "gzip");
    response.end(compressed ? gzipSync(content) : content);
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const address = `http://127.0.0.1:${server.address().port}`;
  for (const path of Object.keys(results)) results[path] = [];
  for (let run = 0; run < Number(runs); run += 1) {
    for (const path of Object.keys(results)) results[path].push(await measure(address + path));
  }
  for (const [path, all] of Object.entries(results)) {
    const line = ["paint", "content", "bytes"].map((name) => `${name} ${spread(all.map((one) => one[name]))}`).join("; ");
    console.log(`${path}${compressed ? ", gzip" : ""}: ${line}`);
  }
  server.closeAllConnections();
  server.close();
}

async function measure(url) {
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const session = await page.context().newCDPSession(page);
  let bytes = 0;
  await session.send("Network.enable");
  session.on("Network.loadingFinished", ({ encodedDataLength }) => { bytes += encodedDataLength; });
  await session.send("Network.emulateNetworkConditions", NETWORK);
  await session.send("Emulation.setCPUThrottlingRate", { rate: PROCESSOR });
  await page.addInitScript(() => {
    const look = () => {
      const words = /Amounts are exact|List vehicles|Your first booking/;
      // innerText makes a layout, which would cost a long page more than it costs a short one: only when the words are there.
      if (words.test(document.body?.textContent ?? "") && words.test(document.body.innerText)) window.contentAt ??= performance.now();
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await page.goto(url, { waitUntil: "load", timeout: 300_000 });
  await page.waitForFunction(() => window.contentAt, undefined, { timeout: 300_000 });
  await page.waitForTimeout(500);
  const times = await page.evaluate(() => ({
    paint: Math.round(performance.getEntriesByName("first-contentful-paint")[0].startTime),
    content: Math.round(window.contentAt),
  }));
  await browser.close();
  return { ...times, bytes };
}

/** Median, and the range. */
function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return `${sorted[Math.floor(sorted.length / 2)]} (${sorted[0]} to ${sorted.at(-1)})`;
}
