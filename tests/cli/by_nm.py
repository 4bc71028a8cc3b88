"""What binutils say about the code of a file: an opinion on names that owes nothing to the program under test."""
import bisect
import functools
import pathlib
import re
import subprocess

VDSO = "linux-vdso.so.1"


def output_of(*argv):
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=True,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}).stdout


def plain(name):
    """Without what says which copy or version of a function it is: f.constprop.0, f [clone .cold], f@@GLIBC_2.17."""
    name = re.sub(r" \[clone [^]]*\]", "", name.partition("@")[0] if not name.startswith("@") else name)
    return re.sub(r"(\.(constprop|isra|part|cold|lto_priv|llvm)(\.\d+)*)+$", "", name)


def vdso_file(folder):
    """The vdso of this machine as a file."""
    path = pathlib.Path(folder) / VDSO
    if not path.exists():
        for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
            if line.endswith("[vdso]"):
                start, end = (int(word, 16) for word in line.split()[0].split("-"))
                with open("/proc/self/mem", "rb") as memory:
                    memory.seek(start)
                    path.write_bytes(memory.read(end - start))
    return path


def debug_files(path):
    """The file of debug information that a distribution may have put beside it."""
    build_id = re.search(r"Build ID: ([0-9a-f]{2})([0-9a-f]+)", output_of("readelf", "--notes", path))
    debug = build_id and pathlib.Path(f"/usr/lib/debug/.build-id/{build_id[1]}/{build_id[2]}.debug")
    return [debug] if debug and debug.exists() else []


@functools.cache
def symbols(path):
    """[(start, end, name, sized)] of the functions that .symtab and .dynsym name, here or in a debug file. One without
    a size, as assemblers leave them, ends where the next symbol begins."""
    found = set()
    for file, tables in ((path, "-a"), (path, "-D"), *((file, "-a") for file in debug_files(path))):
        for line in output_of("nm", "-C", "-S", tables, file).splitlines():
            match = re.match(r"([0-9a-f]+) (?:([0-9a-f]+) )?([tTwWiuVv]) (.*)", line)
            if match:
                found.add((int(match[1], 16), int(match[2] or "0", 16), match[4]))
    starts = sorted({start for start, _, _ in found})
    return [(start, start + size if size else next_after(starts, start), name, size > 0)
            for start, size, name in found]


def next_after(starts, start):
    i = bisect.bisect_right(starts, start)
    return starts[i] if i < len(starts) else start


def names_at(path, address):
    """The names whose extent holds the address, of the file's own terms. A label without a size, as ld.so's
    _dl_start_user, names only code that .eh_frame describes: where it ends is nowhere said."""
    return {plain(name) for start, end, name, sized in symbols(path)
            if start <= address < end and (sized or entry_at(path, address) is not None)}


@functools.cache
def imported(path):
    """The names that a file has from others: of its PLT."""
    return {plain(line.split()[-1]) for line in output_of("nm", "-C", "-D", "-u", path).splitlines() if line.split()}


def inlined_at(path, address):
    """The functions at an address by the debug information, from the innermost to the one that holds the code."""
    lines = output_of("addr2line", "-i", "-f", "-C", "-e", path, hex(address)).splitlines()
    return [plain(name) for name in lines[::2]]


@functools.cache
def entries(path):
    """([start], [end]) of the code that .eh_frame describes, sorted."""
    found = sorted((int(a, 16), int(b, 16))
                   for a, b in re.findall(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)",
                                          output_of("readelf", "--wide", "--debug-dump=frames,no-follow-links", path)))
    return [start for start, _ in found], [end for _, end in found]


def entry_at(path, address):
    """The start of the entry of .eh_frame that holds the address, or None."""
    starts, ends = entries(path)
    i = bisect.bisect_right(starts, address) - 1
    return starts[i] if i >= 0 and address < ends[i] else None
