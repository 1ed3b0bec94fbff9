// Access to queues: the account's key, shared access signatures, stored policies.
package sdk

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/sas"
)

// wrongKey is a key of the right form.
var wrongKey = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 64)))

func queueBadSignature(s *scenario) {
	_, name := s.newNamedQueue()
	service := s.queueServiceAt(queueEndpoint(), wrongKey)
	queue := service.NewQueueClient(name)
	_, err := service.NewListQueuesPager(nil).NextPage(s.ctx)
	s.refused(err, 403, "AuthenticationFailed", "list")
	s.refused(second(queue.Create(s.ctx, nil)), 403, "AuthenticationFailed", "create")
	s.refused(second(queue.GetProperties(s.ctx, nil)), 403, "AuthenticationFailed", "properties")
	s.refused(second(queue.EnqueueMessage(s.ctx, "x", nil)), 403, "AuthenticationFailed", "put")
	s.refused(second(queue.DequeueMessage(s.ctx, nil)), 403, "AuthenticationFailed", "get")
	s.refused(second(queue.Delete(s.ctx, nil)), 403, "AuthenticationFailed", "delete")
}

// messageCall is something that a client does with messages, and the letter that it needs.
type messageCall struct {
	what, letter string
	do           func(*azqueue.QueueClient) error
}

func (s *scenario) messageCalls(queue *azqueue.QueueClient) []messageCall {
	return []messageCall{
		{"peek", "r", func(client *azqueue.QueueClient) error { return second(client.PeekMessage(s.ctx, nil)) }},
		{"put", "a", func(client *azqueue.QueueClient) error { return second(client.EnqueueMessage(s.ctx, "x", nil)) }},
		{"update", "u", func(client *azqueue.QueueClient) error {
			put := s.putMessage(queue, "text")
			return second(client.UpdateMessage(s.ctx, *put.MessageID, *put.PopReceipt, "new", nil))
		}},
		{"get", "p", func(client *azqueue.QueueClient) error { return second(client.DequeueMessage(s.ctx, nil)) }},
		{"delete", "p", func(client *azqueue.QueueClient) error {
			put := s.putMessage(queue, "text")
			return second(client.DeleteMessage(s.ctx, *put.MessageID, *put.PopReceipt, nil))
		}},
	}
}

func queueSAS(s *scenario) {
	queue, name := s.newNamedQueue()
	with := func(values sas.QueueSignatureValues) *azqueue.QueueClient {
		values.QueueName = name
		return s.queueBearer(s.queueToken(values)).NewQueueClient(name)
	}
	calls := append(s.messageCalls(queue), messageCall{"properties", "r", func(client *azqueue.QueueClient) error {
		return second(client.GetProperties(s.ctx, nil))
	}})
	for _, permissions := range []string{"r", "a", "u", "p", "raup"} {
		client := with(sas.QueueSignatureValues{Permissions: permissions, ExpiryTime: farAhead})
		for _, call := range calls {
			if strings.Contains(permissions, call.letter) {
				s.must(call.do(client), call.what+" with "+permissions)
			} else {
				s.refused(call.do(client), 403, "AuthorizationPermissionMismatch", call.what+" with "+permissions)
			}
		}
	}

	peek := func(values sas.QueueSignatureValues) error {
		values.Permissions = "r"
		return second(with(values).PeekMessage(s.ctx, nil))
	}
	loopback, elsewhere := net.ParseIP("127.0.0.1"), net.ParseIP("203.0.113.7")
	s.must(peek(sas.QueueSignatureValues{ExpiryTime: farAhead, Protocol: sas.ProtocolHTTPSandHTTP, IPRange: sas.IPRange{Start: loopback}}), "from a named address")
	s.refused(peek(sas.QueueSignatureValues{StartTime: longAgo, ExpiryTime: notSoLong}), 403, "AuthenticationFailed", "expired")
	s.refused(peek(sas.QueueSignatureValues{StartTime: farAhead, ExpiryTime: fartherYet}), 403, "AuthenticationFailed", "not yet valid")
	s.refused(peek(sas.QueueSignatureValues{ExpiryTime: farAhead, Protocol: sas.ProtocolHTTPS}), 403, "AuthorizationProtocolMismatch", "over http")
	s.refused(peek(sas.QueueSignatureValues{ExpiryTime: farAhead, IPRange: sas.IPRange{Start: elsewhere}}), 403, "AuthorizationSourceIPMismatch", "from elsewhere")

	token := s.queueToken(sas.QueueSignatureValues{QueueName: name, Permissions: "raup", ExpiryTime: farAhead})
	_, other := s.newNamedQueue()
	s.refused(second(s.queueBearer(token).NewQueueClient(other).PeekMessage(s.ctx, nil)), 403, "AuthenticationFailed", "another queue")
	forged := strings.Replace(token, "sp=raup", "sp=r", 1)
	s.refused(second(s.queueBearer(forged).NewQueueClient(name).PeekMessage(s.ctx, nil)), 403, "AuthenticationFailed", "a changed token")
	all := s.queueBearer(token).NewQueueClient(name)
	s.refused(second(all.Delete(s.ctx, nil)), 403, "AuthorizationFailure", "delete the queue")
	s.refused(second(all.GetAccessPolicy(s.ctx, nil)), 403, "AuthorizationFailure", "read the policies")
}

func (s *scenario) queuePolicies(queue *azqueue.QueueClient) []*azqueue.SignedIdentifier {
	s.Helper()
	got, err := queue.GetAccessPolicy(s.ctx, nil)
	s.must(err, "read the policies")
	return got.SignedIdentifiers
}

func (s *scenario) setQueuePolicies(queue *azqueue.QueueClient, policies ...*azqueue.SignedIdentifier) error {
	return second(queue.SetAccessPolicy(s.ctx, &azqueue.SetAccessPolicyOptions{QueueACL: policies}))
}

func queuePolicy(id, permission string, expiry time.Time) *azqueue.SignedIdentifier {
	return &azqueue.SignedIdentifier{ID: &id, AccessPolicy: &azqueue.AccessPolicy{Start: &longAgo, Expiry: &expiry, Permission: &permission}}
}

func queueACL(s *scenario) {
	queue := s.newQueue()
	s.equal(len(s.queuePolicies(queue)), 0, "policies of a new queue")
	want := []*azqueue.SignedIdentifier{queuePolicy("readers", "r", farAhead), queuePolicy("everyone & <all>", "raup", fartherYet)}
	s.must(s.setQueuePolicies(queue, want...), "set policies")
	s.equal(s.queuePolicies(queue), want, "policies read back")
	var six []*azqueue.SignedIdentifier
	for n := range 6 {
		six = append(six, queuePolicy(fmt.Sprint("policy ", n), "r", farAhead))
	}
	s.refused(s.setQueuePolicies(queue, six...), 400, "InvalidXmlDocument", "six policies")
	s.equal(s.queuePolicies(queue), want, "policies after the refusal")
	s.must(s.setQueuePolicies(queue, six[:5]...), "set five policies")
	s.equal(s.queuePolicies(queue), six[:5], "five policies")
	s.must(s.setQueuePolicies(queue), "clear the policies")
	s.equal(len(s.queuePolicies(queue)), 0, "policies after clearing them")
}

func queueStoredPolicy(s *scenario) {
	queue, name := s.newNamedQueue()
	s.putMessage(queue, "text")
	client := s.queueBearer(s.queueToken(sas.QueueSignatureValues{QueueName: name, Identifier: "team"})).NewQueueClient(name)
	peek := func() error { return second(client.PeekMessage(s.ctx, nil)) }
	put := func() error { return second(client.EnqueueMessage(s.ctx, "x", nil)) }
	grant := func(permission string, expiry time.Time) {
		s.Helper()
		s.must(s.setQueuePolicies(queue, queuePolicy("team", permission, expiry), queuePolicy("another", "raup", farAhead)), "set policies")
	}
	s.refused(peek(), 403, "AuthenticationFailed", "before the policy exists")
	grant("r", farAhead)
	s.must(peek(), "peek by the policy")
	s.refused(put(), 403, "AuthorizationPermissionMismatch", "put by a policy for reading")
	grant("a", farAhead)
	s.must(put(), "put after the policy was changed")
	s.refused(peek(), 403, "AuthorizationPermissionMismatch", "peek after the policy was changed")
	grant("r", notSoLong)
	s.refused(peek(), 403, "AuthenticationFailed", "after the policy expired")
	grant("r", farAhead)
	s.must(peek(), "peek after the policy was renewed")
	s.must(s.setQueuePolicies(queue, queuePolicy("another", "raup", farAhead)), "remove the policy")
	s.refused(peek(), 403, "AuthenticationFailed", "after the policy was removed")
}

// accountToken signs an account SAS. The clients of queues and blobs sign for their own service only, so the
// tables' client signs here.
func (s *scenario) accountToken(values aztables.AccountSASSignatureValues) string {
	s.Helper()
	credential, err := aztables.NewSharedKeyCredential(account(), os.Getenv("LARIMAR_KEY"))
	s.must(err, "read the account key")
	if values.ExpiryTime.IsZero() {
		values.ExpiryTime = farAhead
	}
	token, err := values.Sign(credential)
	s.must(err, "sign an account SAS")
	return token.Encode()
}

func queueAccountSAS(s *scenario) {
	queue, name := s.newNamedQueue()
	with := func(types, permissions string) *azqueue.ServiceClient {
		token, err := sas.AccountSignatureValues{ResourceTypes: types, Permissions: permissions, ExpiryTime: farAhead}.
			SignWithSharedKey(s.queueCredential(os.Getenv("LARIMAR_KEY")))
		s.must(err, "sign an account SAS")
		return s.queueBearer(token.Encode())
	}
	list := func(service *azqueue.ServiceClient) error {
		return second(service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: &name}).NextPage(s.ctx))
	}
	type serviceCall struct {
		what, kind, letter string
		do                 func(*azqueue.ServiceClient) error
	}
	calls := []serviceCall{
		{"service properties", "s", "r", func(service *azqueue.ServiceClient) error { return second(service.GetServiceProperties(s.ctx, nil)) }},
		{"list", "s", "l", list},
		{"properties", "c", "r", func(service *azqueue.ServiceClient) error {
			return second(service.NewQueueClient(name).GetProperties(s.ctx, nil))
		}},
		{"set metadata", "c", "w", func(service *azqueue.ServiceClient) error {
			return second(service.NewQueueClient(name).SetMetadata(s.ctx, nil))
		}},
		{"clear", "o", "d", func(service *azqueue.ServiceClient) error {
			return second(service.NewQueueClient(name).ClearMessages(s.ctx, nil))
		}},
	}
	for _, call := range s.messageCalls(queue) {
		calls = append(calls, serviceCall{call.what, "o", call.letter, func(service *azqueue.ServiceClient) error { return call.do(service.NewQueueClient(name)) }})
	}
	for _, call := range calls {
		otherKind, otherLetters := "s", "r"
		if call.kind == "s" {
			otherKind = "co"
		}
		if call.letter == "r" {
			otherLetters = "wdlacup"
		}
		s.must(call.do(with("sco", "rwdlacup")), call.what+" with everything")
		s.must(call.do(with(call.kind, call.letter)), call.what+" with what it needs")
		s.refused(call.do(with(otherKind, "rwdlacup")), 403, "AuthorizationResourceTypeMismatch", call.what+" with "+otherKind)
		s.refused(call.do(with("sco", otherLetters)), 403, "AuthorizationPermissionMismatch", call.what+" with "+otherLetters)
	}

	made := s.queueName()
	s.must(second(with("c", "c").CreateQueue(s.ctx, made, nil)), "create a queue")
	s.refused(second(with("c", "c").DeleteQueue(s.ctx, made, nil)), 403, "AuthorizationPermissionMismatch", "delete with c")
	s.must(second(with("c", "d").DeleteQueue(s.ctx, made, nil)), "delete a queue")

	by := func(values aztables.AccountSASSignatureValues) error {
		values.ResourceTypes, values.Permissions = "s", "l"
		return list(s.queueBearer(s.accountToken(values)))
	}
	s.must(by(aztables.AccountSASSignatureValues{Services: "bqt"}), "several services")
	s.refused(by(aztables.AccountSASSignatureValues{Services: "bt"}), 403, "AuthorizationServiceMismatch", "other services")
	s.refused(by(aztables.AccountSASSignatureValues{Services: "q", ExpiryTime: notSoLong}), 403, "AuthenticationFailed", "expired")
	s.refused(by(aztables.AccountSASSignatureValues{Services: "q", Protocol: aztables.SASProtocolHTTPS}), 403, "AuthorizationProtocolMismatch", "over http")
}
