// Reads and writes under conditions, ranges of content, and checksums.
package sdk

import (
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

func blobConditions(s *scenario) {
	client := s.newBlob("text", nil)
	properties := s.properties(client)
	etag, changed := properties.ETag, properties.LastModified
	before := changed.Add(-time.Second)
	type conditions = blob.ModifiedAccessConditions
	read := func(given conditions) error {
		return s.read(client, &blob.DownloadStreamOptions{AccessConditions: modified(given)})
	}
	look := func(given conditions) error {
		return second(client.GetProperties(s.ctx, &blob.GetPropertiesOptions{AccessConditions: modified(given)}))
	}
	for _, given := range []conditions{
		{IfMatch: etag}, {IfMatch: ptr(azcore.ETagAny)}, {IfNoneMatch: wrongETag}, {IfModifiedSince: &before}, {IfUnmodifiedSince: changed},
		{IfMatch: etag, IfModifiedSince: &before},
	} {
		s.must(read(given), "a read under conditions that hold")
		s.must(look(given), "properties under conditions that hold")
	}
	for what, given := range map[string]conditions{"If-None-Match": {IfNoneMatch: etag}, "If-Modified-Since": {IfModifiedSince: changed}} {
		// For the client an unmodified download is an answer, not an error.
		answer, content, err := s.download(client, &blob.DownloadStreamOptions{AccessConditions: modified(given)})
		s.must(err, "read "+what)
		s.equal(content+word(answer.ErrorCode), "ConditionNotMet", "read "+what)
		s.refused(look(given), 304, "ConditionNotMet", "properties "+what)
	}
	for what, given := range map[string]conditions{"If-Match": {IfMatch: wrongETag}, "If-Unmodified-Since": {IfUnmodifiedSince: &before}} {
		s.refused(read(given), 412, "ConditionNotMet", "read "+what)
		s.refused(look(given), 412, "ConditionNotMet", "properties "+what)
	}

	for what, given := range map[string]conditions{
		"If-Match": {IfMatch: wrongETag}, "If-None-Match": {IfNoneMatch: etag}, "If-Modified-Since": {IfModifiedSince: changed},
		"If-Unmodified-Since": {IfUnmodifiedSince: &before},
	} {
		s.refused(s.upload(client, "other", &blockblob.UploadOptions{AccessConditions: modified(given)}), 412, "ConditionNotMet", "upload "+what)
		s.refused(second(client.SetMetadata(s.ctx, nil, &blob.SetMetadataOptions{AccessConditions: modified(given)})), 412, "ConditionNotMet", "metadata "+what)
		s.refused(second(client.SetHTTPHeaders(s.ctx, blob.HTTPHeaders{}, &blob.SetHTTPHeadersOptions{AccessConditions: modified(given)})), 412, "ConditionNotMet", "headers "+what)
		s.refused(second(client.CreateSnapshot(s.ctx, &blob.CreateSnapshotOptions{AccessConditions: modified(given)})), 412, "ConditionNotMet", "snapshot "+what)
		s.refused(second(client.Delete(s.ctx, &blob.DeleteOptions{AccessConditions: modified(given)})), 412, "ConditionNotMet", "delete "+what)
	}
	s.equal(*s.properties(client).ETag, *etag, "ETag after the refusals")
	s.must(s.upload(client, "other", &blockblob.UploadOptions{AccessConditions: modified(conditions{IfMatch: etag})}), "upload with the right ETag")
	s.must(second(client.Delete(s.ctx, &blob.DeleteOptions{AccessConditions: modified(conditions{IfMatch: ptr(azcore.ETagAny)})})), "delete whatever is there")
	s.refused(s.upload(client, "again", &blockblob.UploadOptions{AccessConditions: modified(conditions{IfMatch: etag})}), 412, "ConditionNotMet", "upload onto nothing")
}

func blobRanges(s *scenario) {
	client := s.newBlob("0123456789", nil)
	for _, test := range []struct {
		offset, count int64
		text, answer  string
	}{
		{2, 3, "234", "bytes 2-4/10"}, {0, 10, "0123456789", "bytes 0-9/10"}, {7, 100, "789", "bytes 7-9/10"},
		{9, 0, "9", "bytes 9-9/10"}, {4, 1, "4", "bytes 4-4/10"},
	} {
		answer, text, err := s.download(client, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: test.offset, Count: test.count}})
		s.must(err, "download a range")
		s.equal([]any{text, *answer.ContentRange, *answer.ContentLength}, []any{test.text, test.answer, int64(len(test.text))}, "range")
	}
	past := func(client downloader, offset, count int64) {
		s.Helper()
		err := s.read(client, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: offset, Count: count}})
		s.refused(err, 416, "InvalidRange", fmt.Sprint("range from ", offset))
	}
	past(client, 10, 0)
	past(client, 11, 5)
	empty := s.newBlob("", nil)
	past(empty, 0, 1)
	past(empty, 1, 0)
	s.equal(s.text(empty), "", "an empty blob")

	content := pattern(3000)
	blocks := s.newContainer().NewBlockBlobClient("blocks")
	for n := range 3 {
		s.must(s.stage(blocks, fmt.Sprint(n), string(content[n*1000:(n+1)*1000])), "stage a block")
	}
	s.must(s.commit(blocks, "0", "1", "2"), "commit")
	for _, span := range [][2]int64{{0, 1}, {999, 2}, {500, 2000}, {1000, 1000}, {2999, 1}, {1, 2999}} {
		_, text, err := s.download(blocks, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: span[0], Count: span[1]}})
		s.must(err, "download a range")
		s.sameBytes([]byte(text), content[span[0]:span[0]+span[1]], fmt.Sprint("range ", span))
	}
}

func blobChecksums(s *scenario) {
	content := pattern(8 << 10)
	client := s.newContainer().NewBlockBlobClient("sum")
	uploaded, err := client.Upload(s.ctx, body(string(content)), nil)
	s.must(err, "upload")
	s.sameBytes(uploaded.ContentMD5, sum(content), "MD5 of the upload")
	s.sameBytes(s.properties(client).ContentMD5, sum(content), "MD5 of the properties")

	span := blob.HTTPRange{Offset: 1000, Count: 4096}
	answer, _, err := s.download(client, &blob.DownloadStreamOptions{Range: span, RangeGetContentMD5: ptr(true)})
	s.must(err, "download a range with its MD5")
	s.sameBytes(answer.ContentMD5, sum(content[1000:5096]), "MD5 of the range")
	s.sameBytes(answer.BlobContentMD5, sum(content), "MD5 of the blob, with a range")
	answer, _, err = s.download(client, &blob.DownloadStreamOptions{Range: span})
	s.must(err, "download a range")
	s.equal(len(answer.ContentMD5), 0, "MD5 that nobody asked for")
	s.must(second(client.SetHTTPHeaders(s.ctx, blob.HTTPHeaders{BlobContentMD5: sum([]byte("else"))}, nil)), "set another MD5")
	s.sameBytes(s.properties(client).ContentMD5, sum([]byte("else")), "MD5 that was set")

	wrong, right := blob.TransferValidationTypeMD5(sum([]byte("another"))), blob.TransferValidationTypeMD5(sum([]byte("text")))
	stage := func(validation blob.TransferValidationType) error {
		return second(client.StageBlock(s.ctx, blockID("1"), body("text"), &blockblob.StageBlockOptions{TransactionalValidation: validation}))
	}
	s.refused(stage(wrong), 400, "Md5Mismatch", "stage with a wrong MD5")
	s.must(stage(right), "stage with the right MD5")
	log := s.newContainer().NewAppendBlobClient("log")
	s.must(second(log.Create(s.ctx, nil)), "create an append blob")
	add := func(validation blob.TransferValidationType) error {
		return second(log.AppendBlock(s.ctx, body("text"), &appendblob.AppendBlockOptions{TransactionalValidation: validation}))
	}
	s.refused(add(wrong), 400, "Md5Mismatch", "append with a wrong MD5")
	s.must(add(right), "append with the right MD5")
	s.equal(s.text(log), "text", "content")
	upload := &blockblob.UploadOptions{TransactionalValidation: wrong}
	s.refused(s.upload(client, "text", upload), 400, "Md5Mismatch", "upload with a wrong MD5")
	s.sameBytes([]byte(s.text(client)), content, "content after the refusal")
}
