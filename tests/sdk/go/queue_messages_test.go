// Messages: put, get, peek, update, delete, clear; what is visible when.
package sdk

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

var guid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func seconds(from, to *time.Time) int32 { return int32(to.Sub(*from) / time.Second) }

func messageRoundtrip(s *scenario) {
	queue := s.newQueue()
	for _, text := range []string{
		"plain", "  spaces  around ", "lines\nand\ttabs\n", `<a href="x">&amp;</a>`, "]]>", `'quotes' "both"`,
		"naïve 日本語 \U0001F600", "aGVsbG8=", "%41+%20", " ",
	} {
		s.putMessage(queue, text)
		message := s.getMessage(queue, hour)
		s.equal(*message.MessageText, text, "text")
		s.must(second(queue.DeleteMessage(s.ctx, *message.MessageID, *message.PopReceipt, nil)), "delete")
	}
	s.noMessages(queue, "after the deletes")

	put := s.putMessage(queue, "text")
	if !guid.MatchString(*put.MessageID) || *put.PopReceipt == "" {
		s.Errorf("id %s, receipt %s", *put.MessageID, *put.PopReceipt)
	}
	s.equal(seconds(put.InsertionTime, put.ExpirationTime), week, "life")
	s.equal(*put.TimeNextVisible, *put.InsertionTime, "visible at once")
	got := s.getMessage(queue, hour)
	s.equal([]any{*got.MessageID, *got.InsertionTime, *got.ExpirationTime, *got.DequeueCount},
		[]any{*put.MessageID, *put.InsertionTime, *put.ExpirationTime, int64(1)}, "what get tells")
	if *got.PopReceipt == *put.PopReceipt || !got.TimeNextVisible.After(*got.InsertionTime) {
		s.Errorf("get kept the receipt, or hides until %v", got.TimeNextVisible)
	}
	s.must(second(queue.DeleteMessage(s.ctx, *got.MessageID, *got.PopReceipt, nil)), "delete")

	put = s.putMessage(queue, "regretted")
	s.must(second(queue.DeleteMessage(s.ctx, *put.MessageID, *put.PopReceipt, nil)), "delete by the receipt of the put")
	s.noMessages(queue, "in the end")
}

func messageSize(s *scenario) {
	queue := s.newQueue()
	for _, text := range []string{strings.Repeat("x", 64<<10), strings.Repeat("é", 32<<10), strings.Repeat("<", 64<<10)} {
		s.putMessage(queue, text)
		message := s.getMessage(queue, hour)
		if *message.MessageText != text {
			s.Errorf("%d bytes came back as %d others", len(text), len(*message.MessageText))
		}
		s.must(second(queue.DeleteMessage(s.ctx, *message.MessageID, *message.PopReceipt, nil)), "delete")
	}
	for _, text := range []string{strings.Repeat("x", 64<<10+1), strings.Repeat("é", 32<<10+1)} {
		s.refused(second(queue.EnqueueMessage(s.ctx, text, nil)), 413, "RequestBodyTooLarge", "one past 64 KiB")
	}
	s.noMessages(queue, "in the end")
}

func messageVisibility(s *scenario) {
	queue := s.newQueue()
	put := s.putMessageWith(queue, "later", &azqueue.EnqueueMessageOptions{VisibilityTimeout: ptr(hour)})
	s.equal(seconds(put.InsertionTime, put.TimeNextVisible), hour, "delay")
	s.noMessages(queue, "before the delay ends")
	s.putMessageWith(queue, "soon", &azqueue.EnqueueMessageOptions{VisibilityTimeout: ptr(int32(1))})

	var first, again []*azqueue.DequeuedMessage
	s.eventually("a delayed message", func() bool {
		first = s.getMessages(queue, 32, 1)
		return len(first) > 0
	})
	s.equal([]any{*first[0].MessageText, *first[0].DequeueCount}, []any{"soon", int64(1)}, "first get")
	s.eventually("a message whose timeout ended", func() bool {
		again = s.getMessages(queue, 32, hour)
		return len(again) > 0
	})
	s.equal([]any{*again[0].MessageID, *again[0].DequeueCount}, []any{*first[0].MessageID, int64(2)}, "second get")
	s.noMessages(queue, "while it is hidden")
	s.refused(second(queue.DeleteMessage(s.ctx, *first[0].MessageID, *first[0].PopReceipt, nil)), 400, "PopReceiptMismatch", "delete by the first receipt")
	s.must(second(queue.DeleteMessage(s.ctx, *again[0].MessageID, *again[0].PopReceipt, nil)), "delete by the second receipt")

	for _, timeout := range []int32{0, week + 1} {
		_, err := queue.DequeueMessage(s.ctx, &azqueue.DequeueMessageOptions{VisibilityTimeout: &timeout})
		s.refused(err, 400, "OutOfRangeQueryParameterValue", fmt.Sprint("get for ", timeout))
	}
}

func messageUpdate(s *scenario) {
	queue := s.newQueue()
	put := s.putMessage(queue, "one")
	got := s.getMessage(queue, hour)
	update := func(receipt *string, text string, timeout int32) (azqueue.UpdateMessageResponse, error) {
		return queue.UpdateMessage(s.ctx, *put.MessageID, *receipt, text, &azqueue.UpdateMessageOptions{VisibilityTimeout: &timeout})
	}
	updated, err := update(got.PopReceipt, "two <&>", 0)
	s.must(err, "update")
	if *updated.PopReceipt == *got.PopReceipt || updated.TimeNextVisible == nil {
		s.Errorf("the update answered %+v", updated)
	}
	_, err = update(got.PopReceipt, "three", 0)
	s.refused(err, 400, "PopReceiptMismatch", "update by the first receipt")

	again := s.getMessage(queue, hour)
	s.equal([]any{*again.MessageText, *again.DequeueCount, *again.ExpirationTime},
		[]any{"two <&>", int64(2), *put.ExpirationTime}, "the updated message")
	hidden, err := update(again.PopReceipt, "four", hour)
	s.must(err, "update and hide")
	s.noMessages(queue, "after an update that hides")
	_, err = update(hidden.PopReceipt, "four", 0)
	s.must(err, "update and show")
	s.equal(*s.getMessage(queue, hour).MessageText, "four", "text")
}

func messageReceipts(s *scenario) {
	queue := s.newQueue()
	put := s.putMessage(queue, "text")
	current, err := queue.UpdateMessage(s.ctx, *put.MessageID, *put.PopReceipt, "text", nil)
	s.must(err, "update")
	remove := func(id, receipt string) error { return second(queue.DeleteMessage(s.ctx, id, receipt, nil)) }
	update := func(id, receipt string) error { return second(queue.UpdateMessage(s.ctx, id, receipt, "x", nil)) }
	unknown := "00000000-0000-0000-0000-000000000000"
	for what, call := range map[string]func(id, receipt string) error{"delete": remove, "update": update} {
		s.refused(call(*put.MessageID, *put.PopReceipt), 400, "PopReceiptMismatch", what+" with a stale receipt")
		s.refused(call(*put.MessageID, "no receipt"), 400, "InvalidQueryParameterValue", what+" with a malformed receipt")
		s.refused(call(unknown, *current.PopReceipt), 404, "MessageNotFound", what+" with an unknown id")
	}
	s.must(remove(*put.MessageID, *current.PopReceipt), "delete")
	s.refused(remove(*put.MessageID, *current.PopReceipt), 404, "MessageNotFound", "delete again")
	s.refused(update(*put.MessageID, *current.PopReceipt), 404, "MessageNotFound", "update a deleted message")
}

func messageTTL(s *scenario) {
	queue := s.newQueue()
	life := func(ttl int32) int32 {
		s.Helper()
		put := s.putMessageWith(queue, "text", &azqueue.EnqueueMessageOptions{TimeToLive: &ttl})
		return seconds(put.InsertionTime, put.ExpirationTime)
	}
	put := s.putMessage(queue, "default")
	s.equal(seconds(put.InsertionTime, put.ExpirationTime), week, "default life")
	s.equal(life(60), int32(60), "a minute")
	s.equal(life(10*week), 10*week, "ten weeks")
	never := s.putMessageWith(queue, "never", &azqueue.EnqueueMessageOptions{TimeToLive: ptr(int32(-1))})
	s.equal(never.ExpirationTime.UTC(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), "never")
	for ttl, code := range map[int32]string{0: "InvalidQueryParameterValue", -2: "OutOfRangeQueryParameterValue"} {
		_, err := queue.EnqueueMessage(s.ctx, "x", &azqueue.EnqueueMessageOptions{TimeToLive: &ttl})
		s.refused(err, 400, code, fmt.Sprint("a life of ", ttl))
	}

	brief := s.newQueue()
	s.putMessageWith(brief, "brief", &azqueue.EnqueueMessageOptions{TimeToLive: ptr(int32(2))})
	message := s.getMessage(brief, 1)
	s.countIs(brief, 0, "the end of a message")
	s.noMessages(brief, "after the end of its life")
	s.refused(second(brief.DeleteMessage(s.ctx, *message.MessageID, *message.PopReceipt, nil)), 404, "MessageNotFound", "delete an expired message")
}

func messagePeek(s *scenario) {
	queue := s.newQueue()
	put := s.putMessage(queue, "seen")
	for range 2 {
		seen := s.peekMessages(queue, 32)
		s.equal(len(seen), 1, "messages to peek")
		s.equal([]any{*seen[0].MessageID, *seen[0].MessageText, *seen[0].DequeueCount, *seen[0].InsertionTime, *seen[0].ExpirationTime},
			[]any{*put.MessageID, "seen", int64(0), *put.InsertionTime, *put.ExpirationTime}, "what peek tells")
	}
	s.equal(*s.getMessage(queue, hour).DequeueCount, int64(1), "dequeues")
	s.noMessages(queue, "after the get")
}

func messageClear(s *scenario) {
	queue := s.newQueue()
	for _, text := range []string{"1", "2", "3"} {
		s.putMessage(queue, text)
	}
	s.putMessageWith(queue, "delayed", &azqueue.EnqueueMessageOptions{VisibilityTimeout: ptr(hour)})
	hidden := s.getMessages(queue, 1, hour)[0]
	s.must(second(queue.ClearMessages(s.ctx, nil)), "clear")
	s.noMessages(queue, "after the clear")
	s.countIs(queue, 0, "count")
	s.refused(second(queue.DeleteMessage(s.ctx, *hidden.MessageID, *hidden.PopReceipt, nil)), 404, "MessageNotFound", "delete a cleared message")
	s.putMessage(queue, "new")
	s.equal(*s.getMessage(queue, hour).MessageText, "new", "text after the clear")
}

func messageGetMany(s *scenario) {
	queue := s.newQueue()
	var want, got []string
	for n := range 40 {
		want = append(want, fmt.Sprintf("message %02d", n))
		s.putMessage(queue, want[n])
	}
	s.equal(len(s.peekMessages(queue, 32)), 32, "messages to peek")
	for _, count := range []int{32, 8} {
		messages := s.getMessages(queue, 32, hour)
		s.equal(len(messages), count, "messages of a get")
		for _, message := range messages {
			got = append(got, *message.MessageText)
		}
	}
	slices.Sort(got)
	s.equal(got, want, "texts")
	for _, count := range []int32{0, 33} {
		_, err := queue.DequeueMessages(s.ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: &count})
		s.refused(err, 400, "OutOfRangeQueryParameterValue", fmt.Sprint("get ", count))
		_, err = queue.PeekMessages(s.ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &count})
		s.refused(err, 400, "OutOfRangeQueryParameterValue", fmt.Sprint("peek ", count))
	}
}

func messageConsumers(s *scenario) {
	queue := s.newQueue()
	var want, got []string
	for n := range 200 {
		want = append(want, fmt.Sprintf("message %03d", n))
		s.putMessage(queue, want[n])
	}
	var group sync.WaitGroup
	var lock sync.Mutex
	for range 16 {
		group.Add(1)
		go func() {
			defer group.Done()
			texts, err := s.consume(queue)
			lock.Lock()
			defer lock.Unlock()
			got = append(got, texts...)
			if err != nil {
				s.Errorf("a consumer: %v", err)
			}
		}()
	}
	group.Wait()
	slices.Sort(got)
	s.equal(got, want, "texts that the consumers got")
	s.countIs(queue, 0, "count in the end")
}

// consume gets and deletes messages until there are none.
func (s *scenario) consume(queue *azqueue.QueueClient) ([]string, error) {
	var texts []string
	for {
		got, err := queue.DequeueMessages(s.ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: ptr(int32(5)), VisibilityTimeout: ptr(hour)})
		if err != nil || len(got.Messages) == 0 {
			return texts, err
		}
		for _, message := range got.Messages {
			texts = append(texts, *message.MessageText)
			if _, err := queue.DeleteMessage(s.ctx, *message.MessageID, *message.PopReceipt, nil); err != nil {
				return texts, err
			}
		}
	}
}
