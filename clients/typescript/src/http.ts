/** One request: headers, time-out, retries, errors. Knows no operation. */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { apiError, ConnectionError, RentalError, TimeoutError } from "./errors.js";
import { pauseBeforeRetry } from "./retry.js";
import { VERSION } from "./version.js";

export interface ClientOptions {
  /** The address of the server; by default the environment's `RENTAL_BASE_URL`. */
  baseUrl?: string;
  /** An API key; by default the environment's `RENTAL_API_KEY`, else the file that `RENTAL_API_KEY_FILE` names. Keep it on servers. */
  apiKey?: string;
  /** How often a failed request is sent again: 2. */
  maxRetries?: number;
  /** How long one attempt may take, in milliseconds: 30,000. */
  timeoutMs?: number;
  /** Put before the client's own `User-Agent`, such as `my-app/1.2`. */
  userAgent?: string;
  /** Another `fetch`, such as one with a proxy. */
  fetch?: typeof globalThis.fetch;
}

export interface RequestOptions {
  /** The client makes one for each POST and PATCH. Give your own to be safe across restarts of your program. */
  idempotencyKey?: string;
  /** The `etag` of the revision that you read: the change is refused when the object has changed since. */
  ifMatch?: string;
  /** Ends the request, its pauses and retries. */
  signal?: AbortSignal;
  timeoutMs?: number;
  maxRetries?: number;
}

/** What an answer says beside its body. */
export interface ResponseInfo {
  status: number;
  headers: Headers;
  /** Finds the request in the operator's logs. */
  requestId: string | undefined;
  /** The revision of the object, for `ifMatch`. */
  etag: string | undefined;
  /** Whether this is the stored answer to an earlier request with the same idempotency key. */
  replayed: boolean;
}

export interface Call extends RequestOptions {
  query?: object | undefined;
  body?: unknown;
  ifNoneMatch?: string;
}

/** Query values; `undefined` is left out. */
type QueryValue = string | number | boolean | undefined;

const infos = new WeakMap<object, ResponseInfo>();

/** What the answer that brought `object` said beside it: `etag`, `requestId`, headers. */
export function responseOf(object: object): ResponseInfo {
  const info = infos.get(object);
  if (!info) throw new RentalError("this object is not the answer to a request; a list has it on each page");
  return info;
}

/** The key of the environment: itself, or in the file that a variable names. */
function keyOfEnvironment(): string {
  const key = process.env["RENTAL_API_KEY"];
  const file = process.env["RENTAL_API_KEY_FILE"];
  if (key || !file) return key ?? "";
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new RentalError(`cannot read RENTAL_API_KEY_FILE: ${String(error)}`, { cause: error });
  }
}

/** What a text has that is in no key. */
function flaw(key: string): string {
  return /\s/.test(key) ? "has white space inside" : "has a character that is not printable ASCII";
}

export class Http {
  readonly #base: string;
  readonly #key: string;
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    if ("document" in globalThis)
      throw new RentalError("an API key belongs on servers: use this client in a server, never in a web page");
    this.#base = baseUrl(options.baseUrl ?? process.env["RENTAL_BASE_URL"]);
    // A key that was read from a file ends in a line break.
    const key = (options.apiKey ?? keyOfEnvironment()).trim();
    if (!key) throw new RentalError("no API key: pass `apiKey`, or set RENTAL_API_KEY or RENTAL_API_KEY_FILE");
    if (!/^[\x21-\x7e]+$/.test(key))
      throw new RentalError(`the API key (not shown here) ${flaw(key)}: was it copied whole, and nothing else?`);
    if (/^https?:\/\//.test(key))
      throw new RentalError("the API key is an address: are `baseUrl` and `apiKey` swapped?");
    this.#key = key;
    this.#options = options;
  }

  /** Sends until there is an answer that stays. Gives `undefined` for 304. */
  async send<T>(method: string, path: string, call: Call): Promise<T | undefined> {
    const url = this.#base + path + queryString(call.query);
    const headers = this.#headers(method, call);
    // The same bytes in each attempt: the server compares them with those of the first one.
    const body = call.body === undefined ? null : JSON.stringify(call.body, finite);
    const maxRetries = call.maxRetries ?? this.#options.maxRetries ?? 2;
    for (let retries = 0; ; retries += 1) {
      try {
        return await this.#attempt<T>(url, { method, headers, body }, call);
      } catch (error) {
        call.signal?.throwIfAborted();
        const pause = pauseBeforeRetry(error, retries, maxRetries, Math.random());
        if (pause === undefined) throw error;
        await sleep(pause, call.signal);
      }
    }
  }

  async #attempt<T>(url: string, request: RequestInit, call: Call): Promise<T | undefined> {
    const timeoutMs = call.timeoutMs ?? this.#options.timeoutMs ?? 30_000;
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = call.signal ? AbortSignal.any([call.signal, timeout]) : timeout;
    let response: Response;
    let text: string;
    try {
      // A redirect is not followed: the API sends none, and the key must not reach another host.
      response = await (this.#options.fetch ?? fetch)(url, { ...request, signal, redirect: "manual" });
      text = await response.text();
    } catch (cause) {
      if (timeout.aborted) throw new TimeoutError(`no answer within ${timeoutMs} ms`, { cause });
      throw new ConnectionError(`no answer from ${this.#base}: ${reason(cause)}${hint(this.#base, cause)}`, { cause });
    }
    if (response.status === 304) return undefined;
    if (!response.ok) throw apiError(response.status, response.headers, text);
    const value = parse(text, response);
    infos.set(value, info(response));
    return value as T;
  }

  #headers(method: string, call: Call): Record<string, string> {
    const own = `rental-client-typescript/${VERSION}`;
    const headers: Record<string, string> = {
      Accept: "application/json",
      Authorization: `Bearer ${this.#key}`,
      "User-Agent": this.#options.userAgent ? `${this.#options.userAgent} ${own}` : own,
    };
    if (call.body !== undefined) headers["Content-Type"] = "application/json";
    if (method !== "GET") headers["Idempotency-Key"] = call.idempotencyKey ?? randomUUID();
    if (call.ifMatch !== undefined) headers["If-Match"] = call.ifMatch;
    if (call.ifNoneMatch !== undefined) headers["If-None-Match"] = call.ifNoneMatch;
    return headers;
  }
}

/** `path` with `values` in its braces. A value that would change the path is refused. */
export function fillPath(path: string, values: Record<string, string>): string {
  return path.replace(/\{([a-z_]+)\}/g, (_, name: string) => {
    const value = values[name];
    if (typeof value !== "string" || ["", ".", ".."].includes(value))
      throw new RentalError(`\`${name}\` is not an id: ${String(value)}`);
    return encodeURIComponent(value);
  });
}

function queryString(query: object = {}): string {
  const values = Object.entries(query) as [string, QueryValue][];
  const given = values.flatMap(([name, value]) =>
    value === undefined ? [] : ([[name, String(finite(name, value))]] as const),
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(Object.fromEntries(given))}`;
}

/** A value of a body or query. JSON has no NaN: `JSON.stringify` would send null, which clears the field. */
function finite<T>(name: string, value: T): T {
  if (typeof value === "number" && !Number.isFinite(value))
    throw new RentalError(`\`${name}\` is ${value}: pass a finite number`);
  return value;
}

/** How keys, tokens and secrets of webhooks begin. A text with one of them is in no message. */
const SECRET = /(^|[^a-z0-9])(rk|rat|op|whsec)_/i;

function baseUrl(text: string | undefined): string {
  if (!text) throw new RentalError("no address: pass `baseUrl` or set RENTAL_BASE_URL");
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    if (SECRET.test(text))
      throw new RentalError("the base URL is a key or another secret (not shown here): are `baseUrl` and `apiKey` swapped?");
    throw new RentalError(`not a base URL: ${text}; it looks like https://rental.example.com`);
  }
  const base = text.replace(/\/+$/, "");
  if (base.endsWith("/v1"))
    throw new RentalError(`the base URL ends in /v1: leave the /v1 away, every request adds it: ${base.slice(0, -3)}`);
  return base;
}

function parse(text: string, response: Response): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Told below, together with JSON that is no object.
  }
  throw new RentalError(`the answer to ${response.url} is not a JSON object. Is the base URL right?`);
}

function info(response: Response): ResponseInfo {
  const { status, headers } = response;
  return {
    status,
    headers,
    requestId: headers.get("request-id") ?? undefined,
    etag: headers.get("etag") ?? undefined,
    replayed: headers.get("idempotent-replayed") === "true",
  };
}

/** `fetch failed` says nothing; its cause does. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message.trim()})` : error.message;
}

/** What a server without TLS makes of a handshake, in the words of several versions of OpenSSL. */
const NO_TLS = /wrong.version.number|packet.length.too.long|record.layer.failure/i;

function hint(base: string, error: unknown): string {
  if (!base.startsWith("https:") || !NO_TLS.test(reason(error))) return "";
  return `. The server seems to listen without TLS: use ${base.replace("https:", "http:")}, or the address of its TLS proxy`;
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}
