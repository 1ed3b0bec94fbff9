"""Who may do what with queues: keys, shared access signatures, access policies."""

import base64
from datetime import datetime, timezone

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.queue import (
    AccessPolicy, AccountSasPermissions, QueueSasPermissions, ResourceTypes, Services, generate_account_sas,
    generate_queue_sas,
)

import queues
from queues import sas_queue_client, sas_service_client, texts
from target import ACCOUNT, FAR_AHEAD, KEY, LONG_AGO, fresh_name, refused

ALL = "raup"
HIDDEN = 600


def by_sas(queue, permission=None, *, name=None, **options):
    """A client for the queue that holds nothing but a queue SAS; with a permission it lasts, unless told otherwise."""
    if permission is not None:
        options = {"permission": permission, "expiry": FAR_AHEAD, **options}
    return sas_queue_client(queue.queue_name, generate_queue_sas(ACCOUNT, name or queue.queue_name, KEY, **options))


@pytest.mark.scenario("queue-bad-signature")
def test_a_wrong_key_is_refused(queue):
    wrong = AzureNamedKeyCredential(ACCOUNT, base64.b64encode(b"not the key").decode())
    with queues.service_client(wrong) as stranger:
        queue_of_stranger = stranger.get_queue_client(queue.queue_name)
        calls = [
            lambda: list(stranger.list_queues()),
            lambda: queue_of_stranger.send_message("text"),
            lambda: queue_of_stranger.receive_message(),
            lambda: queue_of_stranger.get_queue_properties(),
            lambda: queue_of_stranger.get_queue_access_policy(),
            lambda: queue_of_stranger.delete_queue(),
        ]
        for call in calls:
            with refused(403, "AuthenticationFailed"):
                call()
    assert queue.peek_messages() == []


@pytest.mark.scenario("queue-sas")
@pytest.mark.parametrize("permission", ["r", "a", "u", "p", ALL])
def test_each_permission_allows_its_operations_only(queue, permission):
    queue.send_message("first")
    hidden = queue.send_message("hidden", visibility_timeout=HIDDEN)
    client = by_sas(queue, permission)
    operations = [
        ("r", lambda: client.get_queue_properties()),
        ("r", lambda: client.peek_messages()),
        ("a", lambda: client.send_message("added")),
        ("p", lambda: client.receive_message(visibility_timeout=HIDDEN)),
        ("u", lambda: client.update_message(hidden.id, hidden.pop_receipt, "new", visibility_timeout=HIDDEN)),
    ]
    for needed, call in operations:
        if needed in permission:
            call()
        else:
            with refused(403, "AuthorizationPermissionMismatch"):
                call()
    delete = queue.send_message("to delete")
    if "p" in permission:
        client.delete_message(delete)
    else:
        with refused(403, "AuthorizationPermissionMismatch"):
            client.delete_message(delete)


@pytest.mark.scenario("queue-sas")
def test_time_address_and_protocol_are_checked(queue):
    def peek(**options):
        return by_sas(queue, "r", **options).peek_messages()

    assert peek(start=LONG_AGO) == []
    assert peek(ip="127.0.0.1") == []
    assert peek(ip="127.0.0.0-127.0.0.255") == []
    assert peek(protocol="https,http") == []
    assert by_sas(queue, QueueSasPermissions(read=True)).peek_messages() == []
    with refused(403, "AuthenticationFailed"):
        peek(expiry=LONG_AGO)
    with refused(403, "AuthenticationFailed"):
        peek(start=datetime(2110, 1, 1, tzinfo=timezone.utc))
    with refused(403, "AuthorizationSourceIPMismatch"):
        peek(ip="10.1.2.3")
    with refused(403, "AuthorizationProtocolMismatch"):
        peek(protocol="https")


@pytest.mark.scenario("queue-sas")
def test_a_queue_sas_is_for_messages_of_its_queue(queue, fresh_queues):
    other = fresh_queues()
    # The name is signed and nowhere in the address but the path, so another queue's signature does not fit.
    with refused(403, "AuthenticationFailed"):
        by_sas(queue, ALL, name=other.queue_name).peek_messages()
    client = by_sas(queue, ALL)
    for call in (client.delete_queue, client.create_queue, client.get_queue_access_policy):
        with refused(403, "AuthorizationFailure"):
            call()
    assert queue.peek_messages() == []


@pytest.mark.scenario("queue-sas")
def test_a_changed_sas_is_refused(queue):
    token = generate_queue_sas(ACCOUNT, queue.queue_name, KEY, permission="r", expiry=FAR_AHEAD)
    assert "sp=r&" in token
    with refused(403, "AuthenticationFailed"):
        sas_queue_client(queue.queue_name, token.replace("sp=r&", "sp=raup&")).peek_messages()


def by_account_sas(types, permission, **options):
    permission = AccountSasPermissions(**{name: True for name in permission.split()})
    options = {"expiry": FAR_AHEAD, "services": Services(queue=True), **options}
    return sas_service_client(
        generate_account_sas(ACCOUNT, KEY, ResourceTypes.from_string(types), permission, **options))


def account_calls(queue):
    """What each operation needs of an account SAS: resource type, any of these permissions."""
    name = queue.queue_name
    hidden = queue.send_message("hidden", visibility_timeout=HIDDEN)
    gone = queue.send_message("gone", visibility_timeout=HIDDEN)
    return [
        ("s", "read", lambda client: client.get_service_properties()),
        ("s", "list", lambda client: list(client.list_queues(name_starts_with=name))),
        ("c", "create write", lambda client: client.create_queue(fresh_name("byaccount"))),
        ("c", "read", lambda client: client.get_queue_client(name).get_queue_properties()),
        ("c", "write", lambda client: client.get_queue_client(name).set_queue_metadata({"a": "b"})),
        ("o", "add", lambda client: client.get_queue_client(name).send_message("added")),
        ("o", "read", lambda client: client.get_queue_client(name).peek_messages()),
        ("o", "update", lambda client: client.get_queue_client(name).update_message(
            hidden.id, hidden.pop_receipt, visibility_timeout=HIDDEN)),
        ("o", "process", lambda client: client.get_queue_client(name).receive_message(visibility_timeout=HIDDEN)),
        ("o", "process", lambda client: client.get_queue_client(name).delete_message(gone)),
        ("o", "delete", lambda client: client.get_queue_client(name).clear_messages()),
    ]


@pytest.fixture
def without_strays(queue_service):
    yield
    for item in queue_service.list_queues(name_starts_with="byaccount"):
        queue_service.delete_queue(item.name)


@pytest.mark.scenario("queue-account-sas")
@pytest.mark.parametrize("types", ["s", "c", "o", "sco"])
def test_an_account_sas_is_limited_by_resource_type(queue, without_strays, types):
    client = by_account_sas(types, "read write delete list add create update process")
    for needed, _, call in account_calls(queue):
        if needed in types:
            call(client)
        else:
            with refused(403, "AuthorizationResourceTypeMismatch"):
                call(client)


@pytest.mark.scenario("queue-account-sas")
@pytest.mark.parametrize("permission", ["read", "write", "delete", "list", "add", "create", "update", "process"])
def test_an_account_sas_is_limited_by_permission(queue, without_strays, permission):
    client = by_account_sas("sco", permission)
    for _, needed, call in account_calls(queue):
        if permission in needed.split():
            call(client)
        else:
            with refused(403, "AuthorizationPermissionMismatch"):
                call(client)


@pytest.mark.scenario("queue-account-sas")
def test_an_account_sas_is_for_its_services_and_time_and_never_reaches_policies(queue):
    with refused(403, "AuthorizationServiceMismatch"):
        list(by_account_sas("sco", "list", services=Services(blob=True)).list_queues())
    assert list(by_account_sas("sco", "list", services=Services(blob=True, queue=True)).list_queues())
    with refused(403, "AuthenticationFailed"):
        list(by_account_sas("sco", "list", expiry=LONG_AGO).list_queues())
    with refused(403, "AuthorizationProtocolMismatch"):
        list(by_account_sas("sco", "list", protocol="https").list_queues())
    with refused(403, "AuthorizationFailure"):
        by_account_sas("sco", "read write list").get_queue_client(queue.queue_name).get_queue_access_policy()


@pytest.mark.scenario("queue-acl")
def test_policies_are_set_read_back_and_cleared(queue):
    assert queue.get_queue_access_policy() == {}
    start, expiry = datetime(2021, 6, 8, 2, 5, 9, tzinfo=timezone.utc), FAR_AHEAD
    queue.set_queue_access_policy({
        "whole": AccessPolicy(start=start, expiry=expiry, permission="raup"),
        "only permission": AccessPolicy(permission="r"),
        "only expiry": AccessPolicy(expiry=expiry),
        "empty": AccessPolicy(),
        "x" * 64: AccessPolicy(start=start, expiry=expiry, permission="a"),
    })
    policies = queue.get_queue_access_policy()
    assert list(policies) == ["whole", "only permission", "only expiry", "empty", "x" * 64]
    whole = policies["whole"]
    assert (moment(whole.start), moment(whole.expiry), whole.permission) == (start, expiry, "raup")
    assert (policies["only permission"].start, policies["only permission"].permission) == (None, "r")
    assert (moment(policies["only expiry"].expiry), policies["only expiry"].permission) == (expiry, None)

    queue.set_queue_access_policy({"other": AccessPolicy(permission="p")})
    assert list(queue.get_queue_access_policy()) == ["other"]
    queue.set_queue_access_policy({})
    assert queue.get_queue_access_policy() == {}


def moment(text):
    return datetime.fromisoformat(text) if isinstance(text, str) else text


@pytest.mark.scenario("queue-acl")
def test_wrong_policies_are_refused_and_change_nothing(queue):
    queue.set_queue_access_policy({"kept": AccessPolicy(permission="r")})
    six = {f"id{n}": AccessPolicy(permission="r") for n in range(6)}
    with refused(400, "InvalidXmlDocument"):
        queue.set_queue_access_policy(six)
    with refused(400, "InvalidXmlDocument"):
        queue.set_queue_access_policy({"x" * 65: AccessPolicy(permission="r")})
    with refused(400, "InvalidXmlDocument"):
        queue.set_queue_access_policy({"id": AccessPolicy(permission="z")})
    assert list(queue.get_queue_access_policy()) == ["kept"]


@pytest.mark.scenario("queue-stored-policy")
def test_a_sas_follows_its_policy_until_it_is_removed(queue):
    queue.send_message("text")
    client = by_sas(queue, policy_id="policy")
    with refused(403, "AuthenticationFailed"):
        client.peek_messages()

    set_policy(queue, "r")
    assert texts(client.peek_messages()) == ["text"]
    with refused(403, "AuthorizationPermissionMismatch"):
        client.send_message("more")

    set_policy(queue, "a")
    client.send_message("more")
    with refused(403, "AuthorizationPermissionMismatch"):
        client.peek_messages()

    set_policy(queue, "r", expiry=LONG_AGO)
    with refused(403, "AuthenticationFailed"):
        client.peek_messages()

    set_policy(queue, "r")
    assert texts(client.peek_messages()) == ["text"]
    queue.set_queue_access_policy({})
    with refused(403, "AuthenticationFailed"):
        client.peek_messages()


@pytest.mark.scenario("queue-stored-policy")
def test_policy_and_sas_complete_each_other(queue):
    queue.set_queue_access_policy({"policy": AccessPolicy(permission="r")})
    assert by_sas(queue, policy_id="policy", expiry=FAR_AHEAD).peek_messages() == []
    with refused(403, "AuthenticationFailed"):
        by_sas(queue, policy_id="policy").peek_messages()
    with refused(403, "AuthenticationFailed"):
        by_sas(queue, "r", policy_id="policy").peek_messages()


def set_policy(queue, permission, expiry=FAR_AHEAD):
    queue.set_queue_access_policy({"policy": AccessPolicy(start=LONG_AGO, expiry=expiry, permission=permission)})
