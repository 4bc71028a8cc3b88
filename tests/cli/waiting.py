"""Waiting for what another process does."""
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
