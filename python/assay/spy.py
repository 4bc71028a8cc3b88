"""Memory over time, seen by another process: start_spying_on."""
import ctypes
import operator
import warnings

from . import _library

_GPUS_MAX = 64
_GPU, _TREE, _PSS = 1, 2, 4


class _Monitor(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_int64), ("end", ctypes.c_int64), ("peak", ctypes.c_int64),
                ("average", ctypes.c_double), ("n", ctypes.c_uint64), ("peak_at", ctypes.c_double)]


class _Result(ctypes.Structure):
    _fields_ = ([(name, _Monitor) for name in ("rss", "anon", "file", "swap", "pss")]
                + [("gpus", _Monitor * _GPUS_MAX), ("gpu_count", ctypes.c_size_t)]
                + [(name, ctypes.c_int64) for name in ("high_water_begin", "high_water_end", "peak", "peak_above")]
                + [(name, ctypes.c_int) for name in ("peak_exact", "gone", "partial")]
                + [("seconds", ctypes.c_double)])


class _Spy(ctypes.Structure):
    """Opaque: the library's own."""


_start = _library.declare(_library.library, "assay_spy_start", ctypes.POINTER(_Spy), ctypes.c_int, ctypes.c_double,
                          ctypes.c_uint)
_stop = _library.declare(_library.library, "assay_spy_stop", ctypes.c_int, ctypes.POINTER(_Spy),
                         ctypes.POINTER(_Result))


def _known(value):
    return None if value < 0 else value


class Monitor:
    """One resource: begin, end, max_peak and average (the mean) in bytes, n_measures readings; peak_at in seconds since
    the start. Where nothing could be read n_measures is 0 and the others are None."""

    def __init__(self, figures, peak=None):
        self.begin, self.end = _known(figures.begin), _known(figures.end)
        self.max_peak = _known(figures.peak) if peak is None else peak
        self.average = figures.average if figures.n else None
        self.n_measures = figures.n
        self.peak_at = figures.peak_at if figures.n else None

    def to_dict(self, unit=1):
        """Bytes divided by the unit: 2**20 for MiB. n is a count, and stays one."""
        sizes = {"peak": self.max_peak, "mean": self.average, "begin": self.begin, "end": self.end}
        scaled = {name: None if size is None else size / unit for name, size in sizes.items()}
        return {"peak": scaled["peak"], "mean": scaled["mean"], "n": self.n_measures, "begin": scaled["begin"],
                "end": scaled["end"]}

    def __repr__(self):
        return f"{type(self).__name__}(peak={self.max_peak}, average={self.average}, n={self.n_measures})"


class SpyResult(dict):
    """What a spy saw: result["cpu"] or result.cpu, and with cuda=True gpus, a Monitor for each.

    cpu is the resident memory; its max_peak is the kernel's high-water mark where that tells of a peak between two
    readings. Further attributes: rss (by the readings alone), anon, file, swap, pss; peak, exact (nothing larger was
    missed), peak_above (a bound where it is not exact, or None), high_water_begin, high_water_end, seconds, gone (the
    process ended first), partial (the spy was killed: figures until then).
    """

    def __init__(self, raw, cuda):
        super().__init__(cpu=Monitor(raw.rss, _known(raw.peak)))
        if cuda:
            self["gpus"] = [Monitor(raw.gpus[i]) for i in range(raw.gpu_count)]
        for name in ("rss", "anon", "file", "swap", "pss"):
            setattr(self, name, Monitor(getattr(raw, name)))
        for name in ("peak", "peak_above", "high_water_begin", "high_water_end"):
            setattr(self, name, _known(getattr(raw, name)))
        self.exact, self.gone, self.partial = bool(raw.peak_exact), bool(raw.gone), bool(raw.partial)
        self.seconds = raw.seconds

    def __getattr__(self, name):
        if name in ("cpu", "gpus") and name in self:
            return self[name]
        raise AttributeError(f"{type(self).__name__} has no {name!r}"
                             + ("; ask for it with cuda=True" if name == "gpus" else ""))


class MemorySpy:
    """A spy at work; see start_spying_on."""

    def __init__(self, pid, delay, flags):
        self._handle = None
        self._cuda = bool(flags & _GPU)
        self.pid, self.delay, self.result = pid, delay, None
        handle = _start(pid or 0, delay, flags)
        if not handle:
            raise _library.failure()
        self._handle = handle

    def stop(self):
        """Ends the watch and returns its SpyResult, which stays in .result."""
        # Exchanged in one step: of two threads, one stops it.
        handle, self._handle = self._handle, None
        if not handle:
            raise _library.Error("this spy has been stopped already; its figures are in .result")
        raw = _Result()
        if _stop(handle, ctypes.byref(raw)) < 0:
            trouble = _library.failure()
            if raw.rss.n == 0:
                raise trouble
            warnings.warn(str(trouble), RuntimeWarning, stacklevel=2)
        self.result = SpyResult(raw, self._cuda)
        return self.result

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self._handle:
            self.stop()

    def __del__(self):
        handle, self._handle = self._handle, None
        if handle:
            _stop(handle, None)


def start_spying_on(pid=None, delay=0.01, cuda=False, *, tree=False, pss=False):
    """Starts a process that watches the memory of process `pid`, or of this one, every `delay` seconds.

    cuda: each GPU's used memory, too. tree: the process and its descendants, summed. pss: memory that is shared counted
    in shares, read rarely. stop() of what is returned ends the watch; so does the end of a `with` block.
    """
    if pid is not None:
        pid = operator.index(pid)
        if not 0 < pid < 2**31:
            raise ValueError(f"{pid} is no process id")
    delay = float(delay)
    if not delay > 0:
        raise ValueError(f"the delay has to be above 0 s and is {delay}")
    return MemorySpy(pid, delay, (_GPU if cuda else 0) | (_TREE if tree else 0) | (_PSS if pss else 0))
