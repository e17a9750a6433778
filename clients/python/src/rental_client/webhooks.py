"""Verifies deliveries of webhooks, by the rules of the crate rental-webhook-verify."""

import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from pydantic import TypeAdapter, ValidationError

from rental_client.errors import RentalError
from rental_client.models import Event, KnownEvent

MOST_SIGNATURES = 16
LONGEST_HEADER = 2048
LARGEST_TIME = 2**64 - 1

TEXTS = {
    "EmptySecret": "the webhook secret is empty: set it to the `whsec_...` that was displayed at its creation",
    "SecretNotText": "the webhook secret is not a str: pass the `whsec_...` value as text, or a list of such values",
    "BodyNotRaw": "the body is not bytes: it was parsed or decoded; pass the raw bytes as they arrived "
    "(flask: `request.get_data()`, django: `request.body`, fastapi: `await request.body()`)",
    "HeaderNotText": "the signature header is not a str: pass the value of the `...-Signature` header",
    "HeaderMissing": "the request has no signature header: pass the value of the `...-Signature` header",
    "HeaderTooLong": "the signature header is too long: pass only the value of the `...-Signature` header",
    "MissingTimestamp": "the signature header has no `t=`: pass the header value unchanged",
    "DuplicateTimestamp": "the signature header has more than one `t=`: pass one header value, not several joined",
    "InvalidTimestamp": "`t` in the signature header must be digits only: pass the header value unchanged",
    "MissingSignature": "the signature header has no `v1=` (written without spaces): pass the header value unchanged",
    "TooManySignatures": "the signature header has more than 16 `v1=`: pass one header value, not several joined",
    "InvalidSignature": "a `v1` in the signature header is not 64 lower-case hex digits: pass it unchanged",
    "SignatureMismatch": "no signature matches: pass the raw body, not JSON printed again, and this webhook's own secret",
    "SecretHasWhitespace": "no signature matches, and the secret begins or ends with white space: trim it",
    "TimestampTooOld": "the delivery was signed too long ago: verify before queueing, and check this machine's clock",
    "TimestampTooNew": "the delivery was signed in the future: check this machine's clock",
    "InvalidBody": "the body is signed but is not an event",
}

_known: TypeAdapter[KnownEvent] = TypeAdapter(KnownEvent)


class WebhookVerificationError(RentalError):
    """A delivery that is not genuine or not recent, or wrong arguments. Respond 400; write the text to your log only.

    `code` says why; `SignatureMismatch` does not say whether secret, body or time differed.
    """

    def __init__(self, code: str) -> None:
        super().__init__(TEXTS[code])
        self.code = code


def verify_webhook(
    raw_body: bytes | bytearray | memoryview,
    header: str | None,
    secrets: str | Sequence[str],
    *,
    tolerance_seconds: int = 300,
    now: float | None = None,
) -> KnownEvent | Event:
    """The event of a genuine delivery; `WebhookVerificationError` for any other, and for arguments of the wrong type.

    `raw_body`: the bytes as they arrived, not JSON that was parsed and printed again. `header`: the value of
    `Service-Signature`. `secrets`: one, or several while a secret is being rotated. `now`: Unix seconds, for tests.
    An event of a type that this version does not know is an `Event`.
    """
    every = _secrets(secrets)
    if not isinstance(raw_body, bytes | bytearray | memoryview):
        raise WebhookVerificationError("BodyNotRaw")
    body = bytes(raw_body)
    moment, signatures = _parse(header)
    expected = [hmac.new(one.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest() for one in every]
    # A list: every signature is compared with every secret, in constant time.
    if not any([hmac.compare_digest(one, signature) for one in expected for signature in signatures]):
        blank = any(secret != secret.strip() for secret in every)
        raise WebhookVerificationError("SecretHasWhitespace" if blank else "SignatureMismatch")
    age = int(time.time() if now is None else now) - int(moment)
    if abs(age) > tolerance_seconds:
        raise WebhookVerificationError("TimestampTooOld" if age > 0 else "TimestampTooNew")
    return _event(body)


def _secrets(secrets: object) -> list[str]:
    """The secrets of the caller, who may have passed what `os.environ.get` gives for a variable that is not set."""
    one = isinstance(secrets, str | bytes | Mapping) or not isinstance(secrets, Iterable)
    every: list[object] = [secrets] if one else list(cast("Iterable[object]", secrets))
    if not every or any(secret is None or (isinstance(secret, str) and not secret.strip()) for secret in every):
        raise WebhookVerificationError("EmptySecret")
    texts = [secret for secret in every if isinstance(secret, str)]
    if len(texts) != len(every):
        raise WebhookVerificationError("SecretNotText")
    return texts


def _parse(header: str | None) -> tuple[str, list[str]]:
    if header is None:
        raise WebhookVerificationError("HeaderMissing")
    if not isinstance(header, str):
        raise WebhookVerificationError("HeaderNotText")
    if len(header.encode("utf-8", "surrogateescape")) > LONGEST_HEADER:
        raise WebhookVerificationError("HeaderTooLong")
    pairs = [element.partition("=")[::2] for element in header.split(",")]
    moments = [value for scheme, value in pairs if scheme == "t"]
    signatures = [value for scheme, value in pairs if scheme == "v1"]
    refused = (
        (not moments, "MissingTimestamp"),
        (len(moments) > 1, "DuplicateTimestamp"),
        (not all(_is_time(one) for one in moments), "InvalidTimestamp"),
        (not signatures, "MissingSignature"),
        (len(signatures) > MOST_SIGNATURES, "TooManySignatures"),
        (not all(re.fullmatch("[0-9a-f]{64}", one) for one in signatures), "InvalidSignature"),
    )
    for bad, code in refused:
        if bad:
            raise WebhookVerificationError(code)
    return moments[0], signatures


def _is_time(text: str) -> bool:
    return re.fullmatch("[0-9]+", text) is not None and int(text) <= LARGEST_TIME


def _event(raw_body: bytes) -> KnownEvent | Event:
    try:
        return _known.validate_json(raw_body)
    except ValidationError:
        pass
    try:
        json.loads(raw_body)
        return Event.model_validate_json(raw_body)
    except (ValueError, ValidationError):
        raise WebhookVerificationError("InvalidBody") from None
