"""Who may do what: keys, shared access signatures, access policies."""

import base64
from datetime import datetime, timezone

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableSasPermissions,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)

import target
from target import (
    FAR_AHEAD, LONG_AGO, fresh_name, key_credential, keys, refused, row_keys, sas_service_client, sas_table_client,
)

ALL = "raud"


def entity(row, partition="p", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


def by_sas(table, permission=None, *, name=None, **options):
    """A client for the table that holds nothing but a table SAS; with a permission it lasts, unless told otherwise."""
    if permission is not None:
        options = {"permission": TableSasPermissions(_str=permission), "expiry": FAR_AHEAD, **options}
    token = generate_table_sas(key_credential(), name or table.table_name, **options)
    return sas_table_client(table.table_name, token)


@pytest.mark.scenario("bad-signature")
def test_a_wrong_key_is_refused(table):
    wrong = AzureNamedKeyCredential(target.ACCOUNT, base64.b64encode(b"not the key").decode())
    stranger = target.table_client(table.table_name, wrong)
    with refused(403, "AuthenticationFailed"):
        list(target.service_client(wrong).list_tables())
    with refused(403, "AuthenticationFailed"):
        stranger.create_entity(entity("r"))
    with refused(403, "AuthenticationFailed"):
        stranger.get_entity("p", "r")
    with refused(403, "AuthenticationFailed"):
        stranger.submit_transaction([("create", entity("r"))])
    with refused(403, "AuthenticationFailed"):
        stranger.get_table_access_policy()
    assert list(table.list_entities()) == []


@pytest.mark.scenario("table-sas")
def test_each_permission_allows_its_operations_only(table):
    table.create_entity(entity("r", Value=1))
    operations = {
        "r": [lambda client: client.get_entity("p", "r"), lambda client: list(client.list_entities())],
        "a": [lambda client: client.create_entity(entity(fresh_name())),
              lambda client: client.submit_transaction([("create", entity(fresh_name()))])],
        "u": [lambda client: client.update_entity(entity("r", Value=2), UpdateMode.MERGE),
              lambda client: client.update_entity(entity("r", Value=2), UpdateMode.REPLACE)],
        "d": [lambda client: client.delete_entity("p", "absent")],
        "au": [lambda client: client.upsert_entity(entity("r"), UpdateMode.MERGE),
               lambda client: client.upsert_entity(entity("r"), UpdateMode.REPLACE)],
    }
    for permission in ("r", "a", "u", "d", "au", ALL):
        client = by_sas(table, permission)
        for needed, calls in operations.items():
            for call in calls:
                if set(needed) <= set(permission):
                    call(client)
                else:
                    with refused(403, "AuthorizationPermissionMismatch"):
                        call(client)


@pytest.mark.scenario("table-sas")
def test_a_transaction_by_sas_is_checked_operation_by_operation(table):
    client = by_sas(table, "a")
    client.submit_transaction([("create", entity("1")), ("create", entity("2"))])
    with refused(403, "AuthorizationPermissionMismatch"):
        client.submit_transaction([("create", entity("3")), ("delete", entity("1"))])
    assert row_keys(table.list_entities()) == ["1", "2"]


@pytest.mark.scenario("table-sas")
def test_time_address_and_protocol_are_checked(table):
    def query(**options):
        return list(by_sas(table, "r", **options).list_entities())

    assert query(start=LONG_AGO) == []
    assert query(ip_address_or_range="127.0.0.1") == []
    assert query(ip_address_or_range="127.0.0.0-127.0.0.255") == []
    assert query(protocol="https,http") == []
    with refused(403, "AuthenticationFailed"):
        query(expiry=LONG_AGO)
    with refused(403, "AuthenticationFailed"):
        query(start=datetime(2110, 1, 1, tzinfo=timezone.utc))
    with refused(403, "AuthorizationSourceIPMismatch"):
        query(ip_address_or_range="10.1.2.3")
    with refused(403, "AuthorizationProtocolMismatch"):
        query(protocol="https")


@pytest.mark.scenario("table-sas")
def test_a_table_sas_is_for_entities_of_its_table(service, table, fresh_tables):
    assert list(by_sas(table, "r", name=table.table_name.upper()).list_entities()) == []
    other = fresh_tables()
    with refused(403, "AuthorizationFailure"):
        list(by_sas(table, ALL, name=other.table_name).list_entities())
    with refused(403, "AuthorizationFailure"):
        by_sas(table, ALL).delete_table()
    with refused(403, "AuthorizationFailure"):
        by_sas(table, ALL).create_table()
    with refused(403, "AuthorizationFailure"):
        by_sas(table, ALL).get_table_access_policy()
    assert table.table_name in [item.name for item in service.list_tables()]


@pytest.mark.scenario("table-sas")
def test_a_changed_sas_is_refused(table):
    token = generate_table_sas(
        key_credential(), table.table_name, permission=TableSasPermissions(read=True), expiry=FAR_AHEAD)
    assert "sp=r&" in token
    with refused(403, "AuthenticationFailed"):
        list(sas_table_client(table.table_name, token.replace("sp=r&", "sp=raud&")).list_entities())


@pytest.fixture
def grid(table):
    """Partitions a, b, c with rows 1, 2, 3 each."""
    for partition in "abc":
        table.submit_transaction([("create", entity(row, partition)) for row in "123"])
    return table


def grid_keys(text):
    return [tuple(key) for key in text.split()]


@pytest.mark.scenario("sas-key-range")
@pytest.mark.parametrize("bounds, inside", [
    ({"start_pk": "b"}, "b1 b2 b3 c1 c2 c3"),
    ({"end_pk": "b"}, "a1 a2 a3 b1 b2 b3"),
    ({"start_pk": "b", "end_pk": "b"}, "b1 b2 b3"),
    ({"start_pk": "a", "start_rk": "3", "end_pk": "c", "end_rk": "1"}, "a3 b1 b2 b3 c1"),
    ({"start_pk": "b", "start_rk": "2", "end_pk": "b", "end_rk": "2"}, "b2"),
    ({"start_pk": "bb", "end_pk": "bz"}, ""),
])
def test_queries_find_only_rows_inside_the_range(grid, bounds, inside):
    client = by_sas(grid, "r", **bounds)
    inside = grid_keys(inside)
    assert keys(client.list_entities()) == inside
    assert keys(client.query_entities("RowKey ne '2'")) == [key for key in inside if key[1] != "2"]
    for key in keys(grid.list_entities()):
        if key in inside:
            assert keys([client.get_entity(*key)]) == [key]
        else:
            with refused(404, "ResourceNotFound"):
                client.get_entity(*key)


@pytest.mark.scenario("sas-key-range")
def test_writes_outside_the_range_are_refused(grid):
    client = by_sas(grid, ALL, start_pk="b", start_rk="2", end_pk="b", end_rk="5")
    client.create_entity(entity("4", "b"))
    client.upsert_entity(entity("5", "b"))
    client.update_entity(entity("2", "b", Value=1))
    client.delete_entity("b", "3")
    before = keys(grid.list_entities())

    for partition, row in (("a", "9"), ("b", "1"), ("b", "6"), ("c", "2")):
        with refused(403, "AuthorizationFailure"):
            client.create_entity(entity(row, partition))
        with refused(403, "AuthorizationFailure"):
            client.upsert_entity(entity(row, partition))
        with refused(403, "AuthorizationFailure"):
            client.update_entity(entity(row, partition), UpdateMode.REPLACE)
        with refused(403, "AuthorizationFailure"):
            client.delete_entity(partition, row)
    with refused(403, "AuthorizationFailure"):
        client.submit_transaction([("upsert", entity("4", "b", Value=1)), ("upsert", entity("6", "b"))])
    assert keys(grid.list_entities()) == before
    assert "Value" not in grid.get_entity("b", "4")


def by_account_sas(types, permission, **options):
    permission = AccountSasPermissions(**{name: True for name in permission.split()})
    options = {"expiry": FAR_AHEAD, **options}
    return sas_service_client(
        generate_account_sas(key_credential(), ResourceTypes.from_string(types), permission, **options))


@pytest.mark.scenario("account-sas")
def test_an_account_sas_is_limited_by_resource_type(table):
    everything = "read write delete list add create update process"
    calls = {
        "s": [lambda client: client.get_service_properties()],
        "c": [lambda client: client.create_table(table.table_name),
              lambda client: client.delete_table(fresh_name())],
        "o": [lambda client: list(client.get_table_client(table.table_name).list_entities()),
              lambda client: client.get_table_client(table.table_name).upsert_entity(entity("r"))],
    }
    for types in ("s", "c", "o", "sco"):
        client = by_account_sas(types, everything)
        for needed, requests in calls.items():
            for request in requests:
                if needed in types:
                    allowed_or_conflicting(request, client)
                else:
                    with refused(403, "AuthorizationResourceTypeMismatch"):
                        request(client)
    assert table.table_name in [item.name for item in by_account_sas("c", "list").list_tables()]
    with refused(403, "AuthorizationResourceTypeMismatch"):
        list(by_account_sas("o", everything).list_tables())


def allowed_or_conflicting(request, client):
    """Creating a table that exists is past the check of the signature."""
    try:
        request(client)
    except Exception as error:  # pylint: disable=broad-except
        assert target.error_code(error) == "TableAlreadyExists"


@pytest.mark.scenario("account-sas")
def test_an_account_sas_is_limited_by_permission(table):
    table.create_entity(entity("r"))
    name = table.table_name
    calls = [
        ("read", "sco", lambda client: client.get_service_properties()),
        ("list", "sco", lambda client: list(client.list_tables())),
        ("delete", "sco", lambda client: client.delete_table(fresh_name())),
        ("read", "o", lambda client: client.get_table_client(name).get_entity("p", "r")),
        ("add", "o", lambda client: client.get_table_client(name).create_entity(entity(fresh_name()))),
        ("update", "o", lambda client: client.get_table_client(name).update_entity(entity("r"))),
        ("add update", "o", lambda client: client.get_table_client(name).upsert_entity(entity("r"))),
        ("delete", "o", lambda client: client.get_table_client(name).delete_entity("p", "absent")),
    ]
    for permission in ("read", "list", "delete", "add", "update", "add update"):
        for needed, types, call in calls:
            client = by_account_sas(types, permission)
            if set(needed.split()) <= set(permission.split()):
                call(client)
            else:
                with refused(403, "AuthorizationPermissionMismatch"):
                    call(client)


@pytest.mark.scenario("account-sas")
@pytest.mark.parametrize("permission", ["create", "write"])
def test_an_account_sas_creates_tables(service, permission):
    name = fresh_name()
    by_account_sas("c", permission).create_table(name)
    by_account_sas("c", "delete").delete_table(name)
    assert name not in [item.name for item in service.list_tables()]


@pytest.mark.scenario("account-sas")
def test_an_account_sas_has_its_time_and_never_reaches_policies(table):
    with refused(403, "AuthenticationFailed"):
        list(by_account_sas("sco", "list", expiry=LONG_AGO).list_tables())
    with refused(403, "AuthorizationProtocolMismatch"):
        list(by_account_sas("sco", "list", protocol="https").list_tables())
    with refused(403, "AuthorizationFailure"):
        by_account_sas("sco", "read write list").get_table_client(table.table_name).get_table_access_policy()


@pytest.mark.scenario("acl")
def test_policies_are_set_read_back_and_cleared(table):
    assert table.get_table_access_policy() == {}
    start, expiry = datetime(2021, 6, 8, 2, 5, 9, tzinfo=timezone.utc), FAR_AHEAD
    table.set_table_access_policy({
        "whole": TableAccessPolicy(start=start, expiry=expiry, permission="raud"),
        "only permission": TableAccessPolicy(permission="r"),
        "only expiry": TableAccessPolicy(expiry=expiry),
        "empty": None,
        "x" * 64: TableAccessPolicy(start=start, expiry=expiry, permission="a"),
    })
    policies = table.get_table_access_policy()
    assert list(policies) == ["whole", "only permission", "only expiry", "empty", "x" * 64]
    whole = policies["whole"]
    assert (whole.start, whole.expiry, whole.permission) == (start, expiry, "raud")
    assert whole.start.tables_service_value == "2021-06-08T02:05:09.0000000Z"
    assert (policies["only permission"].start, policies["only permission"].permission) == (None, "r")
    assert (policies["only expiry"].expiry, policies["only expiry"].permission) == (expiry, None)
    assert policies["empty"] is None

    table.set_table_access_policy({"other": TableAccessPolicy(permission="d")})
    assert list(table.get_table_access_policy()) == ["other"]
    table.set_table_access_policy({})
    assert table.get_table_access_policy() == {}


@pytest.mark.scenario("acl")
def test_wrong_policies_are_refused_and_change_nothing(table):
    table.set_table_access_policy({"kept": TableAccessPolicy(permission="r")})
    six = {f"id{n}": TableAccessPolicy(permission="r") for n in range(6)}
    # The SDK makes a ValueError of InvalidXmlDocument when there are more than five.
    with pytest.raises(ValueError, match="more than 5 access policies"):
        table.set_table_access_policy(six)
    with refused(400, "InvalidXmlDocument"):
        table.set_table_access_policy({"x" * 65: TableAccessPolicy(permission="r")})
    with refused(400, "InvalidXmlDocument"):
        table.set_table_access_policy({"id": TableAccessPolicy(permission="z")})
    assert list(table.get_table_access_policy()) == ["kept"]


@pytest.mark.scenario("stored-policy")
def test_a_sas_follows_its_policy_until_it_is_removed(table):
    table.create_entity(entity("r"))
    client = by_sas(table, policy_id="policy")
    with refused(403, "AuthenticationFailed"):
        client.get_entity("p", "r")

    set_policy(table, "r")
    assert client.get_entity("p", "r")["RowKey"] == "r"
    with refused(403, "AuthorizationPermissionMismatch"):
        client.create_entity(entity("s"))

    set_policy(table, "a")
    client.create_entity(entity("s"))
    with refused(403, "AuthorizationPermissionMismatch"):
        client.get_entity("p", "r")

    set_policy(table, "r", expiry=LONG_AGO)
    with refused(403, "AuthenticationFailed"):
        client.get_entity("p", "r")

    set_policy(table, "r")
    assert client.get_entity("p", "r")["RowKey"] == "r"
    table.set_table_access_policy({})
    with refused(403, "AuthenticationFailed"):
        client.get_entity("p", "r")


@pytest.mark.scenario("stored-policy")
def test_policy_and_sas_complete_each_other(table):
    table.set_table_access_policy({"policy": TableAccessPolicy(permission="r")})
    assert list(by_sas(table, policy_id="policy", expiry=FAR_AHEAD).list_entities()) == []
    with refused(403, "AuthenticationFailed"):
        list(by_sas(table, policy_id="policy").list_entities())
    with refused(403, "AuthenticationFailed"):
        list(by_sas(table, "r", policy_id="policy").list_entities())


def set_policy(table, permission, expiry=FAR_AHEAD):
    table.set_table_access_policy({"policy": TableAccessPolicy(start=LONG_AGO, expiry=expiry, permission=permission)})
