"""Block blobs whole: content, names, properties, headers, metadata, tags."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import BlobType, ContentSettings, StandardBlobTier

import blobs
from blobs import content, md5, names
from target import error_code, refused

KIB, MIB = 1024, 1024 * 1024


@pytest.mark.scenario("block-blob-roundtrip")
@pytest.mark.parametrize("size", [0, 1, 4 * KIB, 5 * MIB])
def test_content_comes_back_as_it_was_put(container, size):
    data = content(size)
    blob = container.upload_blob("folder/blob", data)
    assert blob.download_blob().readall() == data
    properties = blob.get_blob_properties()
    assert (properties.size, properties.blob_type) == (size, BlobType.BLOCKBLOB)
    assert bytes(properties.content_settings.content_md5) == md5(data)
    assert names(container.list_blobs()) == ["folder/blob"]
    blob.delete_blob()
    assert not blob.exists()


@pytest.mark.scenario("block-blob-roundtrip")
def test_a_missing_blob_is_told(container):
    blob = container.get_blob_client("missing")
    calls = [
        blob.download_blob, blob.get_blob_properties, blob.delete_blob, blob.get_blob_tags, blob.get_block_list,
        lambda: blob.set_blob_metadata({"a": "b"}), lambda: blob.set_http_headers(ContentSettings("text/plain")),
        blob.create_snapshot, blob.acquire_lease,
    ]
    for call in calls:
        with refused(404, "BlobNotFound"):
            call()
    assert not blob.exists()


@pytest.mark.scenario("block-blob-roundtrip")
def test_text_streams_and_generators_are_uploaded(container):
    container.upload_blob("text", "Grüße, 世界", encoding="utf-16")
    assert container.download_blob("text", encoding="utf-16").readall() == "Grüße, 世界"
    container.upload_blob("generated", (content(KIB, part) for part in range(3)))
    assert container.download_blob("generated").readall() == b"".join(content(KIB, part) for part in range(3))
    chunks = list(container.download_blob("generated").chunks())
    assert b"".join(chunks) == container.download_blob("generated").readall()


@pytest.mark.scenario("blob-names")
@pytest.mark.parametrize("name", [
    "plain", "with/many/slashes", "with space", "per%cent%20sign", "plus+plus", "qu'ote", 'double"quote',
    "am&per;sand=", "question?mark", "hash#tag", "Grüße-世界-🦀", "(brackets)[too]{all}", "comma,at@dollar$",
    "tilde~dot.", "<angle>", "x" * 1024, "UPPER", "trailing/slash/",
])
def test_special_names_work_everywhere(container, name):
    blob = container.get_blob_client(name)
    data = content(100)
    blob.upload_blob(data, metadata={"a": "b"})
    assert blob.download_blob().readall() == data
    assert names(container.list_blobs()) == [name]
    assert names(container.list_blobs(name_starts_with=name)) == [name]
    assert blob.get_blob_properties().metadata == {"a": "b"}
    copy = container.get_blob_client("copied")
    copy.start_copy_from_url(blob.url)
    assert copy.download_blob().readall() == data
    blob.delete_blob()
    assert names(container.list_blobs()) == ["copied"]


@pytest.mark.scenario("blob-names")
def test_case_matters_and_names_past_1024_characters_are_refused(container):
    container.upload_blob("name", b"small")
    container.upload_blob("Name", b"large")
    assert names(container.list_blobs()) == ["Name", "name"]
    assert container.download_blob("Name").readall() == b"large"
    with pytest.raises(HttpResponseError) as caught:
        container.upload_blob("x" * 1025, b"content")
    assert caught.value.status_code == 400
    assert error_code(caught.value) in ("InvalidResourceName", "OutOfRangeInput")


@pytest.mark.scenario("blob-properties")
def test_properties_and_downloads_tell_the_same(container):
    before = datetime.now(timezone.utc) - timedelta(minutes=1)
    made = container.get_blob_client("blob").upload_blob(content(2000))
    blob = container.get_blob_client("blob")
    properties = blob.get_blob_properties()
    assert made["etag"] == properties.etag and made["last_modified"] == properties.last_modified
    assert properties.etag.startswith('"0x') and properties.etag.endswith('"')
    assert before < properties.creation_time <= properties.last_modified
    assert (properties.name, properties.container, properties.size) == ("blob", container.container_name, 2000)
    assert properties.content_settings.content_type == "application/octet-stream"
    assert (properties.lease.status, properties.lease.state) == ("unlocked", "available")
    assert properties.server_encrypted is True
    assert (properties.blob_tier, properties.blob_tier_inferred) == ("Hot", True)
    assert properties.snapshot is None and properties.copy.id is None

    downloaded = blob.download_blob().properties
    for name in ("etag", "last_modified", "creation_time", "size", "blob_type", "metadata"):
        assert getattr(downloaded, name) == getattr(properties, name), name
    [listed] = container.list_blobs()
    assert listed.etag.strip('"') == properties.etag.strip('"')
    for name in ("last_modified", "creation_time", "size", "blob_type", "blob_tier", "blob_tier_inferred"):
        assert getattr(listed, name) == getattr(properties, name), name


@pytest.mark.scenario("blob-properties")
def test_a_tier_is_a_label(container):
    blob = container.upload_blob("blob", b"content", standard_blob_tier=StandardBlobTier.COOL)
    properties = blob.get_blob_properties()
    assert (properties.blob_tier, bool(properties.blob_tier_inferred)) == ("Cool", False)
    blob.set_standard_blob_tier(StandardBlobTier.HOT)
    after = blob.get_blob_properties()
    assert (after.blob_tier, bool(after.blob_tier_inferred), after.etag) == ("Hot", False, properties.etag)
    with pytest.raises(HttpResponseError) as caught:
        blob.set_standard_blob_tier("Lukewarm")
    assert caught.value.status_code == 400


SETTINGS = {
    "content_type": "text/plain; charset=utf-8", "content_encoding": "identity", "content_language": "de-CH",
    "content_disposition": 'attachment; filename="a.txt"', "cache_control": "max-age=60, private",
}


def settings_of(properties):
    return {name: getattr(properties.content_settings, name) for name in SETTINGS}


@pytest.mark.scenario("blob-http-headers")
def test_headers_are_set_with_the_blob_and_changed_later(container):
    blob = container.upload_blob("blob", b"content", content_settings=ContentSettings(**SETTINGS))
    before = blob.get_blob_properties()
    assert settings_of(before) == SETTINGS
    assert settings_of(blob.download_blob().properties) == SETTINGS
    [listed] = container.list_blobs()
    assert settings_of(listed) == SETTINGS

    # All are replaced together: what is not given is cleared.
    blob.set_http_headers(ContentSettings(content_type="image/png", content_md5=bytearray(b"0123456789abcdef")))
    after = blob.get_blob_properties()
    assert settings_of(after) == {**{name: None for name in SETTINGS}, "content_type": "image/png"}
    assert bytes(after.content_settings.content_md5) == b"0123456789abcdef"
    assert after.etag != before.etag
    assert blob.download_blob().readall() == b"content"
    with refused(412, "ConditionNotMet"):
        blob.set_http_headers(
            ContentSettings(content_type="x/y"), etag=before.etag, match_condition=MatchConditions.IfNotModified)


@pytest.mark.scenario("blob-metadata")
def test_metadata_is_set_with_the_blob_replaced_and_cleared(container):
    blob = container.upload_blob("blob", b"content", metadata={"one": "1", "two": "2 with spaces"})
    before = blob.get_blob_properties()
    assert before.metadata == {"one": "1", "two": "2 with spaces"}
    assert blob.download_blob().properties.metadata == before.metadata
    blob.set_blob_metadata({"three": "3"})
    after = blob.get_blob_properties()
    assert after.metadata == {"three": "3"}
    assert after.etag != before.etag
    assert (after.size, after.content_settings.content_type) == (7, before.content_settings.content_type)
    with refused(400, "InvalidMetadata"):
        blob.set_blob_metadata({"no-identifier": "x"})
    with refused(400, "MetadataTooLarge"):
        blob.set_blob_metadata({"large": "x" * 8200})
    blob.set_blob_metadata()
    assert blob.get_blob_properties().metadata == {}
    assert blob.download_blob().readall() == b"content"


@pytest.mark.scenario("blob-overwrite")
def test_an_upload_replaces_everything(container):
    blob = container.upload_blob(
        "blob", content(1000), metadata={"a": "b"}, tags={"t": "1"}, content_settings=ContentSettings(**SETTINGS))
    before = blob.get_blob_properties()
    blob.upload_blob(b"new", overwrite=True)
    after = blob.get_blob_properties()
    assert blob.download_blob().readall() == b"new"
    assert (after.metadata, after.tag_count) == ({}, None)
    assert settings_of(after) == {**{name: None for name in SETTINGS}, "content_type": "application/octet-stream"}
    # Recordings of the service show both: a new time of creation, and the one that the blob had.
    assert before.creation_time <= after.creation_time <= after.last_modified
    assert after.etag != before.etag


@pytest.mark.scenario("blob-overwrite")
def test_an_upload_that_must_not_replace_is_refused(container):
    blob = container.upload_blob("blob", b"first")
    with refused(409, "BlobAlreadyExists"):
        blob.upload_blob(b"second")
    with blobs.service_client(max_single_put_size=MIB, max_block_size=MIB) as in_blocks:
        with refused(409, "BlobAlreadyExists"):
            in_blocks.get_blob_client(container.container_name, "blob").upload_blob(content(2 * MIB))
    with pytest.raises(ResourceExistsError):
        container.upload_blob("blob", b"third")
    assert blob.download_blob().readall() == b"first"


@pytest.mark.scenario("blob-overwrite")
def test_a_blob_of_another_type_is_replaced_whole(container):
    blob = container.get_blob_client("blob")
    blob.create_append_blob()
    blob.append_block(b"appended")
    blob.upload_blob(b"block blob", overwrite=True)
    assert blob.get_blob_properties().blob_type == BlobType.BLOCKBLOB
    with refused(409, "InvalidBlobType"):
        blob.append_block(b"more")
    with refused(409, "InvalidBlobType"):
        blob.upload_page(content(512), 0, 512)
    assert blob.download_blob().readall() == b"block blob"


@pytest.mark.scenario("blob-tags")
def test_tags_are_set_replaced_and_cleared(container):
    tags = {"project": "larimar", "with space": "a+b-c./:=_", "empty": ""}
    blob = container.upload_blob("blob", b"content", tags=tags)
    before = blob.get_blob_properties()
    assert before.tag_count == 3
    assert blob.get_blob_tags() == tags
    blob.set_blob_tags({"only": "one"})
    after = blob.get_blob_properties()
    assert blob.get_blob_tags() == {"only": "one"}
    assert (after.tag_count, after.etag, after.last_modified) == (1, before.etag, before.last_modified)
    blob.set_blob_tags()
    assert blob.get_blob_tags() == {}
    assert blob.get_blob_properties().tag_count is None


@pytest.mark.scenario("blob-tags")
@pytest.mark.parametrize("tags", [
    {f"key{n}": "v" for n in range(11)}, {"k" * 129: "v"}, {"k": "v" * 257}, {"k!": "v"}, {"": "v"},
], ids=["eleven", "long key", "long value", "bad character", "empty key"])
def test_wrong_tags_are_refused_and_change_nothing(container, tags):
    blob = container.upload_blob("blob", b"content", tags={"kept": "yes"})
    with pytest.raises(HttpResponseError) as caught:
        blob.set_blob_tags(tags)
    assert caught.value.status_code == 400, error_code(caught.value)
    assert blob.get_blob_tags() == {"kept": "yes"}
