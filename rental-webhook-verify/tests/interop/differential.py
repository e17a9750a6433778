"""Verdicts of another implementation, for tests/it/interop.rs.

usage: differential.py (stripe | RECIPE.py) CASES

CASES holds one JSON object a line: id, secret, header, body (the last three in hex) and now. Prints for each a line
{"id", "accepted"}; the Stripe SDK also signs the body itself ("signed", a header). Exits with 77 when the SDK is not
installed.
"""

import importlib.util
import json
import sys
import time


def with_stripe():
    try:
        import stripe
    except ImportError:
        sys.exit(77)

    def answer(secret, header, body, now):
        secret = secret.decode()
        time.time = lambda: now  # the SDK takes the tolerance, but not the time
        try:
            stripe.WebhookSignature.verify_header(body, header, secret, 300)
            accepted = True
        except Exception:  # any failure is a refusal: a malformed header raises ValueError or IndexError
            accepted = False
        try:
            v1 = stripe.WebhookSignature._compute_signature(f"{now}.{body.decode()}", secret)
        except UnicodeDecodeError:
            return {"accepted": accepted}
        return {"accepted": accepted, "signed": f"t={now},v1={v1}"}

    return answer


def with_recipe(path):
    spec = importlib.util.spec_from_file_location("recipe", path)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    return lambda secret, header, body, now: {"accepted": recipe.verify(secret, header, body, now)}


def main(which, cases):
    answer = with_stripe() if which == "stripe" else with_recipe(which)
    with open(cases, encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            secret, header, body = (bytes.fromhex(case[name]) for name in ("secret", "header", "body"))
            print(json.dumps({"id": case["id"], **answer(secret, header.decode(), body, case["now"])}))


main(*sys.argv[1:])
