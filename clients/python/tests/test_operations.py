"""Every operation of `/v1`, against a real server."""

import time
from datetime import date, timedelta
from decimal import Decimal

import httpx
import pytest
from rental_client import VERSION, NotFoundError, PreconditionFailedError, RentalClient, response_of
from support import BASE, operations_of_the_document, operator

requested: set[str] = set()
user_agents: set[str] = set()


def record(request: httpx.Request) -> None:
    requested.add(f"{request.method} {request.url.path}")
    user_agents.add(request.headers["user-agent"])


client = RentalClient(user_agent="tests/1.0", http_client=httpx.Client(timeout=30, event_hooks={"request": [record]}))
START, END = date(2031, 6, 1), date(2031, 6, 5)


def test_me() -> None:
    me = client.me()
    assert (me.scope, me.plan) == ("read_write", "pro")


def test_vehicles() -> None:
    number = time.time_ns()
    created = client.vehicles.create(name="Red Corolla", plate=f"PY {number}", daily_rate=Decimal("1234567.89"))
    assert created.daily_rate == Decimal("1234567.89")
    assert created.status == "available"
    assert client.vehicles.get(created.id) == created
    changed = client.vehicles.update(created.id, status="maintenance", make=None)
    assert changed.status == "maintenance" and changed != created
    assert [one.id for one in client.vehicles.list(plate=f"py-{number}")] == [created.id]
    assert created.id in [one.id for one in client.vehicles.list(updated_gte=changed.updated_at)]
    assert created.id not in [one.id for one in client.vehicles.list(updated_lt=changed.updated_at)]


def test_an_unchanged_object_is_not_sent_again_and_a_lost_update_is_refused() -> None:
    vehicle = client.vehicles.create(name="Blue Corolla")
    info = response_of(vehicle)
    assert info.etag and info.request_id and not info.replayed
    assert client.vehicles.get_if_changed(vehicle.id, info.etag) is None
    client.vehicles.update(vehicle.id, color="Blue", if_match=info.etag)
    seen = client.vehicles.get_if_changed(vehicle.id, info.etag)
    assert seen and seen.color == "Blue"
    with pytest.raises(PreconditionFailedError):
        client.vehicles.update(vehicle.id, color="Red", if_match=info.etag)


def test_customers() -> None:
    email = f"grace+{time.time_ns()}@example.com"
    created = client.customers.create(full_name="Grace Hopper", email=email)
    assert client.customers.get(created.id).full_name == "Grace Hopper"
    assert client.customers.update(created.id, preferred_language="en-us").preferred_language == "en-US"
    assert [one.id for one in client.customers.list(email=email)] == [created.id]


def test_rentals_availability_and_the_calendar_of_a_vehicle() -> None:
    vehicle = client.vehicles.create(name="White Tesla", daily_rate=89.5)
    customer = client.customers.create(full_name="Ada Lovelace")

    def free() -> int:
        return len(client.vehicles.available(from_=START, to=END, vehicle=vehicle.id).take(10))

    assert free() == 1
    rental = client.rentals.create(
        vehicle_id=vehicle.id, customer_id=customer.id, start_date=START, end_date=END, status="APPROVED"
    )
    assert (rental.final_price, rental.start_date, rental.rental_days) == (Decimal(358), START, 4)
    assert free() == 0
    assert len(client.vehicles.calendar(vehicle.id, from_=START, to=END).take(10)) == 1
    assert client.rentals.get(rental.id).status == "APPROVED"
    assert client.rentals.update(rental.id, end_date=END + timedelta(1)).rental_days == 5
    assert [one.id for one in client.rentals.list(vehicle=vehicle.id)] == [rental.id]


def test_the_calendar_feed_of_a_vehicle() -> None:
    vehicle = client.vehicles.create(name="White Tesla")
    path = client.vehicles.create_calendar_feed(vehicle.id).path or ""
    assert httpx.get(BASE + path).text.startswith("BEGIN:VCALENDAR")
    assert client.vehicles.calendar_feed(vehicle.id).status == "active"
    assert client.vehicles.delete_calendar_feed(vehicle.id).status == "revoked"
    assert httpx.get(BASE + path).status_code == 404


def test_blocks() -> None:
    vehicle = client.vehicles.create(name="Grey Camry")
    block = client.blocks.create(vehicle_id=vehicle.id, start_date="2031-06-01", end_date=END)
    assert client.blocks.get(block.id).status == "active"
    assert client.blocks.update(block.id, status="cancelled").status == "cancelled"
    assert len(client.blocks.list(vehicle=vehicle.id).take(10)) == 1


def test_calendars_of_others() -> None:
    vehicle = client.vehicles.create(name="Blue Odyssey")
    feed = client.calendar_feeds.create(vehicle_id=vehicle.id, url="https://calendar.invalid/a.ics")
    assert "a.ics" not in feed.model_dump_json(), "the address is a secret"
    assert client.calendar_feeds.poll(feed.id).id == feed.id
    assert len(client.calendar_feeds.list(vehicle=vehicle.id).take(10)) == 1
    assert client.calendar_feeds.get(feed.id).vehicle_id == vehicle.id
    assert client.calendar_feeds.delete(feed.id).id == feed.id
    with pytest.raises(NotFoundError):
        client.calendar_feeds.get(feed.id)


def test_invoices() -> None:
    [first] = client.invoices.list(limit=1).take(1)
    invoice = client.invoices.get(first.id)
    assert invoice.lines and invoice.total == first.total
    assert all(line.amount >= 0 for line in invoice.lines)


def test_credit_notes() -> None:
    [rental] = client.rentals.list(status="COMPLETED").take(1)
    wanted = {"customer_id": rental.customer_id, "lines": [{"description": "Cleaning", "amount": 25}]}
    place = f"organizations/{client.me().organization_id}"
    invoice = operator("POST", f"{place}/invoices", wanted)["id"]
    operator("POST", f"{place}/credit_notes", {"invoice_id": invoice})
    [first] = client.credit_notes.list(invoice=invoice)
    assert client.credit_notes.get(first.id).total == 25


def test_what_a_person_has_to_look_at() -> None:
    assert {one.resource for one in client.tolls.review(limit=1).take(2)} <= {"toll"}
    assert {one.resource for one in client.violations.review().take(2)} <= {"violation"}


def test_tolls() -> None:
    customer = client.customers.create(full_name="Katherine Johnson")
    [toll] = client.tolls.list(billed=False).take(1)
    assert client.tolls.update(toll.id, customer_id=customer.id).customer_id == customer.id
    assert client.tolls.get(toll.id).attribution == "manual"


def test_violations() -> None:
    customer = client.customers.create(full_name="Dorothy Vaughan")
    [violation] = client.violations.list(billed=False).take(1)
    assert client.violations.update(violation.id, customer_id=customer.id).customer_id == customer.id
    assert client.violations.get(violation.id).attribution == "manual"


def test_leads() -> None:
    raw_data = {"message": "Need an SUV in June", "seats": 7, "deposit": 12.5}
    assert client.leads.create(raw_data=raw_data).raw_data == raw_data


def test_events() -> None:
    [event] = client.events.list(type="customer.created").take(1)
    assert client.events.get(event.id) == event


def test_zz_every_operation_of_the_document_has_run() -> None:
    missing = [
        name
        for name, pattern in operations_of_the_document().items()
        if not any(pattern.fullmatch(one) for one in requested)
    ]
    assert missing == [], "add them to src/rental_client/client.py and to this file"
    assert user_agents == {f"tests/1.0 rental-client-python/{VERSION}"}
