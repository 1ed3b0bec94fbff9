"""Connecting, and the life of tables: create, list, delete."""

import pytest
from azure.data.tables import TableClient, TableServiceClient

import target
from target import Answers, fresh_name, refused

WELL_KNOWN_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.mark.scenario("development-connection-string")
def test_connection_string_names_the_endpoint(fresh_tables):
    name = fresh_tables().table_name
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName={target.ACCOUNT};AccountKey={target.KEY};"
        f"TableEndpoint={target.ENDPOINT};"
    )
    with TableClient.from_connection_string(connection, name, **target.OPTIONS) as table:
        assert table.url == target.ENDPOINT
        table.create_entity({"PartitionKey": "p", "RowKey": "r", "Greeting": "hello"})
        assert table.get_entity("p", "r")["Greeting"] == "hello"


@pytest.mark.scenario("development-connection-string")
def test_use_development_storage_means_the_well_known_account():
    with TableServiceClient.from_connection_string("UseDevelopmentStorage=true") as service:
        assert service.url == "http://127.0.0.1:10002/devstoreaccount1"
        assert service.account_name == "devstoreaccount1"
        assert service.credential.named_key.key == WELL_KNOWN_KEY


@pytest.mark.scenario("table-lifecycle")
def test_table_is_created_listed_and_deleted_once(service):
    name = fresh_name("Life")
    table = service.create_table(name)
    try:
        with refused(409, "TableAlreadyExists"):
            service.create_table(name)
        with refused(409, "TableAlreadyExists"):
            service.create_table(name.upper())
        assert service.create_table_if_not_exists(name).table_name == name
        assert name in [item.name for item in service.list_tables()]

        service.get_table_client(name.lower()).create_entity({"PartitionKey": "p", "RowKey": "r"})
        assert service.get_table_client(name.upper()).get_entity("p", "r")["RowKey"] == "r"
    finally:
        answers = Answers()
        table.delete_table(raw_response_hook=answers)
    assert answers.last_status == 204

    table.delete_table(raw_response_hook=answers)
    assert (answers.last_status, answers.last_code) == (404, "ResourceNotFound")
    assert name not in [item.name for item in service.list_tables()]
    with refused(404, "TableNotFound"):
        table.get_entity("p", "r")


@pytest.mark.scenario("table-list")
def test_tables_are_listed_by_filter_and_in_pages(service, fresh_tables):
    prefix = fresh_name("list")[:20]
    names = sorted(fresh_tables(prefix).table_name for _ in range(5))

    def names_of(items):
        return [item.name for item in items]

    found = service.query_tables("TableName ge @low and TableName lt @high", parameters=range_of(prefix))
    assert names_of(found) == names
    assert names_of(service.query_tables("TableName eq @name", parameters={"name": names[2]})) == [names[2]]
    assert names_of(service.query_tables("TableName gt @low and TableName le @high",
                                         parameters={"low": names[1], "high": names[3]})) == names[2:4]
    assert names_of(service.query_tables("TableName eq 'absent'")) == []

    listed = [names_of(page) for page in service.list_tables(results_per_page=2).by_page()]
    assert all(len(page) <= 2 for page in listed)
    assert [name for page in listed for name in page if name in names] == names


@pytest.mark.scenario("table-list")
def test_table_pages_resume_from_a_token(service, fresh_tables):
    prefix = fresh_name("list")[:20]
    names = sorted(fresh_tables(prefix).table_name for _ in range(5))

    def pages(client, token=None):
        query = client.query_tables("TableName ge @low and TableName lt @high",
                                    parameters=range_of(prefix), results_per_page=2)
        return query.by_page(continuation_token=token)

    first = pages(service)
    assert [item.name for item in next(first)] == names[:2]
    with target.service_client() as other:
        rest = [[item.name for item in page] for page in pages(other, first.continuation_token)]
    assert all(len(page) <= 2 for page in rest)
    assert [name for page in rest for name in page] == names[2:]


def range_of(prefix):
    """Every name that starts with the prefix, as the SDK's query parameters."""
    return {"low": prefix, "high": prefix + "z"}
