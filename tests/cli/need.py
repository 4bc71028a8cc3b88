"""What a test needs and a machine may lack; tests/unit/need.h is the same for unit tests."""
import os

import pytest


def need(capability, there, why):
    """Goes on where the capability is there. Else skips, or fails where $ASSAY_REQUIRE (a,b,... or all) names it."""
    if there:
        return
    required = os.environ.get("ASSAY_REQUIRE", "").split(",")
    if capability in required or "all" in required:
        pytest.fail(f"ASSAY_REQUIRE asks for {capability}, which is not here: {why}", pytrace=False)
    pytest.skip(f"{capability}: {why}")
