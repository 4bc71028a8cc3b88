"""Regions and phases of a Python program, recorded by libassay where ASSAY_DIR or init() says so."""
import ctypes
import functools
import inspect
import os

from . import _library

MODES = ("off", "count", "aggregate", "trace")

# A name's region lives as long as the process. The library keeps 65,535 names; later ones share a region.
_NAMES_MOST = 65535
_known = {}

_begin, _end = _library.region_begin, _library.region_end


class region:  # named as it is used: `with region("solve"):`, `@region("solve")`
    """A part of the program that is timed, as a context manager or a decorator.

    One object may be used again, inside itself, and by several threads. Of an `async def` the decorator times each call
    from its first step to its end, of a generator from its first value to its end, waiting included: such calls overlap
    with others, so they have no parent. A `with` around an `await` or a `yield` would be left and entered again unseen:
    decorate the function instead.
    """

    __slots__ = ("name", "_pointer")

    def __new__(cls, name):
        try:
            return _known[name]
        except (KeyError, TypeError):
            pass
        self = super().__new__(cls)
        self._pointer = _library.region_named(_library.text(name, "the name of a region"))
        self.name = name
        return _known.setdefault(name, self) if len(_known) < _NAMES_MOST else self

    def __enter__(self):
        _begin(self._pointer)
        return self

    def __exit__(self, *exception):
        _end(self._pointer)

    def __call__(self, function):
        if not callable(function):
            raise TypeError(f"a region decorates functions, and this is a {type(function).__name__}")
        if inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__qualname__} is an asynchronous generator, which no region can decorate: "
                            "decorate what it awaits")
        if inspect.iscoroutinefunction(function):
            return _of_coroutine(self._pointer, function)
        if inspect.isgeneratorfunction(function):
            return _of_generator(self._pointer, function)
        return _of_function(self._pointer, function)

    def __repr__(self):
        return f"region({self.name!r})"


def _of_function(pointer, function):
    @functools.wraps(function)
    def timed(*args, **kwargs):
        _begin(pointer)
        try:
            return function(*args, **kwargs)
        finally:
            _end(pointer)

    return timed


def _of_coroutine(pointer, function):
    @functools.wraps(function)
    async def timed(*args, **kwargs):
        token = _library.token_begin(pointer)
        try:
            return await function(*args, **kwargs)
        finally:
            _library.token_end(token)

    return timed


def _of_generator(pointer, function):
    @functools.wraps(function)
    def timed(*args, **kwargs):
        token = _library.token_begin(pointer)
        try:
            return (yield from function(*args, **kwargs))
        finally:
            _library.token_end(token)

    return timed


def _done(result):
    """True; False where nothing is recorded, so that a program runs alike with and without a recording."""
    if result == 0:
        return True
    error = _library.failure()
    if "nothing is being recorded" in str(error):
        return False
    raise error


def mark(name):
    """From now on the program is in the phase `name`. False where no run records it."""
    return _done(_library.mark(_library.text(name, "the name of a phase")))


def _mode_number(mode):
    if mode not in MODES:
        raise ValueError(f"{mode!r} is none of the modes {', '.join(MODES)}")
    return MODES.index(mode)


def init(dir=None, mode="trace", limit=0):
    """Starts recording into the folder `dir` (None: $ASSAY_DIR), in place of what the environment asks for. limit:
    bytes that this process may write, 0: $ASSAY_LIMIT or 8 GiB. Raises Error where it cannot."""
    options = _library.Options(mode=_mode_number(mode), limit=limit, dir=None if dir is None else os.fsencode(dir))
    if _library.init(ctypes.byref(options)) < 0:
        raise _library.failure()


def set_mode(mode):
    """off, count, aggregate or trace, for all threads from each one's next region on. False where nothing is
    recorded."""
    return _done(_library.set_mode(_mode_number(mode)))


def get_mode():
    """off where nothing is recorded."""
    return MODES[_library.get_mode()]


def set_rank(rank, size=0):
    """Which process of a job this is; size 0: unknown. False where nothing is recorded."""
    return _done(_library.set_rank(rank, size))


def set_metadata(key, value):
    """One fact about the run. False where nothing is recorded."""
    return _done(_library.set_metadata(_library.text(key, "the key"), _library.text(value, "the value")))


def flush():
    """Has the disk hold what has been recorded. False where nothing is recorded."""
    return _done(_library.flush())


def directory():
    """The folder that is recorded into; None where nothing is recorded."""
    path = _library.directory()
    return None if path is None else os.fsdecode(path)


def finalize():
    """Ends the recording of all threads. Exit does it by itself."""
    if _library.finalize() < 0:
        raise _library.failure()
