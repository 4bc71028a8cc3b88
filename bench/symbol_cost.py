"""Measures naming: CPU and wall time and peak memory of `perf script` and of tests/targets/target_name_places, which
calls the library of assay, on one recording each of a generated program. CPU time leaves out perf's own addr2line.

perf names every frame of every sample; the library names each address once, as assay does, whose samples on file share
their stacks. Peak memory is looked at from outside every 10 ms, as the sum of VmHWM over the process and its children.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

UNIT = """
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>
namespace unit{u} {{
template <int N> struct Key {{ int v; bool operator<(const Key &o) const {{ return v * (N + 1) < o.v * (N + 1); }} }};
template <int N> __attribute__((noinline)) long work(long seed) {{
	std::map<Key<N>, std::vector<Key<N>>> tree;
	std::unordered_map<std::string, Key<N>> names;
	std::vector<Key<N>> keys;
	for (int i = 0; i < 40; i++) {{
		tree[Key<N>{{int(seed % (i + 7))}}].push_back(Key<N>{{i}});
		keys.push_back(Key<N>{{int(seed * i % 101)}});
	}}
	names[std::to_string(seed % 5)] = keys[0];
	std::function<bool(const Key<N> &, const Key<N> &)> less =
		[](const Key<N> &a, const Key<N> &b) {{ return a < b; }};
	std::sort(keys.begin(), keys.end(), less);
	return long(tree.size() + names.size()) + keys[3].v;
}}
}}
long run_unit{u}(long seed) {{ return {calls}; }}
"""


def generate(folder, units, shapes):
    declared = "".join(f"long run_unit{u}(long);\n" for u in range(units))
    calls = "".join(f"\t\tsum += run_unit{u}(sum + i);\n" for u in range(units))
    (folder / "main.cc").write_text(f"""#include <cstdio>
#include <cstdlib>
#include <ctime>
{declared}
int main(int, char **argv)
{{
	long sum = 1, end = clock() + atol(argv[1]) * CLOCKS_PER_SEC;

	for (long i = 0; clock() < end; i++) {{
{calls}	}}
	std::printf("%ld\\n", sum);
	return 0;
}}
""")
    for u in range(units):
        body = " + ".join(f"unit{u}::work<{n}>(seed + {n})" for n in range(shapes))
        (folder / f"unit{u}.cc").write_text(UNIT.format(u=u, calls=body))


def compile_all(folder, units, jobs):
    flags = ["-g", "-O1", "-fno-omit-frame-pointer", "-std=c++17", "-no-pie"]
    sources, running = [folder / "main.cc", *(folder / f"unit{u}.cc" for u in range(units))], []
    for source in sources:
        while len(running) >= jobs:
            running.pop(0).wait()
        running.append(subprocess.Popen(["g++", *flags, "-c", source, "-o", source.with_suffix(".o")]))
    if any(process.wait() for process in running):
        sys.exit("symbol-cost: the generated program does not compile")
    program = folder / "program"
    subprocess.run(["g++", "-no-pie", *(s.with_suffix(".o") for s in sources), "-o", program], check=True)
    return program


def built(options, folder):
    """The program, in `folder` or where it is kept for the next time."""
    if options.keep:
        folder = options.keep.resolve() / f"{options.units}x{options.shapes}"
        folder.mkdir(parents=True, exist_ok=True)
    program = folder / "program"
    if not program.exists():
        generate(folder, options.units, options.shapes)
        compile_all(folder, options.units, options.jobs)
    return program


def debug_bytes(program):
    """Bytes of all sections .debug_*."""
    text = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    return sum(int(size, 16) for size in re.findall(r"\.debug_\w+ +\w+ +\w+ +\w+ +(\w+)", text))


class Watch(threading.Thread):
    """The most memory that a process and its children had at one time."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.over = pid, 0, False

    def family(self):
        children = [self.pid]
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    stat = pathlib.Path(f"/proc/{name}/stat").read_text()
                except OSError:
                    continue
                if int(stat.rpartition(")")[2].split()[1]) == self.pid:
                    children.append(int(name))
        return children

    def run(self):
        while not self.over:
            total = 0
            for pid in self.family():
                try:
                    text = pathlib.Path(f"/proc/{pid}/status").read_text()
                except OSError:
                    continue
                found = re.search(r"VmHWM:\s+(\d+) kB", text)
                total += int(found[1]) * 1024 if found else 0
            self.peak = max(self.peak, total)
            time.sleep(0.01)


def measured(argv, stdin, out, limit):
    """Runs it; {wall_s, cpu_s, peak_mb, cut}. ru_maxrss would not do: it counts this process, too, as which the other
    began."""
    start = time.monotonic()
    with open(out, "wb") as sink, open(stdin, "rb") as source:
        process = subprocess.Popen([str(a) for a in argv], stdin=source, stdout=sink, stderr=subprocess.DEVNULL)
    watch = Watch(process.pid)
    watch.start()
    timer = threading.Timer(limit, process.kill)
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    timer.cancel()
    watch.over = True
    watch.join()
    return {"wall_s": time.monotonic() - start, "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_mb": watch.peak / 1e6, "cut": process.returncode == -9}


def record(program, folder, graph, samples, hz):
    """perf's own file, and how many samples are in it."""
    data = folder / f"{graph.split(',')[0]}.data"
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(hz), "--call-graph", graph, "-o", data,
                    program, str(max(1, samples // hz))], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return data


def segments(program):
    """[(offset, address, bytes)] of what is loaded."""
    text = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    return [tuple(int(word, 16) for word in match) for match in
            re.findall(r"^ +LOAD +(\w+) (\w+) \w+ (\w+)", text, re.M)]


def addresses_of(data, program, folder):
    """All addresses inside the program, each once, and how many samples there were. Of a file, this field of perf is
    the offset in it."""
    text = subprocess.run(["perf", "script", "--no-inline", "-F", "ip,dso", "-i", data], capture_output=True, text=True,
                          check=True).stdout
    offsets = {int(line.split()[0], 16) for line in text.splitlines() if line.endswith(f"({program})")}
    found = {offset - start + address for offset in offsets for start, address, size in segments(program)
             if start <= offset < start + size}
    path = folder / "addresses"
    path.write_text("\n".join(f"{address:x}" for address in sorted(found)))
    return path, len(found), text.count("\n\n")


def check_names(argv, path):
    """A measurement of naming counts only if nearly all was named."""
    with open(path) as source:
        text = subprocess.run([str(a) for a in argv], stdin=source, capture_output=True, text=True, check=True).stdout
    rows = [line for line in text.splitlines() if "\t" in line]
    nameless = sum("!?" in row for row in rows)
    if not rows or nameless > len(rows) / 20:
        sys.exit(f"symbol-cost: {nameless} of {len(rows)} addresses got no name: nothing was measured")


def inlined_in(path):
    """How many frames perf marked as inlined; read line by line, since there may be gigabytes."""
    with open(path, errors="replace") as lines:
        return sum(line.rstrip().endswith("(inlined)") for line in lines)


def compare(options, program, folder, graph, samples, driver):
    data = record(program, folder, graph, samples, options.hz)
    path, count, taken = addresses_of(data, program, folder)
    identity = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", program], capture_output=True,
                                                            text=True).stdout)
    ours = [driver, *(["--build-id", identity[1]] if identity else []), program]
    check_names(ours, path)
    arms = {
        "perf script": ["perf", "script", "-i", data],
        "perf script --no-inline": ["perf", "script", "--no-inline", "-i", data],
        "assay": ours,
        "assay without inlines": [ours[0], "--no-inlines", *ours[1:]],
        "assay, names only": [ours[0], "--no-dwarf", *ours[1:]],
    }
    if options.no_perf_inlines and graph != "fp":
        del arms["perf script"]
    runs = {arm: [] for arm in arms}
    inlined = None
    for _ in range(options.rounds):
        for arm, argv in arms.items():
            if not any(run["cut"] for run in runs[arm]):
                runs[arm].append(measured(argv, path if "assay" in arm else "/dev/null", folder / "out",
                                          options.limit))
            if arm == "perf script":
                inlined = inlined_in(folder / "out")
    return {"graph": graph, "samples": taken, "addresses": count, "perf_inlined": inlined, "arms": runs}


def middle(values):
    return sorted(values)[len(values) // 2]


def show(result):
    print(f"call graph {result['graph']}: {result['samples']} samples, {result['addresses']} addresses in the program")
    if result["perf_inlined"] is not None:
        print(f"  frames that perf script marks as inlined: {result['perf_inlined']}")
    own = middle([run["wall_s"] for run in result["arms"]["assay"]])
    print(f"  {'':26}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}   wall beside assay")
    for arm, runs in result["arms"].items():
        wall, cpu, peak = (middle([run[key] for run in runs]) for key in ("wall_s", "cpu_s", "peak_mb"))
        at_least = ">" if any(run["cut"] for run in runs) else " "
        print(f"  {arm:26}{at_least}{wall:8.2f}{cpu:9.2f}{peak:9.0f}   {at_least}{wall / own:.2f} times")


def main():
    parser = argparse.ArgumentParser(prog="symbol-cost", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default="build")
    parser.add_argument("--units", type=int, default=16, help="source files of the generated program [16]")
    parser.add_argument("--shapes", type=int, default=24, help="instances of its templates per file [24]")
    parser.add_argument("--samples", type=int, default=100000, help="samples with frame pointers [100000]")
    parser.add_argument("--dwarf-samples", type=int, default=20000, help="samples with stack copies [20000]")
    parser.add_argument("--hz", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=300, help="seconds after which an arm is cut off [300]")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER",
                        help="generate and compile there, unless an earlier run has; it stays")
    parser.add_argument("--no-perf-inlines", action="store_true",
                        help="for stack copies, leave out perf script's default, which takes until --limit")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    driver = options.build.resolve() / "tests" / "targets" / "target_name_places"
    plugin = options.build.resolve() / "assay-elf.so"
    for path in (driver, plugin):
        if not path.exists():
            sys.exit(f"symbol-cost: {path} is not built")
    for peer in ("perf", "g++"):
        if not shutil.which(peer):
            sys.exit(f"symbol-cost: {peer} is not installed")
    with tempfile.TemporaryDirectory(prefix="assay-symbol-cost-") as name:
        folder = pathlib.Path(name)
        shutil.copy(driver, folder / "name_places")
        (folder / plugin.name).symlink_to(plugin)
        program = built(options, folder)
        size = debug_bytes(program)
        print(f"program with {size / 1e6:.0f} MB of debug information")
        results = [compare(options, program, folder, graph, samples, folder / "name_places")
                   for graph, samples in (("fp", options.samples), ("dwarf,4096", options.dwarf_samples))]
    for result in results:
        show(result)
    if options.json:
        options.json.write_text(json.dumps({"debug_bytes": size, "results": results}, indent=1))


main()
