// Blocks: staged, committed, listed; taken from other blobs; large transfers in parallel.
package sdk

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
)

func (s *scenario) stage(client *blockblob.Client, id, text string) error {
	return second(client.StageBlock(s.ctx, blockID(id), body(text), nil))
}

func (s *scenario) commit(client *blockblob.Client, ids ...string) error {
	return s.commitWith(client, nil, ids...)
}

func (s *scenario) commitWith(client *blockblob.Client, options *blockblob.CommitBlockListOptions, ids ...string) error {
	encoded := []string{}
	for _, id := range ids {
		encoded = append(encoded, blockID(id))
	}
	return second(client.CommitBlockList(s.ctx, encoded, options))
}

func stagedBlocks(s *scenario) {
	client := s.newContainer().NewBlockBlobClient("blob")
	for _, id := range []string{"A", "B", "C"} {
		s.must(s.stage(client, id, id), "stage")
	}
	s.refused(s.read(client, nil), 404, "BlobNotFound", "download before the commit")
	s.must(s.commitWith(client, &blockblob.CommitBlockListOptions{Metadata: metadata("color", "red")}, "C", "A", "B", "A"), "commit")
	s.equal(s.text(client), "CABA", "content")
	s.has(s.properties(client).Metadata, metadata("Color", "red"), "metadata of the commit")

	s.must(s.stage(client, "D", "D"), "stage one more")
	s.must(s.commit(client, "B", "D"), "commit old and new")
	s.equal(s.text(client), "BD", "content of old and new")
	s.has(s.properties(client).Metadata, nil, "metadata of the second commit")
	s.refused(s.commit(client, "A"), 400, "InvalidBlockList", "commit a dropped block")

	s.must(s.stage(client, "D", "one"), "stage again")
	s.must(s.stage(client, "D", "two"), "stage once more")
	s.equal(s.text(client), "BD", "content before the commit")
	s.must(s.commit(client, "D"), "commit the latest")
	s.equal(s.text(client), "two", "the latest content")

	s.refused(s.commit(client, "D", "X"), 400, "InvalidBlockList", "commit an unknown block")
	s.must(s.stage(client, "E", "E"), "stage")
	s.refused(s.stage(client, "longer", "x"), 400, "InvalidBlobOrBlock", "an id of another length")
	s.refusedWith(second(client.StageBlock(s.ctx, "not base64!", body("x"), nil)), "an id that is not base64", 400)
	s.refusedWith(s.stage(client, strings.Repeat("x", 65), "x"), "an id of 65 bytes", 400)
	s.must(s.upload(client, "whole", nil), "upload")
	s.refused(s.commit(client, "E"), 400, "InvalidBlockList", "commit what an upload dropped")
	s.equal(s.text(client), "whole", "content in the end")
}

func blockList(s *scenario) {
	client := s.newContainer().NewBlockBlobClient("blob")
	list := func(kind blockblob.BlockListType) string {
		s.Helper()
		answer, err := client.GetBlockList(s.ctx, kind, nil)
		s.must(err, "list blocks")
		return blockTexts(answer.CommittedBlocks) + "/" + blockTexts(answer.UncommittedBlocks)
	}
	_, err := client.GetBlockList(s.ctx, blockblob.BlockListTypeAll, nil)
	s.refused(err, 404, "BlobNotFound", "blocks of a missing blob")
	s.must(s.stage(client, "A", "1"), "stage")
	s.must(s.stage(client, "B", "22"), "stage")
	s.equal(list(blockblob.BlockListTypeAll), "/A1 B2 ", "staged blocks")
	s.must(s.commit(client, "B", "A"), "commit")
	s.equal(list(blockblob.BlockListTypeAll), "B2 A1 /", "committed blocks")

	etag := *s.properties(client).ETag
	s.must(s.stage(client, "C", "333"), "stage one more")
	s.equal(list(blockblob.BlockListTypeCommitted), "B2 A1 /", "committed blocks only")
	s.equal(list(blockblob.BlockListTypeUncommitted), "/C3 ", "uncommitted blocks only")
	s.equal(list(blockblob.BlockListTypeAll), "B2 A1 /C3 ", "all blocks")
	s.equal(*s.properties(client).ETag, etag, "ETag after staging")
	s.equal(s.text(client), "221", "content after staging")
	answer, err := client.GetBlockList(s.ctx, blockblob.BlockListTypeAll, nil)
	s.must(err, "list blocks")
	s.equal([]any{*answer.ETag, *answer.BlobContentLength}, []any{etag, int64(3)}, "headers of the list")
	s.must(s.upload(client, "whole", nil), "upload")
	s.equal(list(blockblob.BlockListTypeAll), "/", "blocks of a blob that was put whole")
}

func blockTexts(blocks []*blockblob.Block) string {
	var text strings.Builder
	for _, block := range blocks {
		id, _ := base64.StdEncoding.DecodeString(*block.Name)
		fmt.Fprintf(&text, "%s%d ", id, *block.Size)
	}
	return text.String()
}

const transferBytes, transferBlock = 256 << 20, 4 << 20

func parallelTransfer(s *scenario) {
	client := s.newContainer().NewBlockBlobClient("large")
	content := pattern(transferBytes)
	// Only a stream is cut into blocks at this size.
	_, err := client.UploadStream(s.ctx, bytes.NewReader(content), &blockblob.UploadStreamOptions{BlockSize: transferBlock, Concurrency: 8})
	s.must(err, "upload")
	list, err := client.GetBlockList(s.ctx, blockblob.BlockListTypeCommitted, nil)
	s.must(err, "list blocks")
	s.equal(len(list.CommittedBlocks), transferBytes/transferBlock, "blocks")
	back := make([]byte, transferBytes)
	_, err = client.DownloadBuffer(s.ctx, back, &blob.DownloadBufferOptions{BlockSize: transferBlock, Concurrency: 8})
	s.must(err, "download")
	s.sameBytes(sum(back), sum(content), "MD5 of the whole")

	span := blob.HTTPRange{Offset: 12_345_678, Count: 4_000_000}
	answer, text, err := s.download(client, &blob.DownloadStreamOptions{Range: span, RangeGetContentMD5: ptr(true)})
	s.must(err, "download a range")
	s.sameBytes(sum([]byte(text)), sum(content[span.Offset:span.Offset+span.Count]), "MD5 of a range")
	s.sameBytes(answer.ContentMD5, sum([]byte(text)), "MD5 that came with the range")
}

// readable is a blob's address with the right to read it.
func (s *scenario) readable(client *container.Client, containerName, blobName string) string {
	s.Helper()
	token := s.blobToken(sas.BlobSignatureValues{ContainerName: containerName, BlobName: blobName, Permissions: "r"})
	return client.NewBlobClient(blobName).URL() + "?" + token
}

func blockFromURL(s *scenario) {
	client, name := s.newNamedContainer()
	s.putBlob(client, "source", "0123456789", nil)
	source := s.readable(client, name, "source")
	target := client.NewBlockBlobClient("target")
	from := func(id, source string, options *blockblob.StageBlockFromURLOptions) error {
		return second(target.StageBlockFromURL(s.ctx, blockID(id), source, options))
	}
	s.must(from("1", source, nil), "stage a whole source")
	s.must(from("2", source, &blockblob.StageBlockFromURLOptions{Range: blob.HTTPRange{Offset: 3, Count: 4}}), "stage a part")
	s.must(s.stage(target, "3", "!"), "stage bytes")
	s.must(s.commit(target, "2", "3", "1"), "commit")
	s.equal(s.text(target), "3456!0123456789", "content")

	s.refused(from("4", s.readable(client, name, "missing"), nil), 404, "CannotVerifyCopySource", "a missing source")
	sumOf := func(text string) *blockblob.StageBlockFromURLOptions {
		return &blockblob.StageBlockFromURLOptions{SourceContentValidation: blob.SourceContentValidationTypeMD5(sum([]byte(text)))}
	}
	s.refused(from("4", source, sumOf("something else")), 400, "Md5Mismatch", "a source with another MD5")
	s.must(from("4", source, sumOf("0123456789")), "a source with its MD5")
}
