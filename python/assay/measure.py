"""How long a statement takes: Python's own timer makes the loops, libassay the figures."""
import ctypes
import inspect
import math
import operator
import sys
from timeit import Timer

from . import _library

_FIGURES = ("average", "deviation", "min_exec", "max_exec", "repeat", "number", "ttime", "median", "low", "high",
            "confidence", "p05", "p25", "p75", "p95")

_REPEAT_MOST = 1_000_000  # the library's


def _count(name, value):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} has to be a whole number and is {value!r}") from None


def _size(values):
    """Of an array its first dimension, else the length; None: it has neither."""
    try:
        return values.shape[0] if hasattr(values, "shape") else len(values)
    except (TypeError, IndexError):
        return None


def _batches_of_time(timer, max_time):
    """(executions, seconds) of batches that grow until their total is beyond max_time."""
    plan = _library.TimingPlan()
    seconds, batches = 0.0, []
    while True:
        number = _library.timing_plan_next(ctypes.byref(plan), seconds, max_time)
        if not number:
            return batches
        seconds = timer.timeit(number)
        batches.append((number, seconds))


def _figures(batches, options):
    count = len(batches)
    numbers = (ctypes.c_uint64 * count)(*(number for number, _ in batches))
    seconds = (ctypes.c_double * count)(*(time for _, time in batches))
    timing = _library.Timing()
    if _library.timing_of(numbers, seconds, count, 0.0, ctypes.byref(options), ctypes.byref(timing)) < 0:
        raise _library.failure()
    warnings = []
    while True:
        text = _library.timing_warning(ctypes.byref(timing), len(warnings))
        if text is None:
            return {name: getattr(timing, name) for name in _FIGURES}, warnings
        warnings.append(text.decode())


def measure_time(stmt, context=None, repeat=10, number=50, warmup=1, div_by_number=True, max_time=None):
    """How long a statement takes, as a dictionary; times are seconds.

    stmt           a string, or something to call without arguments
    context        the names that a string knows, with their values
    repeat         batches that are timed
    number         executions in one batch
    warmup         executions before them
    div_by_number  figures are per execution; else per batch
    max_time       instead of repeat and number: batches grow until their total is beyond these seconds

    average, deviation (of the population), min_exec, max_exec; ttime is the sum of the batches' figures. With max_time
    they are weighted by the batches' executions, repeat is 1, number counts all executions and ttime is all seconds.
    median with its 95% interval low..high (NaN: fewer than 6 batches, or max_time); p05, p25, p75, p95. warmup_time,
    and context_size (bytes), or size where the context has `values`. warnings: sentences about what is odd.
    """
    if not isinstance(stmt, str) and not callable(stmt):
        raise TypeError(f"stmt has to be a string or callable and is a {type(stmt).__name__}")
    if inspect.iscoroutinefunction(stmt):
        raise TypeError("stmt is an async function, whose call only makes a coroutine: "
                        "measure lambda: asyncio.run(function())")
    if max_time is not None and not div_by_number:
        raise ValueError("div_by_number must be True where max_time is given")
    if max_time is not None and not math.isfinite(max_time):
        raise ValueError(f"max_time has to be a number of seconds and is {max_time}")
    repeat, number, warmup = _count("repeat", repeat), _count("number", number), _count("warmup", warmup)
    if max_time is None and (repeat < 1 or number < 1):
        raise ValueError(f"repeat and number have to be at least 1 and are {repeat} and {number}")
    if max_time is None and repeat > _REPEAT_MOST:
        raise ValueError(f"repeat is {repeat}; there are at most {_REPEAT_MOST:,} batches")
    context = {} if context is None else context
    timer = Timer(stmt, globals=context) if isinstance(stmt, str) else Timer(stmt)
    warmup_time = timer.timeit(warmup) if warmup > 0 else 0.0
    if max_time is None:
        batches = [(number, seconds) for seconds in timer.repeat(repeat=repeat, number=number)]
    else:
        batches = _batches_of_time(timer, max_time)
    options = _library.MeasureOptions(div_by_number=bool(div_by_number), max_time=0 if max_time is None else 1)
    result, warnings = _figures(batches, options)
    size = _size(context["values"]) if "values" in context else None
    if size is None:
        result["context_size"] = sys.getsizeof(context)
    else:
        result["size"] = size
    result["warmup_time"] = warmup_time
    result["warnings"] = warnings
    return result
