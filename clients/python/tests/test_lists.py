"""Walks through lists."""

from rental_client import RentalClient
from support import Reply, scripted

client = RentalClient()
EVENT = {"object": "event", "api_version": "2026-05-05", "type": "lead.received", "created": 1, "data": {}}
PAGE = {"object": "list", "data": [{"id": "1", **EVENT}], "has_more": True, "next_cursor": "1"}


def test_three_pages_each_object_once_newest_first() -> None:
    created = [client.vehicles.create(name=f"List {number}", status="unavailable").id for number in range(5)]
    pages = client.vehicles.list(status="unavailable", limit=2).pages()
    walked = [[one.id for one in next(pages).data] for _ in range(3)]
    assert [len(page) for page in walked[:2]] == [2, 2]
    together = [one for page in walked for one in page]
    assert together[:5] == created[::-1] and len(set(together)) == len(together)


def test_a_loop_gives_the_objects_of_all_pages() -> None:
    whole = [one.id for one in client.vehicles.list(limit=3)]
    assert whole == [one.id for one in client.vehicles.list(limit=100)]
    assert len(whole) > 6


def test_a_loop_that_is_left_requests_no_further_page() -> None:
    with scripted(Reply(200, PAGE)) as (client, seen):
        for event in client.events.list(type="lead.received"):
            assert event.id == "1"
            break
        assert client.events.list().take(0) == []
    assert [one.url for one in seen] == ["/v1/events?type=lead.received"]


def test_a_server_that_repeats_its_cursor_does_not_make_an_endless_walk() -> None:
    with scripted(Reply(200, PAGE)) as (client, seen):
        assert len(client.events.list().take(100)) == 2
    assert len(seen) == 2
