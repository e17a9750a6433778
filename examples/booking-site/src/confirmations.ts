/**
 * What webhooks have told about bookings, by booking code. Kept in a file, one line for each event, so that a restart
 * forgets nothing. A real site inserts into a table with the event's id as its unique key instead.
 */

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { WebhookEvent } from "@rental-platform/client";

interface Told {
  event: string;
  code: string;
  status: string;
  at: string;
}

export class Confirmations {
  readonly #seen = new Set<string>();
  readonly #latest = new Map<string, Told>();

  constructor(readonly file: string) {
    if (!existsSync(file)) return;
    for (const line of readFileSync(file, "utf8").split("\n")) if (line) this.#remember(JSON.parse(line) as Told);
  }

  /** Takes an event of a rental. Deliveries can come twice and in any order: see docs/webhooks.md. */
  take(event: WebhookEvent): void {
    if (!event.type.startsWith("rental.") || this.#seen.has(event.id)) return;
    const { booking_id, status, updated_at } = event.data as { booking_id: string | null; status: string; updated_at: string };
    if (booking_id === null) return;
    const told = { event: event.id, code: booking_id, status, at: updated_at };
    appendFileSync(this.file, `${JSON.stringify(told)}\n`);
    this.#remember(told);
  }

  /** The last status that a webhook has told, if one has. */
  status(code: string): string | undefined {
    return this.#latest.get(code)?.status;
  }

  #remember(told: Told): void {
    this.#seen.add(told.event);
    const latest = this.#latest.get(told.code);
    if (!latest || latest.at < told.at) this.#latest.set(told.code, told);
  }
}
