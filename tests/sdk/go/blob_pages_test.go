// Append blobs and page blobs.
package sdk

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
)

func appendBlob(s *scenario) {
	client := s.newContainer()
	log := client.NewAppendBlobClient("log")
	add := func(text string, options *appendblob.AppendBlockOptions) (appendblob.AppendBlockResponse, error) {
		return log.AppendBlock(s.ctx, body(text), options)
	}
	s.refused(second(add("early", nil)), 404, "BlobNotFound", "append before the create")
	s.must(second(log.Create(s.ctx, &appendblob.CreateOptions{Metadata: metadata("color", "red")})), "create")
	s.equal(s.text(log), "", "content of a new blob")
	first, err := add("one,", nil)
	s.must(err, "append")
	s.equal([]any{*first.BlobAppendOffset, *first.BlobCommittedBlockCount}, []any{"0", int32(1)}, "first append")
	again, err := add("two,", nil)
	s.must(err, "append")
	s.equal([]any{*again.BlobAppendOffset, *again.BlobCommittedBlockCount}, []any{"4", int32(2)}, "second append")
	s.equal(s.text(log), "one,two,", "content")
	properties := s.properties(log)
	s.equal([]any{*properties.BlobType, *properties.ContentLength, *properties.BlobCommittedBlockCount, *properties.ETag},
		[]any{blob.BlobTypeAppendBlob, int64(8), int32(2), *again.ETag}, "properties")
	s.has(properties.Metadata, metadata("Color", "red"), "metadata")

	at := func(position, size int64) *appendblob.AppendBlockOptions {
		return &appendblob.AppendBlockOptions{AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: &position, MaxSize: &size}}
	}
	s.refused(second(add("x", at(4, 100))), 412, "AppendPositionConditionNotMet", "another position")
	s.refused(second(add("x", at(8, 8))), 412, "MaxBlobSizeConditionNotMet", "a smaller size")
	s.must(second(add("3", at(8, 9))), "the right position and size")
	stale := &appendblob.AppendBlockOptions{AccessConditions: modified(blob.ModifiedAccessConditions{IfMatch: ptr(azcore.ETag(*first.ETag))})}
	s.refused(second(add("x", stale)), 412, "ConditionNotMet", "a stale ETag")
	s.equal(s.text(log), "one,two,3", "content after the conditions")

	s.refused(s.stage(client.NewBlockBlobClient("log"), "1", "x"), 409, "InvalidBlobType", "stage a block of an append blob")
	s.putBlob(client, "block", "text", nil)
	s.refused(second(client.NewAppendBlobClient("block").AppendBlock(s.ctx, body("x"), nil)), 409, "InvalidBlobType", "append to a block blob")
	s.must(second(log.Create(s.ctx, nil)), "create again")
	s.equal(s.text(log), "", "content after creating it again")
}

const page = 512

// newPages creates a page blob of eight pages.
func (s *scenario) newPages(options *pageblob.CreateOptions) *pageblob.Client {
	s.Helper()
	client := s.newContainer().NewPageBlobClient("pages")
	s.must(second(client.Create(s.ctx, 8*page, options)), "create a page blob")
	return client
}

func (s *scenario) writePages(client *pageblob.Client, content []byte, offset int64, options *pageblob.UploadPagesOptions) error {
	return second(client.UploadPages(s.ctx, body(string(content)), blob.HTTPRange{Offset: offset, Count: int64(len(content))}, options))
}

// pageRanges are a blob's written ranges, the last byte of each included.
func (s *scenario) pageRanges(client *pageblob.Client, span blob.HTTPRange) string {
	s.Helper()
	pager := client.NewGetPageRangesPager(&pageblob.GetPageRangesOptions{Range: span})
	var text strings.Builder
	for pages := 0; pager.More() && pages < pagesMax; pages++ {
		answer, err := pager.NextPage(s.ctx)
		s.must(err, "read the page ranges")
		for _, written := range answer.PageRange {
			fmt.Fprintf(&text, "%d-%d ", *written.Start, *written.End)
		}
	}
	return text.String()
}

func pageBlob(s *scenario) {
	client := s.newPages(&pageblob.CreateOptions{Metadata: metadata("color", "red")})
	want := make([]byte, 8*page)
	s.sameBytes([]byte(s.text(client)), want, "content of a new blob")
	s.equal(s.pageRanges(client, blob.HTTPRange{}), "", "ranges of a new blob")

	content := pattern(8 * page)
	for _, span := range [][2]int{{page, 3 * page}, {6 * page, 7 * page}, {2 * page, 3 * page}} {
		copy(want[span[0]:span[1]], content[span[0]:span[1]])
		s.must(s.writePages(client, content[span[0]:span[1]], int64(span[0]), nil), "write pages")
	}
	s.sameBytes([]byte(s.text(client)), want, "content")
	s.equal(s.pageRanges(client, blob.HTTPRange{}), "512-1535 3072-3583 ", "ranges")
	s.equal(s.pageRanges(client, blob.HTTPRange{Count: 2 * page}), "512-1023 ", "ranges of a part")
	s.must(second(client.ClearPages(s.ctx, blob.HTTPRange{Offset: page, Count: page}, nil)), "clear a page")
	clear(want[page : 2*page])
	s.sameBytes([]byte(s.text(client)), want, "content after clearing")
	s.equal(s.pageRanges(client, blob.HTTPRange{}), "1024-1535 3072-3583 ", "ranges after clearing")
	properties := s.properties(client)
	s.equal([]any{*properties.BlobType, *properties.ContentLength}, []any{blob.BlobTypePageBlob, int64(8 * page)}, "properties")
	s.has(properties.Metadata, metadata("Color", "red"), "metadata")

	for _, span := range [][2]int64{{1, page}, {0, page - 1}, {100, 412}} {
		s.refusedWith(s.writePages(client, content[:span[1]], span[0], nil), fmt.Sprint("write ", span), 400, 416)
		s.refusedWith(second(client.ClearPages(s.ctx, blob.HTTPRange{Offset: span[0], Count: span[1]}, nil)), fmt.Sprint("clear ", span), 400, 416)
	}
	s.refused(s.writePages(client, content[:2*page], 7*page, nil), 416, "InvalidPageRange", "write past the end")
	s.refused(second(client.Create(s.ctx, 1000, nil)), 400, "InvalidHeaderValue", "create with 1000 bytes")
	s.sameBytes([]byte(s.text(client)), want, "content after the refusals")
}

func pageBlobResize(s *scenario) {
	client := s.newPages(&pageblob.CreateOptions{SequenceNumber: ptr(int64(5))})
	content := pattern(8 * page)
	s.must(s.writePages(client, content, 0, nil), "write everything")
	s.must(second(client.Resize(s.ctx, 2*page, nil)), "shrink")
	s.equal(s.pageRanges(client, blob.HTTPRange{}), "0-1023 ", "ranges after shrinking")
	s.must(second(client.Resize(s.ctx, 4*page, nil)), "grow")
	s.sameBytes([]byte(s.text(client)), append(content[:2*page:2*page], make([]byte, 2*page)...), "content after growing")
	s.refused(second(client.Resize(s.ctx, 1000, nil)), 400, "InvalidHeaderValue", "resize to 1000 bytes")

	update := func(action pageblob.SequenceNumberActionType, number *int64) {
		s.Helper()
		s.must(second(client.UpdateSequenceNumber(s.ctx, &pageblob.UpdateSequenceNumberOptions{ActionType: &action, SequenceNumber: number})), "update the sequence number")
	}
	number := func() int64 { return *s.properties(client).BlobSequenceNumber }
	s.equal(number(), int64(5), "sequence number of the create")
	update(pageblob.SequenceNumberActionTypeMax, ptr(int64(3)))
	s.equal(number(), int64(5), "the greater of two")
	update(pageblob.SequenceNumberActionTypeUpdate, ptr(int64(7)))
	s.equal(number(), int64(7), "an update")
	update(pageblob.SequenceNumberActionTypeIncrement, nil)
	s.equal(number(), int64(8), "an increment")

	type conditions = pageblob.SequenceNumberAccessConditions
	write := func(given conditions) error {
		return s.writePages(client, content[:page], 0, &pageblob.UploadPagesOptions{SequenceNumberAccessConditions: &given})
	}
	for _, given := range []conditions{{IfSequenceNumberEqualTo: ptr(int64(7))}, {IfSequenceNumberLessThan: ptr(int64(8))}, {IfSequenceNumberLessThanOrEqualTo: ptr(int64(7))}} {
		s.refused(write(given), 412, "SequenceNumberConditionNotMet", "a condition that does not hold")
	}
	for _, given := range []conditions{{IfSequenceNumberEqualTo: ptr(int64(8))}, {IfSequenceNumberLessThan: ptr(int64(9))}, {IfSequenceNumberLessThanOrEqualTo: ptr(int64(8))}} {
		s.must(write(given), "a condition that holds")
	}
}
