/** Verifies deliveries of webhooks, by the rules of the crate rental-webhook-verify. */

import { createHmac, timingSafeEqual } from "node:crypto";
import { RentalError } from "./errors.js";
import type { components, webhooks } from "./schema.js";

/** An event of any type that this version knows: `type` decides the type of `data`. */
export type WebhookEvent = webhooks[keyof webhooks]["post"]["requestBody"]["content"]["application/json"];

/** An event of a type that this version does not know has this shape. */
export type AnyEvent = components["schemas"]["Event"];

/** Why a delivery was refused; `SignatureMismatch` does not say whether secret, body or time differed. */
export type WebhookErrorCode = keyof typeof TEXTS;

const TEXTS = {
  EmptySecret: "the webhook secret is empty: set it to the `whsec_...` value displayed when the webhook was created",
  SecretNotText: "the webhook secret is not a string: pass the `whsec_...` value as text, or an array of such values",
  BodyNotRaw:
    "the body is not raw bytes: it was parsed, or nothing has read it. Pass the bytes as they arrived " +
    '(express: `express.raw({ type: "application/json" })` for this route; fastify: `parseAs: "buffer"`)',
  HeaderNotText: "the signature header is not a string: pass the value of the `...-Signature` header",
  HeaderMissing: "the request has no signature header: pass the value of the `...-Signature` header",
  HeaderTooLong: "the signature header is too long: pass only the value of the `...-Signature` header",
  MissingTimestamp: "the signature header has no `t=`: pass the value of the `...-Signature` header unchanged",
  DuplicateTimestamp:
    "the signature header has more than one `t=`: pass one header value, not several joined by a proxy",
  InvalidTimestamp: "`t` in the signature header must be digits only: pass the header value unchanged",
  MissingSignature: "the signature header has no `v1=` (written without spaces): pass the header value unchanged",
  TooManySignatures:
    "the signature header has more than 16 `v1=`: pass one header value, not several joined by a proxy",
  InvalidSignature: "a `v1` in the signature header is not 64 lower-case hex digits: pass the header value unchanged",
  SignatureMismatch: "no signature matches: pass the raw body, not re-serialised JSON, and this webhook's own secret",
  SecretHasWhitespace:
    "no signature matches, and the secret begins or ends with white space: trim it (a newline at the end of a file?)",
  TimestampTooOld: "the delivery was signed too long ago: verify before queueing, and check this machine's clock",
  TimestampTooNew: "the delivery was signed in the future: check this machine's clock",
  InvalidBody: "the body is signed but is not an event",
} as const;

const MOST_SIGNATURES = 16;
const LONGEST_HEADER = 2048;
const LARGEST_TIME = 2n ** 64n - 1n;

/** A delivery that is not genuine or not recent, or wrong arguments. Respond 400; write `message` to your log only. */
export class WebhookVerificationError extends RentalError {
  constructor(readonly code: WebhookErrorCode) {
    super(TEXTS[code]);
  }
}

export interface VerifyOptions {
  /** How far `t` and this machine's clock may be apart, in seconds: 300. */
  toleranceSeconds?: number;
  /** Unix seconds, for tests. */
  now?: number;
}

/**
 * Gives the event of a genuine delivery and throws `WebhookVerificationError` for any other, and for arguments of the
 * wrong type, such as a secret that is `undefined` or a body that was parsed.
 *
 * `rawBody`: the bytes as they arrived, not JSON that was parsed and printed again. `header`: the value of
 * `Service-Signature`. `secrets`: one, or several while a secret is being rotated.
 */
export function verifyWebhook(
  rawBody: Uint8Array | string,
  header: string | string[] | null | undefined,
  secrets: string | readonly string[],
  options: VerifyOptions = {},
): WebhookEvent {
  const all = checkSecrets(secrets);
  if (typeof rawBody !== "string" && !((rawBody as unknown) instanceof Uint8Array))
    throw new WebhookVerificationError("BodyNotRaw");
  const { time, signatures } = parseHeader(checkHeader(header));
  let genuine = false;
  for (const secret of all) {
    const expected = createHmac("sha256", secret).update(`${time}.`).update(rawBody).digest();
    // Every signature is compared with every secret, in constant time.
    for (const one of signatures) genuine = timingSafeEqual(expected, Buffer.from(one, "hex")) || genuine;
  }
  if (!genuine) {
    const blank = all.some((secret) => secret !== secret.trim());
    throw new WebhookVerificationError(blank ? "SecretHasWhitespace" : "SignatureMismatch");
  }
  const age = BigInt(Math.floor(options.now ?? Date.now() / 1000)) - BigInt(time);
  const tolerance = BigInt(Math.floor(options.toleranceSeconds ?? 300));
  if (age > tolerance) throw new WebhookVerificationError("TimestampTooOld");
  if (age < -tolerance) throw new WebhookVerificationError("TimestampTooNew");
  return parseEvent(rawBody);
}

/** JavaScript callers have no types: an unset environment variable arrives here as `undefined`. */
function checkSecrets(secrets: unknown): string[] {
  const all: unknown[] = Array.isArray(secrets) ? secrets : [secrets];
  const isText = (secret: unknown) => typeof secret === "string";
  const isMissing = (secret: unknown) => secret === undefined || secret === null || (isText(secret) && !secret.trim());
  if (all.length === 0 || all.some(isMissing)) throw new WebhookVerificationError("EmptySecret");
  if (!all.every(isText)) throw new WebhookVerificationError("SecretNotText");
  return all;
}

function checkHeader(header: unknown): string | undefined {
  if (header === undefined || header === null) return undefined;
  const values: unknown[] = Array.isArray(header) ? header : [header];
  if (!values.every((value) => typeof value === "string")) throw new WebhookVerificationError("HeaderNotText");
  return values.join(",");
}

function parseHeader(header: string | undefined): { time: string; signatures: string[] } {
  const refuse = (code: WebhookErrorCode) => new WebhookVerificationError(code);
  if (header === undefined) throw refuse("HeaderMissing");
  if (Buffer.byteLength(header) > LONGEST_HEADER) throw refuse("HeaderTooLong");
  const values = (scheme: string) =>
    header
      .split(",")
      .filter((one) => one.split("=", 1)[0] === scheme)
      .map((one) => one.slice(scheme.length + 1));
  const [time, ...further] = values("t");
  const signatures = values("v1");
  if (time === undefined) throw refuse("MissingTimestamp");
  if (further.length > 0) throw refuse("DuplicateTimestamp");
  if (!/^[0-9]+$/.test(time) || BigInt(time) > LARGEST_TIME) throw refuse("InvalidTimestamp");
  if (signatures.length === 0) throw refuse("MissingSignature");
  if (signatures.length > MOST_SIGNATURES) throw refuse("TooManySignatures");
  if (!signatures.every((one) => /^[0-9a-f]{64}$/.test(one))) throw refuse("InvalidSignature");
  return { time, signatures };
}

function parseEvent(rawBody: Uint8Array | string): WebhookEvent {
  try {
    const text = typeof rawBody === "string" ? rawBody : new TextDecoder("utf-8", { fatal: true }).decode(rawBody);
    const event = JSON.parse(text) as WebhookEvent | null;
    if (typeof event?.id === "string" && typeof event.type === "string") return event;
  } catch {
    // Told below, together with JSON that is no event.
  }
  throw new WebhookVerificationError("InvalidBody");
}
