"""Blobs found by tags, conditions on tags, sealed append blobs, incremental copies, the archive."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobType, RehydratePriority, StandardBlobTier

from blobs import content
from target import eventually, refused

PAGE = 512


@pytest.mark.scenario("blob-find-by-tags")
def test_blobs_are_found_by_tags_in_the_account_and_in_a_container(blob_service, fresh_containers):
    one, two = fresh_containers(), fresh_containers()
    project = f"p{one.container_name[-12:]}"
    one.upload_blob("a", b"x", tags={"project": project, "rank": "1"})
    one.upload_blob("b", b"x", tags={"project": project, "rank": "2"})
    one.upload_blob("c", b"x", tags={"project": "other", "rank": "2"})
    two.upload_blob("d", b"x", tags={"project": project, "rank": "3"})

    def found(client, expression):
        return sorted((blob.container_name, blob.name) for blob in client.find_blobs_by_tags(expression))

    all_three = sorted([(one.container_name, "a"), (one.container_name, "b"), (two.container_name, "d")])
    assert found(blob_service, f"\"project\"='{project}'") == all_three
    second_and_third = [pair for pair in all_three if pair[1] != "a"]
    assert found(blob_service, f"\"project\"='{project}' AND \"rank\">='2'") == second_and_third
    assert found(blob_service, f"@container='{two.container_name}' AND \"project\"='{project}'") == [(two.container_name, "d")]
    assert found(one, f"\"project\"='{project}'") == [(one.container_name, "a"), (one.container_name, "b")]
    pages = list(one.find_blobs_by_tags(f"\"project\"='{project}'", results_per_page=1).by_page())
    assert [blob.name for page in pages for blob in page] == ["a", "b"]
    one.get_blob_client("a").set_blob_tags({"project": "other"})
    one.get_blob_client("b").delete_blob()
    assert found(one, f"\"project\"='{project}'") == []
    with pytest.raises(HttpResponseError) as caught:
        found(blob_service, "project=")
    assert caught.value.status_code == 400


@pytest.mark.scenario("blob-tag-conditions")
def test_reads_and_writes_may_depend_on_tags(container):
    blob = container.upload_blob("blob", b"content", tags={"state": "draft"})
    draft, final = "\"state\"='draft'", "\"state\"='final'"
    assert blob.download_blob(if_tags_match_condition=draft).readall() == b"content"
    with refused(412, "ConditionNotMet"):
        blob.download_blob(if_tags_match_condition=final)
    with refused(412, "ConditionNotMet"):
        blob.upload_blob(b"other", overwrite=True, if_tags_match_condition=final)
    with refused(412, "ConditionNotMet"):
        blob.set_blob_metadata({"a": "b"}, if_tags_match_condition=final)
    blob.set_blob_tags({"state": "final"}, if_tags_match_condition=draft)
    with refused(412, "ConditionNotMet"):
        blob.delete_blob(if_tags_match_condition=draft)
    blob.delete_blob(if_tags_match_condition=final)
    assert not blob.exists()


@pytest.mark.scenario("append-seal")
def test_a_sealed_append_blob_is_read_and_not_appended_to(container):
    blob = container.get_blob_client("append")
    blob.upload_blob(b"one,", blob_type=BlobType.APPENDBLOB)
    blob.append_block(b"two")
    assert not blob.get_blob_properties().is_append_blob_sealed
    assert blob.seal_append_blob()["blob_sealed"]
    with refused(409, "BlobIsSealed"):
        blob.append_block(b"three")
    assert blob.get_blob_properties().is_append_blob_sealed
    assert blob.download_blob().readall() == b"one,two"
    blob.seal_append_blob()
    blob.delete_blob()


@pytest.mark.scenario("incremental-copy")
def test_snapshots_of_a_page_blob_are_copied_incrementally(container):
    source, backup = container.get_blob_client("pages"), container.get_blob_client("backup")
    source.create_page_blob(4 * PAGE)

    def copied(data, page):
        source.upload_page(data, page * PAGE, PAGE)
        snapshot = source.create_snapshot()["snapshot"]
        backup.start_copy_from_url(f"{source.url}?snapshot={snapshot}", incremental_copy=True)
        properties = eventually(lambda: done(backup.get_blob_properties()))
        assert properties.copy.incremental_copy
        return container.get_blob_client("backup", snapshot=properties.copy.destination_snapshot)

    def done(properties):
        return properties if properties.copy.status == "success" else None

    first, second = content(PAGE, seed=1), content(PAGE, seed=2)
    earlier = copied(first, 0)
    later = copied(second, 2)
    assert earlier.download_blob().readall() == first + bytes(3 * PAGE)
    assert later.download_blob().readall() == first + bytes(PAGE) + second + bytes(PAGE)
    with pytest.raises(HttpResponseError) as caught:
        backup.start_copy_from_url(source.url, incremental_copy=True)
    assert caught.value.status_code == 409


@pytest.mark.scenario("archive-rehydrate")
def test_a_blob_of_the_archive_is_read_after_it_is_rehydrated(container):
    blob = container.upload_blob("blob", b"content")
    blob.set_standard_blob_tier(StandardBlobTier.ARCHIVE)
    assert blob.get_blob_properties().blob_tier == "Archive"
    with refused(409, "BlobArchived"):
        blob.download_blob()
    blob.set_standard_blob_tier(StandardBlobTier.HOT, rehydrate_priority=RehydratePriority.high)
    properties = blob.get_blob_properties()
    assert properties.blob_tier == "Hot" or properties.archive_status == "rehydrate-pending-to-hot"
    eventually(lambda: blob.get_blob_properties().blob_tier == "Hot")
    assert blob.get_blob_properties().archive_status is None
    assert blob.download_blob().readall() == b"content"
