"""Lists: page by page, or object by object."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from rental_client.answer import ResponseInfo

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list."""

    data: list[T]
    has_more: bool
    next_cursor: str | None
    info: ResponseInfo


class Pages(Generic[T]):
    """A list. Nothing is requested before it is read.

    A loop gives every object and gets the next page when it needs it; leaving the loop ends the walk.
    """

    def __init__(self, get: Callable[[str | None], Page[T]]) -> None:
        self._get = get

    def first_page(self) -> Page[T]:
        """The first page only."""
        return self._get(None)

    def pages(self) -> Iterator[Page[T]]:
        """Page by page, to the end."""
        cursor = None
        while True:
            page = self._get(cursor)
            yield page
            if not page.has_more or page.next_cursor is None or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.data

    def take(self, most: int) -> list[T]:
        """The first `most` objects."""
        return list(islice(self, most))
