#!/usr/bin/env python3
"""Rewrite an ftrace record of block_rq_issue as blkparse default text.

    ftrace-to-blkparse.py convert FILE          > out.blkparse
    ftrace-to-blkparse.py stats   FILE [COUNT]  > statistics.md

FILE is the text of a tracefs `trace` file with `block_rq_issue` events and the
recorder's phase marks ("nvtrace phase NAME").  `convert` writes one line per
request:

    major,minor cpu seq seconds.nanoseconds pid D rwbs sector + count [process]

and, as blkparse does, no "sector + count" for a request without data (a pure
flush).  The time is relative to the first request.  ftrace prints
microseconds, so the last three digits are zero; it has no sequence number, so
that column is zero.  `stats` describes the first COUNT requests.
"""
import collections
import re
import sys

EVENT = re.compile(
    r"^.{16,}?-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\]\s+\S+\s+(?P<s>\d+)\.(?P<us>\d{6}): "
    r"block_rq_issue: (?P<maj>\d+),(?P<min>\d+) (?P<rwbs>\S+) \d+ \(.*?\) "
    r"(?P<sector>\d+) \+ (?P<count>\d+) (?:\S+,\d+,\d+ )?\[(?P<comm>.*)\]$"
)
MARK = re.compile(r"\s(?P<s>\d+)\.(?P<us>\d{6}): tracing_mark_write: nvtrace phase (?P<name>\S+)")

Request = collections.namedtuple("Request", "us maj min cpu pid rwbs sector count comm")


def read(path):
    """Requests ordered by time, and phase marks as (microseconds, name)."""
    requests, marks = [], []
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if line.startswith("#") or not line.strip():
                continue
            if "LOST" in line and "EVENTS" in line:
                sys.exit(f"{path}:{number}: events were lost: {line.strip()}")
            m = EVENT.match(line)
            if m:
                requests.append(Request(
                    int(m["s"]) * 1000000 + int(m["us"]), int(m["maj"]), int(m["min"]),
                    int(m["cpu"]), int(m["pid"]), m["rwbs"], int(m["sector"]),
                    int(m["count"]), m["comm"]))
                continue
            m = MARK.search(line)
            if m:
                marks.append((int(m["s"]) * 1000000 + int(m["us"]), m["name"]))
                continue
            sys.exit(f"{path}:{number}: line not understood: {line}")
    if not requests:
        sys.exit(f"{path}: no requests")
    requests.sort(key=lambda r: r.us)  # stable
    return requests, marks


def convert(path):
    requests, _ = read(path)
    start = requests[0].us
    out = sys.stdout
    for r in requests:
        us = r.us - start
        where = f"{r.sector} + {r.count} " if r.count else ""
        out.write(
            f"{r.maj:3d},{r.min:<3d} {r.cpu:2d} {0:8d} {us // 1000000:5d}.{us % 1000000:06d}000 "
            f"{r.pid:5d}  D {r.rwbs:>3s} {where}[{r.comm}]\n")


def kind(rwbs):
    """The operation, without its modifiers."""
    body = rwbs[1:] if rwbs.startswith("F") and len(rwbs) > 1 else rwbs
    if body.startswith("F"):
        return "flush"
    return {"W": "write", "R": "read", "D": "discard"}.get(body[0], "other")


def mib(sectors):
    return f"{sectors / 2048:.1f}"


def stats(path, limit):
    requests, marks = read(path)
    requests = requests[:limit]
    start, end = requests[0].us, requests[-1].us
    print(f"Duration: {(end - start) / 1e6:.3f} s\n")

    print("| Phase | first line | starts at (s) | requests | reads | writes | flushes | discards "
          "| MiB read | MiB written | MiB discarded |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    bounds = [m for m in marks if m[0] <= end]
    rows = [(name, at, bounds[i + 1][0] if i + 1 < len(bounds) else end + 1)
            for i, (at, name) in enumerate(bounds)]
    rows.append(("all", 0, end + 1))
    for name, low, high in rows:
        part = [(i, r) for i, r in enumerate(requests, 1) if low <= r.us < high]
        n, sectors = collections.Counter(), collections.Counter()
        for _, r in part:
            n[kind(r.rwbs)] += 1
            sectors[kind(r.rwbs)] += r.count
        first = part[0][0] if part else 0
        print(f"| {name} | {first} | {max(low - start, 0) / 1e6:.3f} | {len(part)} | {n['read']} "
              f"| {n['write']} | {n['flush']} | {n['discard']} | {mib(sectors['read'])} "
              f"| {mib(sectors['write'])} | {mib(sectors['discard'])} |")

    def table(title, key, only=None):
        n, sectors = collections.Counter(), collections.Counter()
        for r in requests:
            if only and kind(r.rwbs) != only:
                continue
            n[key(r)] += 1
            sectors[key(r)] += r.count
        print(f"\n| {title} | requests | MiB |\n|---|---:|---:|")
        for k, v in n.most_common():
            print(f"| `{k}` | {v} | {mib(sectors[k])} |")

    table("RWBS", lambda r: r.rwbs)
    table("Process (digits dropped)", lambda r: re.sub(r"\d.*$", "", r.comm) or r.comm)

    def size(r):
        kb = r.count / 2
        for top in (4, 8, 16, 32, 64, 128, 256, 512, 1024):
            if kb <= top:
                return f"<= {top} KiB"
        return "> 1024 KiB"

    table("Size of writes", size, "write")
    table("Size of reads", size, "read")

    touched = {"read": set(), "write": set()}
    pages, again, unaligned, top = 0, 0, 0, 0
    for r in requests:
        what = kind(r.rwbs)
        top = max(top, r.sector + r.count)
        if r.count and (r.sector % 8 or r.count % 8):
            unaligned += 1
        if what not in touched:
            continue
        span = range(r.sector // 8, (r.sector + r.count + 7) // 8)
        if what == "write":
            pages += len(span)
            again += sum(p in touched["write"] for p in span)
        touched[what].update(span)
    both = touched["read"] | touched["write"]
    print(f"\nFootprint (distinct 4 KiB pages, MiB): written {len(touched['write']) / 256:.1f}, "
          f"read {len(touched['read']) / 256:.1f}, either {len(both) / 256:.1f}; "
          f"read but never written {len(touched['read'] - touched['write'])} pages")
    print(f"Pages written in total: {pages}; onto a page written before: {again} "
          f"({100 * again / max(pages, 1):.1f} %)")
    print(f"Highest sector (exclusive): {top}; requests not aligned to 4 KiB: {unaligned}")


def main():
    args = sys.argv[1:]
    if len(args) == 2 and args[0] == "convert":
        convert(args[1])
    elif len(args) in (2, 3) and args[0] == "stats":
        stats(args[1], int(args[2]) if len(args) == 3 else None)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
