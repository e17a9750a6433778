/** The operations by name. One line for each group; their types follow from the path. */

import { Http, type ClientOptions, type RequestOptions } from "./http.js";
import * as operations from "./operations.js";
import type { Answer, Creates, Filters, Item, Reads, Updates } from "./operations.js";
import type { List } from "./pages.js";

/** What can be listed, read, created and changed. */
type Collection<P extends "/v1/vehicles" | "/v1/customers" | "/v1/rentals" | "/v1/blocks"> = Reads<P> &
  Creates<P> &
  Updates<P>;

type Feed = "/v1/vehicles/{id}/calendar_feed";

export interface Days {
  /** The vehicles that can be rented on all nights from `from` to `to`. A hint: the POST of the rental decides. */
  available(...filters: Filters<"/v1/availability">): List<Item<"/v1/availability">>;
  /** What holds a vehicle between two days, and who had it. */
  calendar(id: string, ...filters: Filters<"/v1/vehicles/{id}/calendar">): List<Item<"/v1/vehicles/{id}/calendar">>;
  /** Whether a vehicle has a calendar feed. */
  calendarFeed(id: string, options?: RequestOptions): Promise<Answer<Feed, "get">>;
  /** Makes the secret path of a calendar feed, shown only here. The path that the vehicle had before stops working. */
  createCalendarFeed(id: string, options?: RequestOptions): Promise<Answer<Feed, "post">>;
  deleteCalendarFeed(id: string, options?: RequestOptions): Promise<Answer<Feed, "delete">>;
}

type ExternalFeed = "/v1/calendar_feeds/{id}";

export interface CalendarFeeds extends Reads<"/v1/calendar_feeds">, Creates<"/v1/calendar_feeds"> {
  /** Reads the calendar now. `get` shows how that ended. */
  poll(id: string, options?: RequestOptions): Promise<Answer<`${ExternalFeed}/poll`, "post">>;
  /** Its blocks that have not ended are cancelled. */
  delete(id: string, options?: RequestOptions): Promise<Answer<ExternalFeed, "delete">>;
}

interface Reviews<P extends "/v1/tolls/review" | "/v1/violations/review"> {
  /** Those that a person has to look at. */
  review(...filters: Filters<P>): List<Item<P>>;
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
  readonly vehicles: Collection<"/v1/vehicles"> & Days;
  readonly customers: Collection<"/v1/customers">;
  readonly rentals: Collection<"/v1/rentals">;
  /** Nights on which a vehicle is not for rent. */
  readonly blocks: Collection<"/v1/blocks">;
  /** Calendars of others, whose events become blocks of a vehicle. */
  readonly calendarFeeds: CalendarFeeds;
  /** The operator makes them. */
  readonly invoices: Reads<"/v1/invoices">;
  /** The operator makes them of invoices. */
  readonly creditNotes: Reads<"/v1/credit_notes">;
  readonly tolls: Reads<"/v1/tolls"> & Updates<"/v1/tolls"> & Reviews<"/v1/tolls/review">;
  readonly violations: Reads<"/v1/violations"> & Updates<"/v1/violations"> & Reviews<"/v1/violations/review">;
  /** They can be created, not read. */
  readonly leads: Creates<"/v1/leads">;
  /** What webhooks deliver, oldest first. */
  readonly events: Reads<"/v1/events">;

  constructor(options: ClientOptions = {}) {
    const http = new Http(options);
    const { reads, creates, updates, list, single } = operations;
    const collection = <P extends Parameters<typeof creates>[1] & Parameters<typeof reads>[1]>(path: P) => ({
      ...reads(http, path),
      ...creates(http, path),
      ...updates(http, path),
    });
    this.me = single(http, "/v1/me");
    this.vehicles = { ...collection("/v1/vehicles"), ...days(http) };
    this.customers = collection("/v1/customers");
    this.rentals = collection("/v1/rentals");
    this.blocks = collection("/v1/blocks");
    this.calendarFeeds = {
      ...reads(http, "/v1/calendar_feeds"),
      ...creates(http, "/v1/calendar_feeds"),
      poll: operations.of(http, "/v1/calendar_feeds/{id}/poll", "post"),
      delete: operations.of(http, "/v1/calendar_feeds/{id}", "delete"),
    };
    this.invoices = reads(http, "/v1/invoices");
    this.creditNotes = reads(http, "/v1/credit_notes");
    const review = list(http, "/v1/tolls/review");
    this.tolls = { ...reads(http, "/v1/tolls"), ...updates(http, "/v1/tolls"), review };
    this.violations = {
      ...reads(http, "/v1/violations"),
      ...updates(http, "/v1/violations"),
      review: list(http, "/v1/violations/review"),
    };
    this.leads = creates(http, "/v1/leads");
    this.events = reads(http, "/v1/events");
  }
}

function days(http: Http): Days {
  const feed: Feed = "/v1/vehicles/{id}/calendar_feed";
  return {
    available: operations.list(http, "/v1/availability"),
    calendar: operations.listOf(http, "/v1/vehicles/{id}/calendar"),
    calendarFeed: operations.of(http, feed, "get"),
    createCalendarFeed: operations.of(http, feed, "post"),
    deleteCalendarFeed: operations.of(http, feed, "delete"),
  };
}
