"""Programs that were not written for the tests: how many of their stacks are whole, and their hot functions beside
those that `perf` finds in the same work. Each part is skipped where its program, or perf, is missing."""
import collections
import pathlib
import re
import shutil
import subprocess

import pytest

from need import need
from profiles import profile

POINTS = 0.03
WHOLE = 0.99

EXTENSION = """
import hashlib, json, zlib
data = b"".join(b"%d %d\\n" % (i, i * i % 9973) for i in range(150000))
rows = [{"name": str(i), "values": [i, i / 7]} for i in range(3000)]
for _ in range(25):
    zlib.compress(data, 6)
    hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 120000)
    for _ in range(10):
        json.dumps(rows)
"""

SCRIPT = """
function sieve(n) {
  const composite = new Uint8Array(n);
  let count = 0;
  for (let i = 2; i < n; i++) {
    if (composite[i]) continue;
    count++;
    for (let j = 2 * i; j < n; j += i) composite[j] = 1;
  }
  return count;
}
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
let sum = 0;
for (let i = 0; i < 120; i++) sum += sieve(2e6) + fibonacci(31);
console.log(sum);
"""

QUERY = """
create table t(a integer primary key, b text, c integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2500000)
  insert into t select i, hex(i * 7919 % 104729), i % 1000 from n;
select count(*), sum(length(b)) from (select b, c from t order by b, c);
select c, count(distinct b) as d from t group by c order by d desc limit 3;
select count(*) from t x join t y on y.a = x.c + 1 where x.b like '%A7%';
"""


def file_with(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def text_to_compress(folder):
    lines = "".join(f"{1700000000 + i},sensor-{i * 7919 % 41:02d},{i * i % 9973 / 7:.3f}\n" for i in range(600000))
    return file_with(folder, "data", lines)


def matrix(targets, _):
    return [targets("matrix_product"), "5"]


def xz(_, folder):
    return ["xz", "-T2", "-5", "--block-size=4MiB", "-k", "-f", text_to_compress(folder)]


def python(_, folder):
    return ["/usr/bin/python3", "-S", file_with(folder, "extension.py", EXTENSION)]


def node(_, folder):
    return ["node", file_with(folder, "script.js", SCRIPT)]


def node_with_map(_, folder):
    return ["node", "--perf-basic-prof", "--interpreted-frames-native-stack", file_with(folder, "script.js", SCRIPT)]


def sqlite(_, folder):
    return ["sqlite3", ":memory:", f".read {file_with(folder, 'query.sql', QUERY)}"]


PROGRAMS = {"matrix": matrix, "xz": xz, "python": python, "node": node, "node with a map": node_with_map,
            "sqlite": sqlite}


@pytest.fixture(autouse=True)
def no_maps_stay():
    """node leaves its map of names in /tmp."""
    before = set(pathlib.Path("/tmp").glob("perf-*.map"))
    yield
    for path in set(pathlib.Path("/tmp").glob("perf-*.map")) - before:
        path.unlink()


def command(name, targets, folder):
    argv = [str(word) for word in PROGRAMS[name](targets, folder)]
    need(argv[0] if "/" not in argv[0] else name, shutil.which(argv[0]), f"there is no {argv[0]}")
    if name == "matrix":
        found = subprocess.run([argv[0], "0"], capture_output=True, text=True, check=False)
        need("openblas", found.returncode == 0, found.stderr)
    return argv


def by_place(module, name):
    """What two profilers can agree on: a function, or that the code of a module has no name. Of a library one knows the
    name that the loader uses, the other that of the file behind it; code with several names has one of them."""
    if name is None or "!?" in name or name == "[unknown]":
        return re.sub(r"\.so[.\d]*$", ".so", module) + "!?"
    return re.sub(r"@.*", "", name).replace("memcpy", "memmove")


def shares_of(seen):
    found = collections.Counter()
    for name, rows in seen.rows().items():
        for row in rows:
            found[by_place(name.partition("!?")[0], name)] += row["share"] * row["of"]
    return {name: weight / seen.shown["samples"] for name, weight in found.items()}


def perf_shares(argv, folder):
    """(shares, number of samples), of perf."""
    perf = shutil.which("perf")
    need("perf", perf, "there is no perf")
    data = folder / "perf.data"
    done = subprocess.run([perf, "record", "-q", "-e", "cpu-clock:u", "-F", "999", "--call-graph", "dwarf,1024", "-o",
                           data, "--", *argv], cwd=folder, capture_output=True, text=True, check=False)
    need("perf", done.returncode == 0, done.stderr)
    text = subprocess.run([perf, "script", "-i", data, "-F", "ip,sym,dso", "-G", "--no-inline", "--no-demangle"],
                          capture_output=True, text=True, check=True).stdout
    found = collections.Counter()
    for line in text.splitlines():
        match = re.match(r"\s*[0-9a-f]+ (.*) \((.*)\)$", line)
        if match:
            name = match[1].strip()
            module = "[jit]" if match[2].startswith(("/tmp/perf-", "//anon", "[unknown")) else match[2].split("/")[-1]
            found[by_place(module, name)] += 1
    total = sum(found.values())
    assert total > 500, text[:2000]
    return {name: count / total for name, count in found.items()}, total


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_real_program_has_whole_stacks_and_the_hot_functions_that_perf_sees(assay, targets, tmp_path, name):
    argv = command(name, targets, tmp_path)
    seen = profile(assay, *argv)
    assert seen.complete >= WHOLE
    assert seen.shown["dropped"] == 0
    cpu_s = seen.got.run_json["cpu_s"]
    assert seen.shown["samples"] * seen.shown["period_s"] == pytest.approx(cpu_s, rel=0.05)
    ours = shares_of(seen)
    theirs, count = perf_shares(argv, tmp_path)
    print(name, f"complete {seen.complete:.4f}", *(f"{theirs[n]:.3f} {ours.get(n, 0):.3f} {n}" for n in sorted(
        theirs, key=theirs.get, reverse=True)[:8]), sep="\n")
    count = min(count, seen.shown["deliveries"])
    top = sorted(theirs, key=theirs.get, reverse=True)[:5]
    for i, first in enumerate(top):
        for second in top[i + 1:]:
            # Both profiles are samples: below three standard errors their order says nothing.
            noise = 3 * (2 * (theirs[first] + theirs[second]) / count) ** 0.5
            if theirs[first] - theirs[second] > max(POINTS, noise):
                assert ours.get(first, 0) > ours.get(second, 0), (first, second, ours, theirs)
