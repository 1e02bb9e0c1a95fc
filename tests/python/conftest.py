# SPDX-License-Identifier: MIT
"""A module that is skipped whole is a skipped test to meson, which knows that by exit status 77."""

import pytest


def pytest_sessionfinish(session, exitstatus):
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = 77
