// What the scenarios of queues share: clients, fresh queues, messages in and out.
package sdk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/sas"
)

var queueTests = tests{
	"queue-connection-string": queueConnectionString,
	"queue-lifecycle":         queueLifecycle,
	"queue-list":              queueList,
	"queue-metadata":          queueMetadata,

	"message-roundtrip":  messageRoundtrip,
	"message-size":       messageSize,
	"message-visibility": messageVisibility,
	"message-update":     messageUpdate,
	"message-receipts":   messageReceipts,
	"message-ttl":        messageTTL,
	"message-peek":       messagePeek,
	"message-clear":      messageClear,
	"message-get-many":   messageGetMany,
	"message-consumers":  messageConsumers,

	"queue-acl":           queueACL,
	"queue-sas":           queueSAS,
	"queue-stored-policy": queueStoredPolicy,
	"queue-account-sas":   queueAccountSAS,
	"queue-bad-signature": queueBadSignature,

	"queue-service-properties": queueServiceProperties,
	"queue-service-stats":      queueServiceStats,
}

// hour and week are in seconds, as the client takes them.
const (
	hour = int32(3600)
	week = 7 * 24 * hour
)

func queueEndpoint() string { return strings.TrimSuffix(os.Getenv("LARIMAR_QUEUE_ENDPOINT"), "/") }

func noRetries() azcore.ClientOptions {
	return azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}
}

func queueOptions() *azqueue.ClientOptions {
	return &azqueue.ClientOptions{ClientOptions: noRetries()}
}

func (s *scenario) queueCredential(key string) *azqueue.SharedKeyCredential {
	s.Helper()
	credential, err := azqueue.NewSharedKeyCredential(account(), key)
	s.must(err, "read the account key")
	return credential
}

// queueService is a new client of the account, signing with its key.
func (s *scenario) queueService() *azqueue.ServiceClient {
	s.Helper()
	return s.queueServiceAt(queueEndpoint(), os.Getenv("LARIMAR_KEY"))
}

func (s *scenario) queueServiceAt(endpoint, key string) *azqueue.ServiceClient {
	s.Helper()
	client, err := azqueue.NewServiceClientWithSharedKeyCredential(endpoint, s.queueCredential(key), queueOptions())
	s.must(err, "make a service client")
	return client
}

// queueBearer is a client of the account that has a token and no key.
func (s *scenario) queueBearer(token string) *azqueue.ServiceClient {
	s.Helper()
	client, err := azqueue.NewServiceClientWithNoCredential(queueEndpoint()+"?"+token, queueOptions())
	s.must(err, "make a client from a SAS")
	return client
}

func (s *scenario) queueToken(values sas.QueueSignatureValues) string {
	s.Helper()
	token, err := values.SignWithSharedKey(s.queueCredential(os.Getenv("LARIMAR_KEY")))
	s.must(err, "sign a SAS")
	return token.Encode()
}

// lowerName is a fresh name for a queue or a container.
func lowerName() string {
	var random [8]byte
	rand.Read(random[:])
	return "go" + hex.EncodeToString(random[:])
}

// queueName is fresh for every call; the queue goes away at the end of the scenario if it was created.
func (s *scenario) queueName() string {
	name := lowerName()
	s.Cleanup(func() { s.dropQueue(name) })
	return name
}

// dropQueue forgives: the scenario may have deleted the queue, or never created it.
func (s *scenario) dropQueue(name string) {
	// Clean-up runs when the scenario's own context is over.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = s.queueService().DeleteQueue(ctx, name, nil)
}

// newQueue creates a queue and gives its client.
func (s *scenario) newQueue() *azqueue.QueueClient {
	s.Helper()
	queue, _ := s.newNamedQueue()
	return queue
}

func (s *scenario) newNamedQueue() (*azqueue.QueueClient, string) {
	s.Helper()
	name := s.queueName()
	queue := s.queueService().NewQueueClient(name)
	_, err := queue.Create(s.ctx, nil)
	s.must(err, "create a queue")
	return queue, name
}

func (s *scenario) putMessage(queue *azqueue.QueueClient, text string) *azqueue.EnqueuedMessage {
	s.Helper()
	return s.putMessageWith(queue, text, nil)
}

func (s *scenario) putMessageWith(queue *azqueue.QueueClient, text string, options *azqueue.EnqueueMessageOptions) *azqueue.EnqueuedMessage {
	s.Helper()
	put, err := queue.EnqueueMessage(s.ctx, text, options)
	s.must(err, "put a message")
	if len(put.Messages) != 1 {
		s.Fatalf("put answered %d messages", len(put.Messages))
	}
	return put.Messages[0]
}

// getMessages gets up to so many messages and hides them for so many seconds.
func (s *scenario) getMessages(queue *azqueue.QueueClient, count, seconds int32) []*azqueue.DequeuedMessage {
	s.Helper()
	got, err := queue.DequeueMessages(s.ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: &count, VisibilityTimeout: &seconds})
	s.must(err, "get messages")
	return got.Messages
}

// getMessage gets the one message that is there.
func (s *scenario) getMessage(queue *azqueue.QueueClient, seconds int32) *azqueue.DequeuedMessage {
	s.Helper()
	messages := s.getMessages(queue, 32, seconds)
	if len(messages) != 1 {
		s.Fatalf("got %d messages, want one", len(messages))
	}
	return messages[0]
}

func (s *scenario) peekMessages(queue *azqueue.QueueClient, count int32) []*azqueue.PeekedMessage {
	s.Helper()
	got, err := queue.PeekMessages(s.ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &count})
	s.must(err, "peek messages")
	return got.Messages
}

// noMessages checks that there is nothing to see.
func (s *scenario) noMessages(queue *azqueue.QueueClient, what string) {
	s.Helper()
	s.equal(len(s.peekMessages(queue, 32)), 0, what+": messages to peek")
	s.equal(len(s.getMessages(queue, 32, hour)), 0, what+": messages to get")
}

func (s *scenario) messageCount(queue *azqueue.QueueClient) int32 {
	s.Helper()
	properties, err := queue.GetProperties(s.ctx, nil)
	s.must(err, "read a queue's properties")
	return int32(*properties.ApproximateMessagesCount)
}

// countIs checks the approximate count, which is never below the number of messages, and comes to it.
func (s *scenario) countIs(queue *azqueue.QueueClient, want int32, what string) {
	s.Helper()
	if got := s.messageCount(queue); got < want {
		s.Errorf("%s: got %d, want %d", what, got, want)
	}
	s.eventually(what, func() bool { return s.messageCount(queue) == want })
}

// eventually asks until the answer is yes: what becomes true with time has no exact moment for a client.
func (s *scenario) eventually(what string, ask func() bool) {
	s.Helper()
	for range 100 {
		if ask() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Fatalf("%s: did not come true within ten seconds", what)
}

// metadata is what the clients take and give; they give names as Go spells headers.
func metadata(namesAndValues ...string) map[string]*string {
	pairs := map[string]*string{}
	for i := 0; i < len(namesAndValues); i += 2 {
		pairs[namesAndValues[i]] = &namesAndValues[i+1]
	}
	return pairs
}
