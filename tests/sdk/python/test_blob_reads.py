"""Reading blobs: conditions, ranges, checksums, parallel transfers."""

import hashlib
import io
from datetime import timedelta

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ContentSettings

import blobs
from blobs import content, md5
from target import refused

KIB, MIB = 1024, 1024 * 1024
OTHER = '"0x8D0000000000000"'


@pytest.fixture
def blob(container):
    return container.upload_blob("blob", content(10 * KIB))


def if_match(etag):
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def if_none_match(etag):
    return {"etag": etag, "match_condition": MatchConditions.IfModified}


@pytest.mark.scenario("blob-conditions")
def test_reads_under_conditions(blob):
    properties = blob.get_blob_properties()
    etag, modified = properties.etag, properties.last_modified
    later, earlier = modified + timedelta(hours=1), modified - timedelta(hours=1)
    reads = [lambda **options: blob.download_blob(**options), lambda **options: blob.get_blob_properties(**options)]
    for read in reads:
        for met in (if_match(etag), if_none_match(OTHER), {"if_modified_since": earlier},
                    {"if_unmodified_since": later}, {"if_unmodified_since": modified},
                    {**if_match(etag), "if_unmodified_since": later}):
            read(**met)
        for unmet in (if_match(OTHER), {"if_unmodified_since": earlier}):
            with refused(412, "ConditionNotMet"):
                read(**unmet)
        for unmet in (if_none_match(etag), {"if_modified_since": modified}, {"if_modified_since": later}):
            with pytest.raises(HttpResponseError) as caught:
                read(**unmet)
            assert caught.value.status_code == 304


@pytest.mark.scenario("blob-conditions")
def test_writes_under_conditions(blob):
    properties = blob.get_blob_properties()
    later, earlier = properties.last_modified + timedelta(hours=1), properties.last_modified - timedelta(hours=1)
    writes = [
        lambda **options: blob.upload_blob(b"new", overwrite=True, **options),
        lambda **options: blob.set_blob_metadata({"a": "b"}, **options),
        lambda **options: blob.commit_block_list([], **options),
        lambda **options: blob.create_snapshot(**options),
        lambda **options: blob.delete_blob(**options),
    ]
    for write in writes:
        etag = blob.get_blob_properties().etag
        for unmet in (if_match(OTHER), if_none_match(etag), {"if_modified_since": later},
                      {"if_unmodified_since": earlier}):
            with refused(412, "ConditionNotMet"):
                write(**unmet)
        if write is writes[-1]:
            write(**if_match(etag), delete_snapshots="include")
        else:
            write(**if_match(etag), if_unmodified_since=later)
    assert not blob.exists()


@pytest.mark.scenario("blob-conditions")
def test_conditions_on_a_missing_blob(container):
    blob = container.get_blob_client("missing")
    with refused(412, "ConditionNotMet"):
        blob.upload_blob(b"new", overwrite=True, **if_match(OTHER))
    with refused(404, "BlobNotFound"):
        blob.download_blob(**if_none_match(OTHER))
    blob.upload_blob(b"new", match_condition=MatchConditions.IfMissing)
    with refused(409, "BlobAlreadyExists"):
        blob.upload_blob(b"again", match_condition=MatchConditions.IfMissing)
    assert blob.download_blob().readall() == b"new"


@pytest.mark.scenario("blob-ranges")
def test_ranges_are_read(blob):
    data = content(10 * KIB)
    for offset, length in ((0, 1), (0, 10 * KIB), (5, 100), (10 * KIB - 1, 1), (10 * KIB - 10, 100), (0, 100 * KIB)):
        got = blob.download_blob(offset, length)
        assert got.readall() == data[offset:offset + length], (offset, length)
        assert got.size == len(data[offset:offset + length])
    assert blob.download_blob(9000).readall() == data[9000:]


@pytest.mark.scenario("blob-ranges")
def test_a_range_past_the_end_is_refused(container, blob):
    for offset, length in ((10 * KIB, 1), (10 * KIB, None), (1 << 40, 1)):
        with refused(416, "InvalidRange") as caught:
            blob.download_blob(offset, length)
        assert caught.value.response.headers["Content-Range"] == f"bytes */{10 * KIB}"
    empty = container.upload_blob("empty", b"")
    with refused(416, "InvalidRange"):
        empty.download_blob(0, 10)
    assert empty.download_blob().readall() == b""


@pytest.mark.scenario("blob-ranges")
def test_a_changed_blob_does_not_mix_with_the_old_one(container, blob):
    with blobs.service_client(max_single_get_size=KIB, max_chunk_get_size=KIB) as client:
        reader = client.get_blob_client(container.container_name, "blob").download_blob()
        blob.upload_blob(content(10 * KIB, 1), overwrite=True)
        with refused(412, "ConditionNotMet"):
            reader.readall()


@pytest.mark.scenario("blob-checksums")
def test_a_blobs_md5_is_computed_or_taken_as_given(container):
    data = content(3 * KIB)
    made = container.get_blob_client("blob").upload_blob(data)
    assert bytes(made["content_md5"]) == md5(data)
    blob = container.get_blob_client("blob")
    assert bytes(blob.download_blob().properties.content_settings.content_md5) == md5(data)
    # Blocks have no MD5 of the whole unless the client gives one.
    with blobs.service_client(max_single_put_size=KIB, max_block_size=KIB) as client:
        in_blocks = client.get_blob_client(container.container_name, "blocks")
        in_blocks.upload_blob(data)
        assert in_blocks.get_blob_properties().content_settings.content_md5 is None
        settings = ContentSettings(content_md5=bytearray(md5(data)))
        in_blocks.upload_blob(data, overwrite=True, content_settings=settings)
        assert bytes(in_blocks.get_blob_properties().content_settings.content_md5) == md5(data)


@pytest.mark.scenario("blob-checksums")
def test_content_is_validated_on_the_way(container):
    data = content(3 * MIB)
    with blobs.service_client(
            max_single_put_size=MIB, max_block_size=MIB, max_single_get_size=MIB, max_chunk_get_size=MIB) as client:
        for blob in (container.get_blob_client("whole"), client.get_blob_client(container.container_name, "parts")):
            blob.upload_blob(data, validate_content=True)
            assert blob.download_blob(validate_content=True).readall() == data
            assert blob.download_blob(100, 5000, validate_content=True).readall() == data[100:5100]


@pytest.mark.scenario("blob-checksums")
def test_the_md5_of_a_range(blob):
    answers = []
    blob.download_blob(
        10, 1000, validate_content=True, raw_response_hook=lambda response: answers.append(response.http_response))
    headers = answers[-1].headers
    assert headers["Content-MD5"] == blobs.base64_of(md5(content(10 * KIB)[10:1010]))
    assert headers["x-ms-blob-content-md5"] == blobs.base64_of(md5(content(10 * KIB)))
    blob.download_blob(10, 1000, raw_response_hook=lambda response: answers.append(response.http_response))
    assert "Content-MD5" not in answers[-1].headers


@pytest.mark.scenario("blob-checksums")
def test_a_wrong_md5_is_refused_and_nothing_is_stored(container):
    wrong = {"Content-MD5": blobs.base64_of(md5(b"other"))}
    blob = container.get_blob_client("blob")
    writes = [
        lambda: blob.upload_blob(b"content", headers=wrong),
        lambda: blob.stage_block("AAAA", b"content", headers=wrong),
    ]
    for write in writes:
        with refused(400, "Md5Mismatch"):
            write()
    with refused(400, "InvalidMd5"):
        blob.upload_blob(b"content", headers={"Content-MD5": "nonsense"})
    assert not blob.exists()
    assert list(container.list_blobs(include="uncommittedblobs")) == []
    blob.create_append_blob()
    with refused(400, "Md5Mismatch"):
        blob.append_block(b"content", headers=wrong)
    assert blob.get_blob_properties().size == 0


class Pattern(io.RawIOBase):
    """Reads as so many bytes, none of which are kept."""

    def __init__(self, size):
        self.left, self.hash, self.number = size, hashlib.sha256(), 0

    def readable(self):
        return True

    def seekable(self):
        return False

    def read(self, size=-1):
        size = self.left if size < 0 else min(size, self.left)
        parts = [content(MIB, self.number + index) for index in range(-(-size // MIB))]
        self.number += len(parts)
        data = b"".join(parts)[:size]
        self.left -= size
        self.hash.update(data)
        return data


@pytest.mark.scenario("parallel-transfer")
def test_256_mib_go_up_and_down_in_parallel(container, tmp_path):
    size = 256 * MIB
    with blobs.service_client(
            max_single_put_size=MIB, max_block_size=8 * MIB, max_single_get_size=4 * MIB,
            max_chunk_get_size=4 * MIB) as client:
        blob = client.get_blob_client(container.container_name, "large")
        source = Pattern(size)
        blob.upload_blob(source, length=size, max_concurrency=4, validate_content=True)
        properties = blob.get_blob_properties()
        assert properties.size == size
        committed, uncommitted = blob.get_block_list("all")
        assert (len(committed), uncommitted) == (32, [])
        with (tmp_path / "large").open("w+b") as file:
            blob.download_blob(max_concurrency=4, validate_content=True).readinto(file)
            file.seek(0)
            assert hashlib.file_digest(file, "sha256").digest() == source.hash.digest()
        blob.delete_blob()
