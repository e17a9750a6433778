"""The classes of errors, those that a real server causes and others; what is refused before it is sent."""

import os
import time
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import rental_client as rental
from rental_client import RentalClient
from support import BASE, Reply, problem, scripted

client = RentalClient()


def error_of(call: Callable[[], Any]) -> rental.ApiError:
    with pytest.raises(rental.ApiError) as caught:
        call()
    assert (caught.value.request_id or "").startswith("req_")
    return caught.value


def test_every_bad_field_is_named() -> None:
    error = error_of(lambda: client.customers.create(full_name="", email="ada"))
    assert type(error) is rental.InvalidRequestError and error.status == 400
    assert sorted(one.param for one in error.errors) == ["email", "full_name"]
    assert error.param == error.errors[0].param


def test_an_unknown_id() -> None:
    error = error_of(lambda: client.rentals.get("nothing"))
    assert type(error) is rental.NotFoundError and error.code == "resource_missing"


def test_a_vehicle_that_is_taken() -> None:
    vehicle = client.vehicles.create(name="White Tesla")
    customer = client.customers.create(full_name="Ada Lovelace")

    def book() -> rental.models.Rental:
        days = (date(2031, 1, 1), date(2031, 1, 3))
        return client.rentals.create(
            vehicle_id=vehicle.id, customer_id=customer.id, start_date=days[0], end_date=days[1], status="APPROVED"
        )

    first = book()
    error = error_of(book)
    assert isinstance(error, rental.ConflictError) and error.code == "vehicle_unavailable"
    assert (error.conflicting_rental_id, error.conflicting_block_id) == (first.id, None)


def test_a_wrong_key() -> None:
    assert type(error_of(RentalClient(api_key="rk_live_wrong").me)) is rental.AuthenticationError


def test_a_read_key_that_writes() -> None:
    reader = RentalClient(api_key=os.environ["RENTAL_READ_KEY"])
    error = error_of(lambda: reader.vehicles.create(name="White Tesla"))
    assert type(error) is rental.PermissionDeniedError and error.code == "insufficient_scope"


def test_an_idempotency_key_for_another_request() -> None:
    key = f"errors-{time.time_ns()}"
    client.vehicles.create(name="One", idempotency_key=key)
    error = error_of(lambda: client.vehicles.create(name="Two", idempotency_key=key))
    assert type(error) is rental.IdempotencyError and error.code == "idempotency_key_reused"


def test_too_many_requests() -> None:
    with scripted(problem(429, "rate_limit_error", "rate_limited"), max_retries=0) as (limited, _):
        assert type(error_of(limited.me)) is rental.RateLimitError


def test_an_answer_of_a_proxy() -> None:
    with scripted(Reply(502, "<html>Bad Gateway</html>"), max_retries=0) as (proxied, _):
        with pytest.raises(rental.ServerError) as caught:
            proxied.me()
    assert caught.value.code == "http_502"


def test_a_type_that_this_version_does_not_know() -> None:
    with scripted(problem(418, "teapot_error", "short_and_stout")) as (newer, _):
        error = error_of(newer.me)
    assert type(error) is rental.ApiError and error.type == "teapot_error"


@pytest.mark.parametrize("body", ["<html>", "[]", "{}"])
def test_an_answer_that_is_not_of_the_api(body: str) -> None:
    with scripted(Reply(200, body)) as (page, _):
        for call in (page.me, page.vehicles.list().first_page):
            with pytest.raises(rental.RentalError, match=r"the answer to .* is not"):
                call()


def test_a_client_without_address_or_key_is_refused() -> None:
    with pytest.raises(rental.RentalError, match="https:"):
        RentalClient("rental.example.com")
    for empty in ("", " ", "\n"):
        with pytest.raises(rental.RentalError, match="no API key"):
            RentalClient(api_key=empty)


@pytest.mark.parametrize("inside, flaw", [(" ", "white space"), ("\n", "white space"), ("\u00e9", "not printable ASCII")])
def test_a_key_with_a_character_that_no_key_has_is_refused_and_not_shown(inside: str, flaw: str) -> None:
    with pytest.raises(rental.RentalError, match=flaw) as caught:
        RentalClient(api_key=f"rk_live{inside}secret")
    assert "rk_live" not in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize("before, after", [("", "\n"), ("", "\r\n"), (" ", " "), ("\t", "\n\n")])
def test_white_space_around_a_key_is_no_part_of_it(before: str, after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = before + os.environ["RENTAL_API_KEY"] + after
    assert RentalClient(api_key=key).me().object == "me"
    monkeypatch.setenv("RENTAL_API_KEY", key)
    assert RentalClient().me().object == "me"


@pytest.mark.parametrize("secret", ["rk_live_secret", "rat_secret", "op_secret", "whsec_secret", " RK_live_secret"])
def test_a_secret_in_the_place_of_the_address_is_not_in_the_message(secret: str) -> None:
    for address in (secret, f"ftp://{secret}"):
        with pytest.raises(rental.RentalError) as caught:
            RentalClient(address, BASE)
        assert "_secret" not in str(caught.value) and "key" in str(caught.value)


def test_an_address_in_the_place_of_the_key_says_so() -> None:
    with pytest.raises(rental.RentalError, match="API key is an address"):
        RentalClient(api_key=BASE)


def test_an_empty_key_or_address_is_not_that_of_the_environment() -> None:
    with pytest.raises(rental.RentalError, match="no API key"):
        RentalClient(api_key="")
    with pytest.raises(rental.RentalError, match="no address"):
        RentalClient("")


def test_a_key_can_be_in_the_file_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text(os.environ["RENTAL_API_KEY"] + "\n")
    monkeypatch.setenv("RENTAL_API_KEY_FILE", str(file))
    monkeypatch.setenv("RENTAL_API_KEY", "rk_live_wrong")
    assert type(error_of(RentalClient().me)) is rental.AuthenticationError, "the variable wins"
    monkeypatch.delenv("RENTAL_API_KEY")
    assert RentalClient().me().object == "me"
    monkeypatch.setenv("RENTAL_API_KEY_FILE", str(tmp_path / "nothing"))
    with pytest.raises(rental.RentalError, match="cannot read RENTAL_API_KEY_FILE.*nothing"):
        RentalClient()


@pytest.mark.parametrize("address", [f"{BASE}/v1", f"{BASE}/v1/", "https://example.com/rental/v1"])
def test_a_base_url_that_ends_in_v1_says_what_to_leave_away(address: str) -> None:
    with pytest.raises(rental.RentalError, match="leave the /v1 away"):
        RentalClient(address)


def test_a_base_url_that_contains_v1_is_taken() -> None:
    assert RentalClient("https://example.com/v12")


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")])
def test_a_number_that_json_cannot_have_is_not_sent(rate: float | Decimal) -> None:
    with scripted(Reply(200)) as (scripts, seen):
        with pytest.raises(ValueError, match="finite"):
            scripts.vehicles.create(name="White Tesla", daily_rate=rate)
    assert not seen


def test_https_where_the_server_speaks_http_says_so() -> None:
    wrong = RentalClient(BASE.replace("http:", "https:"), max_retries=0)
    with pytest.raises(rental.NoAnswerError, match="without TLS.*http://"):
        wrong.me()


def test_a_time_without_zone_or_an_amount_with_too_many_digits_is_not_sent() -> None:
    with pytest.raises(ValueError, match=r"no time zone: for a calendar date, pass its `\.date\(\)`; for a time, add a time zone"):
        client.vehicles.list(created_gte=datetime(2026, 1, 1)).first_page()
    with pytest.raises(ValueError, match="more digits"):
        client.vehicles.create(name="White Tesla", daily_rate=Decimal("1.00000000000000000001"))


def test_the_version_is_that_of_the_package() -> None:
    assert version("rental-platform-client") == rental.VERSION
