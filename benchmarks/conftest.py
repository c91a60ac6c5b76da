"""The option that keeps a structure without a quick solver from holding up the run."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--limit", type=float, default=60.0, help="seconds for each case")


@pytest.fixture
def limit(request):
    return request.config.getoption("--limit")
