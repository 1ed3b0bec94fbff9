"""Who may do what with blobs: keys, public access, shared access signatures, access policies."""

import base64
from datetime import datetime, timezone

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    AccessPolicy, AccountSasPermissions, BlobSasPermissions, ContainerSasPermissions, ResourceTypes, Services,
    generate_account_sas, generate_blob_sas, generate_container_sas,
)

import blobs
from blobs import anonymous_blob_client, anonymous_container_client, names, sas_blob_client, sas_container_client
from target import ACCOUNT, FAR_AHEAD, KEY, LONG_AGO, error_code, fresh_name, refused


@pytest.fixture
def blob(container):
    return container.upload_blob("folder/blob", b"content", metadata={"a": "b"})


@pytest.mark.scenario("blob-bad-signature")
def test_a_wrong_key_is_refused(container, blob):
    wrong = AzureNamedKeyCredential(ACCOUNT, base64.b64encode(b"not the key").decode())
    with blobs.service_client(wrong) as stranger:
        container_of_stranger = stranger.get_container_client(container.container_name)
        blob_of_stranger = container_of_stranger.get_blob_client(blob.blob_name)
        calls = [
            lambda: list(stranger.list_containers()), lambda: list(container_of_stranger.list_blobs()),
            container_of_stranger.delete_container, container_of_stranger.get_container_properties,
            blob_of_stranger.download_blob, blob_of_stranger.get_blob_properties, blob_of_stranger.delete_blob,
            lambda: blob_of_stranger.upload_blob(b"new", overwrite=True),
            lambda: blob_of_stranger.stage_block("AAAA", b"block"),
        ]
        for call in calls:
            with refused(403, "AuthenticationFailed"):
                call()
    assert blob.download_blob().readall() == b"content"


@pytest.mark.scenario("public-access")
def test_a_private_container_is_closed(container, blob):
    stranger = anonymous_container_client(container.container_name)
    for call in (lambda: list(stranger.list_blobs()), lambda: stranger.download_blob(blob.blob_name),
                 lambda: stranger.upload_blob("new", b"")):
        with pytest.raises(HttpResponseError) as caught:
            call()
        assert caught.value.status_code in (401, 403, 404)


@pytest.mark.scenario("public-access")
def test_public_blobs_are_read_and_not_listed(container, blob):
    container.set_container_access_policy({}, public_access="blob")
    assert container.get_container_properties().public_access == "blob"
    stranger = anonymous_blob_client(container.container_name, blob.blob_name)
    assert stranger.download_blob().readall() == b"content"
    assert stranger.get_blob_properties().metadata == {"a": "b"}
    for call in (lambda: list(anonymous_container_client(container.container_name).list_blobs()),
                 stranger.delete_blob, lambda: stranger.upload_blob(b"new", overwrite=True)):
        with pytest.raises(HttpResponseError) as caught:
            call()
        assert caught.value.status_code in (401, 403, 404)


@pytest.mark.scenario("public-access")
def test_a_public_container_is_listed_until_it_is_closed(blob_service, fresh_containers):
    container = fresh_containers(public_access="container")
    container.upload_blob("blob", b"content")
    stranger = anonymous_container_client(container.container_name)
    assert names(stranger.list_blobs()) == ["blob"]
    assert stranger.get_container_properties().public_access == "container"
    assert stranger.download_blob("blob").readall() == b"content"
    [listed] = blob_service.list_containers(name_starts_with=container.container_name)
    assert listed.public_access == "container"
    with pytest.raises(HttpResponseError):
        stranger.upload_blob("new", b"")

    container.set_container_access_policy({})
    assert container.get_container_properties().public_access is None
    with pytest.raises(HttpResponseError):
        list(stranger.list_blobs())


def by_blob_sas(blob, permission=None, *, name=None, **options):
    """A client for the blob that holds nothing but a blob SAS; with a permission it lasts, unless told otherwise."""
    if permission is not None:
        options = {"permission": permission, "expiry": FAR_AHEAD, **options}
    token = generate_blob_sas(ACCOUNT, blob.container_name, name or blob.blob_name, account_key=KEY, **options)
    return sas_blob_client(blob.container_name, blob.blob_name, token)


def blob_operations(client):
    """What each operation on a blob that is there needs: any of these permissions."""
    return [
        ("r", lambda: client.download_blob().readall()),
        ("r", lambda: client.get_blob_properties()),
        ("w", lambda: client.set_blob_metadata({"c": "d"})),
        ("w", lambda: client.stage_block("AAAA", b"block")),
        ("t", lambda: client.get_blob_tags()),
        ("t", lambda: client.set_blob_tags({"k": "v"})),
        ("w", lambda: client.upload_blob(b"content", overwrite=True)),
        ("d", lambda: client.delete_blob()),
    ]


@pytest.mark.scenario("blob-sas")
@pytest.mark.parametrize("permission", ["r", "a", "c", "w", "d", "t", "racwdt"])
def test_each_permission_allows_its_operations_only(blob, permission):
    for needed, call in blob_operations(by_blob_sas(blob, permission)):
        if needed in permission:
            call()
        else:
            with pytest.raises(HttpResponseError) as caught:
                call()
            assert caught.value.status_code == 403
            # One that may create, but not replace, is told so.
            assert error_code(caught.value) in ("AuthorizationPermissionMismatch", "UnauthorizedBlobOverwrite")


@pytest.mark.scenario("blob-sas")
def test_create_makes_new_blobs_and_add_appends(container):
    new = container.get_blob_client("new")
    by_blob_sas(new, "c").upload_blob(b"made")
    with refused(403, "UnauthorizedBlobOverwrite"):
        by_blob_sas(new, "c").upload_blob(b"replaced", overwrite=True)
    assert new.download_blob().readall() == b"made"
    append = container.get_blob_client("append")
    by_blob_sas(append, "c").create_append_blob()
    by_blob_sas(append, "a").append_block(b"appended")
    with refused(403, "AuthorizationPermissionMismatch"):
        by_blob_sas(append, "r").append_block(b"more")
    assert append.download_blob().readall() == b"appended"


@pytest.mark.scenario("blob-sas")
def test_time_address_and_protocol_are_checked(blob):
    def read(**options):
        return by_blob_sas(blob, BlobSasPermissions(read=True), **options).download_blob().readall()

    assert read(start=LONG_AGO) == read(ip="127.0.0.1") == read(ip="127.0.0.0-127.0.0.255") == b"content"
    assert read(protocol="https,http") == b"content"
    with refused(403, "AuthenticationFailed"):
        read(expiry=LONG_AGO)
    with refused(403, "AuthenticationFailed"):
        read(start=datetime(2110, 1, 1, tzinfo=timezone.utc))
    with refused(403, "AuthorizationSourceIPMismatch"):
        read(ip="10.1.2.3")
    with refused(403, "AuthorizationProtocolMismatch"):
        read(protocol="https")


@pytest.mark.scenario("blob-sas")
def test_a_blob_sas_is_for_its_blob(container, blob):
    other = container.upload_blob("other", b"other")
    with refused(403, "AuthenticationFailed"):
        by_blob_sas(other, "r", name=blob.blob_name).download_blob()
    token = generate_blob_sas(
        ACCOUNT, container.container_name, blob.blob_name, account_key=KEY, permission="r", expiry=FAR_AHEAD)
    with pytest.raises(HttpResponseError) as caught:
        list(sas_container_client(container.container_name, token).list_blobs())
    assert caught.value.status_code == 403
    with refused(403, "AuthenticationFailed"):
        sas_blob_client(
            container.container_name, blob.blob_name, token.replace("sp=r&", "sp=rw&")).set_blob_metadata({"x": "y"})


@pytest.mark.scenario("blob-sas")
def test_a_sas_overrides_headers_of_the_answer(blob):
    overrides = {
        "content_type": "text/x", "cache_control": "no-store", "content_disposition": "inline; filename=x",
        "content_encoding": "identity", "content_language": "fr",
    }
    settings = by_blob_sas(blob, "r", **overrides).download_blob().properties.content_settings
    assert {name: getattr(settings, name) for name in overrides} == overrides
    assert blob.get_blob_properties().content_settings.content_type == "application/octet-stream"


@pytest.mark.scenario("blob-sas")
def test_a_sas_for_a_snapshot(container, blob):
    snapshot = container.get_blob_client(blob.blob_name, snapshot=blob.create_snapshot()["snapshot"])
    blob.upload_blob(b"newer", overwrite=True)
    token = generate_blob_sas(
        ACCOUNT, container.container_name, blob.blob_name, snapshot=snapshot.snapshot, account_key=KEY,
        permission="r", expiry=FAR_AHEAD)
    client = sas_container_client(container.container_name, token)
    assert client.get_blob_client(blob.blob_name, snapshot.snapshot).download_blob().readall() == b"content"
    with refused(403, "AuthenticationFailed"):
        client.get_blob_client(blob.blob_name).download_blob()


def by_container_sas(container, permission=None, **options):
    if permission is not None:
        options = {"permission": permission, "expiry": FAR_AHEAD, **options}
    token = generate_container_sas(ACCOUNT, container.container_name, account_key=KEY, **options)
    return sas_container_client(container.container_name, token)


@pytest.mark.scenario("container-sas")
@pytest.mark.parametrize("permission", ["r", "l", "w", "d", "racwdl"])
def test_a_container_sas_reaches_blobs_and_their_list(container, blob, permission):
    client = by_container_sas(container, permission)
    operations = [("l", lambda: list(client.list_blobs())), *blob_operations(client.get_blob_client(blob.blob_name))]
    for needed, call in operations:
        if needed in permission:
            call()
        else:
            with refused(403, "AuthorizationPermissionMismatch"):
                call()


@pytest.mark.scenario("container-sas")
def test_a_container_sas_reaches_nothing_else(container, fresh_containers):
    everything = ContainerSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True)
    client = by_container_sas(container, everything)
    client.upload_blob("new", b"content")
    assert names(client.list_blobs()) == ["new"]
    for call in (client.delete_container, client.get_container_access_policy,
                 lambda: client.set_container_metadata({"a": "b"})):
        with refused(403, "AuthorizationFailure"):
            call()
    token = generate_container_sas(
        ACCOUNT, fresh_containers().container_name, account_key=KEY, permission="racwdl", expiry=FAR_AHEAD)
    with refused(403, "AuthenticationFailed"):
        list(sas_container_client(container.container_name, token).list_blobs())
    with refused(403, "AuthenticationFailed"):
        list(by_container_sas(container, "l", expiry=LONG_AGO).list_blobs())


def by_account_sas(types, permission, **options):
    permission = AccountSasPermissions(**{name: True for name in permission.split()})
    options = {"expiry": FAR_AHEAD, "services": Services(blob=True), **options}
    return blobs.sas_service_client(
        generate_account_sas(ACCOUNT, KEY, ResourceTypes.from_string(types), permission, **options))


def account_calls(container):
    """What each operation needs of an account SAS: resource type, any of these permissions."""
    name = container.container_name
    container.upload_blob("blob", b"content", overwrite=True)
    container.get_blob_client("append").create_append_blob()

    def blob(client):
        return client.get_blob_client(name, "blob")

    return [
        ("s", "read", lambda client: client.get_service_properties()),
        ("s", "list", lambda client: list(client.list_containers(name_starts_with=name))),
        ("c", "create write", lambda client: client.create_container(fresh_name("byaccount"))),
        ("c", "read", lambda client: client.get_container_client(name).get_container_properties()),
        ("c", "write", lambda client: client.get_container_client(name).set_container_metadata({"a": "b"})),
        ("c", "list", lambda client: list(client.get_container_client(name).list_blobs())),
        ("o", "read", lambda client: blob(client).download_blob().readall()),
        ("o", "write", lambda client: blob(client).upload_blob(b"content", overwrite=True)),
        ("o", "write", lambda client: blob(client).set_blob_metadata({"a": "b"})),
        ("o", "create write", lambda client: client.get_blob_client(name, fresh_name()).upload_blob(b"new")),
        ("o", "add write", lambda client: client.get_blob_client(name, "append").append_block(b"more")),
        ("o", "delete", lambda client: blob(client).delete_blob()),
    ]


@pytest.fixture
def without_strays(blob_service):
    yield
    for item in blob_service.list_containers(name_starts_with="byaccount"):
        blob_service.delete_container(item.name)


@pytest.mark.scenario("blob-account-sas")
@pytest.mark.parametrize("types", ["s", "c", "o", "sco"])
def test_an_account_sas_is_limited_by_resource_type(container, without_strays, types):
    client = by_account_sas(types, "read write delete list add create update process")
    for needed, _, call in account_calls(container):
        if needed in types:
            call(client)
        else:
            with refused(403, "AuthorizationResourceTypeMismatch"):
                call(client)


@pytest.mark.scenario("blob-account-sas")
@pytest.mark.parametrize("permission", ["read", "write", "delete", "list", "add", "create"])
def test_an_account_sas_is_limited_by_permission(container, without_strays, permission):
    client = by_account_sas("sco", permission)
    for _, needed, call in account_calls(container):
        if permission in needed.split():
            call(client)
        else:
            with pytest.raises(HttpResponseError) as caught:
                call(client)
            assert caught.value.status_code == 403
            assert error_code(caught.value) in ("AuthorizationPermissionMismatch", "UnauthorizedBlobOverwrite")


@pytest.mark.scenario("blob-account-sas")
def test_an_account_sas_is_for_its_services_and_time_and_never_reaches_policies(container):
    with refused(403, "AuthorizationServiceMismatch"):
        list(by_account_sas("sco", "list", services=Services(queue=True)).list_containers())
    assert list(by_account_sas("sco", "list", services=Services(blob=True, queue=True)).list_containers())
    with refused(403, "AuthenticationFailed"):
        list(by_account_sas("sco", "list", expiry=LONG_AGO).list_containers())
    with refused(403, "AuthorizationProtocolMismatch"):
        list(by_account_sas("sco", "list", protocol="https").list_containers())
    with refused(403, "AuthorizationFailure"):
        client = by_account_sas("sco", "read write list")
        client.get_container_client(container.container_name).get_container_access_policy()


def policies_of(container):
    return {item.id: item.access_policy for item in container.get_container_access_policy()["signed_identifiers"]}


@pytest.mark.scenario("container-acl")
def test_policies_are_set_read_back_and_cleared(container):
    assert policies_of(container) == {}
    start, expiry = datetime(2021, 6, 8, 2, 5, 9, tzinfo=timezone.utc), FAR_AHEAD
    container.set_container_access_policy({
        "whole": AccessPolicy(start=start, expiry=expiry, permission="racwdl"),
        "only permission": AccessPolicy(permission="r"),
        "only expiry": AccessPolicy(expiry=expiry),
        "empty": AccessPolicy(),
        "x" * 64: AccessPolicy(start=start, expiry=expiry, permission="a"),
    })
    policies = policies_of(container)
    assert list(policies) == ["whole", "only permission", "only expiry", "empty", "x" * 64]
    whole = policies["whole"]
    assert (moment(whole.start), moment(whole.expiry), whole.permission) == (start, expiry, "racwdl")
    assert (policies["only permission"].start, policies["only permission"].permission) == (None, "r")
    assert (moment(policies["only expiry"].expiry), policies["only expiry"].permission) == (expiry, None)

    before = container.get_container_properties().etag
    container.set_container_access_policy({"other": AccessPolicy(permission="d")})
    assert list(policies_of(container)) == ["other"]
    assert container.get_container_properties().etag != before
    container.set_container_access_policy({})
    assert policies_of(container) == {}


def moment(text):
    return datetime.fromisoformat(text) if isinstance(text, str) else text


@pytest.mark.scenario("container-acl")
def test_wrong_policies_are_refused_and_change_nothing(container):
    container.set_container_access_policy({"kept": AccessPolicy(permission="r")})
    six = {f"id{n}": AccessPolicy(permission="r") for n in range(6)}
    # The SDK counts the policies itself.
    with pytest.raises(ValueError, match="Too many access policies"):
        container.set_container_access_policy(six)
    with refused(400, "InvalidXmlDocument"):
        container.set_container_access_policy({"x" * 65: AccessPolicy(permission="r")})
    with refused(400, "InvalidXmlDocument"):
        container.set_container_access_policy({"id": AccessPolicy(permission="?")})
    with refused(400, "InvalidHeaderValue"):
        container.set_container_access_policy({}, public_access="everybody")
    assert list(policies_of(container)) == ["kept"]


@pytest.mark.scenario("blob-stored-policy")
def test_a_sas_follows_its_policy_until_it_is_removed(container, blob):
    for client in (by_blob_sas(blob, policy_id="policy"),
                   by_container_sas(container, policy_id="policy").get_blob_client(blob.blob_name)):
        container.set_container_access_policy({})
        with refused(403, "AuthenticationFailed"):
            client.download_blob()

        set_policy(container, "r")
        assert client.download_blob().readall() == b"content"
        with refused(403, "AuthorizationPermissionMismatch"):
            client.set_blob_metadata({"c": "d"})

        set_policy(container, "w")
        client.set_blob_metadata({"c": "d"})
        with refused(403, "AuthorizationPermissionMismatch"):
            client.download_blob()

        set_policy(container, "r", expiry=LONG_AGO)
        with refused(403, "AuthenticationFailed"):
            client.download_blob()

        set_policy(container, "r")
        assert client.download_blob().readall() == b"content"
        container.set_container_access_policy({})
        with refused(403, "AuthenticationFailed"):
            client.download_blob()


@pytest.mark.scenario("blob-stored-policy")
def test_policy_and_sas_complete_each_other(container, blob):
    container.set_container_access_policy({"policy": AccessPolicy(permission="r")})
    assert by_blob_sas(blob, policy_id="policy", expiry=FAR_AHEAD).download_blob().readall() == b"content"
    with refused(403, "AuthenticationFailed"):
        by_blob_sas(blob, policy_id="policy").download_blob()
    with refused(403, "AuthenticationFailed"):
        by_blob_sas(blob, "r", policy_id="policy").download_blob()


def set_policy(container, permission, expiry=FAR_AHEAD):
    container.set_container_access_policy(
        {"policy": AccessPolicy(start=LONG_AGO, expiry=expiry, permission=permission)})
