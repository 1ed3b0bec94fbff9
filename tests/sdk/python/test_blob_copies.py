"""Snapshots and copies."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobSasPermissions, ContentSettings, generate_blob_sas

from blobs import content, names
from target import ACCOUNT, FAR_AHEAD, KEY, LONG_AGO, refused


@pytest.fixture
def blob(container):
    return container.upload_blob("blob", b"first", metadata={"version": "1"})


def snapshot_of(container, blob, **options):
    made = blob.create_snapshot(**options)
    return container.get_blob_client(blob.blob_name, snapshot=made["snapshot"])


@pytest.mark.scenario("snapshots")
def test_a_snapshot_keeps_content_and_metadata(container, blob):
    before = blob.get_blob_properties()
    first = snapshot_of(container, blob)
    assert blob.get_blob_properties().etag == before.etag
    blob.upload_blob(b"second", overwrite=True, metadata={"version": "2"})
    second = snapshot_of(container, blob, metadata={"of": "its own"})
    blob.upload_blob(b"third", overwrite=True)

    assert (first.download_blob().readall(), second.download_blob().readall()) == (b"first", b"second")
    assert first.get_blob_properties().metadata == {"version": "1"}
    assert second.get_blob_properties().metadata == {"of": "its own"}
    assert first.get_blob_properties().etag == before.etag
    assert first.get_blob_properties().snapshot == first.snapshot
    assert first.snapshot < second.snapshot
    assert blob.download_blob().readall() == b"third"
    listed = [(item.name, item.snapshot) for item in container.list_blobs(include="snapshots")]
    assert listed == [("blob", first.snapshot), ("blob", second.snapshot), ("blob", None)]
    assert names(container.list_blobs()) == ["blob"]


@pytest.mark.scenario("snapshots")
def test_snapshots_are_deleted_with_or_without_the_blob(container, blob):
    first, second = snapshot_of(container, blob), snapshot_of(container, blob)
    with refused(409, "SnapshotsPresent"):
        blob.delete_blob()
    first.delete_blob()
    assert not first.exists() and second.exists() and blob.exists()
    blob.delete_blob(delete_snapshots="only")
    assert not second.exists() and blob.exists()
    third = snapshot_of(container, blob)
    blob.delete_blob(delete_snapshots="include")
    assert not third.exists() and not blob.exists()
    with refused(404, "BlobNotFound"):
        third.download_blob()


@pytest.mark.scenario("snapshots")
def test_a_snapshot_is_not_written(container, blob):
    snapshot = snapshot_of(container, blob)
    for write in (lambda: snapshot.set_blob_metadata({"a": "b"}), lambda: snapshot.upload_blob(b"x", overwrite=True)):
        with pytest.raises(HttpResponseError) as caught:
            write()
        assert caught.value.status_code == 400
    for client in (snapshot, blob):
        assert client.download_blob().readall() == b"first"
        assert client.get_blob_properties().metadata == {"version": "1"}


@pytest.mark.scenario("snapshots")
def test_a_snapshot_is_promoted_by_copying_it(container, blob):
    snapshot = snapshot_of(container, blob)
    blob.upload_blob(b"second", overwrite=True)
    blob.start_copy_from_url(snapshot.url)
    assert blob.download_blob().readall() == b"first"
    assert snapshot.exists()


@pytest.mark.scenario("blob-copy")
def test_a_copy_has_content_headers_and_metadata_of_its_source(container, fresh_containers, blob):
    blob.set_http_headers(ContentSettings(content_type="text/x", cache_control="no-store"))
    copy = fresh_containers().get_blob_client("folder/copy")
    started = copy.start_copy_from_url(blob.url)
    assert started["copy_status"] == "success" and started["copy_id"]
    assert copy.download_blob().readall() == b"first"
    properties = copy.get_blob_properties()
    assert (properties.etag, properties.metadata) == (started["etag"], {"version": "1"})
    assert (properties.content_settings.content_type, properties.content_settings.cache_control) == (
        "text/x", "no-store")
    assert (properties.copy.id, properties.copy.status) == (started["copy_id"], "success")
    assert properties.copy.source.split("?")[0] == blob.url
    assert properties.copy.progress == "5/5"
    assert properties.copy.completion_time >= properties.creation_time

    blob.delete_blob()
    assert copy.download_blob().readall() == b"first"
    copy.upload_blob(b"anew", overwrite=True)
    assert copy.get_blob_properties().copy.id is None


@pytest.mark.scenario("blob-copy")
def test_a_copy_may_have_metadata_of_its_own_and_replaces(container, blob):
    copy = container.upload_blob("copy", b"old", metadata={"old": "yes"})
    copy.start_copy_from_url(blob.url, metadata={"own": "yes"})
    assert copy.get_blob_properties().metadata == {"own": "yes"}
    assert copy.download_blob().readall() == b"first"


@pytest.mark.scenario("blob-copy")
def test_every_type_is_copied_as_it_is(container):
    append = container.get_blob_client("append")
    append.create_append_blob()
    append.append_block(b"one")
    append.append_block(b"two")
    pages = container.get_blob_client("pages")
    pages.create_page_blob(2048)
    pages.upload_page(content(512), 512, 512)
    for source in (append, pages):
        copy = container.get_blob_client(f"copy of {source.blob_name}")
        copy.start_copy_from_url(source.url)
        assert copy.get_blob_properties().blob_type == source.get_blob_properties().blob_type
        assert copy.download_blob().readall() == source.download_blob().readall()
    copy = container.get_blob_client("copy of append")
    copy.append_block(b"three")
    assert copy.download_blob().readall() == b"onetwothree"
    assert append.download_blob().readall() == b"onetwo"


@pytest.mark.scenario("blob-copy")
def test_copies_under_conditions(container, blob):
    copy = container.upload_blob("copy", b"old")
    etag, other = blob.get_blob_properties().etag, '"0x8D0000000000000"'
    with refused(412, "SourceConditionNotMet"):
        copy.start_copy_from_url(
            blob.url, source_etag=other, source_match_condition=MatchConditions.IfNotModified)
    with refused(412, "SourceConditionNotMet"):
        copy.start_copy_from_url(blob.url, source_if_unmodified_since=LONG_AGO)
    with pytest.raises(HttpResponseError) as caught:
        copy.start_copy_from_url(blob.url, etag=other, match_condition=MatchConditions.IfNotModified)
    assert caught.value.status_code == 412
    assert copy.download_blob().readall() == b"old"
    copy.start_copy_from_url(blob.url, source_etag=etag, source_match_condition=MatchConditions.IfNotModified)
    assert copy.download_blob().readall() == b"first"


@pytest.mark.scenario("blob-copy")
def test_a_source_that_cannot_be_read_is_refused(container, blob):
    copy = container.get_blob_client("copy")
    with refused(404, "BlobNotFound"):
        copy.start_copy_from_url(container.get_blob_client("missing").url)
    with refused(400, "InvalidHeaderValue"):
        copy.start_copy_from_url("no address at all")
    assert not copy.exists()


@pytest.mark.scenario("blob-copy")
def test_a_copy_that_waits_for_its_end(container, blob):
    token = generate_blob_sas(
        ACCOUNT, container.container_name, "blob", account_key=KEY, permission=BlobSasPermissions(read=True),
        expiry=FAR_AHEAD)
    url = f"{blob.url}?{token}"
    copy = container.get_blob_client("copy")
    assert copy.start_copy_from_url(url, requires_sync=True)["copy_status"] == "success"
    assert copy.download_blob().readall() == b"first"
    uploaded = container.get_blob_client("uploaded")
    uploaded.upload_blob_from_url(url)
    assert uploaded.download_blob().readall() == b"first"
    with refused(409, "NoPendingCopyOperation"):
        copy.abort_copy(copy.get_blob_properties().copy.id)
