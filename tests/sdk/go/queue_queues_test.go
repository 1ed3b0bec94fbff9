// The life of queues: connecting, creating, listing, metadata, deleting.
package sdk

import (
	"net/http"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

func queueConnectionString(s *scenario) {
	_, name := s.newNamedQueue()
	connection := "DefaultEndpointsProtocol=http;AccountName=" + account() + ";AccountKey=" + os.Getenv("LARIMAR_KEY") +
		";QueueEndpoint=" + queueEndpoint() + ";"
	service, err := azqueue.NewServiceClientFromConnectionString(connection, queueOptions())
	s.must(err, "make a client from a connection string")
	queue := service.NewQueueClient(name)
	s.putMessage(queue, "hello")
	s.equal(*s.getMessage(queue, hour).MessageText, "hello", "text")
}

func queueLifecycle(s *scenario) {
	name := s.queueName()
	queue := s.queueService().NewQueueClient(name)
	create := func(options *azqueue.CreateOptions) (int, error) {
		var response *http.Response
		_, err := queue.Create(policy.WithCaptureResponse(s.ctx, &response), options)
		return response.StatusCode, err
	}
	status, err := create(nil)
	s.must(err, "create")
	s.equal(status, 201, "status of the first create")
	status, err = create(nil)
	s.must(err, "create again")
	s.equal(status, 204, "status of the second create")
	_, err = create(&azqueue.CreateOptions{Metadata: metadata("color", "red")})
	s.refused(err, 409, "QueueAlreadyExists", "create with other metadata")

	s.must(second(queue.Delete(s.ctx, nil)), "delete")
	s.refused(second(queue.Delete(s.ctx, nil)), 404, "QueueNotFound", "delete again")
	s.refused(second(queue.GetProperties(s.ctx, nil)), 404, "QueueNotFound", "properties of a deleted queue")
	s.refused(second(queue.EnqueueMessage(s.ctx, "lost", nil)), 404, "QueueNotFound", "put into a deleted queue")
	s.refused(second(queue.DequeueMessage(s.ctx, nil)), 404, "QueueNotFound", "get from a deleted queue")

	for _, bad := range []string{"UPPER", "under_score", "two--dashes", "-dash", "dash-", "dot.ted"} {
		s.refused(second(s.queueService().CreateQueue(s.ctx, bad, nil)), 400, "InvalidResourceName", "create "+bad)
	}
	for _, bad := range []string{"ab", strings.Repeat("a", 64)} {
		s.refused(second(s.queueService().CreateQueue(s.ctx, bad, nil)), 400, "OutOfRangeInput", "create "+bad)
	}
	longest := name + strings.Repeat("0", 63-len(name))
	s.must(second(s.queueService().CreateQueue(s.ctx, longest, nil)), "create a name of 63 characters")
	s.dropQueue(longest)
}

func queueList(s *scenario) {
	prefix := lowerName()
	var names []string
	for _, letter := range []string{"a", "b", "c", "d", "e"} {
		name := prefix + "-" + letter
		s.Cleanup(func() { s.dropQueue(name) })
		s.must(second(s.queueService().CreateQueue(s.ctx, name, &azqueue.CreateOptions{Metadata: metadata("letter", letter)})), "create a queue")
		names = append(names, name)
	}
	s.equal(queueNames(s.queuePages(azqueue.ListQueuesOptions{Prefix: &prefix})...), names, "queues by prefix")
	s.equal(queueNames(s.queuePages(azqueue.ListQueuesOptions{Prefix: &names[3]})...), names[3:4], "one queue")
	s.equal(len(queueNames(s.queuePages(azqueue.ListQueuesOptions{Prefix: ptr(prefix + "-x")})...)), 0, "no queue")

	pages := s.queuePages(azqueue.ListQueuesOptions{Prefix: &prefix, MaxResults: ptr(int32(2))})
	s.equal(queueNames(pages[0]), names[:2], "first page")
	s.equal(queueNames(pages...), names, "all pages")
	rest := s.queuePages(azqueue.ListQueuesOptions{Prefix: &prefix, MaxResults: ptr(int32(2)), Marker: pages[0].NextMarker})
	s.equal(queueNames(rest...), names[2:], "pages from a marker")

	options := azqueue.ListQueuesOptions{Prefix: &prefix, Include: azqueue.ListQueuesInclude{Metadata: true}}
	var letters string
	for _, page := range s.queuePages(options) {
		for _, queue := range page.Queues {
			letters += *queue.Metadata["letter"]
		}
	}
	s.equal(letters, "abcde", "metadata in the list")
}

func (s *scenario) queuePages(options azqueue.ListQueuesOptions) []azqueue.ListQueuesResponse {
	s.Helper()
	pager := s.queueService().NewListQueuesPager(&options)
	var pages []azqueue.ListQueuesResponse
	for pager.More() && len(pages) < pagesMax {
		page, err := pager.NextPage(s.ctx)
		s.must(err, "read a page")
		pages = append(pages, page)
	}
	return pages
}

func queueNames(pages ...azqueue.ListQueuesResponse) []string {
	names := []string{}
	for _, page := range pages {
		for _, queue := range page.Queues {
			names = append(names, *queue.Name)
		}
	}
	return names
}

func queueMetadata(s *scenario) {
	name := s.queueName()
	queue := s.queueService().NewQueueClient(name)
	s.must(second(queue.Create(s.ctx, &azqueue.CreateOptions{Metadata: metadata("color", "red", "size", "xl")})), "create")
	check := func(want map[string]*string, what string) {
		s.Helper()
		properties, err := queue.GetProperties(s.ctx, nil)
		s.must(err, "read a queue's properties")
		s.equal(len(properties.Metadata), len(want), what+": how many")
		for name, value := range want {
			if got := properties.Metadata[name]; got == nil || *got != *value {
				s.Errorf("%s: %s is not %s in %v", what, name, *value, properties.Metadata)
			}
		}
	}
	set := func(pairs map[string]*string) error {
		return second(queue.SetMetadata(s.ctx, &azqueue.SetMetadataOptions{Metadata: pairs}))
	}
	check(metadata("Color", "red", "Size", "xl"), "metadata of the create")
	s.must(set(metadata("shape", "round, or so")), "replace")
	check(metadata("Shape", "round, or so"), "replaced metadata")
	s.refused(set(metadata("not-a-name", "x")), 400, "InvalidMetadata", "a bad name")
	s.must(set(nil), "clear")
	check(nil, "cleared metadata")

	s.countIs(queue, 0, "count of an empty queue")
	for _, text := range []string{"1", "2", "3"} {
		s.putMessage(queue, text)
	}
	message := s.getMessages(queue, 1, hour)[0]
	s.countIs(queue, 3, "count with a hidden message")
	s.must(second(queue.DeleteMessage(s.ctx, *message.MessageID, *message.PopReceipt, nil)), "delete a message")
	s.countIs(queue, 2, "count after a delete")
}
