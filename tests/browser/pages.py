"""Opens the pages that nvlab makes in a headless Chromium: reports, a sweep, the live page of a served device and of a run, and
a notebook of the documentation.

    python3 tests/browser/pages.py NVLAB SITE SCREENSHOTS

Ends with 4 if there is no Chromium on this machine. Checked of every page, light and dark, wide and narrow: no error in the
console, no request that leaves it, no scrolling sideways, every picture has a name, every plot of a report can be reached with
the keyboard and has its table. Of the live pages also: the controls do what they say, and nothing without the token. Of the
notebook: its plots are there, and are dark in the dark.
"""

import functools
import http.server
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import devtools

DESIGN = "ssd-mlc-2010,media.mlc.blocks=64,ftl.spare=30%,ftl.buffer.size=1MiB"
LOOKS = [(1200, False), (1200, True), (360, False), (360, True)]


def check_looks(page, name, shots):
    for width, dark in LOOKS:
        page.look(width, dark)
        wide = page.run("document.documentElement.scrollWidth")
        assert wide <= width, f"{name}: {wide} px wide in a window of {width}"
        page.shoot(os.path.join(shots, f"{name}-{'dark' if dark else 'light'}-{width}.png"))
    nameless = page.run(
        "[...document.querySelectorAll('svg:not([aria-hidden]),canvas:not([aria-hidden]),img,button,input:not([type=hidden]),select')]"
        ".filter(e => !e.parentElement.closest('svg,button,label,a') && !e.alt && !e.getAttribute('aria-label')"
        " && !e.labels?.length && !e.textContent.trim())"
        ".map(e => e.outerHTML.slice(0, 80))")
    assert not nameless, (name, nameless)
    levels = page.run("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:])), levels
    assert not page.wrong, (name, page.wrong)
    print(f"{name}: {len(LOOKS)} screenshots")


def check_report(browser, file, name, shots):
    page = browser.page("file://" + os.path.abspath(file))
    check_looks(page, name, shots)
    page.look(1200, False)
    # With the keyboard to a point of a plot: its value is shown. Then to a table behind a plot.
    for _ in range(400):
        page.key("Tab")
        if page.run("document.activeElement.matches('svg .dot')"):
            break
    assert page.run("getComputedStyle(document.activeElement.nextElementSibling).visibility") == "visible", name
    page.shoot(os.path.join(shots, f"{name}-point.png"))
    for _ in range(400):
        page.key("Tab")
        if page.run("document.activeElement.matches('summary')"):
            break
    page.key("Enter")
    assert page.run("document.activeElement.parentElement.open"), f"{name}: Enter opens the table"
    assert page.run("document.querySelectorAll('script').length") == 0
    assert not page.wrong, (name, page.wrong)


class Device:
    """A client of NBD that writes and reads at random places; it connects again after a power cut."""

    def __init__(self, path):
        self.path, self.stop, self.ended = path, False, 0
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def connect(self):
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(self.path)
        files = stream.makefile("rwb")
        assert files.read(18)[:16] == b"NBDMAGICIHAVEOPT"
        files.write(struct.pack("!I", 3) + b"IHAVEOPT" + struct.pack("!II", 1, 0))
        files.flush()
        (size,) = struct.unpack("!Q", files.read(10)[:8])
        return files, size

    def work(self):
        seed = 1
        while not self.stop:
            try:
                files, size = self.connect()
                while not self.stop:
                    seed = seed * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
                    at, write = (seed >> 20) % (size // 65536) * 65536, seed >> 60 < 12
                    head = struct.pack("!IHHQQI", 0x25609513, 0, 1 if write else 0, 0, at, 65536)
                    files.write(head + (b"x" * 65536 if write else b""))
                    files.flush()
                    reply = files.read(16)
                    if len(reply) < 16 or (not write and len(files.read(65536)) < 65536):
                        raise OSError("the power failed")
            except OSError:
                self.ended += 1
                time.sleep(0.2)


def started(nvlab, arguments):
    """A process of nvlab, what it says, and the address of its page."""
    process = subprocess.Popen([nvlab, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines, address = [], None
    for line in process.stderr:
        lines.append(line)
        if address := re.match(r"page\s+(http://\S+)", line):
            break
    assert address, "".join(lines)
    threading.Thread(target=lambda: lines.extend(process.stderr), daemon=True).start()
    return process, lines, address[1]


def seen(page, script, than):
    page.until(f"({script}) > {than}")


DEVICE = "latest.devices[0]"
MAP_LABEL = "document.querySelector('#maps canvas').getAttribute('aria-label')"


def check_controls(page):
    """The map's colours with the keyboard; pause and resume; the plug."""
    page.until("latest && latest.devices[0].write.count > 0", 120)
    page.until("latest.devices[0].maps.length && latest.devices[0].maps[0].live")
    page.run("document.querySelector('input[value=live]').focus()")
    page.key("ArrowRight")
    assert "erases" in page.run(MAP_LABEL)
    page.run("document.querySelector('input[value=live]').click()")
    assert "are live" in page.run(MAP_LABEL)
    page.run("document.getElementById('pause').focus()")
    page.key(" ")
    page.until(f"{DEVICE}.paused && document.getElementById('pause').textContent === 'Resume'")
    time.sleep(1.2)
    stands = page.run(f"{DEVICE}.now_s")
    time.sleep(1.2)
    assert page.run(f"{DEVICE}.now_s") == stands, "a paused device stands still"
    page.key(" ")
    page.until(f"!{DEVICE}.paused && {DEVICE}.now_s > {stands}")
    assert page.run("document.querySelectorAll('#cuts li').length") == 0
    page.run("document.getElementById('cut').focus()")
    page.key("Enter")
    page.until("document.querySelectorAll('#cuts li').length === 1")
    page.until(f"{DEVICE}.write.count > 0")


def check_serve(browser, nvlab, folder, shots, design=DESIGN, name="serve"):
    path = os.path.join(folder, name + ".sock")
    process, lines, address = started(nvlab, ["serve", design, "--nbd", path, "--http", "127.0.0.1:0"])
    device = Device(path)
    try:
        page = browser.page(address)
        check_controls(page)
        assert device.ended >= 1, "clients were cut off"
        time.sleep(20)
        check_looks(page, name, shots)
        page.run("document.querySelector('input[value=wear]').click()")
        page.shoot(os.path.join(shots, name + "-wear.png"))
        counts = urllib.request.urlopen(address.split("#")[0] + "metrics").read().decode()
        assert re.search(r"nvlab_power_cuts_total\{.*\} 1\n", counts), counts
        # The same page without the token: to look at.
        plain = browser.page(address.split("#")[0])
        plain.until("latest")
        assert plain.run("document.getElementById('cut').disabled && document.getElementById('pause').disabled")
        status = plain.run("fetch('/cut?device=0', {method: 'POST', headers: {'X-Nvlab-Token': 'x'}}).then(r => r.status)")
        assert status == 403, status
    finally:
        device.stop = True
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0, "".join(lines)
    time.sleep(0.5)
    assert "1 power cuts" in "".join(lines), "".join(lines)
    page.until("document.getElementById('state').textContent.startsWith('no connection')")


def check_run(browser, nvlab, folder, shots):
    arguments = ["run", DESIGN, "-w", "zipf qd=8 read=30%", "--precondition", "full", "--until", "1e9 io",
                 "--http", "127.0.0.1:0", "-o", os.path.join(folder, "runs")]
    process, lines, address = started(nvlab, arguments)
    try:
        page = browser.page(address)
        check_controls(page)
        # Another rate: a hundred requests a second of the device's time.
        page.run("(() => { const r = document.getElementById('rate'); r.value = 100; r.dispatchEvent(new Event('change')); })()")
        page.until(f"{DEVICE}.rate === 100 && Math.abs({DEVICE}.read.per_s + {DEVICE}.write.per_s - 100) < 15")
        page.run("(() => { const r = document.getElementById('rate'); r.value = ''; r.dispatchEvent(new Event('change')); })()")
        page.run("(() => { const s = document.getElementById('speed'); s.value = 'none'; s.dispatchEvent(new Event('change')); })()")
        page.until(f"{DEVICE}.rate === null && {DEVICE}.speed === null")
        time.sleep(15)
        check_looks(page, "run", shots)
    finally:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "Write amp." in out, (process.returncode, out, lines)
    page.until("document.getElementById('state').textContent.includes('ended')")


# Runs of every kind of controller: what its maps are called, and by what they can be coloured, or why there is none; whether
# the power can be cut (None: that depends on the machine) and the rate changed.
KINDS = [
    ("envy", ["envy-128m", "-w", "tpca branches=9 rate=5k/s", "--precondition", "full"], [("data", "segments", "live wear used")], (True, True)),
    ("fast", ["mlc-fast,media.mlc.blocks=64", "-w", "zipf qd=4", "--precondition", "full"], [("data", "blocks", "live wear used")], (True, True)),
    ("hybrid", ["hybrid-slc-mlc,media.mlc.blocks=64", "-w", "zipf qd=4", "--precondition", "full"],
     [("data", "blocks", "live wear used"), ("log", "blocks", "live wear used")], (True, True)),
    ("fsms", ["hftl-fsms", "-w", "uniform qd=1", "--precondition", "fresh"], [("data", "blocks", "live wear used"), ("PRAM", "regions", "wear")], (True, True)),
    ("moneta", ["moneta,media.pcm.size=1GiB", "-w", "uniform qd=8", "--precondition", "fresh"], [("memory", "regions", "wear")], (False, False)),
    ("streams", ["bench-4g", "-w", "uniform qd=4", "-w", "zipf rw=randread rate=3k/s", "--precondition", "fresh"], [("data", "blocks", "live wear used")], (False, False)),
    ("disk", ["disk-2010", "-w", "uniform qd=1", "--precondition", "fresh"], "a disk has no map", (None, True)),
]


def check_kinds(browser, nvlab, folder, shots):
    for name, words, maps, controls in KINDS:
        arguments = ["run", *words, "--until", "1e9 io", "--http", "127.0.0.1:0", "-o", os.path.join(folder, "runs")]
        process, lines, address = started(nvlab, arguments)
        try:
            page = browser.page(address)
            page.until("latest && latest.devices[0].write.count > 0", 120)
            page.run("(() => { const s = document.getElementById('speed'); s.value = 'none'; s.dispatchEvent(new Event('change')); })()")
            page.until(f"{DEVICE}.speed === null && {DEVICE}.write.count > 2000", 60)
            can = page.run("['cut', 'rate'].map(id => !document.getElementById(id).disabled)")
            assert all(wanted in (None, found) for wanted, found in zip(controls, can)), (name, can)
            cleans = page.run("document.getElementById('figures').textContent.includes('cleaning cost')")
            assert cleans == (not isinstance(maps, str) and maps[0][2] != "wear"), name
            if isinstance(maps, str):
                assert maps in page.run("document.getElementById('no-map').textContent"), name
                assert page.run("document.querySelectorAll('#maps figure').length") == 0, name
            else:
                found = page.run(f"{DEVICE}.maps.map(m => [m.name, m.regions, ['live', 'wear', 'used'].filter(by => m[by]).join(' ')])")
                assert found == [list(each) for each in maps], (name, found)
                check_colours(page, name, maps, shots)
            if can[0]:
                page.run("document.getElementById('cut').click()")
                page.until("document.querySelectorAll('#cuts li').length === 1")
                page.until(f"{DEVICE}.write.count > 0")
            time.sleep(5)
            check_looks(page, "run-" + name, shots)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
        assert process.returncode == 0, (name, lines)


WRITER = """
import mmap, os, random
with open(os.environ["NVLAB_WINDOW"], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)
    while True:
        memory[random.randrange(len(memory) // 4096) * 4096] = 1
"""


def check_memory(browser, nvlab, folder, shots):
    """A memory that a program uses is there to look at."""
    script = os.path.join(folder, "writer.py")
    with open(script, "w") as file:
        file.write(WRITER)
    arguments = ["serve", "envy", "--mem", "--size", "32MiB", "--resident", "1MiB", "--http", "127.0.0.1:0", "--", sys.executable, script]
    process, lines, address = started(nvlab, arguments)
    try:
        page = browser.page(address)
        page.until(f"latest && {DEVICE}.write.count > 20000 && {DEVICE}.erases > 0", 120)
        assert page.run(f"{DEVICE}.maps[0].regions") == "segments"
        figures = page.run("document.getElementById('figures').textContent")
        assert "resident pages" in figures and "segments cleaned" in figures, figures
        assert page.run("document.getElementById('cut').disabled && document.getElementById('pause').disabled")
        status = page.run("fetch('/cut?device=0', {method: 'POST', headers: {'X-Nvlab-Token': token}}).then(r => r.status)")
        assert status == 409, status
        page.wrong.clear()  # the 409 is in the console
        check_looks(page, "memory", shots)
    finally:
        process.kill()
        process.communicate()


def check_colours(page, name, maps, shots):
    """Each map says what it shows, in every colouring it has; if it has not, it keeps one that it has."""
    page.look(1200, False)
    for by, said in (("used", "erased|data|log"), ("wear", "rated"), ("live", "are live")):
        if page.run(f"document.querySelector('input[value={by}]').disabled"):
            assert not any(by in colourings for *_, colourings in maps), (name, by)
            continue
        page.run(f"document.querySelector('input[value={by}]').click()")
        labels = page.run("[...document.querySelectorAll('#maps canvas[role=img]')].map(c => c.getAttribute('aria-label'))")
        assert len(labels) == len(maps), (name, labels)
        for label, (of, regions, colourings) in zip(labels, maps):
            assert f"of the {of} by" in label and regions in label, (name, label)
            assert re.search(said if by in colourings else "rated", label), (name, by, label)
        page.shoot(os.path.join(shots, f"run-{name}-{by}.png"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    """The files of a folder, without a line for each."""

    def log_message(self, *_):
        pass


def check_notebook(browser, site, shots):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page = browser.page(f"http://127.0.0.1:{server.server_port}/course/1-envy.html")
        check_looks(page, "notebook", shots)
        plots = page.run("[...document.querySelectorAll('.cell_output img')].map(i => i.complete && i.naturalWidth > 100 && i.alt.length > 20)")
        assert plots == [True, True], plots
        for dark, filter_ in ((False, "none"), (True, "invert(0.93) hue-rotate(180deg)")):
            page.look(1200, dark)
            assert page.run("getComputedStyle(document.querySelector('.cell_output img')).filter") == filter_, dark
        assert not page.wrong, page.wrong
    finally:
        server.shutdown()


def main():
    nvlab, site, shots = sys.argv[1:]
    program = devtools.find()
    if not program:
        print("no Chromium here (looked for " + ", ".join(devtools.NAMES) + "): the pages are not tested", file=sys.stderr)
        sys.exit(4)
    os.makedirs(shots, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, devtools.Browser(program) as browser:
        out = ["-o", os.path.join(folder, "runs"), "-q"]
        def make(*words):
            subprocess.run([nvlab, *words, *out], check=True, stdout=subprocess.DEVNULL)
        file = os.path.join(folder, "compare.html")
        make("compare", DESIGN, DESIGN + ",ftl.clean.kind=fifo", "-w", "zipf qd=8 read=30%", "--precondition", "full", "--html", file)
        check_report(browser, file, "compare", shots)
        file = os.path.join(folder, "sweep.html")
        make("sweep", DESIGN, "-w", "uniform qd=8", "-p", "ftl.spare=20%..50%:10%", "-p", "ftl.clean.kind=greedy,fifo",
             "--precondition", "full", "--until", "2e4 io", "--html", file)
        check_report(browser, file, "sweep", shots)
        check_notebook(browser, site, shots)
        check_serve(browser, nvlab, folder, shots)
        check_serve(browser, nvlab, folder, shots, "envy-128m", "serve-envy")
        check_run(browser, nvlab, folder, shots)
        check_kinds(browser, nvlab, folder, shots)
        check_memory(browser, nvlab, folder, shots)
    print("screenshots: " + shots)


main()
