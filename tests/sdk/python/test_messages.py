"""Messages: put, get, peek, update, delete, and when they are seen."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import (
    BinaryBase64DecodePolicy, BinaryBase64EncodePolicy, QueueClient, TextBase64DecodePolicy, TextBase64EncodePolicy,
)

import queues
from queues import count_is, texts
from target import ACCOUNT, KEY, OPTIONS, error_code, eventually, fresh_name, refused

HIDDEN = 600
KIB_64 = 64 * 1024
DAYS_7 = timedelta(days=7)


@pytest.mark.scenario("message-roundtrip")
@pytest.mark.parametrize("text", [
    "plain", " white space \t around ", "line\nbreaks\r\nof two kinds", "<xml> & \"quotes\" 'too' ]]>", "&amp;lt;",
    "Grüße, 世界, 🦀, \u200b, \ue000", "{\"json\": [1, 2]}", "0", "",
])
def test_text_comes_back_as_it_was_put(queue, text):
    queue.send_message(text)
    got = queue.receive_message()
    # XML reads every line break as a single line feed, unless it is escaped; an empty element has no text.
    assert (got.content or "").replace("\r\n", "\n") == text.replace("\r\n", "\n")
    assert (queue.peek_messages() or []) == []


@pytest.mark.scenario("message-roundtrip")
def test_a_message_has_an_id_a_receipt_and_times(queue):
    put = queue.send_message("text")
    [peeked] = queue.peek_messages()
    got = queue.receive_message(visibility_timeout=HIDDEN)
    assert put.id == peeked.id == got.id
    assert put.inserted_on == peeked.inserted_on == got.inserted_on
    assert put.expires_on == got.expires_on == put.inserted_on + DAYS_7
    assert put.next_visible_on == put.inserted_on
    assert got.next_visible_on >= got.inserted_on + timedelta(seconds=HIDDEN)
    assert got.pop_receipt and got.pop_receipt != put.pop_receipt
    assert (peeked.pop_receipt, peeked.next_visible_on) == (None, None)
    queue.delete_message(got)
    count_is(queue, 0)


@pytest.mark.scenario("message-roundtrip")
def test_messages_come_in_the_order_they_were_put(queue):
    numbers = [str(number) for number in range(40)]
    for number in numbers:
        queue.send_message(number)
    assert texts(queue.peek_messages(32)) == numbers[:32]
    assert texts(queue.receive_messages(messages_per_page=7, visibility_timeout=HIDDEN)) == numbers
    assert queue.receive_message() is None


@pytest.mark.scenario("message-roundtrip")
def test_a_message_is_deleted_by_the_receipt_of_its_put(queue):
    put = queue.send_message("text")
    queue.delete_message(put.id, put.pop_receipt)
    assert queue.peek_messages() == []


@pytest.mark.scenario("message-roundtrip")
def test_encoded_messages_are_stored_as_they_are(queue):
    def client(encode, decode):
        return QueueClient(
            queues.ENDPOINT, queue.queue_name, {"account_name": ACCOUNT, "account_key": KEY}, **OPTIONS,
            message_encode_policy=encode, message_decode_policy=decode)

    binary = client(BinaryBase64EncodePolicy(), BinaryBase64DecodePolicy())
    data = bytes(range(256))
    binary.send_message(data)
    assert binary.receive_message(visibility_timeout=HIDDEN).content == data
    client(TextBase64EncodePolicy(), TextBase64DecodePolicy()).send_message("héllo")
    assert queue.receive_message().content == "aMOpbGxv"


@pytest.mark.scenario("message-size")
@pytest.mark.parametrize("character", ["x", "é"])
def test_64_kib_are_accepted_and_one_past_is_refused(queue, character):
    largest = character * (KIB_64 // len(character.encode()))
    queue.send_message(largest)
    got = queue.receive_message(visibility_timeout=HIDDEN)
    assert got.content == largest
    queue.update_message(got, content=largest.swapcase(), visibility_timeout=0)
    got = queue.receive_message(visibility_timeout=HIDDEN)
    assert got.content == largest.swapcase()

    for call in (lambda: queue.send_message(largest + "x"),
                 lambda: queue.update_message(got, content=largest + "x", visibility_timeout=0)):
        with refused(413, "RequestBodyTooLarge"):
            call()
    assert queue.peek_messages() == []


@pytest.mark.scenario("message-visibility")
def test_a_delayed_message_is_not_there_yet(queue):
    put = queue.send_message("later", visibility_timeout=HIDDEN)
    assert put.next_visible_on == put.inserted_on + timedelta(seconds=HIDDEN)
    assert queue.receive_message() is None
    assert queue.peek_messages() == []
    queue.send_message("now")
    assert queue.receive_message(visibility_timeout=HIDDEN).content == "now"

    put = queue.send_message("soon", visibility_timeout=1)
    got = eventually(queue.receive_message)
    assert (got.content, got.dequeue_count) == ("soon", 1)
    assert datetime.now(timezone.utc) >= put.next_visible_on


@pytest.mark.scenario("message-visibility")
def test_a_got_message_is_visible_again_when_its_timeout_ends(queue):
    queue.send_message("text")
    first = queue.receive_message(visibility_timeout=1)
    assert first.dequeue_count == 1
    second = eventually(lambda: queue.receive_message(visibility_timeout=HIDDEN))
    assert (second.id, second.dequeue_count) == (first.id, 2)
    assert datetime.now(timezone.utc) >= first.next_visible_on
    assert second.pop_receipt != first.pop_receipt
    assert queue.receive_message() is None


@pytest.mark.scenario("message-visibility")
def test_timeouts_out_of_range_are_refused(queue):
    queue.send_message("text")
    week = 7 * 24 * 3600
    queue.send_message("a week later", visibility_timeout=week, time_to_live=-1)
    for timeout in (0, -1, week + 1):
        with refused(400, "OutOfRangeQueryParameterValue"):
            queue.receive_message(visibility_timeout=timeout)
    for timeout in (-1, week + 1):
        with refused(400, "OutOfRangeQueryParameterValue"):
            queue.send_message("text", visibility_timeout=timeout)
    got = queue.receive_message(visibility_timeout=week)
    assert got.content == "text"
    with refused(400, "OutOfRangeQueryParameterValue"):
        queue.update_message(got, visibility_timeout=week + 1)


@pytest.mark.scenario("message-update")
def test_text_and_visibility_are_updated(queue):
    queue.send_message("before")
    got = queue.receive_message(visibility_timeout=HIDDEN)
    updated = queue.update_message(got, content="after", visibility_timeout=0)
    assert updated.pop_receipt != got.pop_receipt
    assert (updated.id, updated.content) == (got.id, "after")
    [peeked] = queue.peek_messages()
    assert (peeked.id, peeked.content, peeked.dequeue_count) == (got.id, "after", 1)
    assert (peeked.inserted_on, peeked.expires_on) == (got.inserted_on, got.expires_on)

    again = queue.receive_message(visibility_timeout=HIDDEN)
    assert (again.content, again.dequeue_count) == ("after", 2)
    hidden = queue.update_message(again, content="hidden", visibility_timeout=2 * HIDDEN)
    assert hidden.next_visible_on > again.next_visible_on
    assert queue.receive_message() is None
    queue.delete_message(hidden)
    count_is(queue, 0)


@pytest.mark.scenario("message-update")
def test_an_update_without_text_keeps_it(queue):
    put = queue.send_message("kept")
    hidden = queue.update_message(put.id, put.pop_receipt, visibility_timeout=HIDDEN)
    assert queue.receive_message() is None
    queue.update_message(hidden.id, hidden.pop_receipt, visibility_timeout=0)
    got = queue.receive_message()
    assert (got.content, got.dequeue_count) == ("kept", 1)


@pytest.mark.scenario("message-receipts")
def test_a_receipt_is_stale_after_the_next_get_or_update(queue):
    queue.send_message("text")
    first = queue.receive_message(visibility_timeout=1)
    second = eventually(lambda: queue.receive_message(visibility_timeout=HIDDEN))
    third = queue.update_message(second, visibility_timeout=HIDDEN)
    for stale in (first, second):
        with refused(400, "PopReceiptMismatch"):
            queue.delete_message(stale.id, stale.pop_receipt)
        with refused(400, "PopReceiptMismatch"):
            queue.update_message(stale.id, stale.pop_receipt, visibility_timeout=0)
    queue.delete_message(third.id, third.pop_receipt)


@pytest.mark.scenario("message-receipts")
def test_a_receipt_outlives_its_timeout_until_somebody_gets_the_message(queue):
    queue.send_message("text")
    got = queue.receive_message(visibility_timeout=1)
    eventually(queue.peek_messages)
    queue.delete_message(got)
    assert queue.peek_messages() == []


@pytest.mark.scenario("message-receipts")
def test_missing_messages_and_malformed_receipts_are_told_apart(queue):
    put = queue.send_message("text")
    gone = queue.send_message("gone")
    queue.delete_message(gone)
    for id in (gone.id, "00000000-0000-0000-0000-000000000000"):
        with refused(404, "MessageNotFound"):
            queue.delete_message(id, gone.pop_receipt)
        with refused(404, "MessageNotFound"):
            queue.update_message(id, gone.pop_receipt, visibility_timeout=0)
    for receipt in ("nonsense!", "x"):
        with refused(400, "InvalidQueryParameterValue"):
            queue.delete_message(put.id, receipt)
        with refused(400, "InvalidQueryParameterValue"):
            queue.update_message(put.id, receipt, visibility_timeout=0)
    assert texts(queue.peek_messages()) == ["text"]


@pytest.mark.scenario("message-ttl")
def test_a_message_lives_as_long_as_it_was_told(queue):
    default = queue.send_message("default")
    assert default.expires_on - default.inserted_on == DAYS_7
    hour = queue.send_message("hour", time_to_live=3600)
    assert hour.expires_on - hour.inserted_on == timedelta(hours=1)
    years = queue.send_message("years", time_to_live=3 * 365 * 24 * 3600)
    assert years.expires_on - years.inserted_on == timedelta(days=3 * 365)
    never = queue.send_message("never", time_to_live=-1)
    assert never.expires_on == datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)
    assert texts(queue.peek_messages(32)) == ["default", "hour", "years", "never"]
    for message, put in zip(queue.receive_messages(max_messages=4), (default, hour, years, never)):
        assert message.expires_on == put.expires_on


@pytest.mark.scenario("message-ttl")
def test_an_expired_message_is_gone(queue):
    queue.send_message("stays")
    short = queue.send_message("goes", time_to_live=1)
    eventually(lambda: texts(queue.peek_messages(32)) == ["stays"])
    assert datetime.now(timezone.utc) >= short.expires_on
    count_is(queue, 1)
    with refused(404, "MessageNotFound"):
        queue.delete_message(short)
    assert texts(queue.receive_messages()) == ["stays"]


@pytest.mark.scenario("message-ttl")
def test_times_to_live_out_of_range_are_refused(queue):
    for seconds, code in ((0, "InvalidQueryParameterValue"), (-2, "OutOfRangeQueryParameterValue")):
        with refused(400, code):
            queue.send_message("text", time_to_live=seconds)
    # A message that would expire before it is ever seen.
    with pytest.raises(HttpResponseError) as caught:
        queue.send_message("text", time_to_live=10, visibility_timeout=10)
    assert caught.value.status_code == 400, error_code(caught.value)
    assert queue.peek_messages() == []


@pytest.mark.scenario("message-peek")
def test_a_peek_changes_nothing(queue):
    for text in ("first", "second", "third"):
        queue.send_message(text)
    assert texts(queue.peek_messages()) == ["first"]
    assert texts(queue.peek_messages(2)) == ["first", "second"]
    assert [(item.content, item.dequeue_count) for item in queue.peek_messages(32)] == [
        ("first", 0), ("second", 0), ("third", 0)]
    got = queue.receive_message(visibility_timeout=HIDDEN)
    assert (got.content, got.dequeue_count) == ("first", 1)
    assert texts(queue.peek_messages(32)) == ["second", "third"]


@pytest.mark.scenario("message-clear")
def test_a_clear_removes_visible_and_hidden_messages(queue):
    for number in range(40):
        queue.send_message(str(number))
    queue.send_message("later", visibility_timeout=HIDDEN)
    got = queue.receive_message(visibility_timeout=HIDDEN)
    queue.clear_messages()
    assert queue.peek_messages(32) == []
    count_is(queue, 0)
    with refused(404, "MessageNotFound"):
        queue.delete_message(got)
    queue.clear_messages()
    queue.send_message("new")
    assert texts(queue.peek_messages(32)) == ["new"]


@pytest.mark.scenario("message-get-many")
def test_up_to_32_messages_at_once(queue):
    for number in range(33):
        queue.send_message(str(number))
    assert len(queue.peek_messages(32)) == 32
    page = next(queue.receive_messages(messages_per_page=32, visibility_timeout=HIDDEN).by_page())
    got = list(page)
    assert texts(got) == [str(number) for number in range(32)]
    assert len({message.id for message in got}) == 32
    assert texts(queue.peek_messages(32)) == ["32"]
    for message in got:
        queue.delete_message(message)
    count_is(queue, 1)


@pytest.mark.scenario("message-get-many")
@pytest.mark.parametrize("number", [0, 33])
def test_no_message_and_more_than_32_are_refused(queue, number):
    with refused(400, "OutOfRangeQueryParameterValue"):
        # The SDK itself refuses more than 32 for a peek, so the number goes where it does not look.
        queue.peek_messages(params={"numofmessages": number})
    with refused(400, "OutOfRangeQueryParameterValue"):
        next(queue.receive_messages(messages_per_page=number).by_page())


@pytest.mark.scenario("message-consumers")
def test_many_consumers_get_every_message_once(queue):
    wanted = [fresh_name(f"m{number}-") for number in range(200)]

    def produce(text):
        queue.send_message(text)

    def consume(_):
        seen = []
        while True:
            page = queue.receive_messages(messages_per_page=5, visibility_timeout=HIDDEN).by_page()
            messages = list(next(page, []))
            if not messages:
                return seen
            for message in messages:
                seen.append((message.content, message.dequeue_count))
                queue.delete_message(message)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(produce, wanted))
        seen = sum(pool.map(consume, range(8)), [])
    assert sorted(seen) == sorted((text, 1) for text in wanted)
    count_is(queue, 0)
