"""What black-box tests share: the program in a scratch folder, the small programs it measures, and golden files.

ASSAY_BUILD names the build folder (default: build). ASSAY_UPDATE_GOLDEN=1 rewrites the golden
files instead of comparing.
"""
import json
import os
import pathlib
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("ASSAY_BUILD", "build")).resolve()

# For programs that are built with AddressSanitizer; others do not heed it. GCC 12's takes what stands before some
# thread-local blocks for a header of glibc 2.19; where a library with one was loaded late, LeakSanitizer may crash on
# it ("has encountered a fatal error"). Blocks are found without. What cairo's libraries never free is not ours.
os.environ["LSAN_OPTIONS"] = ":".join((
    "intercept_tls_get_addr=0", f"suppressions={ROOT / 'tests/data/lsan/cairo.txt'}", "print_suppressions=0",
    os.environ.get("LSAN_OPTIONS", "")))

# A shell that starts the tests in the background, and nohup, have them ignore signals; what they start would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)


class Result:
    """How a command ended and what it printed. A status of -N is death by signal N."""

    def __init__(self, args, cwd, status, stdout, stderr):
        self.args, self.cwd, self.status = args, cwd, status
        self.stdout_bytes, self.stderr_bytes = stdout, stderr

    @property
    def stdout(self):
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self):
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def run_dir(self):
        """The run directory: what -o or --out named, else the newest one in assay-runs."""
        own = self.args[:self.args.index("--")] if "--" in self.args else self.args
        for i, arg in enumerate(own):
            if arg in ("-o", "--out"):
                return self.cwd / own[i + 1]
            if arg.startswith("--out="):
                return self.cwd / arg[len("--out="):]
        runs = sorted((self.cwd / "assay-runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        return runs[-1]

    @property
    def run_json(self):
        return json.loads((self.run_dir / "run.json").read_text())

    def __repr__(self):
        return (f"<{' '.join(self.args)}: status {self.status}\n--- stdout\n{self.stdout[-4000:]}"
                f"\n--- stderr\n{self.stderr[-4000:]}>")


def environment(changes):
    """The tests' environment without what steers assay; a value of None removes a variable."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    env.update(changes or {})
    return {name: value for name, value in env.items() if value is not None}


@pytest.fixture(scope="session")
def program():
    """The path of the program under test, for tests that start it in a way of their own."""
    path = BUILD / "assay"
    assert path.is_file(), f"{path} is not built: ./dev build"
    return path


@pytest.fixture(scope="session")
def targets():
    """targets("NAME"): the path of build/tests/targets/target_NAME."""

    def find(name):
        path = BUILD / "tests" / "targets" / f"target_{name}"
        assert path.is_file(), f"{path} is not built: ./dev build"
        return str(path)

    return find


@pytest.fixture
def sleeper():
    """A process that does nothing; it ends with the test."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def assay(program, tmp_path):
    """assay("run", "--", "true", stdin=b"", env={"K": "V"}, cwd=..., timeout=...): to its end, in a scratch folder.

    The timeout only guards against a hang. Other keywords go to subprocess.Popen.
    """

    def run(*args, stdin=b"", env=None, cwd=tmp_path, timeout=300, **popen):
        argv = [os.fspath(arg) for arg in args]
        data = stdin.encode() if isinstance(stdin, str) else stdin
        process = subprocess.Popen(
            [str(program), *argv], cwd=cwd, env=environment(env), start_new_session=True,
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen})
        try:
            out, err = process.communicate(data if process.stdin else None, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"it hangs: {Result(argv, pathlib.Path(cwd), process.returncode, out or b'', err or b'')}")
        return Result(argv, pathlib.Path(cwd), process.returncode, out or b"", err or b"")

    return run


@pytest.fixture
def golden():
    """golden("NAME", text): the text is that of tests/golden/NAME."""

    def compare(name, text):
        path = ROOT / "tests" / "golden" / name
        if os.environ.get("ASSAY_UPDATE_GOLDEN") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.is_file(), f"{path} is missing: ASSAY_UPDATE_GOLDEN=1 ./dev test cli writes it"
        assert text == path.read_text()

    return compare


def pytest_report_header():
    return f"program: {BUILD / 'assay'}"


def pytest_terminal_summary(terminalreporter):
    """Leaves the counts and the reasons of skips for the end of ./dev test."""
    results = os.environ.get("ASSAY_RESULTS")
    if not results:
        return
    stats = terminalreporter.stats
    with open(results, "a") as out:
        out.write(f"count {len(stats.get('passed', []))} {len(stats.get('failed', [])) + len(stats.get('error', []))}"
                  f" {len(stats.get('skipped', []))}\n")
        for report in stats.get("skipped", []):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            out.write(f"skip {reason.removeprefix('Skipped: ')}\n")
