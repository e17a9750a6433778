"""Requests to a running server, and the server itself when the simulation starts one."""

import http.client
import json
import os
import subprocess
import tempfile
import threading
import time
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

TOKEN = "simulation-admin-token-of-more-than-32-characters"


class Server:
    """A server that was started elsewhere, or one on a new store in a temporary directory."""

    def __init__(self, url=None, program=None):
        self.process, self.local = None, threading.local()
        self.token = os.environ.get("RENTAL_ADMIN_TOKEN", TOKEN)
        if url is None:
            self.program, self.directory = program, tempfile.TemporaryDirectory()
            url = self.start()
        self.place = urlsplit(url).netloc

    def start(self):
        """Starts the server on its store. Returns its URL."""
        store = f"redb:{self.directory.name}/store.redb"
        env = dict(os.environ, RENTAL_ADMIN_TOKEN=self.token, RENTAL_STORE=os.environ.get("RENTAL_STORE", store))
        self.process = subprocess.Popen(
            [self.program, "--listen", "127.0.0.1:0", "--organization-requests", "0"],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        return next(line for line in self.process.stdout if "listening on" in line).split()[-1]

    def kill_and_start(self):
        """Kills the server without a warning, and starts it again on the same store."""
        self.process.kill()
        self.process.wait()
        self.place, self.local = urlsplit(self.start()).netloc, threading.local()

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.directory.cleanup()

    def send(self, method, path, body=None, key=None, query=None, media="application/json"):
        """The JSON of a response; raises for anything but success."""
        connection = getattr(self.local, "connection", None)
        # The server closes connections that are idle for long.
        if connection is None or time.monotonic() - self.local.used > 5:
            connection = self.local.connection = http.client.HTTPConnection(self.place, timeout=600)
        self.local.used = time.monotonic()
        data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        headers = {"Authorization": f"Bearer {key or self.token}", "Content-Type": media}
        connection.request(method, path + ("?" + urlencode(query) if query else ""), data, headers)
        response = connection.getresponse()
        text = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {text.decode()} for {body if media == 'application/json' else ''}")
        return json.loads(text)

    def metric(self, name):
        """One number of `/metrics`."""
        request = Request(f"http://{self.place}/metrics", headers={"Authorization": f"Bearer {self.token}"})
        with urlopen(request, timeout=60) as response:
            lines = response.read().decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.split()[0] == name))

    def pages(self, path, key=None, method="GET", query=None):
        """All objects of a list."""
        cursor = None
        while True:
            asked = {**(query or {}), "limit": 100, **({"starting_after": cursor} if cursor else {})}
            page = self.send(method, path, asked if method == "POST" else None, key, asked if method == "GET" else None)
            yield from page["data"]
            cursor = page["next_cursor"]
            if not page["has_more"]:
                return
