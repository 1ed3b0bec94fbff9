"""Fixtures of the suite: a client for the account, and a fresh table that is removed afterwards."""

import pytest

import target
from results import Recorder


def pytest_configure(config):
    for name in ("ENDPOINT", "ACCOUNT", "KEY"):
        if not getattr(target, name):
            raise pytest.UsageError("set LARIMAR_TABLE_ENDPOINT, LARIMAR_ACCOUNT and LARIMAR_KEY")
    chosen = [arg for arg in config.invocation_params.args if not arg.startswith("-")]
    whole_suite = not chosen and not config.option.keyword
    config.pluginmanager.register(Recorder(whole_suite), "scenario-recorder")


@pytest.fixture
def service():
    with target.service_client() as client:
        yield client


@pytest.fixture
def fresh_tables(service):
    """Makes new tables: `fresh_tables(prefix)` gives a client for one. All are removed afterwards."""
    made = []

    def make(prefix="sdk"):
        table = service.create_table(target.fresh_name(prefix))
        made.append(table)
        return table

    yield make
    for table in made:
        table.delete_table()


@pytest.fixture
def table(fresh_tables):
    return fresh_tables()
