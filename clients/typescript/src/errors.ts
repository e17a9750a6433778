/**
 * What can go wrong. `ApiError` and its classes are answers of the API; `ConnectionError` and `TimeoutError` say that
 * there was none. The classes follow `type` of the error, and the status where a program acts on it.
 */

/** The base of every error of this package. */
export class RentalError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No answer: no connection, or one that broke. The request may have been carried out. */
export class ConnectionError extends RentalError {}

/** No answer within the time-out. The request may have been carried out. */
export class TimeoutError extends ConnectionError {}

/** One bad field or parameter. */
export interface FieldError {
  param: string;
  code: string;
  message: string;
}

/** What the API says about an error. */
export interface Problem {
  type: string;
  code: string;
  message: string;
  param?: string;
  errors?: FieldError[];
  conflicting_rental_id?: string;
  conflicting_block_id?: string;
  request_id?: string;
}

/** An answer of the API that is not a success. */
export class ApiError extends RentalError {
  /** The class of the error, such as `invalid_request_error`. */
  readonly type: string;
  /** The exact error, such as `vehicle_unavailable`: branch on this. `http_502` when the answer is not from the API. */
  readonly code: string;
  /** The first bad field or parameter. */
  readonly param: string | undefined;
  /** Every bad field or parameter. */
  readonly errors: readonly FieldError[];
  /** Quote it when you ask the operator. */
  readonly requestId: string | undefined;
  /** The pause that the server asks for. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    readonly status: number,
    readonly problem: Problem,
    headers: Headers,
  ) {
    super(problem.message);
    this.type = problem.type;
    this.code = problem.code;
    this.param = problem.param;
    this.errors = problem.errors ?? [];
    this.requestId = problem.request_id ?? headers.get("request-id") ?? undefined;
    this.retryAfterSeconds = retryAfterSeconds(headers);
  }
}

/** 401: use a live key. */
export class AuthenticationError extends ApiError {}

/** 403: the scope, the plan or a quota does not allow it. */
export class PermissionError extends ApiError {}

/** The request cannot be carried out as it is: 400 and other statuses. `errors` names every bad field. */
export class InvalidRequestError extends ApiError {}

/** 404: there is no such object for this key. */
export class NotFoundError extends InvalidRequestError {}

/** 409: the state of another object is in the way. */
export class ConflictError extends InvalidRequestError {
  /** The rental that holds the vehicle. */
  get conflictingRentalId(): string | undefined {
    return this.problem.conflicting_rental_id;
  }

  /** The block that holds the vehicle. */
  get conflictingBlockId(): string | undefined {
    return this.problem.conflicting_block_id;
  }
}

/** 412: somebody else changed the object. Get it again, then repeat the change if you still want it. */
export class PreconditionFailedError extends InvalidRequestError {}

/** The idempotency key belongs to another request, or its request still runs. */
export class IdempotencyError extends ApiError {}

/** 429: too many requests. */
export class RateLimitError extends ApiError {}

/** 5xx: a fault of the server or of a proxy in front of it. */
export class ServerError extends ApiError {}

/** The error for an answer. `body` is its text, which is not JSON when a proxy answered. */
export function apiError(status: number, headers: Headers, body: string): ApiError {
  const problem = parseProblem(body) ?? {
    type: status >= 500 ? "api_error" : "unknown_error",
    code: `http_${status}`,
    message: `The answer has status ${status} and is not from the API. Is the base URL right?`,
  };
  return new (classOf(status, problem.type))(status, problem, headers);
}

function classOf(status: number, type: string): typeof ApiError {
  switch (type) {
    case "authentication_error":
      return AuthenticationError;
    case "permission_error":
      return PermissionError;
    case "idempotency_error":
      return IdempotencyError;
    case "rate_limit_error":
      return RateLimitError;
    case "api_error":
      return ServerError;
    case "invalid_request_error":
      if (status === 404) return NotFoundError;
      if (status === 409) return ConflictError;
      if (status === 412) return PreconditionFailedError;
      return InvalidRequestError;
    default:
      return ApiError;
  }
}

function parseProblem(body: string): Problem | undefined {
  try {
    const problem = (JSON.parse(body) as { error?: Partial<Problem> } | null)?.error;
    const whole = [problem?.type, problem?.code, problem?.message].every((text) => typeof text === "string");
    return whole ? (problem as Problem) : undefined;
  } catch {
    return undefined;
  }
}

/** `Retry-After` in seconds; the API sends no dates, but a proxy may. */
export function retryAfterSeconds(headers: Headers, now = Date.now()): number | undefined {
  const text = headers.get("retry-after")?.trim();
  if (!text) return undefined;
  if (/^[0-9]+$/.test(text)) return Number(text);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}
