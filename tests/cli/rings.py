"""An independent reader of ring files (src/wire/sampler.h), and what runs a program under the sampler library.

Nobody empties the rings while the program runs: what finds no room is counted as dropped, its weight is not lost.
"""
import collections
import pathlib
import struct
import subprocess

from conftest import BUILD, environment

HEADER = struct.Struct("=8sIiiIIIIIIIQqIIIIiIQQ")
SLOT = struct.Struct("=IiQQQQQQQQ")
RING_OFFSET, RING_BYTES = 24576, 65536
RECORD = struct.Struct("=IHH")
SAMPLE = struct.Struct("=qiIII")
THREAD = struct.Struct("=qiI16s")
MODULE = struct.Struct("=IHHqQQQ32s")
PAD, SAMPLE_TYPE, THREAD_TYPE = 1, 2, 3
TIMER_REFUSED, NO_ROOM, SIGNAL_TAKEN, RESTRICTED = 1, 2, 4, 8
LIBRARY = BUILD / "libassay-sampler.so"

Header = collections.namedtuple("Header", "magic version pid ppid hz signal slot_size slot_max slots_offset "
                                "modules_offset modules_bytes start_ticks mono_ns slots trouble unarmed roomless "
                                "unarmed_errno closed modules_used unsampled_ns")
Slot = collections.namedtuple("Slot", "state tid head tail deliveries weight dropped dropped_weight handler_ns "
                              "ended_ns")
Sample = collections.namedtuple("Sample", "t tid weight flags frames")
Module = collections.namedtuple("Module", "t start end bias build_id path")


class Ring:
    """One file, read after the fact."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.header = Header(*HEADER.unpack(f.read(HEADER.size)))
            h = self.header
            assert h.magic == b"ASSAYSMP" and h.version == 1, path
            assert h.slot_size == RING_OFFSET + RING_BYTES
            self.exe = f.read(2048).split(b"\0")[0].decode()
            f.seek(h.modules_offset)
            self.modules = list(self._modules(f.read(h.modules_bytes)))
            self.slots, self.samples, self.names = [], [], {}
            for i in range(h.slots):
                f.seek(h.slots_offset + i * h.slot_size)
                self._slot(f.read(h.slot_size))

    def _modules(self, area):
        at = 0
        while at < self.header.modules_used:
            size, path_length, id_length, t, start, end, bias, build_id = MODULE.unpack_from(area, at)
            if size == 0:
                return
            path = area[at + MODULE.size:at + MODULE.size + path_length].decode()
            assert size % 8 == 0 and MODULE.size + path_length <= size
            yield Module(t, start, end, bias, build_id[:id_length], path)
            at += size

    def _slot(self, data):
        slot = Slot(*SLOT.unpack_from(data))
        self.slots.append(slot)
        assert slot.tail == 0 and slot.head <= RING_BYTES
        at, last = RING_OFFSET, []
        while at < RING_OFFSET + slot.head:
            size, kind, flags = RECORD.unpack_from(data, at)
            assert size >= 8 and size % 8 == 0
            if kind == SAMPLE_TYPE:
                t, tid, weight, kept, count = SAMPLE.unpack_from(data, at + 8)
                frames = struct.unpack_from(f"={count}Q", data, at + 8 + SAMPLE.size)
                assert kept <= len(last)
                last = list(frames) + (last[-kept:] if kept else [])
                self.samples.append(Sample(t, tid, weight, flags, last))
            elif kind == THREAD_TYPE:
                t, tid, _, name = THREAD.unpack_from(data, at + 8)
                self.names.setdefault(tid, []).append(name.split(b"\0")[0].decode())
            else:
                assert kind == PAD
            at += size

    @property
    def cpu_s(self):
        """CPU seconds that the samples stand for, dropped ones included."""
        return sum(slot.weight for slot in self.slots) / self.header.hz

    @property
    def tids(self):
        return {sample.tid for sample in self.samples}


class Sampled:
    """How a program went under the sampler, and its rings in the order they were made."""

    def __init__(self, process, out, err, folder):
        self.status, self.stdout, self.stderr = process.returncode, out.decode(), err.decode()
        self.left = sorted(path.name for path in folder.iterdir() if not path.name.endswith(".ring"))
        self.rings = sorted((Ring(path) for path in folder.iterdir() if path.name.endswith(".ring")),
                            key=lambda ring: ring.header.mono_ns)

    def of(self, name):
        """The rings of images of a program whose path ends with `name`."""
        return [ring for ring in self.rings if ring.exe.endswith(name)]

    @property
    def cpu_s(self):
        return sum(ring.cpu_s for ring in self.rings)

    def __repr__(self):
        rings = [(ring.exe, ring.header, ring.slots) for ring in self.rings]
        return f"<status {self.status}, {self.stdout!r}, {self.stderr[-2000:]!r}, {rings}>"


def under_sampler(tmp_path, *argv, hz=199, env=None, folder=None, timeout=300, **popen):
    """Runs the command with the library preloaded. The timeout only guards against a hang."""
    folder = pathlib.Path(folder or tmp_path / "rings")
    folder.mkdir(exist_ok=True)
    changes = {"LD_PRELOAD": str(LIBRARY), "ASSAY_SAMPLER": str(folder), "ASSAY_SAMPLER_HZ": str(hz), **(env or {})}
    process = subprocess.Popen([str(arg) for arg in argv], cwd=tmp_path, env={**environment({}), **changes},
                               **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                                  "start_new_session": True, **popen})
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it hangs: {argv}: {out!r} {err!r}") from None
    return Sampled(process, out or b"", err or b"", folder)
