"""Profiles for black-box tests: runs a command under the sampler, reads what was found, and the truth beside it."""
import json
import re


class Profile:
    """A finished run with samples: `shown` is what `assay profile DIR --json` says of it."""

    def __init__(self, assay, got):
        self.assay, self.got, self.run_dir = assay, got, got.run_dir
        self.shown = self.json()
        self.groups = self.shown["groups"]

    def json(self, *options):
        answer = self.assay("profile", self.run_dir, "--json", "--top", "0", *options)
        assert answer.status == 0, answer
        return json.loads(answer.stdout)

    def text(self, *options):
        answer = self.assay("profile", self.run_dir, *options)
        assert answer.status == 0, answer
        return answer.stdout

    def rows(self, table="self", group=None):
        """{name: [row of each group]}."""
        found = {}
        for name, content in self.groups.items():
            if group in (None, name):
                for row in content[table]:
                    found.setdefault(row["name"], []).append({**row, "group": name, "of": content["samples"]})
        return found

    def weight(self, name, table="self"):
        """Samples of the function over all groups. Shares are rounded, and so is this."""
        return sum(row["share"] * row["of"] for row in self.rows(table).get(name, []))

    def share(self, name, table="self"):
        return self.weight(name, table) / self.shown["samples"]

    def named_like(self, part, table="self"):
        """The one name that contains the part."""
        found = [name for name in self.rows(table) if part in name]
        assert len(found) == 1, f"{part!r} is in {found} of {sorted(self.rows(table))}"
        return found[0]

    @property
    def complete(self):
        """The share of stacks that reach the start of their thread."""
        stacked = {name: (1 - group["no_stack"]) * group["samples"] for name, group in self.groups.items()}
        return sum(self.groups[name].get("complete", 0) * stacked[name] for name in stacked) / sum(stacked.values())


def profile(assay, *command, hz=999, status=0, **more):
    got = assay("profile", "--precheck", "off", "-q", "-o", "out", "--hz", str(hz), "--", *map(str, command),
                **more)
    assert got.status == status, got
    return Profile(assay, got)


def truth_of(text):
    """{function: CPU seconds} over all processes, from the lines that a target with a planted truth prints."""
    truth = {}
    for pid, name, seconds in re.findall(r"^truth (\d+) (\S+) ([0-9.]+)$", text, re.M):
        truth[name] = truth.get(name, 0.0) + float(seconds)
    assert truth, text
    return truth
