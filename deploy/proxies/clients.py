"""Clients of a proxy: what each kind of request sends, and what must come back."""

import http.client
import json
import random
import socket
import ssl
import threading
import time
import uuid
from collections import Counter

from fronts import HOST

# No proxy that the server trusts has this address.
CLIENT = "127.0.0.2"
LONGEST = 60
NO_KEY = "rk_live_0000000000000000000000000000000000000000000000000"
# Each kind of request and its part of all.
KINDS = {
    "list": 20, "get": 22, "post with key": 14, "the same post with key twice": 4, "post without key": 18,
    "slow post without key": 2, "401": 5, "403": 5, "404": 5, "413": 3, "export": 1, "import": 1,
}
# Bytes of bodies that the server answers before it has read them.
EARLY = [60_000, 300_000, 2 << 20]
ROWS = 500


class Connection(http.client.HTTPSConnection):
    """A connection from CLIENT to a proxy, which has the certificate of HOST."""

    def __init__(self, front, context):
        super().__init__("127.0.0.1", front.port, context=context)
        self.inner = context

    def connect(self):
        plain = socket.create_connection((self.host, self.port), LONGEST, source_address=(CLIENT, 0))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self.inner.wrap_socket(plain, server_hostname=HOST)


class Client:
    """Sends one request after the other. A broken connection is an error: no request is repeated."""

    def __init__(self, front):
        self.front, self.context = front, ssl.create_default_context(cafile=str(front.authority))
        self.connection = Connection(front, self.context)

    def send(self, method, path, key, body=b"", headers=None, pause=None):
        """Returns the status and the whole body of the response."""
        connection = self.connection
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", HOST)
        connection.putheader("Authorization", f"Bearer {key}")
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if method != "GET":
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        try:
            half = len(body) // 2 if pause else 0
            if pause:
                connection.send(body[:half])
                time.sleep(pause)
            connection.send(body[half:])
        except OSError:
            # The response may be there, to a body that nobody wants.
            pass
        response = connection.getresponse()
        read = response.read()
        return response.status, read

    def renew(self):
        self.connection.close()
        self.connection = Connection(self.front, self.context)


class Traffic:
    """`number` requests of all kinds, from several clients at the same time."""

    def __init__(self, front, world, number, clients):
        self.front, self.world, self.number = front, world, number
        self.lock, self.next, self.done = threading.Lock(), 0, 0
        # The server makes one export at a time.
        self.one_export = threading.Lock()
        self.failures, self.kinds, self.created, self.slowest = [], Counter(), Counter(), 0.0
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def wait_for(self, done):
        while self.done < done:
            time.sleep(0.01)

    def join(self):
        for thread in self.threads:
            thread.join()

    def run(self):
        client, before = Client(self.front), "nothing"
        while True:
            with self.lock:
                number, self.next = self.next, self.next + 1
            if number >= self.number:
                client.connection.close()
                return
            chance = random.Random(number)
            kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
            # Clients are of all sorts: some open a connection for each request.
            if chance.random() < 0.1:
                client.renew()
                before = "nothing"
            begun = time.monotonic()
            try:
                problem = self.one(client, kind, number, chance)
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                problem = repr(error)
                client.renew()
            with self.lock:
                self.done += 1
                self.kinds[kind] += 1
                self.slowest = max(self.slowest, time.monotonic() - begun)
                if problem:
                    self.failures.append(f"request {number}, {kind}, after {before} on this connection: {problem}")
            before = kind

    def one(self, client, kind, number, chance):
        """Sends a request of this kind; returns what is wrong with the response, or nothing."""
        world = self.world
        if kind == "list":
            status, body = client.send("GET", "/v1/vehicles?limit=100", world.write_key)
            return None if status == 200 and len(json.loads(body)["data"]) == 100 else f"{status} {body[:300]}"
        if kind == "get":
            status, body = client.send("GET", f"/v1/vehicles/{world.vehicle}", world.read_key)
            return None if status == 200 and json.loads(body)["id"] == world.vehicle else f"{status} {body[:300]}"
        if "post" in kind:
            return self.post(client, kind, number, chance)
        if kind == "export":
            with self.one_export:
                # Apache closes connections that were idle for 5 s, and this one may have waited.
                client.renew()
                status, body = client.send("GET", f"/admin/v1/organizations/{world.organization}/export", world.token)
            whole = status == 200 and len(body.splitlines()) > 100 and json.loads(body.splitlines()[-1])
            return None if whole else f"{status} {body[:300]}"
        if kind == "import":
            path = f"/admin/v1/organizations/{world.organization}/tolls/import?dry_run=true"
            status, body = client.send("POST", path, world.token, world.statement, pause=chance.random() / 2)
            return None if status == 200 and json.loads(body)["created"] == ROWS else f"{status} {body[:300]}"
        return self.early(client, kind, chance)

    def post(self, client, kind, number, chance):
        name = f"Customer {number}"
        body = json.dumps({"full_name": name}).encode()
        headers = {"Idempotency-Key": str(uuid.uuid4())} if "with key" in kind else {}
        pause = chance.random() if "slow" in kind else None
        ids = []
        for _ in range(2 if "twice" in kind else 1):
            status, answer = client.send("POST", "/v1/customers", self.world.write_key, body, headers, pause)
            if status != 200 or json.loads(answer)["full_name"] != name:
                return f"{status} {answer[:300]}"
            ids.append(json.loads(answer)["id"])
        with self.lock:
            self.created[name] += len(set(ids))
        return None

    def early(self, client, kind, chance):
        key = {"401": NO_KEY, "403": self.world.read_key}.get(kind, self.world.write_key)
        path = "/v1/nothing" if kind == "404" else "/v1/customers"
        size = EARLY[-1] if kind == "413" else chance.choice(EARLY)
        status, body = client.send("POST", path, key, b" " * size)
        whole = str(status) == kind and json.loads(body)["error"]["request_id"]
        return None if whole else f"{status} {body[:300]}"
