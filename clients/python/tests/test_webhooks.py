"""The verdicts are those of the crate rental-webhook-verify, and a delivery of the server verifies."""

import hashlib
import hmac
import json
import os
import queue
from typing import Any

import pytest
from rental_client import RentalClient, WebhookVerificationError, models, verify_webhook
from support import Reply, Seen, operator, serve

with open(os.environ["RENTAL_WEBHOOK_VECTORS"], encoding="utf-8") as file:
    VECTORS = json.load(file)


def verdict(body: bytes, header: str | None, secrets: Any, **options: Any) -> str:
    try:
        verify_webhook(body, header, secrets, **options)
    except WebhookVerificationError as error:
        return error.code
    return "Ok"


@pytest.mark.parametrize("vector", VECTORS, ids=[one["name"] for one in VECTORS])
def test_vector(vector: dict[str, Any]) -> None:
    options = {"now": vector["now"], "tolerance_seconds": vector["tolerance"]}
    assert verdict(vector["body"].encode(), vector["header"], vector["secrets"], **options) == vector["result"]


def signed(body: bytes) -> str:
    return "t=1,v1=" + hmac.new(b"whsec_1", b"1." + body, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("body", [b"null", b"{", b"[]", b"{}", b'"text"', b"\xff"])
def test_a_signed_body_that_is_no_event(body: bytes) -> None:
    assert verdict(body, signed(body), "whsec_1", now=1) == "InvalidBody"


def test_no_header() -> None:
    assert verdict(b"{}", None, "whsec_1") == "HeaderMissing"


def test_a_type_that_this_version_does_not_know() -> None:
    body = b'{"id":"1","object":"event","api_version":"2030-01-01","type":"boat.sunk","created":1,"data":{"depth":9}}'
    event = verify_webhook(body, signed(body), "whsec_1", now=1)
    assert isinstance(event, models.Event) and event.type == "boat.sunk" and event.data == {"depth": 9}


def test_a_delivery_of_the_server_verifies_and_has_its_type() -> None:
    client = RentalClient()
    deliveries: queue.Queue[Seen] = queue.Queue()

    def receive(request: Seen) -> Reply:
        deliveries.put(request)
        return Reply(204)

    with serve(receive) as url:
        wanted = {"organization_id": client.me().organization_id, "url": url, "events": ["lead.received"]}
        endpoint = operator("POST", "webhook_endpoints", wanted)
        try:
            lead = client.leads.create(source_channel="website")
            delivery = deliveries.get(timeout=20)
        finally:
            operator("DELETE", f"webhook_endpoints/{endpoint['id']}")
    event = verify_webhook(delivery.body, delivery.headers["service-signature"], endpoint["secret"])
    assert isinstance(event, models.LeadReceivedEvent)
    assert event.data == lead
