"""What may be passed for values that JSON has no type for, and how they are written."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

#: A day: `datetime.date`, or `YYYY-MM-DD`.
Day: TypeAlias = date | str

#: A time: a `datetime` with a time zone, or RFC 3339.
Time: TypeAlias = datetime | str

#: An amount, exact: `Decimal("89.50")`. A float is taken as it is printed.
Amount: TypeAlias = Decimal | int | float


def plain(value: Any) -> Any:
    """A value as JSON and queries have it. `ValueError` for what would not arrive as it is."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(
                f"{value!r} has no time zone: for a calendar date, pass its `.date()`; for a time, add a time zone, such as "
                "datetime.timezone.utc"
            )
        return value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        number = float(value)
        if Decimal(repr(number)) != value:
            raise ValueError(f"{value} has more digits than an amount of the API can have")
        return number
    raise TypeError(f"{type(value).__name__} cannot be sent")
