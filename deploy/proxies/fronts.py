"""Starts the proxies of Debian with the configurations of this folder.

Only the addresses and the files of the certificate differ; each text that is replaced must be there.
"""

import os
import socket
import subprocess
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
HOST = "api.example.com"
TARGET = "127.0.0.1:8080"
MODULES = "mpm_event authz_core mime reqtimeout setenvif ssl socache_shmcb http2 proxy proxy_http headers"


def find(name):
    found = [f"{folder}/{name}" for folder in ("/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin")]
    return next((path for path in found if os.access(path, os.X_OK)), None)


def adapt(file, replacements):
    text = (FOLDER / file).read_text()
    for old, new in replacements.items():
        if old not in text:
            raise SystemExit(f"{file} lacks {old!r}")
        text = text.replace(old, new)
    return text


def nginx(place, port, target):
    site = adapt("nginx.conf", {
        "listen 443": f"listen 127.0.0.1:{port}", "    listen [::]:443 ssl;\n": "", TARGET: target,
        "/etc/ssl/rental": str(place),
    })
    folders = "".join(f"{name}_temp_path {place}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    # The workers must be able to read the folder.
    user = "user root;\n" if os.geteuid() == 0 else ""
    main = (f"{user}daemon off;\npid {place}/pid;\nerror_log stderr;\nworker_processes 2;\nevents {{ worker_connections 4096; }}\n"
            f"http {{\naccess_log off;\n{folders}{site}}}\n")
    (place / "nginx.conf").write_text(main)
    return ["-c", place / "nginx.conf"], {}


def haproxy(place, port, target):
    text = adapt("haproxy.cfg", {
        ":443,[::]:443 v6only": f"127.0.0.1:{port}", TARGET: target, "/etc/ssl/rental": str(place),
        "    user haproxy\n    group haproxy\n": "", "log /dev/log local0": "log stderr format raw local0 notice",
    })
    (place / "haproxy.cfg").write_text(text)
    return ["-db", "-f", place / "haproxy.cfg"], {}


def caddy(place, port, target):
    site = adapt("Caddyfile", {
        f"\n{HOST} {{": f"\n{HOST}:{port} {{\n\tbind 127.0.0.1\n\ttls {place}/fullchain.pem {place}/privkey.pem", TARGET: target,
    })
    (place / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + site)
    return ["run", "--adapter", "caddyfile", "--config", place / "Caddyfile"], {"XDG_DATA_HOME": place, "XDG_CONFIG_HOME": place}


def apache2(place, port, target):
    site = adapt("apache.conf", {"*:443": f"127.0.0.1:{port}", TARGET: target, "/etc/ssl/rental": str(place)})
    modules = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in MODULES.split())
    debian = "".join(f"Include /etc/apache2/mods-available/{name}.conf\n" for name in ("mpm_event", "mime", "reqtimeout", "ssl"))
    user = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
    (place / "apache2.conf").write_text(
        f"ServerRoot {place}\nServerName {HOST}\nPidFile {place}/pid\nMutex file:{place} default\nErrorLog {place}/log\n"
        f"Listen 127.0.0.1:{port}\n{modules}{debian}{user}{site}")
    return ["-DFOREGROUND", "-f", place / "apache2.conf"], {"APACHE_RUN_DIR": place}


CONFIGURED = {"nginx": nginx, "haproxy": haproxy, "caddy": caddy, "apache2": apache2}


def certificate(place):
    """A certificate of its own for api.example.com, in the files that the configurations name."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", place / "privkey.pem",
         "-out", place / "fullchain.pem"], check=True, capture_output=True)
    (place / "combined.pem").write_text((place / "fullchain.pem").read_text() + (place / "privkey.pem").read_text())


class Front:
    """A proxy in front of `target`."""

    def __init__(self, name, place, target):
        place.mkdir()
        certificate(place)
        self.name, self.authority, self.output = name, place / "fullchain.pem", place / "output"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        arguments, variables = CONFIGURED[name](place, self.port, target)
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen([find(name), *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            env={**os.environ, **variables}, cwd=place)
        for _ in range(200):
            time.sleep(0.05)
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
        self.close()
        raise SystemExit(f"{name} did not start: {self.output.read_text()}")

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
