"""Queues themselves: connecting, creating, listing, metadata."""

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.queue import QueueClient, QueueServiceClient

import queues
from queues import count_is, texts
from target import ACCOUNT, KEY, OPTIONS, fresh_name, refused


@pytest.mark.scenario("queue-connection-string")
def test_a_connection_string_connects(queue):
    text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};QueueEndpoint={queues.ENDPOINT};"
    service = QueueServiceClient.from_connection_string(text, **OPTIONS)
    assert queue.queue_name in [item.name for item in service.list_queues()]
    QueueClient.from_connection_string(text, queue.queue_name, **OPTIONS).send_message("by connection string")
    assert texts(queue.peek_messages()) == ["by connection string"]


@pytest.mark.scenario("queue-lifecycle")
def test_a_queue_is_created_listed_and_deleted(queue_service):
    name = fresh_name()
    statuses = []

    def create(**options):
        queue_service.create_queue(
            name, raw_response_hook=lambda response: statuses.append(response.http_response.status_code), **options)

    create(metadata={"colour": "red"})
    # The SDK makes an error of its own of the 204 that tells of the same queue.
    with pytest.raises(ResourceExistsError):
        create(metadata={"colour": "red"})
    with refused(409, "QueueAlreadyExists"):
        create(metadata={"colour": "blue"})
    with refused(409, "QueueAlreadyExists"):
        create()
    assert statuses == [201, 204, 409, 409]
    assert name in [item.name for item in queue_service.list_queues()]
    assert queue_service.get_queue_client(name).get_queue_properties().metadata == {"colour": "red"}

    queue_service.delete_queue(name)
    assert name not in [item.name for item in queue_service.list_queues()]
    with refused(404, "QueueNotFound"):
        queue_service.delete_queue(name)


@pytest.mark.scenario("queue-lifecycle")
def test_a_queue_that_is_made_again_is_empty(queue_service, fresh_queues):
    queue = fresh_queues()
    queue.send_message("of the first")
    queue.delete_queue()
    queue.create_queue()
    assert queue.peek_messages() == []
    count_is(queue, 0)


@pytest.mark.scenario("queue-lifecycle")
def test_everything_about_a_missing_queue_is_refused(queue_service):
    queue = queue_service.get_queue_client(fresh_name())
    calls = [
        lambda: queue.send_message("text"),
        lambda: queue.receive_message(),
        lambda: queue.peek_messages(),
        lambda: queue.clear_messages(),
        lambda: queue.get_queue_properties(),
        lambda: queue.set_queue_metadata({"a": "b"}),
        lambda: queue.get_queue_access_policy(),
        lambda: queue.set_queue_access_policy({}),
    ]
    for call in calls:
        with refused(404, "QueueNotFound"):
            call()


@pytest.mark.scenario("queue-lifecycle")
@pytest.mark.parametrize("name, code", [
    ("Upper", "InvalidResourceName"),
    ("under_score", "InvalidResourceName"),
    ("two--dashes", "InvalidResourceName"),
    ("dash-", "InvalidResourceName"),
    ("ab", "OutOfRangeInput"),
    ("a" * 64, "OutOfRangeInput"),
])
def test_names_that_are_no_queue_names_are_refused(queue_service, name, code):
    with refused(400, code):
        queue_service.create_queue(name)


@pytest.mark.scenario("queue-list")
def test_queues_are_listed_by_prefix_with_metadata(queue_service, fresh_queues):
    prefix = fresh_name("list")[:16]
    made = sorted(fresh_queues(prefix, metadata={"number": str(n)}).queue_name for n in range(3))
    fresh_queues()
    listed = list(queue_service.list_queues(name_starts_with=prefix))
    assert [item.name for item in listed] == made
    assert all(item.metadata is None for item in listed)

    listed = queue_service.list_queues(name_starts_with=prefix, include_metadata=True)
    assert sorted(item.metadata["number"] for item in listed) == ["0", "1", "2"]
    assert list(queue_service.list_queues(name_starts_with=fresh_name("none"))) == []


@pytest.mark.scenario("queue-list")
def test_queues_are_listed_in_pages_that_a_marker_resumes(queue_service, fresh_queues):
    prefix = fresh_name("page")[:16]
    made = sorted(fresh_queues(prefix).queue_name for _ in range(5))
    pages = queue_service.list_queues(name_starts_with=prefix, results_per_page=2).by_page()
    first = [item.name for item in next(pages)]
    assert first == made[:2]

    with queues.service_client() as other:
        rest = other.list_queues(name_starts_with=prefix, results_per_page=2).by_page(pages.continuation_token)
        assert [[item.name for item in page] for page in rest] == [made[2:4], made[4:]]
    for size in (0, 5001):
        with refused(400, "OutOfRangeQueryParameterValue"):
            list(queue_service.list_queues(results_per_page=size, name_starts_with=prefix))


@pytest.mark.scenario("queue-metadata")
def test_metadata_is_set_replaced_and_cleared(queue):
    assert queue.get_queue_properties().metadata == {}
    queue.set_queue_metadata({"one": "1", "two": "with spaces, and = signs"})
    assert queue.get_queue_properties().metadata == {"one": "1", "two": "with spaces, and = signs"}
    queue.set_queue_metadata({"three": "3"})
    assert queue.get_queue_properties().metadata == {"three": "3"}
    queue.set_queue_metadata()
    assert queue.get_queue_properties().metadata == {}
    with refused(400, "InvalidMetadata"):
        queue.set_queue_metadata({"no-identifier": "x"})
    with refused(400, "MetadataTooLarge"):
        queue.set_queue_metadata({"large": "x" * 8200})


@pytest.mark.scenario("queue-metadata")
def test_the_message_count_includes_hidden_messages(queue):
    for number in range(5):
        queue.send_message(str(number))
    queue.send_message("later", visibility_timeout=600)
    got = queue.receive_message(visibility_timeout=600)
    count_is(queue, 6)
    queue.delete_message(got)
    count_is(queue, 5)
