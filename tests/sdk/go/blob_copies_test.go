// Snapshots of blobs, and copies within the server.
package sdk

import (
	"regexp"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

var snapshotTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$`)

// snapshot takes one and gives its client.
func (s *scenario) snapshot(client *blockblob.Client, options *blob.CreateSnapshotOptions) *blockblob.Client {
	s.Helper()
	taken, err := client.CreateSnapshot(s.ctx, options)
	s.must(err, "take a snapshot")
	if !snapshotTime.MatchString(*taken.Snapshot) {
		s.Errorf("a snapshot of %s", *taken.Snapshot)
	}
	past, err := client.WithSnapshot(*taken.Snapshot)
	s.must(err, "make a client of the snapshot")
	return past
}

func snapshots(s *scenario) {
	client := s.newBlob("before", &blockblob.UploadOptions{Metadata: metadata("color", "red")})
	etag := *s.properties(client).ETag
	past := s.snapshot(client, nil)
	s.must(s.upload(client, "after", nil), "overwrite")
	s.equal(s.text(past), "before", "content of the snapshot")
	s.equal(s.text(client), "after", "content of the blob")
	s.equal(*s.properties(past).ETag, etag, "ETag of the snapshot")
	s.has(s.properties(past).Metadata, metadata("Color", "red"), "metadata of the snapshot")
	other := s.snapshot(client, &blob.CreateSnapshotOptions{Metadata: metadata("color", "blue")})
	s.has(s.properties(other).Metadata, metadata("Color", "blue"), "metadata of its own")
	s.has(s.properties(client).Metadata, nil, "metadata of the blob")
	s.refusedWith(second(past.SetMetadata(s.ctx, metadata("color", "green"), nil)), "a write to a snapshot", 400)
	never, err := client.WithSnapshot("2011-03-09T01:42:34.9360000Z")
	s.must(err, "make a client of a snapshot that is not there")
	s.refused(s.read(never, nil), 404, "BlobNotFound", "a missing snapshot")

	remove := func(which blob.DeleteSnapshotsOptionType) error {
		return second(client.Delete(s.ctx, &blob.DeleteOptions{DeleteSnapshots: &which}))
	}
	s.refused(second(client.Delete(s.ctx, nil)), 409, "SnapshotsPresent", "delete a blob with snapshots")
	s.must(second(past.Delete(s.ctx, nil)), "delete one snapshot")
	s.refused(s.read(past, nil), 404, "BlobNotFound", "the deleted snapshot")
	s.equal(s.text(other), "after", "the other snapshot")
	s.must(remove(blob.DeleteSnapshotsOptionTypeOnly), "delete the snapshots only")
	s.refused(s.read(other, nil), 404, "BlobNotFound", "the other snapshot, deleted")
	s.equal(s.text(client), "after", "the blob without snapshots")
	last := s.snapshot(client, nil)
	s.must(remove(blob.DeleteSnapshotsOptionTypeInclude), "delete all")
	s.refused(s.read(client, nil), 404, "BlobNotFound", "the deleted blob")
	s.refused(s.read(last, nil), 404, "BlobNotFound", "its deleted snapshot")
}

// copied starts a copy and waits until it is done.
func (s *scenario) copied(target *blockblob.Client, source string, options *blob.StartCopyFromURLOptions) {
	s.Helper()
	answer, err := target.StartCopyFromURL(s.ctx, source, options)
	s.must(err, "start a copy")
	s.eventually("a copy", func() bool { return *s.properties(target).CopyStatus == blob.CopyStatusTypeSuccess })
	s.equal(*s.properties(target).CopyID, *answer.CopyID, "the copy's id")
}

func blobCopy(s *scenario) {
	client, name := s.newNamedContainer()
	source := s.putBlob(client, "source", "text", &blockblob.UploadOptions{HTTPHeaders: someHeaders(), Metadata: metadata("color", "red")})
	target := client.NewBlockBlobClient("target")
	s.copied(target, source.URL(), nil)
	s.equal(s.text(target), "text", "copied content")
	s.equal(s.headers(target), textOfHeaders(someHeaders()), "copied headers")
	properties := s.properties(target)
	s.has(properties.Metadata, metadata("Color", "red"), "copied metadata")
	s.equal([]string{*properties.CopySource, *properties.CopyProgress}, []string{source.URL(), "4/4"}, "what is told of the copy")
	s.copied(target, source.URL(), &blob.StartCopyFromURLOptions{Metadata: metadata("color", "blue")})
	s.has(s.properties(target).Metadata, metadata("Color", "blue"), "other metadata")

	past := s.snapshot(source, nil)
	s.must(s.upload(source, "after", nil), "overwrite the source")
	s.copied(target, past.URL(), nil)
	s.equal(s.text(target), "text", "copy of a snapshot")
	s.copied(source, past.URL(), nil)
	s.equal(s.text(source), "text", "a snapshot copied over its blob")
	log := client.NewAppendBlobClient("log")
	s.must(second(log.Create(s.ctx, nil)), "create an append blob")
	s.must(second(log.AppendBlock(s.ctx, body("line"), nil)), "append")
	other := client.NewBlockBlobClient("log copy")
	s.copied(other, log.URL(), nil)
	s.equal([]any{*s.properties(other).BlobType, s.text(other)}, []any{blob.BlobTypeAppendBlob, "line"}, "copy of an append blob")

	start := func(source string, options *blob.StartCopyFromURLOptions) error {
		return second(target.StartCopyFromURL(s.ctx, source, options))
	}
	wrongSource := &blob.StartCopyFromURLOptions{SourceModifiedAccessConditions: &blob.SourceModifiedAccessConditions{SourceIfMatch: wrongETag}}
	s.refused(start(source.URL(), wrongSource), 412, "SourceConditionNotMet", "a condition on the source")
	wrongTarget := &blob.StartCopyFromURLOptions{AccessConditions: modified(blob.ModifiedAccessConditions{IfMatch: wrongETag})}
	s.refusedWith(start(source.URL(), wrongTarget), "a condition on the target", 412)
	onlyNew := &blob.StartCopyFromURLOptions{AccessConditions: modified(blob.ModifiedAccessConditions{IfNoneMatch: ptr(azcore.ETagAny)})}
	s.refused(start(source.URL(), onlyNew), 409, "BlobAlreadyExists", "a copy that must not replace")
	s.refusedWith(start(client.NewBlobClient("missing").URL(), nil), "a missing source", 404)
	s.equal(s.text(target), "text", "the target after the refusals")

	readable := s.readable(client, name, "source")
	direct := client.NewBlockBlobClient("direct")
	s.must(second(direct.CopyFromURL(s.ctx, readable, nil)), "copy at once")
	s.equal(s.text(direct), "text", "a copy at once")
	s.must(second(direct.UploadBlobFromURL(s.ctx, readable, nil)), "upload from a URL")
	s.equal(s.text(direct), "text", "an upload from a URL")
}
