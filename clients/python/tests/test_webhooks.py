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


def mistake(body: Any, header: Any, secrets: Any) -> str:
    """The mistakes of a receiver's program, which a type checker would find."""
    with pytest.raises(WebhookVerificationError) as caught:
        verify_webhook(body, header, secrets)
    return f"{caught.value.code}: {caught.value}"


@pytest.mark.parametrize("secrets", [None, "", " ", [], [None], ["whsec_1", None]])
def test_a_secret_that_is_missing_is_named_before_anything_else(secrets: Any) -> None:
    assert mistake(b"{}", None, secrets).startswith("EmptySecret: the webhook secret is empty: set ")


@pytest.mark.parametrize("secrets", [7, [7], b"whsec_1", {"secret": "whsec_1"}, ["whsec_1", {}]])
def test_a_secret_that_is_no_text_is_named(secrets: Any) -> None:
    assert mistake(b"{}", None, secrets).startswith("SecretNotText: the webhook secret is not a str")


@pytest.mark.parametrize("body", [{"type": "customer.created"}, [], "{}", None, 7])
def test_a_body_that_was_parsed_or_decoded_is_named(body: Any) -> None:
    named = mistake(body, "t=1,v1=0", "whsec_1")
    assert named.startswith("BodyNotRaw: the body is not bytes") and "pass the raw bytes" in named


@pytest.mark.parametrize("header", [7, b"t=1", ["t=1"]])
def test_a_header_of_another_type_is_named(header: Any) -> None:
    assert mistake(b"{}", header, "whsec_1").startswith("HeaderNotText: ")


def test_other_bytes_are_bytes() -> None:
    body = b'{"id":"1","object":"event","api_version":"2030-01-01","type":"boat.sunk","created":1,"data":{"depth":9}}'
    for raw in (bytearray(body), memoryview(body)):
        assert verify_webhook(raw, signed(body), "whsec_1", now=1).id == "1"


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
