"""What can go wrong.

`ApiError` and its classes are answers of the API; `NoAnswerError` says that there was none. The classes follow `type`
of the error, and the status where a program acts on it.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

import httpx


class RentalError(Exception):
    """The base of every error of this package."""


class NoAnswerError(RentalError):
    """No connection, or one that broke. The request may have been carried out."""


class NoAnswerInTimeError(NoAnswerError):
    """No answer within the time-out. The request may have been carried out."""


@dataclass(frozen=True)
class FieldError:
    """One bad field or parameter."""

    param: str
    code: str
    message: str


class ApiError(RentalError):
    """An answer of the API that is not a success.

    `code` is the exact error, such as `vehicle_unavailable`: branch on it. It is `http_502` when the answer is not from the
    API. `param` is the first bad field, `errors` has all. Quote `request_id` when you ask the operator.
    """

    def __init__(self, status: int, problem: dict[str, Any], headers: httpx.Headers) -> None:
        super().__init__(problem["message"])
        self.status = status
        self.problem = problem
        self.type: str = problem["type"]
        self.code: str = problem["code"]
        self.message: str = problem["message"]
        self.param: str | None = problem.get("param")
        self.errors = [FieldError(one["param"], one["code"], one["message"]) for one in problem.get("errors", [])]
        self.request_id: str | None = problem.get("request_id") or headers.get("request-id")
        self.retry_after = retry_after(headers)

    def __str__(self) -> str:
        asked = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.status} {self.code}: {self.message}{asked}"


class AuthenticationError(ApiError):
    """401: use a live key."""


class PermissionDeniedError(ApiError):
    """403: the scope, the plan or a quota does not allow it."""


class InvalidRequestError(ApiError):
    """The request cannot be carried out as it is: 400 and other statuses."""


class NotFoundError(InvalidRequestError):
    """404: there is no such object for this key."""


class ConflictError(InvalidRequestError):
    """409: the state of another object is in the way."""

    @property
    def conflicting_rental_id(self) -> str | None:
        """The rental that holds the vehicle."""
        return self.problem.get("conflicting_rental_id")

    @property
    def conflicting_block_id(self) -> str | None:
        """The block that holds the vehicle."""
        return self.problem.get("conflicting_block_id")


class PreconditionFailedError(InvalidRequestError):
    """412: somebody else changed the object. Get it again, then repeat the change if you still want it."""


class IdempotencyError(ApiError):
    """The idempotency key belongs to another request, or its request still runs."""


class RateLimitError(ApiError):
    """429: too many requests."""


class ServerError(ApiError):
    """5xx: a fault of the server or of a proxy in front of it."""


CLASSES: dict[str, type[ApiError]] = {
    "authentication_error": AuthenticationError,
    "permission_error": PermissionDeniedError,
    "invalid_request_error": InvalidRequestError,
    "idempotency_error": IdempotencyError,
    "rate_limit_error": RateLimitError,
    "api_error": ServerError,
}
INVALID: dict[int, type[ApiError]] = {404: NotFoundError, 409: ConflictError, 412: PreconditionFailedError}


def api_error(response: httpx.Response) -> ApiError:
    """The error for an answer, which is not JSON when a proxy answered."""
    status = response.status_code
    problem = _problem(response) or {
        "type": "api_error" if status >= 500 else "unknown_error",
        "code": f"http_{status}",
        "message": f"The answer has status {status} and is not from the API. Is the base URL right?",
    }
    of_type = CLASSES.get(problem["type"], ApiError)
    if of_type is InvalidRequestError:
        of_type = INVALID.get(status, of_type)
    return of_type(status, problem, response.headers)


def _problem(response: httpx.Response) -> dict[str, Any] | None:
    try:
        problem = json.loads(response.content)["error"]
        whole = all(isinstance(problem[name], str) for name in ("type", "code", "message"))
    except (ValueError, KeyError, TypeError):
        return None
    return problem if whole else None


def retry_after(headers: httpx.Headers) -> float | None:
    """`Retry-After` in seconds; the API sends no dates, but a proxy may."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, (moment - datetime.now(timezone.utc)).total_seconds())
    except (ValueError, TypeError):
        return None
