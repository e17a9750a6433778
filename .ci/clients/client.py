"""Imports the clients that openapi-generator makes for Python, and calls a demo server with that of the API.

Arguments: the document of the API, that of operators.
"""

import json
import os
import re
import sys

import rental_client
import rental_operators


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def snake(name):
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def operations(package, document):
    """How many operations there are. Each is a method of the class of its tag."""
    found = [operation for item in document["paths"].values() for operation in item.values()]
    for operation in found:
        tag = "".join(word.capitalize() for word in operation["tags"][0].split())
        assert hasattr(getattr(package, f"{tag}Api"), snake(operation["operationId"])), operation["operationId"]
    return len(found)


document = read(sys.argv[1])
count = operations(rental_client, document)
for_operators = operations(rental_operators, read(sys.argv[2]))

# Every webhook has a class that reads its example.
for item in document["webhooks"].values():
    content = item["post"]["requestBody"]["content"]["application/json"]
    model = getattr(rental_client, content["schema"]["$ref"].rsplit("/", 1)[1])
    event = model.from_json(json.dumps(content["example"]))
    assert event.data.object == event.type.split(".")[0], event

configuration = rental_client.Configuration(
    host=os.environ["RENTAL_BASE_URL"], access_token=os.environ["RENTAL_API_KEY"]
)
with rental_client.ApiClient(configuration) as client:
    lead = rental_client.LeadsApi(client).create_lead(
        lead_create=rental_client.LeadCreate(raw_data={"message": "Need an SUV in June", "seats": 7})
    )
    assert lead.raw_data["seats"] == 7 and lead.source_channel == "api", lead
    vehicles = rental_client.VehiclesApi(client)
    vehicle = vehicles.create_vehicle(rental_client.VehicleCreate(name="Red Corolla", daily_rate=1234567.89))
    assert vehicle.daily_rate == 1234567.89 and vehicle.status == "available", vehicle
    assert vehicles.get_vehicle(vehicle.id) == vehicle
    invoices = rental_client.InvoicesApi(client).list_invoices(limit=1)
    lines = [line for invoice in invoices.data for line in invoice.lines]
    assert lines and all(line.amount >= 0 and line.description for line in lines), lines
print(f"Python: {count} operations and {for_operators} for operators, created a lead and a vehicle, read the lines of an invoice")
