"""Control groups made by a test, of version 1 or 2, whichever the machine has."""
import os
import pathlib
import signal

from need import need
from waiting import wait_for

NAME = "assay-test"


def mounts():
    """(kind, controllers, folder, path of the group that is shown there) of each mount of control groups. The
    controllers of version 2 stand in files."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ")
        kind, _, options = after.split()[:3]
        if kind in ("cgroup", "cgroup2"):
            root, folder = before.split()[3:5]
            yield kind, options.split(","), pathlib.Path(folder), root


def own_path(controller, root):
    """Where the test's own group is below a mount, for one controller of version 1, or for version 2 ("")."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(",") if controller else names == "":
            inside = path == root or path.startswith(root.rstrip("/") + "/")
            return os.path.relpath(path, root) if inside and path != root else ""
    return ""


def folders_up(mount, path):
    """The test's own group and those above it."""
    while True:
        yield mount / path
        if not path:
            return
        path = os.path.dirname(path)


def write(path, value):
    path.write_text(f"{value}\n")


class Group:
    """One group, or with version 1 one for each controller. Its limits are smaller than those around it."""

    def __init__(self, memory=None, cpus=None):
        self.folders = []
        wanted = {"memory": memory, "cpu": cpus}
        try:
            for controller, limit in wanted.items():
                if limit is not None:
                    self.limit(controller, limit)
        except OSError:
            self.remove()
            raise

    def limit(self, controller, limit):
        kind, folder = self.folder_for(controller)
        if kind == "cgroup":
            if controller == "memory":
                write(folder / "memory.limit_in_bytes", limit)
            else:
                write(folder / "cpu.cfs_period_us", 100000)
                write(folder / "cpu.cfs_quota_us", int(limit * 100000))
        elif controller == "memory":
            write(folder / "memory.max", limit)
            if (folder / "memory.swap.max").exists():
                write(folder / "memory.swap.max", 0)
        else:
            write(folder / "cpu.max", f"{int(limit * 100000)} 100000")

    def folder_for(self, controller):
        """(kind of mount, a new folder in which the controller can be set)."""
        for kind, options, mount, root in mounts():
            if kind == "cgroup" and controller in options:
                return kind, self.make(mount / own_path(controller, root))
            if kind == "cgroup2" and controller in (mount / "cgroup.controllers").read_text().split():
                for above in folders_up(mount, own_path("", root)):
                    if self.hands_down(above, controller):
                        return kind, self.make(above)
        raise FileNotFoundError(f"no control group has the controller {controller}")

    @staticmethod
    def hands_down(folder, controller):
        """Whether groups in that folder have the controller. One with processes of its own cannot begin to."""
        control = folder / "cgroup.subtree_control"
        return controller in control.read_text().split()

    def make(self, above):
        folder = above / f"{NAME}-{os.getpid()}"
        if folder not in self.folders:
            folder.mkdir()
            self.folders.append(folder)
        return folder

    @property
    def procs(self):
        return [folder / "cgroup.procs" for folder in self.folders]

    def enter(self):
        """For preexec_fn: the process that calls it is in the group from then on."""
        for path in self.procs:
            write(path, os.getpid())

    def entering(self, *command):
        """The command as one that moves itself into the group before it begins."""
        return ["sh", "-c", "".join(f"echo $$ >{path}; " for path in self.procs) + 'exec "$@"', "sh", *command]

    def remove(self):
        for folder in self.folders:
            for pid in (folder / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            wait_for(lambda folder=folder: removed(folder), f"{folder} to be empty")
        self.folders = []


def removed(folder):
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def make_group(**limits):
    """A Group, or a skip where none can be made."""
    try:
        return Group(**limits)
    except OSError as error:
        need("cgroup", False, str(error))
