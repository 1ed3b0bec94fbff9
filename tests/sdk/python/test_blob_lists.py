"""Listing blobs, and deleting many at once."""

import pytest
from azure.storage.blob import BlobBlock, BlobPrefix, ContentSettings, PartialBatchErrorException

import blobs
from blobs import names
from target import refused

TREE = ["a", "a/1", "a/2/x", "a/2/y", "a-b", "b/1", "c", "c/1", "d", "é", "世界/1"]


@pytest.fixture
def tree(container):
    for name in TREE:
        container.upload_blob(name, name.encode())
    return container


def in_order(items):
    return sorted(items, key=lambda name: name.encode())


@pytest.mark.scenario("list-blobs")
def test_blobs_are_listed_in_order_and_by_prefix(tree):
    assert names(tree.list_blobs()) == in_order(TREE)
    assert list(tree.list_blob_names()) == in_order(TREE)
    for prefix in ("a", "a/", "a/2/", "c", "é", "世界", "nothing"):
        expected = in_order(name for name in TREE if name.startswith(prefix))
        assert names(tree.list_blobs(name_starts_with=prefix)) == expected, prefix
    assert names(tree.list_blobs(name_starts_with="A")) == []


@pytest.mark.scenario("list-blobs")
def test_a_listed_blob_has_its_properties(container):
    blob = container.upload_blob(
        "blob", b"content", content_settings=ContentSettings(content_type="text/x", content_language="de"))
    lease = blob.acquire_lease()
    [listed] = container.list_blobs()
    properties = blob.get_blob_properties()
    assert (listed.size, listed.blob_type, listed.last_modified) == (7, "BlockBlob", properties.last_modified)
    assert (listed.content_settings.content_type, listed.content_settings.content_language) == ("text/x", "de")
    assert bytes(listed.content_settings.content_md5) == blobs.md5(b"content")
    assert (listed.lease.status, listed.lease.state, listed.lease.duration) == ("locked", "leased", "infinite")
    assert not listed.metadata and listed.snapshot is None
    lease.release()


def level(items):
    """Names of the prefixes and of the blobs of a level; the SDK gives a page's prefixes first."""
    items = list(items)
    prefixes = [item.name for item in items if isinstance(item, BlobPrefix)]
    return prefixes, [item.name for item in items if not isinstance(item, BlobPrefix)]


@pytest.mark.scenario("list-hierarchy")
def test_one_level_has_blobs_and_prefixes_in_order(tree):
    assert level(tree.walk_blobs()) == (["a/", "b/", "c/", "世界/"], ["a", "a-b", "c", "d", "é"])
    assert level(tree.walk_blobs(name_starts_with="a/")) == (["a/2/"], ["a/1"])
    assert level(tree.walk_blobs(name_starts_with="a/2/")) == ([], ["a/2/x", "a/2/y"])
    assert level(tree.walk_blobs(name_starts_with="a")) == (["a/"], ["a", "a-b"])
    assert level(tree.walk_blobs(delimiter="-")) == (["a-"], [name for name in in_order(TREE) if name != "a-b"])
    assert level(tree.walk_blobs(name_starts_with="a", delimiter="/2/")) == (["a/2/"], ["a", "a-b", "a/1"])


@pytest.mark.scenario("list-hierarchy")
def test_a_prefix_is_walked_into(tree):
    [prefix] = [item for item in tree.walk_blobs() if item.name == "a/"]
    assert level(prefix) == (["a/2/"], ["a/1"])


@pytest.mark.scenario("list-pages")
def test_flat_pages_are_resumed_by_a_new_client(container):
    made = [f"blob{number:02}" for number in range(25)]
    for name in made:
        container.upload_blob(name, b"")
    pages = container.list_blobs(results_per_page=10).by_page()
    assert names(next(pages)) == made[:10]
    # What was listed is listed no more, what comes later is.
    container.delete_blob("blob09")
    container.upload_blob("blob095", b"")
    with blobs.service_client() as other:
        rest = other.get_container_client(container.container_name).list_blobs(results_per_page=10)
        listed = [names(page) for page in rest.by_page(pages.continuation_token)]
    assert sum(listed, []) in (made[10:], ["blob095", *made[10:]])
    assert len(listed) == 2
    for size in (0, -1):
        with refused(400, "OutOfRangeQueryParameterValue"):
            list(container.list_blobs(results_per_page=size))


@pytest.mark.scenario("list-pages")
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_pages_of_a_level_have_every_prefix_once(tree, size):
    prefixes, found, token = [], [], None
    for _ in range(20):
        with blobs.service_client() as client:
            pages = client.get_container_client(tree.container_name).walk_blobs(results_per_page=size).by_page(token)
            page = level(next(pages))
        assert 0 < len(page[0]) + len(page[1]) <= size
        prefixes += page[0]
        found += page[1]
        token = pages.continuation_token
        if not token:
            break
    assert (prefixes, found) == level(tree.walk_blobs())


@pytest.mark.scenario("list-includes")
def test_a_list_includes_what_is_asked_for(container):
    source = container.upload_blob("source", b"content", metadata={"a": "b"}, tags={"t": "1"})
    snapshot = source.create_snapshot()["snapshot"]
    container.get_blob_client("copied").start_copy_from_url(source.url)
    container.get_blob_client("staged").stage_block("AAAA", b"content")

    plain = {item.name: item for item in container.list_blobs()}
    assert list(plain) == ["copied", "source"]
    assert not plain["source"].metadata and not plain["source"].tags and plain["copied"].copy.id is None
    assert plain["source"].tag_count == 1

    with_metadata = list(container.list_blobs(include=["metadata", "tags"]))
    assert [(item.name, item.metadata) for item in with_metadata] == [("copied", {"a": "b"}), ("source", {"a": "b"})]
    assert with_metadata[1].tags == {"t": "1"}

    with_copies = list(container.list_blobs(include=["copy"]))
    assert with_copies[0].copy.status == "success" and with_copies[0].copy.source == source.url

    every = list(container.list_blobs(include=["snapshots", "uncommittedblobs", "metadata"]))
    assert [(item.name, item.snapshot) for item in every] == [
        ("copied", None), ("source", snapshot), ("source", None), ("staged", None)]
    assert every[3].size == 0
    container.get_blob_client("staged").commit_block_list([BlobBlock("AAAA")])
    assert names(container.list_blobs()) == ["copied", "source", "staged"]


@pytest.mark.scenario("batch-delete")
def test_many_blobs_are_deleted_by_one_request(container):
    made = [f"folder/blob {number} é" for number in range(200)]
    for name in made:
        container.upload_blob(name, b"")
    kept = container.upload_blob("kept", b"")
    answers = list(container.delete_blobs(*made))
    assert [answer.status_code for answer in answers] == [202] * 200
    assert names(container.list_blobs()) == [kept.blob_name]


@pytest.mark.scenario("batch-delete")
def test_what_could_not_be_deleted_is_told_among_the_others(container):
    for name in ("first", "leased", "with snapshot", "last"):
        container.upload_blob(name, b"")
    lease = container.get_blob_client("leased").acquire_lease()
    container.get_blob_client("with snapshot").create_snapshot()
    names_to_delete = ["first", "missing", "leased", "with snapshot", "last"]
    with pytest.raises(PartialBatchErrorException) as caught:
        container.delete_blobs(*names_to_delete)
    parts = [(part.status_code, part.headers.get("x-ms-error-code")) for part in caught.value.parts]
    assert parts == [(202, None), (404, "BlobNotFound"), (412, "LeaseIdMissing"), (409, "SnapshotsPresent"), (202, None)]
    assert names(container.list_blobs()) == ["leased", "with snapshot"]
    answers = list(container.delete_blobs(
        {"name": "leased", "lease_id": lease.id}, {"name": "with snapshot", "delete_snapshots": "include"}))
    assert [answer.status_code for answer in answers] == [202, 202]
    assert names(container.list_blobs(include="snapshots")) == []


@pytest.mark.scenario("batch-delete")
def test_nothing_and_too_much_are_refused(container):
    answers = list(container.delete_blobs(*(f"b{number}" for number in range(256)), raise_on_any_failure=False))
    assert {answer.status_code for answer in answers} == {404} and len(answers) == 256
    # The service answers a batch that is too long with one part, which fails.
    answers = list(container.delete_blobs(*(f"b{number}" for number in range(257)), raise_on_any_failure=False))
    assert [answer.status_code for answer in answers] == [400]
