"""Append blobs and page blobs."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobType, ContentSettings, SequenceNumberAction

from blobs import content
from target import refused

KIB, MIB = 1024, 1024 * 1024
PAGE = 512


@pytest.fixture
def append(container):
    blob = container.get_blob_client("append")
    blob.create_append_blob(ContentSettings(content_type="text/plain"), metadata={"a": "b"})
    return blob


@pytest.mark.scenario("append-blob")
def test_blocks_are_appended_and_counted(append):
    properties = append.get_blob_properties()
    assert (properties.blob_type, properties.size) == (BlobType.APPENDBLOB, 0)
    assert properties.append_blob_committed_block_count == 0
    first = append.append_block(b"first, ")
    second = append.append_block(b"second")
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    assert (second["blob_append_offset"], second["blob_committed_block_count"]) == ("7", 2)
    assert first["etag"] != second["etag"]
    properties = append.get_blob_properties()
    assert (properties.size, properties.append_blob_committed_block_count, properties.etag) == (13, 2, second["etag"])
    assert (properties.metadata, properties.content_settings.content_type) == ({"a": "b"}, "text/plain")
    assert append.download_blob().readall() == b"first, second"
    assert append.download_blob(5, 4).readall() == b", se"


@pytest.mark.scenario("append-blob")
def test_appends_may_depend_on_position_and_size(append):
    append.append_block(b"12345", appendpos_condition=0)
    append.append_block(b"67890", appendpos_condition=5)
    with refused(412, "AppendPositionConditionNotMet"):
        append.append_block(b"again", appendpos_condition=5)
    append.append_block(b"12", maxsize_condition=12)
    with refused(412, "MaxBlobSizeConditionNotMet"):
        append.append_block(b"3", maxsize_condition=12)
    with refused(412, "ConditionNotMet"):
        append.append_block(b"3", etag='"0x8D0000000000000"', match_condition=MatchConditions.IfNotModified)
    assert append.download_blob().readall() == b"123456789012"


@pytest.mark.scenario("append-blob")
def test_an_upload_appends_in_blocks(container):
    blob = container.get_blob_client("uploaded")
    data = content(9 * MIB)
    blob.upload_blob(data, blob_type=BlobType.APPENDBLOB)
    blob.upload_blob(b"more", blob_type=BlobType.APPENDBLOB, overwrite=False)
    assert blob.download_blob().readall() == data + b"more"
    blob.upload_blob(b"anew", blob_type=BlobType.APPENDBLOB, overwrite=True)
    assert blob.download_blob().readall() == b"anew"


@pytest.mark.scenario("append-blob")
def test_only_append_blobs_are_appended_to(container):
    with refused(404, "BlobNotFound"):
        container.get_blob_client("missing").append_block(b"content")
    block = container.upload_blob("block", b"content")
    with refused(409, "InvalidBlobType"):
        block.append_block(b"more")
    append = container.get_blob_client("append")
    append.create_append_blob()
    with refused(409, "InvalidBlobType"):
        append.stage_block("a", b"content")
    with refused(409, "BlobAlreadyExists"):
        append.create_append_blob(match_condition=MatchConditions.IfMissing)


@pytest.fixture
def pages(container):
    blob = container.get_blob_client("pages")
    blob.create_page_blob(8 * PAGE, metadata={"a": "b"})
    return blob


def ranges(blob, **options):
    filled, cleared = blob.get_page_ranges(**options)
    return [(item["start"], item["end"]) for item in filled], [(item["start"], item["end"]) for item in cleared]


@pytest.mark.scenario("page-blob")
def test_pages_are_written_cleared_and_read(pages):
    properties = pages.get_blob_properties()
    assert (properties.blob_type, properties.size) == (BlobType.PAGEBLOB, 8 * PAGE)
    assert (properties.page_blob_sequence_number, properties.metadata) == (0, {"a": "b"})
    assert pages.download_blob().readall() == bytes(8 * PAGE)
    assert ranges(pages) == ([], [])

    made = pages.upload_page(content(3 * PAGE), PAGE, 3 * PAGE)
    assert made["etag"] != properties.etag
    pages.upload_page(content(PAGE, 1), 6 * PAGE, PAGE)
    assert pages.download_blob().readall() == b"".join(
        [bytes(PAGE), content(3 * PAGE), bytes(2 * PAGE), content(PAGE, 1), bytes(PAGE)])
    assert ranges(pages) == ([(PAGE, 4 * PAGE - 1), (6 * PAGE, 7 * PAGE - 1)], [])

    pages.clear_page(2 * PAGE, PAGE)
    assert pages.download_blob(2 * PAGE, PAGE).readall() == bytes(PAGE)
    assert pages.download_blob(PAGE, PAGE).readall() == content(3 * PAGE)[:PAGE]
    assert ranges(pages)[0] == [(PAGE, 2 * PAGE - 1), (3 * PAGE, 4 * PAGE - 1), (6 * PAGE, 7 * PAGE - 1)]
    assert ranges(pages, offset=3 * PAGE, length=PAGE)[0] == [(3 * PAGE, 4 * PAGE - 1)]
    listed = [(item.start, item.end, item.cleared) for item in pages.list_page_ranges()]
    assert listed == [(PAGE, 2 * PAGE - 1, False), (3 * PAGE, 4 * PAGE - 1, False), (6 * PAGE, 7 * PAGE - 1, False)]


@pytest.mark.scenario("page-blob")
def test_pages_overlap_and_the_last_one_counts(pages):
    pages.upload_page(content(4 * PAGE, 1), 0, 4 * PAGE)
    pages.upload_page(content(4 * PAGE, 2), 2 * PAGE, 4 * PAGE)
    pages.upload_page(content(PAGE, 3), PAGE, PAGE)
    assert pages.download_blob().readall() == b"".join(
        [content(4 * PAGE, 1)[:PAGE], content(PAGE, 3), content(4 * PAGE, 2), bytes(2 * PAGE)])
    assert ranges(pages)[0] == [(0, 6 * PAGE - 1)]


@pytest.mark.scenario("page-blob")
def test_misaligned_and_outlying_writes_are_refused(container, pages):
    # The SDK refuses misaligned pages itself.
    with pytest.raises(ValueError):
        pages.upload_page(content(PAGE), 1, PAGE)
    with pytest.raises(ValueError):
        pages.upload_page(content(PAGE), 0, 100)
    with refused(416, "InvalidPageRange"):
        pages.upload_page(content(PAGE), 8 * PAGE, PAGE)
    with refused(416, "InvalidPageRange"):
        pages.clear_page(7 * PAGE, 2 * PAGE)
    with refused(400, "InvalidHeaderValue"):
        container.get_blob_client("odd").create_page_blob(100)
    with refused(409, "InvalidBlobType"):
        container.upload_blob("block", b"content").upload_page(content(PAGE), 0, PAGE)
    with refused(404, "BlobNotFound"):
        container.get_blob_client("missing").upload_page(content(PAGE), 0, PAGE)
    assert pages.download_blob().readall() == bytes(8 * PAGE)


@pytest.mark.scenario("page-blob")
def test_a_large_sparse_blob_is_uploaded(container):
    data = bytes(5 * MIB) + content(MIB) + bytes(2 * MIB)
    blob = container.get_blob_client("sparse")
    blob.upload_blob(data, blob_type=BlobType.PAGEBLOB)
    assert blob.get_blob_properties().size == len(data)
    assert blob.download_blob().readall() == data


@pytest.mark.scenario("page-blob-resize")
def test_a_page_blob_is_resized(pages):
    pages.upload_page(content(8 * PAGE), 0, 8 * PAGE)
    before = pages.get_blob_properties()
    pages.resize_blob(4 * PAGE)
    assert pages.download_blob().readall() == content(8 * PAGE)[:4 * PAGE]
    pages.resize_blob(6 * PAGE)
    assert pages.download_blob().readall() == content(8 * PAGE)[:4 * PAGE] + bytes(2 * PAGE)
    after = pages.get_blob_properties()
    assert (after.size, after.metadata) == (6 * PAGE, {"a": "b"})
    assert after.etag != before.etag
    assert ranges(pages)[0] == [(0, 4 * PAGE - 1)]
    with pytest.raises(HttpResponseError) as caught:
        pages.resize_blob(100)
    assert caught.value.status_code == 400


@pytest.mark.scenario("page-blob-resize")
def test_sequence_numbers_and_their_conditions(pages):
    assert pages.set_sequence_number(SequenceNumberAction.Update, "7")["blob_sequence_number"] == 7
    assert pages.set_sequence_number(SequenceNumberAction.Max, "5")["blob_sequence_number"] == 7
    assert pages.set_sequence_number(SequenceNumberAction.Max, "9")["blob_sequence_number"] == 9
    assert pages.set_sequence_number(SequenceNumberAction.Increment)["blob_sequence_number"] == 10
    assert pages.get_blob_properties().page_blob_sequence_number == 10
    data = content(PAGE)
    pages.upload_page(data, 0, PAGE, if_sequence_number_eq=10)
    pages.upload_page(data, 0, PAGE, if_sequence_number_lte=10)
    pages.upload_page(data, 0, PAGE, if_sequence_number_lt=11)
    for unmet in ({"if_sequence_number_eq": 9}, {"if_sequence_number_lte": 9}, {"if_sequence_number_lt": 10}):
        with refused(412, "SequenceNumberConditionNotMet"):
            pages.upload_page(data, PAGE, PAGE, **unmet)
        with refused(412, "SequenceNumberConditionNotMet"):
            pages.clear_page(0, PAGE, **unmet)
    assert ranges(pages)[0] == [(0, PAGE - 1)]
