"""The operations by name. Fields and filters are keyword arguments, typed from the OpenAPI document."""

import os
from types import TracebackType

import httpx
from typing_extensions import Self, Unpack

from rental_client import inputs, models
from rental_client.errors import RentalError
from rental_client.http import Http, part
from rental_client.pages import Pages


def _key_of_environment() -> str:
    """The key itself, or in the file that a variable names."""
    key, file = os.environ.get("RENTAL_API_KEY", ""), os.environ.get("RENTAL_API_KEY_FILE")
    if key or not file:
        return key
    try:
        with open(file, encoding="utf-8") as text:
            return text.read()
    except (OSError, UnicodeDecodeError) as error:
        raise RentalError(f"cannot read RENTAL_API_KEY_FILE: {error}") from error


class RentalClient:
    """The API of one organization: the one that the key belongs to.

    Without arguments, address and key come from the environment: `RENTAL_BASE_URL`, and `RENTAL_API_KEY` or the file
    that `RENTAL_API_KEY_FILE` names. Failed requests are sent again when that can help. POST and PATCH carry an idempotency key, the same in every attempt, so they take
    effect once. `http_client` is an `httpx.Client` of yours, such as one with a proxy; `timeout` is then its own.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        max_retries: int = 2,
        timeout: float = 30.0,
        user_agent: str | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        address = os.environ.get("RENTAL_BASE_URL") if base_url is None else base_url
        if not address:
            raise RentalError("no address: pass `base_url` or set RENTAL_BASE_URL")
        # An empty key is a mistake of the caller, not a wish for the key of the environment.
        key = _key_of_environment() if api_key is None else api_key
        self._http = Http(address, key, http_client or httpx.Client(timeout=timeout), max_retries, user_agent)
        self.vehicles = Vehicles(self._http)
        self.customers = Customers(self._http)
        self.rentals = Rentals(self._http)
        self.blocks = Blocks(self._http)
        self.calendar_feeds = CalendarFeeds(self._http)
        self.invoices = Invoices(self._http)
        self.credit_notes = CreditNotes(self._http)
        self.tolls = Tolls(self._http)
        self.violations = Violations(self._http)
        self.leads = Leads(self._http)
        self.events = Events(self._http)

    def me(self) -> models.Me:
        """Which organization and key these are, and which limits apply. A test of a new key."""
        return self._http.get("/v1/me", models.Me)

    def close(self) -> None:
        """Closes the connections."""
        self._http.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class _Group:
    def __init__(self, http: Http) -> None:
        self._http = http


class Vehicles(_Group):
    """Cars, vans and motorcycles."""

    def list(self, **filters: Unpack[inputs.ListVehiclesFilters]) -> Pages[models.Vehicle]:
        """Newest first."""
        return self._http.list("/v1/vehicles", models.Vehicle, filters)

    def get(self, id: str, /) -> models.Vehicle:
        """One vehicle. `NotFoundError` when there is none for this key."""
        return self._http.get(f"/v1/vehicles/{part(id)}", models.Vehicle)

    def get_if_changed(self, id: str, etag: str, /) -> models.Vehicle | None:
        """The vehicle if it is no longer the revision `etag`."""
        return self._http.get_if_changed(f"/v1/vehicles/{part(id)}", models.Vehicle, etag)

    def create(self, *, idempotency_key: str | None = None, **fields: Unpack[inputs.VehicleCreate]) -> models.Vehicle:
        """Takes effect once, however often it has to be sent."""
        return self._http.write("POST", "/v1/vehicles", models.Vehicle, fields, idempotency_key, None)

    def update(
        self,
        id: str,
        /,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[inputs.VehicleUpdate],
    ) -> models.Vehicle:
        """What is not given stays; `None` clears a field. With `if_match` it overwrites no change of others."""
        return self._http.write("PATCH", f"/v1/vehicles/{part(id)}", models.Vehicle, fields, idempotency_key, if_match)

    def available(self, **filters: Unpack[inputs.ListAvailableVehiclesFilters]) -> Pages[models.Vehicle]:
        """Those that can be rented on all nights between two days. A hint: the POST of the rental decides."""
        return self._http.list("/v1/availability", models.Vehicle, filters)

    def calendar(self, id: str, /, **filters: Unpack[inputs.GetVehicleCalendarFilters]) -> Pages[models.Interval]:
        """What holds a vehicle between two days, and who had it."""
        return self._http.list(f"/v1/vehicles/{part(id)}/calendar", models.Interval, filters)

    def calendar_feed(self, id: str, /) -> models.VehicleCalendarFeed:
        """Whether a vehicle has a calendar feed."""
        return self._http.get(f"/v1/vehicles/{part(id)}/calendar_feed", models.VehicleCalendarFeed)

    def create_calendar_feed(
        self, id: str, /, *, idempotency_key: str | None = None
    ) -> models.IssuedVehicleCalendarFeed:
        """Makes the secret path of a calendar feed, shown only here. The path of before stops working."""
        path = f"/v1/vehicles/{part(id)}/calendar_feed"
        return self._http.write("POST", path, models.IssuedVehicleCalendarFeed, {}, idempotency_key, None)

    def delete_calendar_feed(self, id: str, /) -> models.VehicleCalendarFeed:
        """Its path stops working."""
        return self._http.delete(f"/v1/vehicles/{part(id)}/calendar_feed", models.VehicleCalendarFeed)


class Customers(_Group):
    """Who rents."""

    def list(self, **filters: Unpack[inputs.ListCustomersFilters]) -> Pages[models.Customer]:
        """Newest first."""
        return self._http.list("/v1/customers", models.Customer, filters)

    def get(self, id: str, /) -> models.Customer:
        """One customer. `NotFoundError` when there is none for this key."""
        return self._http.get(f"/v1/customers/{part(id)}", models.Customer)

    def get_if_changed(self, id: str, etag: str, /) -> models.Customer | None:
        """The customer if it is no longer the revision `etag`."""
        return self._http.get_if_changed(f"/v1/customers/{part(id)}", models.Customer, etag)

    def create(self, *, idempotency_key: str | None = None, **fields: Unpack[inputs.CustomerCreate]) -> models.Customer:
        """Takes effect once, however often it has to be sent."""
        return self._http.write("POST", "/v1/customers", models.Customer, fields, idempotency_key, None)

    def update(
        self,
        id: str,
        /,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[inputs.CustomerUpdate],
    ) -> models.Customer:
        """What is not given stays; `None` clears a field. With `if_match` it overwrites no change of others."""
        return self._http.write(
            "PATCH", f"/v1/customers/{part(id)}", models.Customer, fields, idempotency_key, if_match
        )


class Rentals(_Group):
    """Bookings of vehicles."""

    def list(self, **filters: Unpack[inputs.ListRentalsFilters]) -> Pages[models.Rental]:
        """Newest first."""
        return self._http.list("/v1/rentals", models.Rental, filters)

    def get(self, id: str, /) -> models.Rental:
        """One rental. `NotFoundError` when there is none for this key."""
        return self._http.get(f"/v1/rentals/{part(id)}", models.Rental)

    def get_if_changed(self, id: str, etag: str, /) -> models.Rental | None:
        """The rental if it is no longer the revision `etag`."""
        return self._http.get_if_changed(f"/v1/rentals/{part(id)}", models.Rental, etag)

    def create(self, *, idempotency_key: str | None = None, **fields: Unpack[inputs.RentalCreate]) -> models.Rental:
        """Takes effect once, however often it has to be sent."""
        return self._http.write("POST", "/v1/rentals", models.Rental, fields, idempotency_key, None)

    def update(
        self,
        id: str,
        /,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[inputs.RentalUpdate],
    ) -> models.Rental:
        """What is not given stays; `None` clears a field. With `if_match` it overwrites no change of others."""
        return self._http.write("PATCH", f"/v1/rentals/{part(id)}", models.Rental, fields, idempotency_key, if_match)


class Blocks(_Group):
    """Nights on which a vehicle is not for rent."""

    def list(self, **filters: Unpack[inputs.ListBlocksFilters]) -> Pages[models.Block]:
        """Newest first."""
        return self._http.list("/v1/blocks", models.Block, filters)

    def get(self, id: str, /) -> models.Block:
        """One block. `NotFoundError` when there is none for this key."""
        return self._http.get(f"/v1/blocks/{part(id)}", models.Block)

    def get_if_changed(self, id: str, etag: str, /) -> models.Block | None:
        """The block if it is no longer the revision `etag`."""
        return self._http.get_if_changed(f"/v1/blocks/{part(id)}", models.Block, etag)

    def create(self, *, idempotency_key: str | None = None, **fields: Unpack[inputs.BlockCreate]) -> models.Block:
        """Takes effect once, however often it has to be sent."""
        return self._http.write("POST", "/v1/blocks", models.Block, fields, idempotency_key, None)

    def update(
        self,
        id: str,
        /,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[inputs.BlockUpdate],
    ) -> models.Block:
        """What is not given stays; `None` clears a field. With `if_match` it overwrites no change of others."""
        return self._http.write("PATCH", f"/v1/blocks/{part(id)}", models.Block, fields, idempotency_key, if_match)


class CalendarFeeds(_Group):
    """Calendars of others, whose events become blocks of a vehicle."""

    def list(self, **filters: Unpack[inputs.ListCalendarFeedsFilters]) -> Pages[models.CalendarFeed]:
        """Newest first."""
        return self._http.list("/v1/calendar_feeds", models.CalendarFeed, filters)

    def get(self, id: str, /) -> models.CalendarFeed:
        """One feed. `NotFoundError` when there is none for this key."""
        return self._http.get(f"/v1/calendar_feeds/{part(id)}", models.CalendarFeed)

    def get_if_changed(self, id: str, etag: str, /) -> models.CalendarFeed | None:
        """The feed if it is no longer the revision `etag`."""
        return self._http.get_if_changed(f"/v1/calendar_feeds/{part(id)}", models.CalendarFeed, etag)

    def create(
        self, *, idempotency_key: str | None = None, **fields: Unpack[inputs.CalendarFeedCreate]
    ) -> models.CalendarFeed:
        """Takes effect once, however often it has to be sent."""
        return self._http.write("POST", "/v1/calendar_feeds", models.CalendarFeed, fields, idempotency_key, None)

    def poll(self, id: str, /, *, idempotency_key: str | None = None) -> models.CalendarFeed:
        """Reads the calendar now. `get` shows how that ended."""
        path = f"/v1/calendar_feeds/{part(id)}/poll"
        return self._http.write("POST", path, models.CalendarFeed, {}, idempotency_key, None)

    def delete(self, id: str, /) -> models.CalendarFeed:
        """Its blocks that have not ended are cancelled."""
        return self._http.delete(f"/v1/calendar_feeds/{part(id)}", models.CalendarFeed)


class Invoices(_Group):
    """The operator makes them."""

    def list(self, **filters: Unpack[inputs.ListInvoicesFilters]) -> Pages[models.Invoice]:
        """Newest first."""
        return self._http.list("/v1/invoices", models.Invoice, filters)

    def get(self, id: str, /) -> models.Invoice:
        """One invoice. `NotFoundError` when there is none for this key."""
        return self._http.get(f"/v1/invoices/{part(id)}", models.Invoice)

    def get_if_changed(self, id: str, etag: str, /) -> models.Invoice | None:
        """The invoice if it is no longer the revision `etag`."""
        return self._http.get_if_changed(f"/v1/invoices/{part(id)}", models.Invoice, etag)


class CreditNotes(_Group):
    """The operator makes them of invoices."""

    def list(self, **filters: Unpack[inputs.ListCreditNotesFilters]) -> Pages[models.CreditNote]:
        """Newest first."""
        return self._http.list("/v1/credit_notes", models.CreditNote, filters)

    def get(self, id: str, /) -> models.CreditNote:
        """One credit note. `NotFoundError` when there is none for this key."""
        return self._http.get(f"/v1/credit_notes/{part(id)}", models.CreditNote)

    def get_if_changed(self, id: str, etag: str, /) -> models.CreditNote | None:
        """The credit note if it is no longer the revision `etag`."""
        return self._http.get_if_changed(f"/v1/credit_notes/{part(id)}", models.CreditNote, etag)


class Tolls(_Group):
    """Imported by the operator; a customer can be attached."""

    def list(self, **filters: Unpack[inputs.ListTollsFilters]) -> Pages[models.Toll]:
        """Newest first."""
        return self._http.list("/v1/tolls", models.Toll, filters)

    def get(self, id: str, /) -> models.Toll:
        """One toll. `NotFoundError` when there is none for this key."""
        return self._http.get(f"/v1/tolls/{part(id)}", models.Toll)

    def get_if_changed(self, id: str, etag: str, /) -> models.Toll | None:
        """The toll if it is no longer the revision `etag`."""
        return self._http.get_if_changed(f"/v1/tolls/{part(id)}", models.Toll, etag)

    def update(
        self,
        id: str,
        /,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[inputs.TollUpdate],
    ) -> models.Toll:
        """What is not given stays; `None` clears a field. With `if_match` it overwrites no change of others."""
        return self._http.write("PATCH", f"/v1/tolls/{part(id)}", models.Toll, fields, idempotency_key, if_match)

    def review(self, **filters: Unpack[inputs.ListReviewOfTollsFilters]) -> Pages[models.Review]:
        """Those that a person has to look at."""
        return self._http.list("/v1/tolls/review", models.Review, filters)


class Violations(_Group):
    """Imported by the operator; a customer can be attached."""

    def list(self, **filters: Unpack[inputs.ListViolationsFilters]) -> Pages[models.Violation]:
        """Newest first."""
        return self._http.list("/v1/violations", models.Violation, filters)

    def get(self, id: str, /) -> models.Violation:
        """One violation. `NotFoundError` when there is none for this key."""
        return self._http.get(f"/v1/violations/{part(id)}", models.Violation)

    def get_if_changed(self, id: str, etag: str, /) -> models.Violation | None:
        """The violation if it is no longer the revision `etag`."""
        return self._http.get_if_changed(f"/v1/violations/{part(id)}", models.Violation, etag)

    def update(
        self,
        id: str,
        /,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[inputs.ViolationUpdate],
    ) -> models.Violation:
        """What is not given stays; `None` clears a field. With `if_match` it overwrites no change of others."""
        return self._http.write(
            "PATCH", f"/v1/violations/{part(id)}", models.Violation, fields, idempotency_key, if_match
        )

    def review(self, **filters: Unpack[inputs.ListReviewOfViolationsFilters]) -> Pages[models.Review]:
        """Those that a person has to look at."""
        return self._http.list("/v1/violations/review", models.Review, filters)


class Leads(_Group):
    """They can be created, not read."""

    def create(self, *, idempotency_key: str | None = None, **fields: Unpack[inputs.LeadCreate]) -> models.Lead:
        """Takes effect once, however often it has to be sent."""
        return self._http.write("POST", "/v1/leads", models.Lead, fields, idempotency_key, None)


class Events(_Group):
    """What webhooks deliver, oldest first."""

    def list(self, **filters: Unpack[inputs.ListEventsFilters]) -> Pages[models.Event]:
        """Oldest first."""
        return self._http.list("/v1/events", models.Event, filters)

    def get(self, id: str, /) -> models.Event:
        """One event. `NotFoundError` when there is none for this key."""
        return self._http.get(f"/v1/events/{part(id)}", models.Event)

    def get_if_changed(self, id: str, etag: str, /) -> models.Event | None:
        """The event if it is no longer the revision `etag`."""
        return self._http.get_if_changed(f"/v1/events/{part(id)}", models.Event, etag)
