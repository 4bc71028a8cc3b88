"""Finds libassay and declares its calls. It knows nothing of how they are used; the other modules do.

Layouts and names are those of include/assay*.h.
"""
import ctypes
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


class Error(RuntimeError):
    """A call of libassay failed; the text is the library's own sentence."""


class Region(ctypes.Structure):
    """Opaque: the library's own."""


class Token(ctypes.Structure):
    _fields_ = [("start", ctypes.c_uint64), ("region", ctypes.c_uint32), ("check", ctypes.c_uint32)]


class Options(ctypes.Structure):
    _fields_ = [("dir", ctypes.c_char_p), ("mode", ctypes.c_int), ("limit", ctypes.c_uint64)]


class MeasureOptions(ctypes.Structure):
    _fields_ = [("repeat", ctypes.c_uint64), ("number", ctypes.c_uint64), ("warmup", ctypes.c_uint64),
                ("div_by_number", ctypes.c_int), ("max_time", ctypes.c_double), ("each", ctypes.c_void_p),
                ("context_size", ctypes.c_size_t)]


class Timing(ctypes.Structure):
    _fields_ = ([(name, ctypes.c_double) for name in ("average", "deviation", "min_exec", "max_exec", "ttime",
                                                      "warmup_time")]
                + [("repeat", ctypes.c_uint64), ("number", ctypes.c_uint64), ("context_size", ctypes.c_size_t)]
                + [(name, ctypes.c_double) for name in ("median", "p05", "p25", "p75", "p95", "low", "high",
                                                        "confidence", "overhead", "resolution", "cycles",
                                                        "instructions")]
                + [("warnings", ctypes.c_uint)])


class TimingPlan(ctypes.Structure):
    _fields_ = [("total", ctypes.c_double), ("i", ctypes.c_uint64), ("step", ctypes.c_uint)]


def _candidates():
    """Where it may be, most wanted first: as told, as installed with this package, as built beside it, as the loader
    finds it."""
    told = os.environ.get("ASSAY_LIBRARY")
    if told:
        return [told]
    found = []
    installed = HERE / "_installed"
    if installed.is_file():
        found.append(os.path.normpath(HERE / installed.read_text(encoding="utf-8").strip()))
    else:
        found.append(str(HERE.parents[1] / "build" / "libassay.so"))
    return found + ["libassay.so.0"]


def _load():
    tried = []
    for path in _candidates():
        try:
            # Regions take nanoseconds: to let go of the interpreter's lock and take it again takes more. What may take
            # long is called through a second handle that lets go.
            return ctypes.PyDLL(path), ctypes.CDLL(path), path
        except OSError as error:
            tried.append(f"{path} ({error})")
    raise ImportError("libassay is not found; set ASSAY_LIBRARY to the path of libassay.so. Looked at: "
                      + "; ".join(tried))


quick, library, path = _load()

_REGION = ctypes.POINTER(Region)


def declare(handle, name, result, *arguments):
    try:
        function = getattr(handle, name)
    except AttributeError:
        raise ImportError(f"{path} has no {name}: it is of another version than this package; set ASSAY_LIBRARY to the "
                          "path of its own libassay.so") from None
    function.restype, function.argtypes = result, arguments or None
    return function


version = declare(quick, "assay_version", ctypes.c_char_p)
last_error = declare(quick, "assay_last_error", ctypes.c_char_p)
# Without types of arguments, which would take as long as all the rest: only the result of region_named is passed.
region_begin = declare(quick, "assay_region_begin", None)
region_end = declare(quick, "assay_region_end", None)
region_named = declare(quick, "assay_region_named", _REGION, ctypes.c_char_p)
token_begin = declare(quick, "assay_token_begin", Token, _REGION)
token_end = declare(quick, "assay_token_end", None, Token)
# The reason of a failure is kept per thread, so that letting go of the lock does not lose it.
mark = declare(library, "assay_mark", ctypes.c_int, ctypes.c_char_p)
init = declare(library, "assay_init", ctypes.c_int, ctypes.POINTER(Options))
finalize = declare(library, "assay_finalize", ctypes.c_int)
flush = declare(library, "assay_flush", ctypes.c_int)
set_mode = declare(library, "assay_set_mode", ctypes.c_int, ctypes.c_int)
get_mode = declare(library, "assay_get_mode", ctypes.c_int)
set_rank = declare(library, "assay_set_rank", ctypes.c_int, ctypes.c_int, ctypes.c_int)
set_metadata = declare(library, "assay_set_metadata", ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
directory = declare(library, "assay_directory", ctypes.c_char_p)
timing_of = declare(library, "assay_timing_of", ctypes.c_int, ctypes.POINTER(ctypes.c_uint64),
                    ctypes.POINTER(ctypes.c_double), ctypes.c_size_t, ctypes.c_double, ctypes.POINTER(MeasureOptions),
                    ctypes.POINTER(Timing))
timing_warning = declare(library, "assay_timing_warning", ctypes.c_char_p, ctypes.POINTER(Timing), ctypes.c_uint)
timing_plan_next = declare(library, "assay_timing_plan_next", ctypes.c_uint64, ctypes.POINTER(TimingPlan),
                           ctypes.c_double, ctypes.c_double)


def text(value, what):
    """As the library takes it; what UTF-8 cannot say becomes a question mark."""
    if not isinstance(value, str):
        raise TypeError(f"{what} has to be a string and is a {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{what} holds a zero byte: {value!r}")
    return value.encode("utf-8", "replace")


def failure():
    """An Error with the library's own sentence about the last call in this thread."""
    return Error(last_error().decode("utf-8", "replace"))
