"""Waiting for what another process does."""
import pathlib
import time

import pytest


def wait_for(condition, what):
    """Returns the condition's value once it is true. The time only guards against a hang."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    pytest.fail(f"waited in vain for {what}")


def is_running(pid):
    """One that nobody has waited for yet has ended, too."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
