"""The base of every object that the API answers, and what the answer says beside it."""

from dataclasses import dataclass

import httpx
from pydantic import BaseModel, PrivateAttr

from rental_client.errors import RentalError


@dataclass(frozen=True)
class ResponseInfo:
    """What an answer says beside its body."""

    status: int
    headers: httpx.Headers

    @property
    def request_id(self) -> str | None:
        """Finds the request in the operator's logs."""
        return _text(self.headers, "request-id")

    @property
    def etag(self) -> str | None:
        """The revision of the object, for `if_match`."""
        return _text(self.headers, "etag")

    @property
    def replayed(self) -> bool:
        """Whether this is the stored answer to an earlier request with the same idempotency key."""
        return _text(self.headers, "idempotent-replayed") == "true"


def _text(headers: httpx.Headers, name: str) -> str | None:
    value = headers.get(name)
    return value if isinstance(value, str) else None


class Answer(BaseModel):
    """An object of the API. Fields that this version does not know are kept."""

    _info: ResponseInfo | None = PrivateAttr(default=None)

    def __eq__(self, other: object) -> bool:
        """The same fields; the same object in two answers is equal."""
        return type(self) is type(other) and isinstance(other, Answer) and self.model_dump() == other.model_dump()


def response_of(answer: Answer) -> ResponseInfo:
    """What the answer that brought an object said beside it: `etag`, `request_id`, headers."""
    if answer._info is None:
        raise RentalError("this object is not the answer to a request; a list has it on each page")
    return answer._info
