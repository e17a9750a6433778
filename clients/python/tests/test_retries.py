"""What is sent again, with which key, after which pause; and that a lost answer changes nothing twice."""

import time

import pytest
from rental_client import (
    ApiError,
    NoAnswerError,
    NoAnswerInTimeError,
    RentalClient,
    RentalError,
    ServerError,
    response_of,
)
from support import Answer, Reply, closed_port, dropping_proxy, problem, scripted

VEHICLE = {
    "id": "1", "object": "vehicle", "name": "White Tesla", "make": None, "model": None, "year": None, "color": None,
    "plate": None, "plate_state": None, "transponder_number": None, "turo_listing_id": None, "daily_rate": 89.5,
    "deposit_amount": None, "currency": "USD", "status": "a_status_of_later", "organization_id": "1",
    "created_at": "2026-05-05T09:30:00.000Z", "updated_at": "2026-05-05T09:30:00.000Z", "a_field_of_later": 1,
}  # fmt: skip
DONE = Reply(200, VEHICLE)
UNAVAILABLE = problem(503, "api_error", "service_unavailable")
client = RentalClient()


@pytest.mark.parametrize("lost", [1, 2])
def test_a_post_whose_answer_is_lost_creates_one_object(lost: int) -> None:
    email = f"dropped-{lost}-{time.time_ns()}@example.com"
    with dropping_proxy(lost) as (proxied, forwarded):
        created = proxied.customers.create(full_name="Ada Lovelace", email=email)
    assert [one.id for one in client.customers.list(email=email)] == [created.id]
    assert response_of(created).replayed
    assert len(forwarded) == lost + 1
    assert len({(one.headers["idempotency-key"], one.body) for one in forwarded}) == 1


def test_a_patch_with_if_match_whose_answer_is_lost_is_not_a_conflict_with_itself() -> None:
    before = client.vehicles.create(name="White Tesla")
    with dropping_proxy(1) as (proxied, forwarded):
        changed = proxied.vehicles.update(before.id, color="White", if_match=response_of(before).etag)
    assert changed.color == "White" and len(forwarded) == 2


@pytest.mark.parametrize(
    "answer", [*(problem(status, "api_error", "again") for status in (408, 429, 500, 502, 503, 504)), None]
)
def test_sent_again(answer: Answer) -> None:
    with scripted(answer, DONE) as (client, seen):
        created = client.vehicles.create(name="White Tesla")
    assert len(seen) == 2 and len({one.headers["idempotency-key"] for one in seen}) == 1
    assert created.status == "a_status_of_later" and created.model_extra == {"a_field_of_later": 1}


def test_a_request_that_still_runs_is_waited_for() -> None:
    with scripted(problem(409, "idempotency_error", "idempotency_key_in_use"), DONE) as (client, seen):
        client.vehicles.create(name="White Tesla")
    assert len(seen) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 413, 415, 422])
def test_not_sent_again(status: int) -> None:
    with scripted(problem(status, "invalid_request_error", "no"), DONE) as (client, seen):
        with pytest.raises(ApiError) as caught:
            client.vehicles.create(name="White Tesla")
    assert (caught.value.status, caught.value.code, len(seen)) == (status, "no", 1)


def test_two_retries_then_the_error() -> None:
    with scripted(UNAVAILABLE) as (client, seen), pytest.raises(ServerError):
        client.vehicles.get("1")
    first, second = (after.at - before.at for before, after in zip(seen, seen[1:], strict=False))
    assert len(seen) == 3 and 0.24 < first < 1.5 and 0.49 < second < 2.5


def test_max_retries_0_sends_once() -> None:
    with scripted(None, max_retries=0) as (client, seen), pytest.raises(NoAnswerError):
        client.vehicles.get("1")
    assert len(seen) == 1


def test_the_pause_is_at_least_retry_after() -> None:
    with scripted(problem(503, "api_error", "service_unavailable", {"Retry-After": "1"}), DONE) as (client, seen):
        client.vehicles.get("1")
    assert seen[1].at - seen[0].at >= 0.99


def test_a_retry_after_of_more_than_10_seconds_is_left_to_the_caller() -> None:
    with scripted(problem(503, "api_error", "service_unavailable", {"Retry-After": "11"})) as (client, seen):
        with pytest.raises(ServerError) as caught:
            client.vehicles.get("1")
    assert caught.value.retry_after == 11 and len(seen) == 1


def test_your_own_idempotency_key_is_sent() -> None:
    with scripted(DONE) as (client, seen):
        client.vehicles.create(name="White Tesla", idempotency_key="order-1042")
        client.vehicles.get("1")
    assert [one.headers.get("idempotency-key") for one in seen] == ["order-1042", None]


def test_no_answer_in_time() -> None:
    with scripted(DONE) as (unused, seen):
        del unused
    with pytest.raises(NoAnswerError, match="refused"):
        RentalClient(closed_port(), max_retries=0).me()
    assert seen == []

    def slow() -> Reply:
        time.sleep(0.5)
        return DONE

    class Slow(Reply):
        def text(self) -> bytes:
            return slow().text()

    with scripted(Slow(200), timeout=0.1, max_retries=1) as (client, seen), pytest.raises(NoAnswerInTimeError):
        client.vehicles.get("1")
    assert len(seen) == 2


def test_a_redirect_is_not_followed() -> None:
    with scripted(Reply(307, {}, {"Location": "/elsewhere"})) as (client, seen), pytest.raises(ApiError) as caught:
        client.vehicles.get("1")
    assert caught.value.code == "http_307" and len(seen) == 1


def test_an_id_cannot_change_the_path() -> None:
    with scripted(DONE) as (client, seen):
        client.vehicles.get("../me?x=1#")
        for bad in ("", ".", ".."):
            with pytest.raises(RentalError):
                client.vehicles.get(bad)
    assert [one.url for one in seen] == ["/v1/vehicles/..%2Fme%3Fx%3D1%23"]
