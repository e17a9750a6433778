/** The operations by name. One line for each group; their types follow from the path. */

import { Http, type ClientOptions, type RequestOptions } from "./http.js";
import * as operations from "./operations.js";
import type { Answer, Creates, Filters, Item, Reads, Updates } from "./operations.js";
import type { List } from "./pages.js";

/** What can be listed, read, created and changed. */
type Collection<P extends "/v1/vehicles" | "/v1/customers" | "/v1/rentals" | "/v1/blocks"> = Reads<P> &
  Creates<P> &
  Updates<P>;

export interface Availability {
  /** The vehicles that can be rented on all nights from `from` to `to`. A hint: the POST of the rental decides. */
  available(...filters: Filters<"/v1/availability">): List<Item<"/v1/availability">>;
  /** What holds a vehicle between two days, and who had it. */
  calendar(id: string, ...filters: Filters<"/v1/vehicles/{id}/calendar">): List<Item<"/v1/vehicles/{id}/calendar">>;
}

/**
 * The API of one organization: the one that the key belongs to.
 *
 * Failed requests are sent again when that can help. POST and PATCH carry an idempotency key, the same in every attempt,
 * so they take effect once.
 */
export class RentalClient {
  /** Which organization and key these are, and which limits apply. A test of a new key. */
  readonly me: (options?: RequestOptions) => Promise<Answer<"/v1/me", "get">>;
  readonly vehicles: Collection<"/v1/vehicles"> & Availability;
  readonly customers: Collection<"/v1/customers">;
  readonly rentals: Collection<"/v1/rentals">;
  /** Nights on which a vehicle is not for rent. */
  readonly blocks: Collection<"/v1/blocks">;
  /** The operator makes them. */
  readonly invoices: Reads<"/v1/invoices">;
  readonly tolls: Reads<"/v1/tolls"> & Updates<"/v1/tolls">;
  readonly violations: Reads<"/v1/violations"> & Updates<"/v1/violations">;
  /** They can be created, not read. */
  readonly leads: Creates<"/v1/leads">;
  /** What webhooks deliver, oldest first. */
  readonly events: Reads<"/v1/events">;

  constructor(options: ClientOptions = {}) {
    const http = new Http(options);
    const { reads, creates, updates, list, listOf, single } = operations;
    const collection = <P extends Parameters<typeof creates>[1] & Parameters<typeof reads>[1]>(path: P) => ({
      ...reads(http, path),
      ...creates(http, path),
      ...updates(http, path),
    });
    this.me = single(http, "/v1/me");
    const available = list(http, "/v1/availability");
    const calendar = listOf(http, "/v1/vehicles/{id}/calendar");
    this.vehicles = { ...collection("/v1/vehicles"), available, calendar };
    this.customers = collection("/v1/customers");
    this.rentals = collection("/v1/rentals");
    this.blocks = collection("/v1/blocks");
    this.invoices = reads(http, "/v1/invoices");
    this.tolls = { ...reads(http, "/v1/tolls"), ...updates(http, "/v1/tolls") };
    this.violations = { ...reads(http, "/v1/violations"), ...updates(http, "/v1/violations") };
    this.leads = creates(http, "/v1/leads");
    this.events = reads(http, "/v1/events");
  }
}
