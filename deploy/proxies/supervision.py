"""Runs a server as systemd does: with a socket that outlives it, and a socket that it tells its state."""

import os
import signal
import socket
import subprocess

# The shell makes the socket file 3 and names the process that gets it, as sd_listen_fds(3) demands.
START = 'exec 3<&0 </dev/null; LISTEN_PID=$$ exec "$@"'
LONGEST = 60


class Service:
    """rental-server, its data in `directory`, and its address, which stays open between two processes."""

    def __init__(self, program, directory):
        self.directory = directory
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.notifications = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notifications.bind(str(directory / "notify"))
        self.notifications.settimeout(LONGEST)
        self.log = directory / "server.log"
        self.token = "a-token-of-the-check-of-the-proxies-0001"
        self.command = [program, "--store", f"redb:{directory}/rental.redb", "--trusted-proxy", "127.0.0.1"]
        self.process = None

    def start(self):
        """Returns when the server has told that it serves."""
        environment = {"PATH": os.environ["PATH"], "LISTEN_FDS": "1", "NOTIFY_SOCKET": str(self.directory / "notify"),
                       "RENTAL_ADMIN_TOKEN": self.token}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(["sh", "-c", START, "sh", *self.command], stdin=self.socket, stdout=log, stderr=log,
                                            env=environment, cwd=self.directory)
        self.wait_for("READY=1")

    def stop(self):
        """Returns when the server has ended, after it has told that it stops."""
        self.process.send_signal(signal.SIGTERM)
        self.wait_for("STOPPING=1")
        code = self.process.wait(LONGEST)
        if code != 0:
            raise SystemExit(f"the server ended with {code}: {self.log.read_text()[-2000:]}")

    def restart(self):
        self.stop()
        self.start()

    def wait_for(self, state):
        while True:
            try:
                lines = self.notifications.recv(4096).decode().splitlines()
            except TimeoutError:
                raise SystemExit(f"the server did not tell {state}: {self.log.read_text()[-2000:]}") from None
            if state in lines:
                return

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.socket.close()
        self.notifications.close()
