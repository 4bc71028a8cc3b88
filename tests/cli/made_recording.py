"""Writes recordings of regions as libassay does (src/wire/regions.h), byte by byte and independent of it.

    with Process(folder, pid=1) as p:
        p.rank(0, 2)
        solve = p.name("solve")
        t = p.thread(0, tid=11)
        t.call(solve, 100, 200)

Times are of the process' clock: ns of CLOCK_MONOTONIC unless clock=TSC.
"""
import os
import struct

MONOTONIC, TSC = 1, 2
TRACE = 3
CALL, THREAD, CLOCK = 0, 1, 2
DETACHED, CROSSED, UNFINISHED = 1, 2, 4
DEPTH_MAX, ID_MAX, BUCKETS, TROUBLES = 65536, 65535, 512, 10
PAGE = 4096
STACK = PAGE
TOTALS = STACK + DEPTH_MAX * 24
BUCKETS_AT = TOTALS + (ID_MAX + 1) * 64
DATA = BUCKETS_AT + (ID_MAX + 1) * BUCKETS * 8
NO_THREAD = 0xFFFFFFFF


def bucket(d):
    """The bucket of a duration, as the layout defines it."""
    if d < 16:
        return d
    e = d.bit_length() - 1
    return min(16 * (e - 3) + (d >> (e - 4)) - 16, BUCKETS - 1)


def header(kind, pid, data_offset, capacity, committed, dropped=0, stopped=0, closed=1):
    return struct.pack("=8sIIiIQqqQQQiI", b"ASSAYSEG", 1, kind, pid, data_offset, capacity, 0, 0, capacity, committed,
                       dropped, stopped, closed)


class Thread:
    """One file of calls."""

    def __init__(self, process, number):
        self.process, self.number = process, number
        self.events = bytearray()
        self.open = []
        self.totals = {}
        self.histograms = {}
        self.troubles = [0] * TROUBLES
        self.last = 0
        self.index = NO_THREAD
        self.committed = None  # what the header claims, where it is not the truth

    def event(self, start, end, region=0, depth=0, flags=0, kind=CALL):
        self.events += struct.pack("=QQIHBB", start, end, region, depth, flags, kind)
        return self

    def call(self, region, start, end, depth=0, flags=0):
        return self.event(start, end, region, depth, flags)

    def switch(self, index, tid):
        """The next calls are of another thread."""
        self.index = index
        return self.event(index, tid, kind=THREAD)

    def clock(self, clock, mono):
        return self.event(clock, mono, kind=CLOCK)

    def total(self, region, durations, exclusive=None):
        """Mode aggregate: calls that were only added up."""
        buckets = self.histograms.setdefault(region, [0] * BUCKETS)
        for d in durations:
            buckets[bucket(d)] += 1
        own = sum(durations) if exclusive is None else exclusive
        count = len(durations)
        self.totals[region] = [count, count, sum(durations), own, min(durations), max(durations), 0, 0]
        return self

    def count(self, region, calls):
        """Mode count."""
        self.totals[region] = [calls, 0, 0, 0, 0, 0, 0, 0]
        return self

    def drop(self, region, calls, total=0):
        row = self.totals.setdefault(region, [0] * 8)
        row[6], row[7] = calls, total
        return self

    def write(self, closed):
        path = self.process.path(f".{self.number}")
        committed = DATA + len(self.events) if self.committed is None else self.committed
        with open(path, "wb") as f:
            f.write(header(5, self.process.pid, DATA, DATA + len(self.events), committed, closed=closed))
            f.seek(512)
            f.write(struct.pack("=IIQQQII10QQ", 1, self.process.clock, STACK, TOTALS, BUCKETS_AT, self.index,
                                len(self.open), *self.troubles, self.last))
            f.seek(STACK)
            for start, region in self.open:
                f.write(struct.pack("=QQII", start, 0, region, 0))
            for region, row in self.totals.items():
                f.seek(TOTALS + region * 64)
                f.write(struct.pack("=8Q", *row))
            for region, buckets in self.histograms.items():
                f.seek(BUCKETS_AT + region * BUCKETS * 8)
                f.write(struct.pack(f"={BUCKETS}Q", *buckets))
            f.truncate(DATA)
            f.seek(DATA)
            f.write(self.events)


class Process:
    """A table, and its threads' files. Written when the block ends, or by write()."""

    def __init__(self, folder, pid=1, ppid=0, clock=MONOTONIC, mono=0, wall=1_700_000_000_000_000_000, boot="boot-a",
                 nonce=None, host="node1", command="./app"):
        self.folder, self.pid, self.clock = folder, pid, clock
        self.nonce = pid if nonce is None else nonce
        self.records = bytearray()
        self.names = 0
        self.threads = []
        os.makedirs(folder, exist_ok=True)
        self.record(32, struct.pack("=IIiiqqQQ40sII", 1, clock, pid, ppid, mono, wall, 8 << 30, self.nonce,
                                    boot.encode(), TRACE, 0) + host.encode() + b"\0" + command.encode() + b"\0")

    def path(self, suffix):
        return os.path.join(self.folder, f"regions-{self.pid}-{self.nonce:016x}{suffix}")

    def record(self, kind, payload):
        size = (16 + len(payload) + 7) // 8 * 8
        self.records += struct.pack("=IHHII", size, kind, 0, 0, len(payload)) + payload
        self.records += b"\0" * (size - 16 - len(payload))

    def name(self, name, file="app.c", line=1, tags=""):
        self.names += 1
        texts = b"".join(text.encode() + b"\0" if isinstance(text, str) else text + b"\0"
                         for text in (name, file, tags))
        self.record(33, struct.pack("=II", self.names, line) + texts)
        return self.names

    def thread(self, index, tid=None, mono=0, name=""):
        """A thread with a file of its own."""
        tid = self.pid if tid is None else tid
        t = Thread(self, len(self.threads))
        self.born(index, tid, t.number, mono, name)
        t.switch(index, tid)
        self.threads.append(t)
        return t

    def born(self, index, tid, number=0, mono=0, name=""):
        self.record(34, struct.pack("=IiIIq", index, tid, number, 0, mono) + name.encode() + b"\0")

    def died(self, index, mono, cpu=-1):
        self.record(35, struct.pack("=IIqq", index, 0, mono, cpu))

    def pair(self, clock, mono, bound=10):
        self.record(36, struct.pack("=Qqq", clock, mono, bound))

    def rank(self, rank, size=0, source=1):
        self.record(37, struct.pack("=iiII", rank, size, source, 0))

    def offset(self, mono, offset, bound=100):
        self.record(38, struct.pack("=qqq", mono, offset, bound))

    def metadata(self, key, value):
        self.record(39, key.encode() + b"\0" + value.encode() + b"\0")

    def trouble(self, kind, region, thread=0, mono=0):
        self.record(40, struct.pack("=IIIIq", kind, region, thread, 0, mono))

    def write(self, closed=1):
        committed = PAGE + len(self.records)
        with open(self.path(".table"), "wb") as f:
            f.write(header(4, self.pid, PAGE, committed, committed, closed=closed).ljust(PAGE, b"\0"))
            f.write(self.records)
        for t in self.threads:
            t.write(closed)

    def __enter__(self):
        return self

    def __exit__(self, *trouble):
        if trouble[0] is None:
            self.write()
