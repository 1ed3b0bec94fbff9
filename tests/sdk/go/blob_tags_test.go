// Tags of blobs, and many deletes in one request.
package sdk

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

type pairs = map[string]string

func (s *scenario) tags(client *blockblob.Client) pairs {
	s.Helper()
	answer, err := client.GetTags(s.ctx, nil)
	s.must(err, "read the tags")
	tags := pairs{}
	for _, tag := range answer.BlobTagSet {
		tags[*tag.Key] = *tag.Value
	}
	return tags
}

func blobTags(s *scenario) {
	client := s.newBlob("text", &blockblob.UploadOptions{Tags: pairs{"kind": "test", "a b": "x+y-z./:=_"}})
	s.equal(s.tags(client), pairs{"kind": "test", "a b": "x+y-z./:=_"}, "tags of the upload")
	before := s.properties(client)
	s.equal(*before.TagCount, int64(2), "how many tags")
	set := func(tags pairs) error { return second(client.SetTags(s.ctx, tags, nil)) }
	many := pairs{}
	for n := range 10 {
		many[fmt.Sprint("key", n)] = fmt.Sprint(n)
	}
	for _, tags := range []pairs{many, {"empty": ""}, {}} {
		s.must(set(tags), "set tags")
		s.equal(s.tags(client), tags, "tags that were set")
	}
	after := s.properties(client)
	s.equal([]any{*after.ETag, *after.LastModified}, []any{*before.ETag, *before.LastModified}, "ETag and date after setting tags")

	s.must(set(pairs{"kind": "test"}), "set a tag")
	many["eleven"] = "x"
	for _, bad := range []pairs{many, {"": "x"}, {strings.Repeat("k", 129): "x"}, {"k": strings.Repeat("v", 257)}, {"a#b": "x"}} {
		s.refusedWith(set(bad), fmt.Sprint("tags ", bad), 400)
	}
	s.refusedWith(s.upload(client, "text", &blockblob.UploadOptions{Tags: many}), "an upload with eleven tags", 400)
	s.equal(s.tags(client), pairs{"kind": "test"}, "tags after the refusals")

	s.must(s.upload(client, "other", nil), "overwrite")
	s.equal(s.tags(client), pairs{}, "tags after overwriting")
}

func batchDelete(s *scenario) {
	client, name := s.newNamedContainer()
	service := s.blobService()
	batch, err := service.NewBatchBuilder()
	s.must(err, "make a batch")
	var names []string
	for n := range 20 {
		names = append(names, fmt.Sprint("dir/blob ", n))
		s.putBlob(client, names[n], "text", nil)
	}
	for _, blob := range append(names[:10:10], append([]string{"missing"}, names[10:]...)...) {
		s.must(batch.Delete(name, blob, nil), "add to the batch")
	}
	answer, err := service.SubmitBatch(s.ctx, batch, nil)
	s.must(err, "submit the batch")
	s.equal(len(answer.Responses), 21, "answers")
	for _, part := range answer.Responses {
		if *part.ContentID == 10 {
			s.refused(part.Error, 404, "BlobNotFound", "the missing blob")
		} else {
			s.must(part.Error, fmt.Sprint("delete ", *part.ContentID))
		}
	}
	s.equal(s.listed(client, nil), []string{}, "blobs in the end")
	s.containerBatch()
	empty, err := blobservice.NewClientWithSharedKeyCredential(blobEndpoint(), s.blobCredential(wrongKey), blobOptions())
	s.must(err, "make a client with a wrong key")
	s.refused(second(empty.SubmitBatch(s.ctx, batch, nil)), 403, "AuthenticationFailed", "a batch with a wrong key")
}

// containerBatch deletes by a container's own batch, with snapshots.
func (s *scenario) containerBatch() {
	s.Helper()
	client := s.newContainer()
	s.snapshot(s.putBlob(client, "one", "text", nil), nil)
	s.putBlob(client, "two", "text", nil)
	batch, err := client.NewBatchBuilder()
	s.must(err, "make a batch")
	include := blob.DeleteSnapshotsOptionTypeInclude
	s.must(batch.Delete("one", &container.BatchDeleteOptions{DeleteOptions: blob.DeleteOptions{DeleteSnapshots: &include}}), "add to the batch")
	s.must(batch.Delete("two", nil), "add to the batch")
	answer, err := client.SubmitBatch(s.ctx, batch, nil)
	s.must(err, "submit a container's batch")
	for _, part := range answer.Responses {
		s.must(part.Error, "delete by a container's batch")
	}
	s.equal(len(s.items(client, &container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Snapshots: true}})), 0, "blobs in the end")
}
