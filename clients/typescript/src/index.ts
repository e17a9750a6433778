/** Client of the rental platform API. */

import type { components } from "./schema.js";

export { RentalClient } from "./client.js";
export {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionError,
  IdempotencyError,
  InvalidRequestError,
  NotFoundError,
  PermissionError,
  PreconditionFailedError,
  RateLimitError,
  RentalError,
  ServerError,
  TimeoutError,
} from "./errors.js";
export type { FieldError, Problem } from "./errors.js";
export { responseOf, type ClientOptions, type RequestOptions, type ResponseInfo } from "./http.js";
export { List, type Page } from "./pages.js";
export { verifyWebhook, WebhookVerificationError } from "./webhooks.js";
export type { AnyEvent, VerifyOptions, WebhookErrorCode, WebhookEvent } from "./webhooks.js";
export { VERSION } from "./version.js";

/** Every schema of the API by its name: `Schemas["Vehicle"]`, `Schemas["RentalCreate"]`. */
export type Schemas = components["schemas"];
