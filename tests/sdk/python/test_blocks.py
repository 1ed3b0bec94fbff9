"""Block blobs block by block."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, BlobSasPermissions, ContentSettings, generate_blob_sas

from blobs import content, md5, names
from target import ACCOUNT, FAR_AHEAD, KEY, refused

KIB, MIB = 1024, 1024 * 1024


@pytest.fixture
def blob(container):
    return container.get_blob_client("blocks")


def stage(blob, *ids):
    for id in ids:
        blob.stage_block(id, part(id))


def part(id):
    return content(KIB, id)


def commit(blob, ids, **options):
    """Commits blocks; this SDK names all of them as their latest, whatever state they are said to be in."""
    return blob.commit_block_list([BlobBlock(id) for id in ids], **options)


def ids(blocks):
    return [(block.id, block.size) for block in blocks]


@pytest.mark.scenario("staged-blocks")
def test_blocks_are_committed_in_the_order_of_the_list(blob):
    stage(blob, "a", "b", "c")
    made = commit(
        blob, ["c", "a", "b", "a"], metadata={"m": "1"}, content_settings=ContentSettings("text/x"))
    assert blob.download_blob().readall() == part("c") + part("a") + part("b") + part("a")
    properties = blob.get_blob_properties()
    assert (properties.etag, properties.size, properties.metadata) == (made["etag"], 4 * KIB, {"m": "1"})
    assert properties.content_settings.content_type == "text/x"
    assert properties.content_settings.content_md5 is None


@pytest.mark.scenario("staged-blocks")
def test_committed_and_staged_blocks_are_mixed(blob):
    stage(blob, "a", "b")
    commit(blob, ["a", "b"])
    blob.stage_block("a", b"new a")
    stage(blob, "c")
    commit(blob, ["c", "b", "a"])
    assert blob.download_blob().readall() == part("c") + part("b") + b"new a"
    # What was staged and not listed is gone.
    stage(blob, "a", "d")
    commit(blob, ["b"])
    assert blob.download_blob().readall() == part("b")
    with refused(400, "InvalidBlockList"):
        commit(blob, ["b", "d"])
    commit(blob, [])
    assert blob.download_blob().readall() == b""


@pytest.mark.scenario("staged-blocks")
def test_a_list_with_an_unknown_block_is_refused_whole(blob):
    stage(blob, "a", "b")
    commit(blob, ["a"])
    stage(blob, "c")
    with refused(400, "InvalidBlockList"):
        commit(blob, ["a", "x"])
    with refused(400, "InvalidBlockList"):
        commit(blob, ["b"])
    assert blob.download_blob().readall() == part("a")
    commit(blob, ["a", "c"])
    assert blob.download_blob().readall() == part("a") + part("c")


@pytest.mark.scenario("staged-blocks")
def test_a_block_is_replaced_until_it_is_committed(blob):
    blob.stage_block("a", b"first")
    blob.stage_block("a", b"second")
    commit(blob, ["a"])
    assert blob.download_blob().readall() == b"second"


@pytest.mark.scenario("staged-blocks")
def test_block_ids_are_of_one_length(blob):
    blob.stage_block("first", b"content")
    with refused(400, "InvalidBlobOrBlock"):
        blob.stage_block("longer id", b"content")
    with pytest.raises(HttpResponseError) as caught:
        blob.stage_block("x" * 65, b"content")
    assert caught.value.status_code == 400
    assert ids(blob.get_block_list("uncommitted")[1]) == [("first", 7)]


@pytest.mark.scenario("staged-blocks")
def test_five_hundred_blocks_staged_at_once(blob):
    numbers = [f"{number:04}" for number in range(500)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: blob.stage_block(number, number.encode()), numbers))
    commit(blob, numbers)
    assert blob.download_blob().readall() == "".join(numbers).encode()
    assert blob.download_blob(1598, 4).readall() == b"9904"


@pytest.mark.scenario("block-list")
def test_committed_and_uncommitted_blocks_are_listed(container, blob):
    stage(blob, "a", "b")
    assert blob.get_block_list("committed")[0] == []
    assert [ids(blocks) for blocks in blob.get_block_list("all")] == [[], [("a", KIB), ("b", KIB)]]
    assert not blob.exists()
    assert names(container.list_blobs()) == []
    assert names(container.list_blobs(include="uncommittedblobs")) == ["blocks"]

    commit(blob, ["b", "a"])
    stage(blob, "c")
    committed, uncommitted = blob.get_block_list("all")
    assert (ids(committed), ids(uncommitted)) == ([("b", KIB), ("a", KIB)], [("c", KIB)])
    assert [ids(blocks) for blocks in blob.get_block_list("committed")] == [[("b", KIB), ("a", KIB)], []]
    assert [ids(blocks) for blocks in blob.get_block_list("uncommitted")] == [[], [("c", KIB)]]


@pytest.mark.scenario("block-list")
def test_staging_leaves_a_committed_blob_as_it_is(blob):
    blob.upload_blob(b"content")
    before = blob.get_blob_properties()
    blob.stage_block("a", b"staged")
    after = blob.get_blob_properties()
    assert (after.etag, after.last_modified, after.size) == (before.etag, before.last_modified, before.size)
    assert blob.download_blob().readall() == b"content"
    blob.upload_blob(b"other", overwrite=True)
    assert [ids(blocks) for blocks in blob.get_block_list("all")] == [[], []]


def readable_url(blob):
    token = generate_blob_sas(
        ACCOUNT, blob.container_name, blob.blob_name, snapshot=blob.snapshot, account_key=KEY,
        permission=BlobSasPermissions(read=True), expiry=FAR_AHEAD)
    return f"{blob.url}{'&' if '?' in blob.url else '?'}{token}"


@pytest.mark.scenario("block-from-url")
def test_blocks_are_staged_from_whole_and_partial_sources(container, blob):
    data = content(9 * MIB)
    source = container.upload_blob("source", data)
    url = readable_url(source)
    blob.stage_block_from_url("a", url)
    blob.stage_block_from_url("b", url, source_offset=100, source_length=1000)
    blob.stage_block_from_url("c", url, source_offset=9 * MIB - 1, source_length=1)
    assert ids(blob.get_block_list("uncommitted")[1]) == [("a", 9 * MIB), ("b", 1000), ("c", 1)]
    commit(blob, ["b", "a", "c"])
    assert blob.download_blob().readall() == data[100:1100] + data + data[-1:]
    source.delete_blob()
    assert blob.download_blob(0, 1000).readall() == data[100:1100]


@pytest.mark.scenario("block-from-url")
def test_the_md5_of_a_source_is_checked(container, blob):
    url = readable_url(container.upload_blob("source", content(KIB)))
    blob.stage_block_from_url("a", url, source_content_md5=bytearray(md5(content(KIB))))
    with refused(400, "Md5Mismatch"):
        blob.stage_block_from_url("b", url, source_content_md5=bytearray(md5(b"other")))
    assert ids(blob.get_block_list("uncommitted")[1]) == [("a", KIB)]


@pytest.mark.scenario("block-from-url")
def test_sources_that_cannot_be_read_are_refused(container, blob):
    source = container.upload_blob("source", content(KIB))
    missing = container.get_blob_client("missing")
    expired = generate_blob_sas(
        ACCOUNT, container.container_name, "source", account_key=KEY, permission="r", expiry="2020-01-01")
    for url, status in ((readable_url(missing), 404), (f"{source.url}?{expired}", 403)):
        with refused(status, "CannotVerifyCopySource"):
            blob.stage_block_from_url("a", url)
    assert not blob.exists()
