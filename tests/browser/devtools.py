"""A headless Chromium, driven through its DevTools protocol with nothing but the standard library."""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Socket:
    """The client side of a WebSocket (RFC 6455): text messages."""

    def __init__(self, host, port, path):
        self.stream = socket.create_connection((host, port), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.stream.recv(4096)
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 101"), head

    def take(self, count):
        while len(self.buffer) < count:
            data = self.stream.recv(1 << 16)
            if not data:
                raise EOFError("the browser is gone")
            self.buffer += data
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        length = len(data)
        head = struct.pack("!BB", 0x81, 0x80 | length) if length < 126 else struct.pack("!BBQ", 0x81, 0xFF, length)
        self.stream.sendall(head + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(data)))

    def receive(self):
        whole = b""
        while True:
            first, second = self.take(2)
            length = second & 0x7F
            if length == 126:
                (length,) = struct.unpack("!H", self.take(2))
            elif length == 127:
                (length,) = struct.unpack("!Q", self.take(8))
            whole += self.take(length)
            if first & 0x80:
                return whole.decode()


class Browser:
    """A Chromium with a profile of its own; `with` ends it."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # Without a sandbox, for containers: it opens only our own pages.
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             "--remote-debugging-port=0", f"--user-data-dir={self.profile.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        said = os.path.join(self.profile.name, "DevToolsActivePort")
        until = time.monotonic() + 60
        while not (os.path.exists(said) and open(said).read().count("\n")):
            assert time.monotonic() < until and self.process.poll() is None, "Chromium did not start"
            time.sleep(0.1)
        self.port = int(open(said).readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()

    def page(self, url):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        target = json.load(urllib.request.urlopen(request))
        return Page(Socket("127.0.0.1", self.port, "/devtools/page/" + target["id"]), url)


class Page:
    """A tab. `wrong` collects what must not happen: errors, and requests that leave the page."""

    def __init__(self, tab, url):
        self.socket, self.calls, self.wrong, self.url = tab, 0, [], url
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def call(self, method, **parameters):
        self.calls += 1
        self.socket.send(json.dumps({"id": self.calls, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.calls:
                assert "error" not in message, (method, message)
                return message["result"]
            self.notice(message.get("method"), message.get("params", {}))

    def notice(self, method, parameters):
        if method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.wrong.append(parameters["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.wrong.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.wrong.append(json.dumps(parameters["args"]))
        elif method == "Network.requestWillBeSent":
            asked = parameters["request"]["url"]
            # A page may ask its own server for events and controls.
            own = asked.split("#")[0] == self.url.split("#")[0] or (
                self.url.startswith("http:") and asked.split("/")[2] == self.url.split("/")[2])
            if not (own or asked.startswith(("data:", "about:", "chrome"))):
                self.wrong.append("it asked for " + asked)

    def run(self, script):
        """The value of an expression; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (script, result)
        return result["result"].get("value")

    def until(self, script, seconds=30):
        until = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < until, f"never true: {script}\n{self.run('document.body.innerText.slice(0, 600)')}"
            time.sleep(0.1)

    def key(self, key, code=None):
        parameters = {"key": key, "code": code or key, "windowsVirtualKeyCode": {"Tab": 9, "Enter": 13, " ": 32, "ArrowRight": 39}[key]}
        text = {"text": "\r"} if key == "Enter" else {"text": " "} if key == " " else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **parameters, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def look(self, width, dark):
        """The window's width and the colours that the reader wants."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        time.sleep(0.3)

    def shoot(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 9000), "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
