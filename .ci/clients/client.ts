// Compiled with `tsc --strict` against the types that openapi-typescript makes, then run on a demo server.
import createClient from "openapi-fetch";
import type { components, paths, webhooks } from "./schema.js";

declare const process: { env: Record<string, string | undefined> };

const client = createClient<paths>({
  baseUrl: process.env["RENTAL_BASE_URL"] ?? "",
  headers: { Authorization: `Bearer ${process.env["RENTAL_API_KEY"]}` },
});

function must<T>(reply: { data?: T; error?: unknown }): T {
  if (reply.data === undefined) throw new Error(JSON.stringify(reply.error));
  return reply.data;
}

function equal<T>(found: T, expected: T): void {
  if (found !== expected) throw new Error(`${found} is not ${expected}`);
}

// Only the fields that the API requires.
const lead: components["schemas"]["LeadCreate"] = { raw_data: { message: "Need an SUV in June", seats: 7 } };
const created = must(await client.POST("/v1/leads", { body: lead }));
equal(created.raw_data?.["seats"], 7);
equal(created.source_channel, "api");

const vehicle = must(await client.POST("/v1/vehicles", { body: { name: "Red Corolla", daily_rate: 1234567.89 } }));
equal(vehicle.daily_rate, 1234567.89);
equal(vehicle.status, "available");

const patched = await client.PATCH("/v1/vehicles/{id}", {
  params: { path: { id: vehicle.id } },
  body: { status: "maintenance" },
});
equal(must(patched).status, "maintenance");

const invoices = must(await client.GET("/v1/invoices", { params: { query: { limit: 1 } } }));
const lines = invoices.data.flatMap((invoice) => invoice.lines);
if (lines.length === 0) throw new Error("the demo has an invoice with lines");
for (const line of lines) {
  const amount: number = line.amount;
  const billed: string | null = line.rental_id ?? line.toll_id ?? line.violation_id;
  if (!(amount >= 0) || line.description.length === 0) throw new Error(`${billed}`);
}

// The type of an event decides the type of its data.
type WebhookEvent = webhooks[keyof webhooks]["post"]["requestBody"]["content"]["application/json"];
function receive(event: WebhookEvent): string {
  switch (event.type) {
    case "vehicle.created":
      return event.data.name;
    case "invoice.paid":
      return event.data.total.toFixed(2);
    default:
      return event.data.id;
  }
}
const event: WebhookEvent = { id: vehicle.id, object: "event", api_version: "2026-05-05", type: "vehicle.created", created: 1, data: vehicle };
equal(receive(event), "Red Corolla");
console.log("TypeScript: compiled, created a lead and a vehicle, read the lines of an invoice");
