"""Containers themselves: connecting, creating, listing, metadata, leases."""

import uuid
from datetime import timedelta

import pytest
from azure.storage.blob import BlobClient, BlobServiceClient

import blobs
from blobs import names
from target import ACCOUNT, KEY, LONG_AGO, OPTIONS, fresh_name, refused


@pytest.mark.scenario("blob-connection-string")
def test_a_connection_string_connects(container):
    text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={blobs.ENDPOINT};"
    service = BlobServiceClient.from_connection_string(text, **OPTIONS)
    assert container.container_name in names(service.list_containers())
    BlobClient.from_connection_string(text, container.container_name, "blob", **OPTIONS).upload_blob(b"content")
    assert container.download_blob("blob").readall() == b"content"


@pytest.mark.scenario("container-lifecycle")
def test_a_container_is_created_listed_and_deleted(blob_service):
    name = fresh_name()
    container = blob_service.create_container(name, metadata={"colour": "red"})
    with refused(409, "ContainerAlreadyExists"):
        blob_service.create_container(name)
    assert name in names(blob_service.list_containers())
    assert container.exists()

    properties = container.get_container_properties()
    assert (properties.name, properties.metadata, properties.public_access) == (name, {"colour": "red"}, None)
    assert properties.etag.strip('"').startswith("0x")
    assert (properties.lease.status, properties.lease.state) == ("unlocked", "available")
    assert (properties.has_immutability_policy, properties.has_legal_hold) == (False, False)

    container.upload_blob("blob", b"content")
    assert container.get_container_properties().etag == properties.etag
    container.delete_container()
    assert not container.exists()
    assert name not in names(blob_service.list_containers())
    for call in (container.delete_container, container.get_container_properties, lambda: list(container.list_blobs()),
                 lambda: container.upload_blob("blob", b""), lambda: container.download_blob("blob")):
        with refused(404, "ContainerNotFound"):
            call()

    container.create_container()
    assert list(container.list_blobs()) == []
    container.delete_container()


@pytest.mark.scenario("container-lifecycle")
@pytest.mark.parametrize("name, code", [
    ("Upper", "InvalidResourceName"),
    ("under_score", "InvalidResourceName"),
    ("two--dashes", "InvalidResourceName"),
    ("dash-", "InvalidResourceName"),
    ("ab", "OutOfRangeInput"),
    ("a" * 64, "OutOfRangeInput"),
])
def test_names_that_are_no_container_names_are_refused(blob_service, name, code):
    with refused(400, code):
        blob_service.create_container(name)


@pytest.mark.scenario("container-lifecycle")
def test_a_container_is_deleted_under_conditions(container):
    modified = container.get_container_properties().last_modified
    with refused(412, "ConditionNotMet"):
        container.delete_container(if_unmodified_since=LONG_AGO)
    with refused(412, "ConditionNotMet"):
        container.delete_container(if_modified_since=modified + timedelta(hours=1))
    container.delete_container(if_unmodified_since=modified)
    assert not container.exists()


@pytest.mark.scenario("container-list")
def test_containers_are_listed_by_prefix_with_metadata(blob_service, fresh_containers):
    prefix = fresh_name("list")[:16]
    made = sorted(fresh_containers(prefix, metadata={"number": str(n)}).container_name for n in range(3))
    fresh_containers()
    listed = list(blob_service.list_containers(name_starts_with=prefix))
    assert names(listed) == made
    assert all(not item.metadata for item in listed)
    one = listed[0]
    properties = blob_service.get_container_client(one.name).get_container_properties()
    assert one.etag.strip('"') == properties.etag.strip('"')
    assert one.last_modified == properties.last_modified
    assert (one.lease.status, one.lease.state, one.public_access) == ("unlocked", "available", None)

    listed = blob_service.list_containers(name_starts_with=prefix, include_metadata=True)
    assert sorted(item.metadata["number"] for item in listed) == ["0", "1", "2"]
    assert list(blob_service.list_containers(name_starts_with=fresh_name("none"))) == []


@pytest.mark.scenario("container-list")
def test_containers_are_listed_in_pages_that_a_marker_resumes(blob_service, fresh_containers):
    prefix = fresh_name("page")[:16]
    made = sorted(fresh_containers(prefix).container_name for _ in range(5))
    pages = blob_service.list_containers(name_starts_with=prefix, results_per_page=2).by_page()
    assert names(next(pages)) == made[:2]
    with blobs.service_client() as other:
        rest = other.list_containers(name_starts_with=prefix, results_per_page=2).by_page(pages.continuation_token)
        assert [names(page) for page in rest] == [made[2:4], made[4:]]


@pytest.mark.scenario("container-metadata")
def test_metadata_is_set_replaced_and_cleared(container):
    before = container.get_container_properties()
    assert before.metadata == {}
    container.set_container_metadata({"one": "1", "two": "with spaces, and = signs"})
    after = container.get_container_properties()
    assert after.metadata == {"one": "1", "two": "with spaces, and = signs"}
    assert after.etag != before.etag
    container.set_container_metadata({"three": "3"})
    assert container.get_container_properties().metadata == {"three": "3"}
    with refused(412, "ConditionNotMet"):
        container.set_container_metadata({"x": "y"}, if_modified_since=after.last_modified + timedelta(hours=1))
    with refused(400, "InvalidMetadata"):
        container.set_container_metadata({"no-identifier": "x"})
    with refused(400, "MetadataTooLarge"):
        container.set_container_metadata({"large": "x" * 8200})
    assert container.get_container_properties().metadata == {"three": "3"}
    container.set_container_metadata()
    assert container.get_container_properties().metadata == {}


@pytest.mark.scenario("container-lease")
def test_a_lease_is_acquired_renewed_changed_and_released(container):
    etag = container.get_container_properties().etag
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    lease = container.acquire_lease(lease_duration=60, lease_id=first)
    assert lease.id == first
    properties = container.get_container_properties()
    assert (properties.lease.status, properties.lease.state, properties.lease.duration) == ("locked", "leased", "fixed")
    with refused(409, "LeaseAlreadyPresent"):
        container.acquire_lease()

    lease.renew()
    lease.change(second)
    assert lease.id == second
    with refused(412, "LeaseIdMismatchWithContainerOperation"):
        container.get_container_properties(lease=first)
    assert container.get_container_properties(lease=second).lease.state == "leased"
    lease.release()
    properties = container.get_container_properties()
    assert (properties.lease.status, properties.lease.state) == ("unlocked", "available")
    assert properties.etag == etag
    with refused(412, "LeaseNotPresentWithContainerOperation"):
        container.get_container_properties(lease=second)


@pytest.mark.scenario("container-lease")
def test_a_leased_container_is_deleted_with_its_id_only(container):
    lease = container.acquire_lease()
    assert container.get_container_properties().lease.duration == "infinite"
    # A container's lease guards its deletion, not its blobs.
    container.upload_blob("blob", b"content")
    container.set_container_metadata({"free": "too"})
    with refused(412, "LeaseIdMissing"):
        container.delete_container()
    with refused(412, "LeaseIdMismatchWithContainerOperation"):
        container.delete_container(lease=str(uuid.uuid4()))
    container.delete_container(lease=lease)
    assert not container.exists()


@pytest.mark.scenario("container-lease")
def test_a_broken_lease_lets_the_container_go(container):
    lease = container.acquire_lease(lease_duration=60)
    assert 0 < lease.break_lease(lease_break_period=30) <= 30
    assert container.get_container_properties().lease.state == "breaking"
    with refused(409, "LeaseIsBreakingAndCannotBeAcquired"):
        container.acquire_lease(lease_id=lease.id)
    assert lease.break_lease(lease_break_period=0) == 0
    assert container.get_container_properties().lease.state == "broken"
    with refused(409, "LeaseIsBrokenAndCannotBeRenewed"):
        lease.renew()
    container.delete_container()
