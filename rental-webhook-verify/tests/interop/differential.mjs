// Verdicts of another implementation, for tests/it/interop.rs.
//
// usage: differential.mjs (stripe | RECIPE.mjs) CASES
//
// CASES holds one JSON object a line: id, secret, header, body (the last three in hex) and now. Prints for each a
// line {"id", "accepted"}; the Stripe SDK also signs the body itself ("signed", a header). Exits with 77 when the SDK
// is not installed; it is looked for in NODE_PATH too.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

function withStripe() {
  let webhooks;
  try {
    const loaded = createRequire(import.meta.url)("stripe");
    webhooks = (loaded.default ?? loaded).webhooks;
  } catch (error) {
    if (error.code === "MODULE_NOT_FOUND") process.exit(77);
    throw error;
  }
  return (secret, header, body, now) => {
    let accepted = false;
    try {
      accepted = webhooks.signature.verifyHeader(body, header, secret.toString(), 300, undefined, now * 1000);
    } catch {
      // Any failure is a refusal: an empty v1 raises a plain Error.
    }
    const signing = { payload: body.toString(), secret: secret.toString(), timestamp: now };
    return { accepted, signed: webhooks.generateTestHeaderString(signing) };
  };
}

async function withRecipe(path) {
  const { verify } = await import(pathToFileURL(path));
  return (secret, header, body, now) => ({ accepted: verify(secret, header, body, now) });
}

const [which, cases] = process.argv.slice(2);
const answer = which === "stripe" ? withStripe() : await withRecipe(which);
for (const line of readFileSync(cases, "utf8").split("\n").filter(Boolean)) {
  const { id, secret, header, body, now } = JSON.parse(line);
  const bytes = [secret, header, body].map((text) => Buffer.from(text, "hex"));
  console.log(JSON.stringify({ id, ...answer(bytes[0], bytes[1].toString(), bytes[2], now) }));
}
