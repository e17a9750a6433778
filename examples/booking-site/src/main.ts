/** Starts the site. Settings come from the environment: see README.md. */

import { RentalClient } from "@rental-platform/client";
import { Confirmations } from "./confirmations.js";
import { site } from "./site.js";

function setting(name: string): string {
  const value = process.env[name];
  if (!value) {
    console.error(`booking-site: set ${name}`);
    process.exit(2);
  }
  return value;
}

const rental = new RentalClient();
const secret = setting("WEBHOOK_SECRET");
const confirmations = new Confirmations(process.env["CONFIRMATIONS"] ?? "confirmations.jsonl");
const me = await rental.me();
const server = site({ rental, secret, confirmations, name: me.organization_name });
// A visitor who sends nothing does not hold a connection for ever.
server.requestTimeout = 10_000;
server.headersTimeout = 5_000;
const port = Number(process.env["PORT"] ?? 3000);
server.listen(port, "127.0.0.1", () => console.log(`booking-site for ${me.organization_name}: http://127.0.0.1:${port}`));
process.on("SIGINT", () => server.close(() => process.exit(0)));
