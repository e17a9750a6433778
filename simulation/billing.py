"""Bills everything that is completed, gives some of it back, and compares every cent."""

from collections import defaultdict

from report import FAULTS

PRICES = {"rentals": "final_price", "tolls": "amount", "violations": "amount_due"}


def cents(amount):
    return round(amount * 100)


def check(organization, table):
    def fault(case):
        table.fault(FAULTS[9], case)

    server, path = organization.server, f"{organization.path}/invoices/drafts"
    owed = {one["id"]: one for plural in PRICES for one in organization.objects(plural)}
    drafts = list(server.pages(path))
    invoices = [bill(server, path, draft, fault) for draft in drafts if not draft["problem"]]
    table.add("invoices", len(invoices))
    again = [one for one in server.pages(path) if not one["problem"] and not one["more"]]
    if again:
        fault(f"what was billed is drafted again: {again[:2]}")
    credits = [back for invoice in invoices[::9] if (back := give_back(server, invoice))]
    table.add("credit notes", len(credits))
    compare(organization, owed, invoices, credits, fault, table)


def bill(server, path, draft, fault):
    """The invoice of a draft has its lines and its total."""
    made = server.send("POST", path, {"rental_id": draft["rental_id"], "with_tolls": True, "with_violations": True})
    lines = sum(cents(line["amount"]) for line in made["lines"])
    if cents(made["total"]) != lines or lines != cents(draft["total"]) or len(made["lines"]) != len(draft["lines"]):
        fault(f"draft {draft} became {made}")
    return made


def give_back(server, invoice):
    """Credits the last toll or violation of an invoice, so that it can be billed again."""
    for number, line in reversed(list(enumerate(invoice["lines"]))):
        if (line.get("toll_id") or line.get("violation_id")) and line["amount"] > 0:
            body = {"lines": [{"line": number}], "rebill": True, "reason": "simulated"}
            return server.send("POST", f"/admin/v1/invoices/{invoice['id']}/credit", body)
    return None


def compare(organization, owed, invoices, credits, fault, table):
    """Each rental, toll and violation has the amount that is billed less what was given back, of its own customer."""
    billed, back = defaultdict(int), defaultdict(int)
    for sums, documents in ((billed, invoices), (back, credits)):
        for document in documents:
            for line in document["lines"]:
                source = line["rental_id"] or line["toll_id"] or line["violation_id"]
                sums[source] += cents(line["amount"])
                if owed[source]["customer_id"] != document["customer_id"]:
                    fault(f"{owed[source]} is on {document['id']} of another customer")
    for plural, price in PRICES.items():
        for one in organization.objects(plural):
            total, given = billed[one["id"]], back[one["id"]]
            if total not in (0, cents(one[price])) or cents(one["amount_billed"]) != total - given:
                fault(f"{one}: invoices bill {total} cents and credits give {given} back")
    table.add("cents billed", sum(billed.values()))
    table.add("cents given back", sum(back.values()))
