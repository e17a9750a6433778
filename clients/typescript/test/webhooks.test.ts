/** The verdicts are those of the crate rental-webhook-verify, and a delivery of the server verifies. */

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { verifyWebhook, WebhookVerificationError, type WebhookEvent } from "@rental-platform/client";
import { client, environment, operator, serve } from "./support.js";

interface Vector {
  name: string;
  result: string;
  header: string;
  secrets: string[];
  body: string;
  now: number;
  tolerance: number;
}

const vectors = JSON.parse(readFileSync(environment("RENTAL_WEBHOOK_VECTORS"), "utf8")) as Vector[];

for (const { name, result, header, secrets, body, now, tolerance } of vectors) {
  test(`${name}: ${result}`, () => {
    for (const raw of [body, new TextEncoder().encode(body)]) {
      let found = "Ok";
      try {
        assert.equal(verifyWebhook(raw, header, secrets, { now, toleranceSeconds: tolerance }).type, "vehicle.created");
      } catch (error) {
        assert.ok(error instanceof WebhookVerificationError, String(error));
        found = error.code;
        assert.ok(!secrets.some((secret) => secret.trim() && error.message.includes(secret)));
      }
      assert.equal(found, result);
    }
  });
}

test("no header, and a signed body that is no event", () => {
  const refused = (body: string, header: string | undefined) => {
    try {
      verifyWebhook(body, header, "whsec_1", { now: 1 });
    } catch (error) {
      return error instanceof WebhookVerificationError && error.code;
    }
    return "Ok";
  };
  assert.equal(refused("{}", undefined), "HeaderMissing");
  for (const body of ["null", "{", "[]", "{}", '"text"']) {
    const v1 = createHmac("sha256", "whsec_1").update(`1.${body}`).digest("hex");
    assert.equal(refused(body, `t=1,v1=${v1}`), "InvalidBody", body);
  }
});

/** The mistakes of a receiver's program, which types do not catch in JavaScript. */
function mistake(body: unknown, header: unknown, secrets: unknown): string {
  try {
    verifyWebhook(body as string, header as string, secrets as string);
  } catch (error) {
    assert.ok(error instanceof WebhookVerificationError, String(error));
    return `${error.code}: ${error.message}`;
  }
  return "Ok";
}

test("a secret that is missing, or no text, is named before anything else", () => {
  for (const secrets of [undefined, null, "", " ", [], [undefined], ["whsec_1", null]])
    assert.match(mistake("{}", undefined, secrets), /^EmptySecret: the webhook secret is empty: set /);
  for (const secrets of [7, [7], Buffer.from("whsec_1"), { secret: "whsec_1" }, ["whsec_1", {}]])
    assert.match(mistake("{}", undefined, secrets), /^SecretNotText: the webhook secret is not a string/);
});

test("a body that was parsed, or never read, is named", () => {
  for (const body of [{ type: "customer.created" }, [], null, undefined, 7])
    assert.match(mistake(body, "t=1,v1=0", "whsec_1"), /^BodyNotRaw: the body is not raw bytes.*parsed/);
});

test("a header of another type is named", () => {
  for (const header of [7, {}, [7]]) assert.match(mistake("{}", header, "whsec_1"), /^HeaderNotText: /);
  assert.match(mistake("{}", null, "whsec_1"), /^HeaderMissing: /);
});

test("a delivery of the server verifies and has its type", async (context) => {
  let arrived: (event: WebhookEvent) => void = () => {};
  const received = new Promise<WebhookEvent>((resolve) => (arrived = resolve));
  let secret = "";
  const url = await serve(context, async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const event = verifyWebhook(Buffer.concat(parts), request.headers["service-signature"], secret);
    response.writeHead(204).end();
    arrived(event);
  });
  const { organization_id } = await client.me();
  const endpoint = await operator("POST", "webhook_endpoints", { organization_id, url, events: ["lead.received"] });
  context.after(() => operator("DELETE", `webhook_endpoints/${endpoint["id"]}`));
  secret = endpoint["secret"] ?? "";
  const lead = await client.leads.create({ source_channel: "website" });
  const event = await received;
  assert.ok(event.type === "lead.received");
  assert.equal(event.data.id, lead.id);
});
