/** When a request is sent again. No clock and no network: the decisions are functions. */

import { ApiError, ConnectionError } from "./errors.js";

/** Statuses after which the same request may succeed. 409 only for `idempotency_key_in_use`. */
const RETRIED: readonly number[] = [408, 429, 500, 502, 503, 504];

/** The first pause; each further one is twice as long, up to the longest. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;

/** A longer `Retry-After` is not waited for: the caller gets the error at once. */
const LONGEST_RETRY_AFTER_MS = 10_000;

/** Whether the same request may succeed when it is sent again. */
export function canRetry(error: unknown): boolean {
  if (error instanceof ConnectionError) return true;
  if (!(error instanceof ApiError)) return false;
  return RETRIED.includes(error.status) || (error.status === 409 && error.code === "idempotency_key_in_use");
}

/**
 * The pause before the next attempt in milliseconds, or `undefined` when there is none. `random` is 0 to 1: half of the
 * pause varies, so that clients that failed together do not return together.
 */
export function pauseBeforeRetry(
  error: unknown,
  retriesMade: number,
  maxRetries: number,
  random: number,
): number | undefined {
  if (retriesMade >= maxRetries || !canRetry(error)) return undefined;
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** retriesMade, LONGEST_PAUSE_MS) * (0.5 + random / 2);
  const asked = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  return asked > LONGEST_RETRY_AFTER_MS ? undefined : Math.max(pause, asked);
}
