"""When a request is sent again. No clock and no network: the decisions are functions."""

from rental_client.errors import ApiError, NoAnswerError, RentalError

#: Statuses after which the same request may succeed. 409 only for `idempotency_key_in_use`.
RETRIED = frozenset({408, 429, 500, 502, 503, 504})

#: The first pause in seconds; each further one is twice as long, up to the longest.
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0

#: A longer `Retry-After` is not waited for: the caller gets the error at once.
LONGEST_RETRY_AFTER = 10.0


def can_retry(error: RentalError) -> bool:
    """Whether the same request may succeed when it is sent again."""
    if isinstance(error, ApiError):
        return error.status in RETRIED or (error.status == 409 and error.code == "idempotency_key_in_use")
    return isinstance(error, NoAnswerError)


def pause_before_retry(error: RentalError, retries_made: int, max_retries: int, random: float) -> float | None:
    """The pause before the next attempt in seconds, or `None` when there is none.

    `random` is 0 to 1: half of the pause varies, so that clients that failed together do not return together.
    """
    if retries_made >= max_retries or not can_retry(error):
        return None
    pause = min(FIRST_PAUSE * 2.0 ** min(retries_made, 10), LONGEST_PAUSE) * (0.5 + random / 2)
    asked = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
    return None if asked > LONGEST_RETRY_AFTER else max(pause, asked)
