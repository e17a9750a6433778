"""Client of the rental platform API."""

from rental_client import models
from rental_client.answer import Answer, ResponseInfo, response_of
from rental_client.client import RentalClient
from rental_client.errors import (
    ApiError,
    AuthenticationError,
    ConflictError,
    FieldError,
    IdempotencyError,
    InvalidRequestError,
    NoAnswerError,
    NoAnswerInTimeError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionFailedError,
    RateLimitError,
    RentalError,
    ServerError,
)
from rental_client.pages import Page, Pages
from rental_client.version import VERSION
from rental_client.webhooks import WebhookVerificationError, verify_webhook

__all__ = [
    "VERSION",
    "Answer",
    "ApiError",
    "AuthenticationError",
    "ConflictError",
    "FieldError",
    "IdempotencyError",
    "InvalidRequestError",
    "NoAnswerError",
    "NoAnswerInTimeError",
    "NotFoundError",
    "Page",
    "Pages",
    "PermissionDeniedError",
    "PreconditionFailedError",
    "RateLimitError",
    "RentalClient",
    "RentalError",
    "ResponseInfo",
    "ServerError",
    "WebhookVerificationError",
    "models",
    "response_of",
    "verify_webhook",
]
