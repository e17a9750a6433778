"""One request: headers, time-out, retries, errors. Knows no operation."""

import json
import math
import random
import re
import time
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from rental_client.answer import Answer, ResponseInfo
from rental_client.errors import NoAnswerError, NoAnswerInTimeError, RentalError, api_error
from rental_client.pages import Page, Pages
from rental_client.retry import pause_before_retry
from rental_client.values import plain
from rental_client.version import VERSION

A = TypeVar("A", bound=Answer)

#: How keys, tokens and secrets of webhooks begin. A text with one of them is in no message.
SECRET = re.compile(r"(^|[^a-z0-9])(rk|rat|op|whsec)_", re.IGNORECASE)

#: What a server without TLS makes of a handshake, in the words of several versions of OpenSSL.
NO_TLS = re.compile("wrong.version.number|packet.length.too.long|record.layer.failure", re.IGNORECASE)


class Http:
    """Sends requests with one key to one server."""

    def __init__(self, base_url: str, key: str, client: httpx.Client, max_retries: int, user_agent: str | None) -> None:
        self._base_url = _address(base_url)
        # A key that was read from a file ends in a line break.
        key = key.strip()
        if not key:
            raise RentalError("no API key: pass `api_key`, or set RENTAL_API_KEY or RENTAL_API_KEY_FILE")
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            raise RentalError(f"the API key (not shown here) {_flaw(key)}: was it copied whole, and nothing else?")
        if re.match("https?://", key):
            raise RentalError("the API key is an address: are `base_url` and `api_key` swapped?")
        own = f"rental-client-python/{VERSION}"
        self.client = client
        self._max_retries = max_retries
        self._headers = {
            "Accept": "application/json",
            "Authorization": f"Bearer {key}",
            "User-Agent": f"{user_agent} {own}" if user_agent else own,
        }

    def get(self, path: str, model: type[A]) -> A:
        """One object."""
        return self._model(self._send("GET", path, {}), model)

    def get_if_changed(self, path: str, model: type[A], etag: str) -> A | None:
        """One object, or `None` when it still is the revision `etag`."""
        response = self._send("GET", path, {"If-None-Match": etag})
        return None if response.status_code == 304 else self._model(response, model)

    def delete(self, path: str, model: type[A]) -> A:
        """Removes what is at a path, once."""
        return self._model(self._send("DELETE", path, {"Idempotency-Key": str(uuid.uuid4())}), model)

    def list(self, path: str, item: type[A], filters: Mapping[str, Any]) -> Pages[A]:
        """A list of objects."""
        query = _query(filters)

        def page(cursor: str | None) -> Page[A]:
            more = {} if cursor is None else {"starting_after": cursor}
            response = self._send("GET", path, {}, query={**query, **more})
            body = _object(response)
            try:
                data = [item.model_validate_json(json.dumps(one)) for one in body["data"]]
                return Page(data, body["has_more"], body["next_cursor"], _info(response))
            except (KeyError, TypeError, ValidationError) as error:
                raise RentalError(f"the answer to {path} is not a page of a list: {error}") from error

        return Pages(page)

    def write(
        self, method: str, path: str, model: type[A], fields: Mapping[str, Any], key: str | None, if_match: str | None
    ) -> A:
        """Creates or changes an object, once."""
        for name, value in fields.items():
            if isinstance(value, float | Decimal) and not math.isfinite(value):
                raise ValueError(f"`{name}` is {value}: pass a finite number")
        # The same bytes in each attempt: the server compares them with those of the first one.
        body = json.dumps(fields, default=plain, allow_nan=False).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key or str(uuid.uuid4())}
        if if_match is not None:
            headers["If-Match"] = if_match
        return self._model(self._send(method, path, headers, body=body), model)

    def _send(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        query: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> httpx.Response:
        retries = 0
        while True:
            try:
                return self._attempt(method, path, headers, query, body)
            except RentalError as error:
                pause = pause_before_retry(error, retries, self._max_retries, random.random())
                if pause is None:
                    raise
            time.sleep(pause)
            retries += 1

    def _attempt(
        self, method: str, path: str, headers: dict[str, str], query: dict[str, str] | None, body: bytes | None
    ) -> httpx.Response:
        try:
            # A redirect is not followed: the API sends none, and the key must not reach another host.
            response = self.client.request(
                method,
                self._base_url + path,
                params=query or None,
                content=body,
                headers={**self._headers, **headers},
                follow_redirects=False,
            )
        except httpx.TimeoutException as error:
            raise NoAnswerInTimeError(f"no answer from {self._base_url} in time: {type(error).__name__}") from error
        except httpx.RequestError as error:
            raise NoAnswerError(f"no answer from {self._base_url}: {error}{_hint(self._base_url, error)}") from error
        if not response.is_success and response.status_code != 304:
            raise api_error(response)
        return response

    def _model(self, response: httpx.Response, model: type[A]) -> A:
        try:
            answer = model.model_validate_json(response.content)
        except ValidationError as error:
            raise RentalError(f"the answer to {response.url} is not a {model.__name__}: {error}") from error
        answer._info = _info(response)
        return answer


def _address(base_url: str) -> str:
    """The base URL without slashes at its end. One that cannot be right is refused, and no secret is printed."""
    if not re.fullmatch(r"https?://[^/?#\s]+[^?#\s]*", base_url):
        if SECRET.search(base_url):
            swapped = "are `base_url` and `api_key` swapped?"
            raise RentalError(f"the base URL is a key or another secret (not shown here): {swapped}")
        raise RentalError(f"not a base URL: {base_url}; it looks like https://rental.example.com")
    address = base_url.rstrip("/")
    if address.endswith("/v1"):
        without = address.removesuffix("/v1")
        raise RentalError(f"the base URL ends in /v1: leave the /v1 away, every request adds it: {without}")
    return address


def _flaw(key: str) -> str:
    """What a text has that is in no key."""
    return "has white space inside" if re.search(r"\s", key) else "has a character that is not printable ASCII"


def _hint(address: str, error: httpx.RequestError) -> str:
    if not address.startswith("https:") or not NO_TLS.search(str(error)):
        return ""
    plain_address = address.replace("https:", "http:", 1)
    return f". The server seems to listen without TLS: use {plain_address}, or the address of its TLS proxy"


def part(identifier: str) -> str:
    """An id as a part of a path. One that would change the path is refused."""
    if not isinstance(identifier, str) or identifier in ("", ".", ".."):
        raise RentalError(f"not an id: {identifier!r}")
    return quote(identifier, safe="")


def _query(filters: Mapping[str, Any]) -> dict[str, str]:
    """Filters with the names of the API: `updated_gte` is `updated[gte]`, `from_` is `from`."""
    query = {}
    for name, value in filters.items():
        name = re.sub(r"_(gte|lt)$", r"[\1]", name).rstrip("_")
        if isinstance(value, bool):
            query[name] = "true" if value else "false"
        elif isinstance(value, str | int):
            query[name] = str(value)
        else:
            query[name] = str(plain(value))
    return query


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = json.loads(response.content)
    except ValueError as error:
        raise RentalError(f"the answer to {response.url} is not JSON. Is the base URL right?") from error
    if not isinstance(body, dict):
        raise RentalError(f"the answer to {response.url} is not a JSON object. Is the base URL right?")
    return body


def _info(response: httpx.Response) -> ResponseInfo:
    return ResponseInfo(response.status_code, response.headers)
