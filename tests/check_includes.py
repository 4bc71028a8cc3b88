"""The layer rules of docs/architecture.md: who includes whom, who is libc only, who may print and exit."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# A layer may include itself and the layers named here. Siblings do not name each other.
BELOW = {
    "base": set(),
    "graph": {"base"},
    "cfi": set(),
    "wire": set(),
    "lib": {"wire", "judge", "graph", "model", "base"},
    "mpi": {"wire"},
    "preload": {"wire", "cfi"},
    "model": {"base"},
    "judge": {"model", "base"},
    "store": {"judge", "model", "base", "wire"},
}
LOWER = {"store", "judge", "graph", "model", "base"}
for sibling in ("exec", "engine"):
    BELOW[sibling] = LOWER | {"wire"}
for sibling in ("source", "ingest", "symbol", "report"):
    BELOW[sibling] = LOWER
BELOW["record"] = LOWER | {"wire", "cfi", "exec", "source", "engine", "ingest", "symbol", "report"}
BELOW["trial"] = BELOW["record"] | {"record"}
BELOW["cmd"] = BELOW["trial"] | {"trial", "lib"}

# These folders run in other people's processes: nothing but libc and the kernel.
LIBC_ONLY = {"wire", "cfi", "preload"}
FOREIGN = re.compile(r"jansson|hdf5|H5|libunwind|elfutils|dwarf|zlib|zstd|deflate|pcre|cairo|mpi")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
STDOUT = re.compile(r"\b(?:printf|vprintf|puts|putchar|perror)\s*\(|\bstdout\b")
STDERR = re.compile(r"\bstderr\b")
EXIT = re.compile(r"\b(?:exit|_exit|_Exit|quick_exit|abort)\s*\(")
# The helper is a process of its own, in exec/, that ends itself; so does a target's process where exec failed, and the
# fenced readers of symbols and of HDF5 files.
MAY_EXIT = {"exec", "store", "symbol", "preload"}


def without_comments_and_strings(text):
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                  lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.S)


def problems_of(path):
    """(line number, sentence) for each rule that the file breaks."""
    text = path.read_text()
    layer = path.relative_to(ROOT / "src").parts[0]
    if layer not in BELOW:
        yield 1, f"src/{layer} is no layer that docs/architecture.md knows"
        return
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        bracket, name = match.groups()
        if bracket == "<":
            if layer in LIBC_ONLY and FOREIGN.search(name):
                yield line, f"{layer} is libc only, and includes <{name}>"
            continue
        other = name.split("/")[0]
        if "/" not in name and re.fullmatch(r"assay(_\w+)?\.h", name) and layer in ("lib", "cmd"):
            continue
        if "/" not in name or not (ROOT / "src" / name).is_file():
            yield line, f'"{name}" is no path below src/'
        elif other != layer and other not in BELOW[layer]:
            yield line, f'{layer} must not include {other} ("{name}")'
        elif layer == "lib" and name == "base/json.h":
            yield line, "lib must not include base/json.h: users would have to link jansson"
    if layer == "cmd":
        return
    code = without_comments_and_strings(text)
    for pattern, allowed, sentence in ((STDOUT, set(), "only cmd prints"), (STDERR, set(), "only cmd prints"),
                                       (EXIT, MAY_EXIT, "only main() exits")):
        for match in pattern.finditer(code):
            if layer not in allowed:
                yield code.count("\n", 0, match.start()) + 1, f"{sentence}: {match.group().rstrip(' (')}"


def main():
    files = sorted(path for ending in ("*.c", "*.h", "*.def") for path in (ROOT / "src").rglob(ending))
    found = [f"{path.relative_to(ROOT)}:{line}: {sentence}" for path in files for line, sentence in problems_of(path)]
    print("\n".join(found) if found else f"includes: {len(files)} files keep to their layers")
    return 1 if found or not files else 0


sys.exit(main())
