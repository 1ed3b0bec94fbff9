"""Fixtures of the suite: clients for the account's services, and fresh tables, queues and containers that are removed
afterwards."""

import contextlib

import pytest

import blobs
import queues
import target
from results import Recorder


def pytest_configure(config):
    missing = [name for name in target.VARIABLES if not target.variable(name)]
    if missing:
        raise pytest.UsageError(f"set {', '.join(missing)}, or run `cargo xtask sdk python`")
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


@pytest.fixture
def queue_service():
    with queues.service_client() as client:
        yield client


@pytest.fixture
def fresh_queues(queue_service):
    """Makes new queues: `fresh_queues(prefix)` gives a client for one. All are removed afterwards."""
    made = []

    def make(prefix="sdk", **options):
        queue = queue_service.create_queue(target.fresh_name(prefix), **options)
        made.append(queue)
        return queue

    yield make
    for queue in made:
        queue.delete_queue()


@pytest.fixture
def queue(fresh_queues):
    return fresh_queues()


@pytest.fixture
def blob_service():
    with blobs.service_client() as client:
        yield client


@pytest.fixture
def fresh_containers(blob_service):
    """Makes new containers: `fresh_containers(prefix)` gives a client for one. All are removed afterwards."""
    made = []

    def make(prefix="sdk", **options):
        container = blob_service.create_container(target.fresh_name(prefix), **options)
        made.append(container)
        return container

    yield make
    for container in made:
        with contextlib.suppress(target.ResourceNotFoundError):
            container.delete_container()


@pytest.fixture
def container(fresh_containers):
    return fresh_containers()
