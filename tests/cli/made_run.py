"""A finished run directory with CPU samples, made byte by byte as docs/formats.md has them, so that the truth is known.

A stack is a list of frames, outermost first; a frame is a function's name or a list of names, the innermost inlined
function first. Functions whose names begin with "lib" are in the second module.
"""
import json
import struct

START = 5_000_000_000_000
HZ = 100
MODULES = [("/usr/bin/prog", "prog"), ("/usr/lib/libdeep.so", "libdeep.so")]


def record(kind, payload):
    size = (16 + len(payload) + 7) // 8 * 8
    return struct.pack("=IHHII", size, kind, 0, 0, len(payload)) + payload.ljust(size - 16, b"\0")


def segment(kind, records):
    body = b"".join(records)
    header = struct.pack("=8sIIiIQqqQQQiI", b"ASSAYSEG", 1, kind, 1, 4096, 1 << 30, START, START,
                         4096 + len(body), 4096 + len(body), 0, 0, 1)
    return header.ljust(4096, b"\0") + body


class MadeRun:
    """threads: names; phases: (name, group, start_s, end_s); add(t_s, thread, stack, count, weight) then write()."""

    def __init__(self, path, threads=("main",), phases=(("run", "other", 0, 10),)):
        self.path, self.threads, self.phases = path, threads, phases
        self.nodes, self.places, self.functions, self.node_records, self.samples = {}, {}, {}, [], []
        self.dropped, self.unsampled, self.cpu_s, self.handler_ns = (0, 0), [], None, 0
        self.flags = 1

    def place(self, frame):
        names = [frame] if isinstance(frame, str) else list(frame)
        module = int(names[-1].startswith("lib"))
        for name in names:
            self.functions.setdefault((module, name), len(self.functions))
        key = (module, tuple(names))
        return module, self.places.setdefault(key, 0x1000 + 16 * len(self.places)), key

    def node(self, stack):
        at = 0
        for depth in range(len(stack)):
            module, address, key = self.place(stack[depth])
            if (at, key) not in self.nodes:
                self.nodes[at, key] = len(self.nodes) + 1
                self.node_records.append(struct.pack("=IIQ", at, module, address))
            at = self.nodes[at, key]
        return at

    def add(self, t_s, thread, stack, count=1, weight=1, spread_s=0.0):
        node = self.node(stack)
        for i in range(count):
            t = START + round((t_s + spread_s * i / count) * 1e9)
            self.samples.append((t, struct.pack("=qIIII", t, thread, node, weight, self.flags), weight))
        return self

    def records(self):
        exe = b"/usr/bin/prog\0prog --fast\0"
        yield record(10, struct.pack("=IIq", 1, HZ, START))
        yield record(11, struct.pack("=IiiIq", 0, 100, 1, 0, START) + exe)
        for number, name in enumerate(self.threads):
            yield record(12, struct.pack("=IIiI", number, 0, 100 + number, 0) + name.encode() + b"\0")
        for number, (path, _) in enumerate(MODULES):
            yield record(13, struct.pack("=IIII32sQQQq", number, 0, 0, 0, b"", 1, 2, 3, 4) + path.encode() + b"\0")
        if self.node_records:
            yield record(14, b"".join(self.node_records))
        for _, sample, _ in sorted(self.samples, key=lambda sample: sample[0]):
            yield record(15, sample)
        weight = sum(weight for _, _, weight in self.samples)
        yield record(16, struct.pack("=IIqQQQQQqqIi", 0, 0, START, len(self.samples), weight, *self.dropped,
                                     self.handler_ns, -1, 0, 0, 0) + b"\0")
        for pid, cpu_ns, name, reason in self.unsampled:
            yield record(17, struct.pack("=iiq", pid, 0, cpu_ns) + name.encode() + b"\0" + reason.encode() + b"\0")
        yield record(9, struct.pack("=q", START))

    def write(self):
        (self.path / "segments").mkdir(parents=True)
        (self.path / "segments" / "samples.seg").write_bytes(segment(3, self.records()))
        (self.path / "segments" / "output.seg").write_bytes(
            segment(2, [record(5, struct.pack("=qii", START, 100, 0))]))
        locations = []
        for (module, names), address in self.places.items():
            locations += [module, address, len(names)]
            for name in names:
                locations += [self.functions[module, name], 11]
        (self.path / "profile.json").write_text(json.dumps({
            "schema": "assay-profile-1", "hz": HZ,
            "modules": [[path, name, "", None] for path, name in MODULES],
            "files": ["src/made.c"],
            "functions": [[module, int("!?" not in name), name, 0, 7] for module, name in self.functions],
            "locations": locations}))
        weight = sum(weight for _, _, weight in self.samples)
        (self.path / "run.json").write_text(json.dumps({
            "schema": 1, "status": "ok", "label": "made", "command": "prog --fast", "wall_offset_ns": 0,
            "started_at": "1970-01-01T01:23:20.000Z", "wall_s": self.phases[-1][3] if self.phases else 1,
            "cpu_s": weight / HZ if self.cpu_s is None else self.cpu_s,
            "phases": [{"name": name, "group": group, "start_s": start, "end_s": end}
                       for name, group, start, end in self.phases]}))
        return self.path
