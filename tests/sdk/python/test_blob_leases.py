"""Leases of blobs."""

import uuid

import pytest

from target import eventually, refused


@pytest.fixture
def blob(container):
    blob = container.upload_blob("blob", b"content")
    yield blob
    # A container with leased blobs is deleted all the same; nothing to undo.


def state(blob):
    lease = blob.get_blob_properties().lease
    return lease.status, lease.state, lease.duration


def new_id():
    return str(uuid.uuid4())


@pytest.mark.scenario("blob-lease")
def test_a_lease_is_acquired_renewed_changed_and_released(blob):
    before = blob.get_blob_properties()
    first, second = new_id(), new_id()
    lease = blob.acquire_lease(lease_duration=15, lease_id=first)
    assert (lease.id, state(blob)) == (first, ("locked", "leased", "fixed"))
    with refused(409, "LeaseAlreadyPresent"):
        blob.acquire_lease(lease_duration=15)
    # With its own id a lease is acquired again, for as long as the new one says.
    assert blob.acquire_lease(lease_id=first).id == first
    assert state(blob) == ("locked", "leased", "infinite")
    lease.renew()
    lease.change(second)
    assert lease.id == second
    lease.release()
    assert state(blob) == ("unlocked", "available", None)
    after = blob.get_blob_properties()
    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)


@pytest.mark.scenario("blob-lease")
def test_a_leased_blob_is_written_with_its_id_only(blob):
    lease = blob.acquire_lease()
    assert blob.download_blob().readall() == b"content"
    writes = [
        lambda **options: blob.upload_blob(b"new", overwrite=True, **options),
        lambda **options: blob.set_blob_metadata({"a": "b"}, **options),
        lambda **options: blob.set_http_headers(**options),
        lambda **options: blob.stage_block("AAAA", b"block", **options),
        lambda **options: blob.commit_block_list([], **options),
        lambda **options: blob.delete_blob(**options),
    ]
    for write in writes:
        with refused(412, "LeaseIdMissing"):
            write()
        with refused(412, "LeaseIdMismatchWithBlobOperation"):
            write(lease=new_id())
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        blob.download_blob(lease=new_id())
    assert blob.download_blob().readall() == b"content"
    assert blob.download_blob(lease=lease).readall() == b"content"
    blob.create_snapshot()
    for write in writes[:-1]:
        write(lease=lease)
    blob.delete_blob(lease=lease, delete_snapshots="include")
    assert not blob.exists()


@pytest.mark.scenario("blob-lease")
def test_an_id_for_a_blob_without_a_lease_is_refused(blob):
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        blob.set_blob_metadata({"a": "b"}, lease=new_id())
    lease = blob.acquire_lease()
    # The SDK forgets the id of a lease that was released.
    id = lease.id
    lease.release()
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        blob.delete_blob(lease=id)
    lease.id = id
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        lease.renew()
    with refused(409, "LeaseNotPresentWithLeaseOperation"):
        lease.break_lease()


@pytest.mark.scenario("blob-lease")
def test_a_lease_is_broken_at_once_or_after_a_while(blob):
    lease = blob.acquire_lease()
    assert 0 < lease.break_lease(lease_break_period=60) <= 60
    assert state(blob) == ("locked", "breaking", None)
    with refused(409, "LeaseIsBreakingAndCannotBeAcquired"):
        blob.acquire_lease(lease_id=lease.id)
    with refused(409, "LeaseIsBreakingAndCannotBeChanged"):
        lease.change(new_id())
    with refused(412, "LeaseIdMissing"):
        blob.set_blob_metadata({"a": "b"})
    blob.set_blob_metadata({"a": "b"}, lease=lease)
    assert lease.break_lease(lease_break_period=0) == 0
    assert state(blob) == ("unlocked", "broken", None)
    with refused(409, "LeaseIsBrokenAndCannotBeRenewed"):
        lease.renew()
    blob.set_blob_metadata({"free": "again"})
    assert blob.acquire_lease(lease_duration=15).id != lease.id


@pytest.mark.scenario("blob-lease")
def test_a_lease_expires_and_may_be_renewed_or_taken(blob):
    lease = blob.acquire_lease(lease_duration=15)
    eventually(lambda: state(blob) == ("unlocked", "expired", None))
    lease.renew()
    assert state(blob) == ("locked", "leased", "fixed")
    lease.release()


@pytest.mark.scenario("blob-lease")
def test_wrong_ids_and_durations_are_refused(blob):
    for duration in (0, 14, 61, -2):
        with refused(400, "InvalidHeaderValue"):
            blob.acquire_lease(lease_duration=duration)
    with refused(400, "InvalidHeaderValue"):
        blob.acquire_lease(lease_id="no guid")
    lease = blob.acquire_lease()
    with refused(400, "InvalidHeaderValue"):
        lease.break_lease(lease_break_period=61)
    lease.id = new_id()
    for call in (lease.renew, lease.release, lambda: lease.change(new_id())):
        with refused(409, "LeaseIdMismatchWithLeaseOperation"):
            call()
    assert state(blob) == ("locked", "leased", "infinite")
