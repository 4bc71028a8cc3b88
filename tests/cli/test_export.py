"""Exports against a truth that is made up here, as other programs read them: every total is ours, exactly.

target_export takes the profile as JSON, so that stacks, names and weights are known without a recorder.
"""
import collections
import gzip
import json
import os
import random
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT
from need import need

HERE = ROOT / "tests" / "cli"
HZ = 199
PERIOD_NS = 5025126
PACKAGES = {"speedscope": "1.25.0", "pprof-format": "2.3.2"}

Name = collections.namedtuple("Name", "module name file line")
FUNCTIONS = [
    Name(0, "main", "/src/main.c", 10),
    Name(0, "(anonymous namespace)::work<std::map<int, \"x\">>(int)::{lambda()#1}::operator()() const",
         "/src/a.cc", 20),
    Name(0, "leaf", "/src/a.cc", 30),
    Name(0, "recurs", "/src/main.c", 40),
    Name(1, "libm.so.6!?+0x26d50", None, 0),
    Name(1, "semi;colon \\ \"quoted\" 12", "/src/odd;name.c", 50),
    Name(1, "Größe<日本>", None, 0),
    Name(0, "big::" + "template_<" * 900 + ">" * 900, "/src/big.cc", 60),
]


class Made:
    """A profile with its truth: the weight of each function on its own and with what it called."""

    def __init__(self, seed=5, samples=3000):
        chance = random.Random(seed)
        self.stacks = [[]]
        for _ in range(60):
            # Addresses are per module and place, so that the same place always has the same names.
            stack = [[0, 1, [[0, 11]]]]
            for _ in range(chance.randrange(1, 9)):
                function = chance.randrange(1, len(FUNCTIONS))
                line = chance.randrange(FUNCTIONS[function].line, FUNCTIONS[function].line + 5)
                inlined = [[2, 33]] if function in (1, 3) and line % 2 else []
                place = [*inlined, [function, line]]
                stack.append([FUNCTIONS[function].module, function * 1000 + line * 2 + len(inlined), place])
            self.stacks.append(stack)
        self.threads = [[0, 100, "main"], [0, 101, "worker; 1"], [1, 200, "tree"]]
        self.samples = []
        for i in range(samples):
            stack = chance.randrange(-1, len(self.stacks)) if i % 50 else -1
            self.samples.append([1000000 + i * 2000000, chance.randrange(3), chance.choice([1, 1, 1, 2, 7]),
                                 stack if stack > 0 else -1])
        self.phases = [["load", 2000000, 2000000000], ["decode", 2000000000, 9000000000]]

    def json(self, **more):
        return json.dumps({
            "hz": HZ, "start": 0, "end": 9000000000, "label": "a \"label\"", "command": "prog --x 'y'",
            "phases": self.phases, "images": [[100, "/usr/bin/prog"], [200, "/usr/bin/other prog"]],
            "threads": self.threads, "modules": ["/usr/bin/prog", "/usr/lib/libm.so.6"],
            "functions": [list(f) for f in FUNCTIONS], "stacks": [s or [[0, 1, [[0, 11]]]] for s in self.stacks],
            "samples": self.samples, **more})

    def names(self, stack):
        """Outermost first."""
        if stack < 0:
            return ["[no stack]"]
        return [FUNCTIONS[f].name for place in self.stacks[stack] for f, _ in reversed(place[2])]

    def truth(self, threads=(0, 1, 2), spelt=lambda name: name):
        own, with_calls, total = collections.Counter(), collections.Counter(), 0
        for _, thread, weight, stack in self.samples:
            if thread not in threads:
                continue
            names = [spelt(name) for name in self.names(stack)]
            total += weight
            own[names[-1]] += weight
            for name in set(names):
                with_calls[name] += weight
        return own, with_calls, total


@pytest.fixture
def export(targets, tmp_path):
    """export(made, FORMAT): the path of the file."""

    def run(made, format, *group, **more):
        path = tmp_path / f"out.{format}"
        with open(path, "wb") as out:
            subprocess.run([targets("export"), format, *group], input=made.json(**more).encode(), stdout=out,
                           check=True, timeout=300)
        return path

    return run


@pytest.fixture(scope="session")
def package():
    """package(NAME): the folder of an npm package, fetched once into the build folder."""

    def fetch(name):
        need("npm", shutil.which("node") and shutil.which("npm"), "no node or no npm here")
        folder = BUILD / "npm" / f"{name}-{PACKAGES[name]}"
        if not (folder / "package").is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            got = subprocess.run(["npm", "pack", "--silent", f"{name}@{PACKAGES[name]}"], cwd=folder,
                                 capture_output=True, text=True, timeout=300)
            need("npm", got.returncode == 0, f"{name} cannot be fetched: {got.stderr.strip()[-200:]}")
            subprocess.run(["tar", "xzf", got.stdout.strip().splitlines()[-1]], cwd=folder, check=True)
        return folder / "package"

    return fetch


def node(*args):
    got = subprocess.run(["node", *map(str, args)], capture_output=True, text=True, timeout=300)
    assert got.returncode == 0, got.stderr[-2000:]
    return json.loads(got.stdout)


def assert_same(got, truth, scale=1):
    assert {name: value for name, value in got.items() if value} == {
        name: value * scale for name, value in truth.items()}


def frames(profiles, which):
    total = collections.Counter()
    for profile in profiles:
        for name, weights in profile["frames"].items():
            total[name] += weights[which]
    return total


def test_speedscope_reads_its_own_format(export, package):
    made = Made()
    (profiles,) = node(HERE / "read_speedscope.mjs", package("speedscope"), export(made, "speedscope"))
    assert [p["unit"] for p in profiles] == ["nanoseconds"] * 3
    assert sorted(p["name"] for p in profiles) == ["other prog (200) tree (200)", "prog (100) main (100)",
                                                   "prog (100) worker; 1 (101)"]
    assert profiles == sorted(profiles, key=lambda p: -p["total"])
    for profile in profiles:
        thread = ["main (100)", "worker; 1 (101)", "tree (200)"].index(profile["name"].split(") ", 1)[1])
        own, with_calls, total = made.truth([thread])
        assert profile["total"] == total * PERIOD_NS
        assert_same(frames([profile], 0), own, PERIOD_NS)
        assert_same(frames([profile], 1), with_calls, PERIOD_NS)


def test_the_speedscope_file_is_of_the_published_schema(export):
    """The parts of https://www.speedscope.app/file-format-schema.json that a sampled profile has."""
    file = json.loads(export(Made(), "speedscope").read_text())
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(file) <= {"$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"}
    for frame in file["shared"]["frames"]:
        assert isinstance(frame["name"], str) and set(frame) <= {"name", "file", "line", "col"}
    for profile in file["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled" and profile["startValue"] == 0
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"]
        assert all(0 <= i < len(file["shared"]["frames"]) for stack in profile["samples"] for i in stack)


def folded_name(name):
    return name.replace(";", ":")


def read_folded(path):
    """As flamegraph.pl reads it: the number behind the last blank, frames between semicolons."""
    own, with_calls, total = collections.Counter(), collections.Counter(), 0
    for line in path.read_text().splitlines():
        stack, weight = re.fullmatch(r"(.*) (\d+)", line).groups()
        names = stack.split(";")[1:]
        total += int(weight)
        own[names[-1]] += int(weight)
        for name in set(names):
            with_calls[name] += int(weight)
    return own, with_calls, total


def test_folded_stacks_add_up(export, package):
    made = Made()
    path = export(made, "folded")
    lines = path.read_text().splitlines()
    assert len({line.rsplit(" ", 1)[0] for line in lines}) == len(lines)
    assert {line.split(";")[0] for line in lines} == {"prog", "other prog"}
    assert read_folded(path) == made.truth(spelt=folded_name)


def test_speedscope_reads_folded_stacks_and_trace_events(export, package):
    made = Made()
    folded, chrome = node(HERE / "read_speedscope.mjs", package("speedscope"), export(made, "folded"),
                          export(made, "chrome"))
    own, with_calls, total = made.truth(spelt=folded_name)
    assert folded[0]["total"] == total
    got = frames(folded, 0)
    assert_same({name: got[name] for name in own}, own)
    assert len(chrome) == 3 and all(p["unit"] == "microseconds" for p in chrome)
    assert {name for p in chrome for name in p["frames"]} >= set(made.truth()[1])


def test_pprof_format_reads_pprof(export, package):
    made = Made()
    file = node(HERE / "read_pprof.cjs", package("pprof-format"), export(made, "pprof"))
    assert file["types"] == [["samples", "count"], ["cpu", "nanoseconds"]]
    assert file["period"] == ["cpu", "nanoseconds", PERIOD_NS]
    assert file["mappings"][0][0] == "/usr/bin/prog"
    own, with_calls, total = collections.Counter(), collections.Counter(), 0
    threads = collections.Counter()
    for sample in file["samples"]:
        weight, ns = sample["values"]
        assert ns == weight * PERIOD_NS
        names = [name for name, _, _ in sample["stack"]]
        own[names[0]] += weight
        for name in set(names):
            with_calls[name] += weight
        total += weight
        threads[sample["labels"]["thread"], sample["labels"]["tid"], sample["labels"]["process"]] += weight
        assert sample["labels"].get("phase") in ("load", "decode", None)
        for name, path, line in sample["stack"]:
            known = [f for f in FUNCTIONS if f.name == name]
            assert not known or (path == (known[0].file or "") and (not path or line >= known[0].line))
    assert (own, with_calls, total) == made.truth()
    assert threads == {(name, tid, ["prog", "other prog"][image]): made.truth([i])[2]
                       for i, (image, tid, name) in enumerate(made.threads)}


def test_gos_pprof_reads_pprof(export):
    need("go", shutil.which("go"), "no go here")
    made = Made()
    got = subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-top", "-sample_index=samples", "-nodecount=1000",
                          "-nodefraction=0", export(made, "pprof")], capture_output=True, text=True, timeout=300)
    assert got.returncode == 0, got.stderr
    rows = [line.split(None, 5) for line in got.stdout.splitlines() if re.match(r"\s+\d+\s+[\d.]+%", line)]
    own, with_calls, total = made.truth()
    inline = " (inline)"
    assert_same({row[5].removesuffix(inline).strip(): int(row[0]) for row in rows}, own)
    assert {row[5].removesuffix(inline).strip(): int(row[3]) for row in rows} == with_calls
    assert f"{total} total" in got.stdout


def read_annotated(path, *options, period=PERIOD_NS):
    got = subprocess.run(["callgrind_annotate", "--auto=no", "--threshold=100", "--show-percs=no", *options, path],
                         capture_output=True, text=True, timeout=300)
    assert got.returncode == 0, got.stdout + got.stderr
    assert not got.stderr
    totals = re.search(r"^\s*([\d,]+)\s+([\d,]+)\s+PROGRAM TOTALS", got.stdout, re.M)
    rows = collections.Counter()
    for line in got.stdout.splitlines():
        row = re.match(r"\s*([\d,.]+)\s+([\d,.]+)\s+(.*?) \[(.*)\]$", line)
        if row:
            weight, ns = (int(text.replace(",", "").replace(".", "0")) for text in row.groups()[:2])
            assert ns == weight * period
            rows[row[3].split(":", 1)[1]] += weight
    return rows, [int(text.replace(",", "")) for text in totals.groups()]


def read_calls(path):
    """Inclusive costs as KCachegrind has them: the sum of the calls to a function."""
    names, calls, called = {}, collections.Counter(), None
    for line in path.read_text().splitlines():
        name = re.fullmatch(r"c?fn=\((\d+)\)(?: (.*))?", line)
        if name:
            names.setdefault(name[1], name[2])
            called = name[1] if line.startswith("c") else None
        elif called and re.match(r"\d", line):
            calls[called] += int(line.split()[1])
            called = None
    assert len(set(names)) >= len(set(names.values()))
    found = collections.Counter()
    for number, weight in calls.items():
        found[names[number]] += weight
    return found


def test_callgrind_annotate_prints_callgrind(export):
    need("callgrind_annotate", shutil.which("callgrind_annotate"), "valgrind is not installed")
    made = Made()
    own, _, total = made.truth()
    rows, totals = read_annotated(export(made, "callgrind"))
    assert totals == [total, total * PERIOD_NS]
    assert_same(rows, own)


def test_a_function_that_recurs_is_one_function_in_callgrind(export):
    """Half of these stacks hold a function twice or more."""
    made = Made()
    path = export(made, "callgrind")
    text = path.read_text()
    _, with_calls, total = made.truth()
    assert read_calls(path) == with_calls and max(with_calls.values()) <= total
    assert not re.search(r"^c?fn=.*'\d+$", text, re.M)
    assert any(len(names) > len(set(names)) for names in map(made.names, range(1, len(made.stacks))))


def test_trace_events_are_what_viewers_ask_for(export):
    """Slices open and close in order, samples have frames, and the phases are there."""
    made = Made()
    trace = json.loads(export(made, "chrome").read_text())
    open_slices, last = collections.defaultdict(list), {}
    for event in trace["traceEvents"]:
        key = event["pid"], event["tid"]
        if event["ph"] == "M":
            continue
        if event["ph"] == "B":
            open_slices[key].append(event["name"])
        if event["ph"] == "E":
            open_slices[key].pop()
        if event["ph"] in "BE":
            assert event["ts"] >= last.get(key, 0)
            last[key] = event["ts"]
    assert not any(open_slices.values())
    assert [(e["name"], e["ts"], e["dur"]) for e in trace["traceEvents"] if e["ph"] == "X"] == [
        ("load", 2000, 1998000), ("decode", 2000000, 7000000)]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"]
             if e.get("name") == "thread_name"}
    assert names == {(100, 100): "main", (100, 101): "worker; 1", (200, 200): "tree"}
    own, with_calls = collections.Counter(), collections.Counter()
    for sample in trace["samples"]:
        stack, at = [], sample["sf"]
        while at:
            frame = trace["stackFrames"][at]
            stack.append(frame["name"])
            at = frame.get("parent")
        own[stack[0]] += sample["weight"]
        for name in set(stack):
            with_calls[name] += sample["weight"]
    assert (own, with_calls) == made.truth()[:2]
    assert trace["otherData"]["weight_ns"] == PERIOD_NS


def test_a_group_is_exported_alone(export):
    made = Made()
    early = [s for s in made.samples if 2000000 <= s[0] < 2000000000]
    _, _, total = read_folded(export(made, "folded", "load"))
    assert total == sum(s[2] for s in early) and early
    _, _, total = read_folded(export(made, "folded", "before"))
    assert total == sum(s[2] for s in made.samples if s[0] < 2000000) > 0


def test_frames_by_line_keep_the_totals(export):
    made = Made()
    path = export(made, "folded", by_line=True)
    own, _, total = read_folded(path)
    found = collections.Counter()
    for name, weight in own.items():
        found[re.sub(r" \([^()]*:\d+\)$", "", name)] += weight
    truth = made.truth(spelt=folded_name)
    assert found == truth[0] and total == truth[2]
    assert any(name.startswith("leaf (a.cc:33)") for name in own)


@pytest.fixture
def recorded(assay, targets):
    """A run with samples in two phases and two threads, as `assay profile` shows it: (folder, self, inclusive)."""
    got = assay("run", "-q", "-o", "run", "--precheck", "off", "--cpu-profile=997", "--", "sh", "-c",
                f"echo load >> $ASSAY_MARKERS; {targets('truth_two')} 0.3 1;"
                f"echo decode >> $ASSAY_MARKERS; {targets('truth_recursion')} 0.3")
    assert got.status == 0, got

    def sums(table, *options):
        shown = assay("profile", got.run_dir, "--json", "--top", "0", *options)
        assert shown.status == 0, shown
        total, modules = collections.Counter(), collections.defaultdict(set)
        for group in json.loads(shown.stdout)["groups"].values():
            for row in group[table]:
                total[row["name"]] += row["samples"]
                modules[row["name"]].add(row["module"])
        # clock_gettime of the vdso below that of libc: both rows have the sample, and other formats tell no module.
        twice = {name for name in modules if table == "inclusive" and len(modules[name]) > 1}
        return collections.Counter({name: total[name] for name in total if name not in twice})

    return got.run_dir, sums


def same_names(got, wanted):
    return {name: got[name] for name in got if name in wanted}


def test_a_recorded_run_says_the_same_in_every_format(assay, recorded, package):
    folder, sums = recorded
    own, with_calls = sums("self"), sums("inclusive")
    for extension in ("folded", "speedscope.json", "pb.gz", "callgrind", "trace.json"):
        got = assay("export", folder, "-o", f"x.{extension}")
        assert (got.status, got.stdout, got.stderr) == (0, "", ""), got
    folded = read_folded(got.cwd / "x.folded")
    assert (folded[0], folded[2]) == (own, sum(own.values()))
    assert same_names(folded[1], with_calls) == with_calls
    trace = json.loads((got.cwd / "x.trace.json").read_text())
    assert sum(sample["weight"] for sample in trace["samples"]) == sum(own.values())
    assert [e["name"] for e in trace["traceEvents"] if e["ph"] == "X"] == ["start", "load", "decode"]
    if shutil.which("callgrind_annotate"):
        rows, totals = read_annotated(got.cwd / "x.callgrind", period=round(1e9 / 997))
        assert totals[0] == sum(own.values())
        assert_same(rows, own)
    called = read_calls(got.cwd / "x.callgrind")
    assert same_names(called, with_calls) == with_calls and max(called.values()) <= sum(own.values())
    pprof = node(HERE / "read_pprof.cjs", package("pprof-format"), got.cwd / "x.pb.gz")
    found = collections.Counter()
    for sample in pprof["samples"]:
        found[sample["stack"][0][0]] += sample["values"][0]
    assert found == own
    (profiles,) = node(HERE / "read_speedscope.mjs", package("speedscope"), got.cwd / "x.speedscope.json")
    assert_same(same_names(frames(profiles, 1), with_calls), with_calls, round(1e9 / 997))


def test_a_group_of_a_recorded_run_is_that_of_profile(assay, recorded):
    folder, sums = recorded
    got = assay("export", "--format=folded", folder, "--group", "decode")
    assert got.status == 0, got
    (got.cwd / "decode.folded").write_bytes(got.stdout_bytes)
    assert read_folded(got.cwd / "decode.folded")[0] == sums("self", "--group", "decode")
    got = assay("export", "-f", "folded", "-o", "none", "--group", "lode", folder)
    assert got.status == 2 and not (got.cwd / "none").exists()
    assert got.stderr == (f"assay export: {folder}: option '--group': there is no group or phase 'lode' "
                          "in this run; its groups are: other, load, decode; phases: start\n")


def test_a_failure_leaves_the_old_file(assay, recorded):
    folder, _ = recorded
    got = assay("export", folder, "-f", "callgrind", "-o", "/dev/full")
    assert got.status == 3
    assert got.stderr == "assay export: /dev/full: it cannot be written: No space left on device\n"
    (got.cwd / "old.folded").write_text("old")
    got = assay("export", folder, "-o", "old.folded", "--group", "warmup")
    assert got.status == 2 and (got.cwd / "old.folded").read_text() == "old"
    got = assay("export", folder, "-o", "missing/x.folded")
    assert (got.status, got.stderr) == (3, "assay export: missing/x.folded: No such file or directory\n")
    assert not [path for path in got.cwd.iterdir() if path.name.endswith(".tmp")]


def test_a_binary_format_is_not_for_a_terminal(assay, recorded):
    folder, _ = recorded
    other, terminal = os.openpty()
    got = assay("export", folder, "-f", "pprof", stdout=terminal)
    os.close(terminal)
    os.close(other)
    assert got.status == 2
    assert got.stderr == "assay export: format 'pprof' is not for a terminal: use -o FILE, or pipe it\n"
    got = assay("export", folder, "-f", "pprof")
    assert got.status == 0 and gzip.decompress(got.stdout_bytes)


def test_a_run_without_samples_is_refused(assay):
    run = assay("run", "-q", "-o", "run", "--precheck", "off", "--", "true")
    assert run.status == 0, run
    got = assay("export", "run", "-o", "x.folded")
    assert got.status == 2 and not (got.cwd / "x.folded").exists()
    assert got.stderr.startswith("assay export: ") and "sample" in got.stderr, got


@pytest.mark.parametrize("args, said", [
    ((), "expected one run directory or file of regions; usage: assay export [options] DIR|FILE.h5"),
    (("a", "b", "-f", "folded"), "expected one run directory or file of regions; usage: assay export [options] "
                                 "DIR|FILE.h5"),
    (("a",), "option '--format' is needed where no file's extension tells it: folded, speedscope, pprof, callgrind, "
             "chrome, csv, layout1"),
    (("a", "-o", "x.json"), "option '--out': 'x.json' has no extension that tells the format (.folded, "
                            ".speedscope.json, .pb.gz, .callgrind, .trace.json, .csv, .h5); --format does too"),
    (("a", "-f", "folder"), "option '--format': 'folder' is not one of folded, speedscope, pprof, callgrind, chrome, "
                            "csv, layout1; did you mean 'folded'?"),
    (("missing", "-f", "folded"), "missing: No such file or directory"),
])
def test_bad_usage_is_named(assay, args, said):
    got = assay("export", *args)
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay export: {said}\n")
