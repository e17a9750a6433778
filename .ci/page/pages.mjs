// Looks at every page, then uses them as people do. Says what does not hold, and ends with 1 if anything does not.

import { accessible, base, failed, holds, launch, watched } from "./browser.mjs";
import { uses } from "./uses.mjs";

const SIZES = [{ width: 390, height: 844 }, { width: 1280, height: 900 }];
const SCHEMES = ["light", "dark"];
// All colours and kinds of content are on these; the others are checked in one scheme for each size.
const TELLING = ["/docs", "/docs/vehicles", "/docs/errors", "/docs/admin/tolls"];

const browser = await launch();
const paths = await everyPage();
for (const viewport of SIZES) {
  for (const colorScheme of SCHEMES) {
    const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
    const page = await watched(context);
    for (const path of paths) {
      const where = `${path} at ${viewport.width} px, ${colorScheme}`;
      await page.goto(base + path);
      await fits(page, viewport, where);
      // What is folded has to be as good as the rest.
      await page.evaluate(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
      await fits(page, viewport, `${where}, unfolded`);
      if (TELLING.includes(path) || (viewport.width === 390) === (colorScheme === "dark")) await accessible(page, where);
    }
    await context.close();
  }
}
await withoutScripts();
await uses(browser);
await browser.close();
console.log(failed() ? `${failed()} failures` : `${paths.length} pages at 390 and 1280 px, light and dark: all holds`);
process.exitCode = failed() ? 1 : 0;

/** The paths of all pages that links lead to. */
async function everyPage() {
  const found = new Set(["/docs", "/docs/admin"]);
  for (const path of found) {
    const text = await (await fetch(base + path)).text();
    for (const [, link] of text.matchAll(/href="(\/docs(?:\/[^"#.]*)?)["#]/g)) found.add(link);
  }
  holds(found.size > 25, `only ${found.size} pages`);
  return [...found].sort();
}

/** Nothing makes the page wider than the window; wide code scrolls inside itself. */
async function fits(page, { width }, where) {
  const found = await page.evaluate(() => document.documentElement.scrollWidth);
  holds(found <= width, `${where}: ${found} px wide`);
}

async function withoutScripts() {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: SIZES[0] });
  const page = await watched(context);
  await page.goto(`${base}/docs/rentals`);
  holds(await page.locator("#createRental h2").isVisible(), "the operation is there without scripts");
  holds((await page.locator(".js:visible").count()) === 0, "what needs scripts is hidden without them");
  const python = page.locator("#createRental .panel[data-language=python]");
  holds(!(await python.isVisible()), "one language is shown");
  await page.locator("#createRental label", { hasText: "Python" }).click();
  holds(await python.isVisible(), "the language can be chosen without scripts");
  await page.goto(`${base}/docs`);
  holds(await page.locator("noscript p").first().isVisible(), "the guide says that its forms need scripts");
  await context.close();
}
