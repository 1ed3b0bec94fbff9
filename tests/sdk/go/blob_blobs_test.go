// Block blobs as a whole: content, names, properties, headers, metadata, overwriting.
package sdk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

func blockBlobRoundtrip(s *scenario) {
	client := s.newContainer()
	for _, length := range []int{0, 1, 4 << 10, 5 << 20} {
		content := pattern(length)
		blob := s.putBlob(client, fmt.Sprint("length-", length), string(content), nil)
		s.equal(*s.properties(blob).ContentLength, int64(length), "length")
		s.sameBytes([]byte(s.text(blob)), content, "a stream")
		buffer := make([]byte, length)
		_, err := blob.DownloadBuffer(s.ctx, buffer, nil)
		s.must(err, "download into a buffer")
		s.sameBytes(buffer, content, "a buffer")
	}

	missing := client.NewBlockBlobClient("missing")
	s.refused(s.read(missing, nil), 404, "BlobNotFound", "download")
	s.refused(second(missing.GetProperties(s.ctx, nil)), 404, "BlobNotFound", "properties")
	s.refused(second(missing.Delete(s.ctx, nil)), 404, "BlobNotFound", "delete")
	s.refused(second(missing.SetMetadata(s.ctx, nil, nil)), 404, "BlobNotFound", "set metadata")
	doomed := s.putBlob(client, "doomed", "text", nil)
	s.must(second(doomed.Delete(s.ctx, nil)), "delete")
	s.refused(s.read(doomed, nil), 404, "BlobNotFound", "download of a deleted blob")
}

func blobNames(s *scenario) {
	client := s.newContainer()
	names := []string{
		"a", "a/b/c", "a/b/", "Case", "case", "with space", "100%", "%41", "a+b", "a&b=c", "q?mark", "#hash",
		`quote'and"quote`, "comma,semi;colon:", "(brackets)[]{}", "naïve/日本語 \U0001F600", "~tilde!*$@^`|", "<tag>",
		strings.Repeat("x", 1024),
	}
	for _, name := range names {
		s.putBlob(client, name, name, nil)
	}
	for _, name := range names {
		s.equal(s.text(client.NewBlobClient(name)), name, "text of "+name)
	}
	listed := s.listed(client, nil)
	slices.Sort(listed)
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	s.equal(listed, sorted, "listed names")
	for _, name := range names {
		s.must(second(client.NewBlobClient(name).Delete(s.ctx, nil)), "delete "+name)
	}
	s.equal(s.listed(client, nil), []string{}, "names in the end")
}

func blobProperties(s *scenario) {
	client := s.newBlob("0123456789", &blockblob.UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: ptr("text/plain")}})
	properties := s.properties(client)
	s.equal([]any{*properties.ContentLength, *properties.ContentType, *properties.BlobType, *properties.AcceptRanges},
		[]any{int64(10), "text/plain", blob.BlobTypeBlockBlob, "bytes"}, "properties")
	s.equal([]any{*properties.LeaseState, *properties.LeaseStatus, *properties.IsServerEncrypted, *properties.AccessTier, *properties.AccessTierInferred},
		[]any{lease.StateTypeAvailable, lease.StatusTypeUnlocked, true, "Hot", true}, "lease, encryption and tier")
	s.sameBytes(properties.ContentMD5, sum([]byte("0123456789")), "MD5")
	s.equal(*properties.CreationTime, *properties.LastModified, "times of a new blob")
	if age := time.Since(*properties.LastModified); age < -time.Minute || age > time.Hour {
		s.Errorf("modified %v ago", age)
	}

	answer, content, err := s.download(client, nil)
	s.must(err, "download")
	s.equal(content, "0123456789", "content")
	s.equal([]any{*answer.ContentLength, *answer.ContentType, *answer.BlobType, *answer.ETag, *answer.LastModified},
		[]any{int64(10), "text/plain", blob.BlobTypeBlockBlob, *properties.ETag, *properties.LastModified}, "headers of the download")

	etags := []azcore.ETag{*properties.ETag}
	s.must(s.upload(client, "other", nil), "upload")
	created := *s.properties(client).CreationTime
	for what, change := range map[string]func() error{
		"metadata": func() error { return second(client.SetMetadata(s.ctx, metadata("a", "b"), nil)) },
		"headers":  func() error { return second(client.SetHTTPHeaders(s.ctx, blob.HTTPHeaders{}, nil)) },
	} {
		s.must(change(), what)
		etag := *s.properties(client).ETag
		if slices.Contains(etags, etag) {
			s.Errorf("%s kept the ETag %s", what, etag)
		}
		etags = append(etags, etag)
	}
	s.equal(*s.properties(client).CreationTime, created, "time of creation in the end")
}

// someHeaders are set with a blob and read back.
func someHeaders() *blob.HTTPHeaders {
	return &blob.HTTPHeaders{
		BlobContentType: ptr("text/html; charset=utf-8"), BlobContentEncoding: ptr("identity"), BlobContentLanguage: ptr("de, en"),
		BlobContentDisposition: ptr(`attachment; filename="a b.html"`), BlobCacheControl: ptr("no-cache, max-age=3"),
	}
}

func (s *scenario) headers(client downloader) string {
	s.Helper()
	properties := s.properties(client)
	return headersText(properties.ContentType, properties.ContentEncoding, properties.ContentLanguage, properties.ContentDisposition, properties.CacheControl)
}

func headersText(values ...*string) string {
	var text strings.Builder
	for _, value := range values {
		if value != nil {
			text.WriteString(*value)
		}
		text.WriteString("|")
	}
	return text.String()
}

func textOfHeaders(headers *blob.HTTPHeaders) string {
	return headersText(headers.BlobContentType, headers.BlobContentEncoding, headers.BlobContentLanguage, headers.BlobContentDisposition, headers.BlobCacheControl)
}

func blobHTTPHeaders(s *scenario) {
	headers := someHeaders()
	client := s.newBlob("text", &blockblob.UploadOptions{HTTPHeaders: headers, Metadata: metadata("kept", "yes")})
	s.equal(s.headers(client), textOfHeaders(headers), "headers of the upload")
	answer, _, err := s.download(client, nil)
	s.must(err, "download")
	s.equal([]string{*answer.ContentLanguage, *answer.ContentDisposition}, []string{"de, en", `attachment; filename="a b.html"`}, "headers of a download")

	headers.BlobContentType, headers.BlobContentLanguage = ptr("text/plain"), ptr("fr")
	s.must(second(client.SetHTTPHeaders(s.ctx, *headers, nil)), "set headers")
	s.equal(s.headers(client), textOfHeaders(headers), "changed headers")
	s.has(s.properties(client).Metadata, metadata("Kept", "yes"), "metadata")
	s.must(second(client.SetHTTPHeaders(s.ctx, blob.HTTPHeaders{BlobCacheControl: ptr("private")}, nil)), "set one header")
	if got := s.headers(client); !strings.HasSuffix(got, "||||private|") {
		s.Errorf("headers after setting one: %s", got)
	}
	s.equal(s.text(client), "text", "content")
}

func blobMetadata(s *scenario) {
	client := s.newBlob("text", &blockblob.UploadOptions{Metadata: metadata("color", "red", "size", "xl")})
	s.has(s.properties(client).Metadata, metadata("Color", "red", "Size", "xl"), "metadata of the upload")
	answer, _, err := s.download(client, nil)
	s.must(err, "download")
	s.has(answer.Metadata, metadata("Color", "red", "Size", "xl"), "metadata of a download")
	set := func(pairs map[string]*string) error { return second(client.SetMetadata(s.ctx, pairs, nil)) }
	s.must(set(metadata("shape", "round, or so")), "replace")
	s.has(s.properties(client).Metadata, metadata("Shape", "round, or so"), "replaced metadata")
	s.refused(set(metadata("not-a-name", "x")), 400, "InvalidMetadata", "a bad name")
	s.refused(s.upload(client, "other", &blockblob.UploadOptions{Metadata: metadata("1st", "x")}), 400, "InvalidMetadata", "an upload with a bad name")
	s.refused(set(metadata("large", strings.Repeat("x", 8<<10+1))), 400, "MetadataTooLarge", "more than 8 KiB")
	s.has(s.properties(client).Metadata, metadata("Shape", "round, or so"), "metadata after the refusals")
	s.must(set(nil), "clear")
	s.has(s.properties(client).Metadata, nil, "cleared metadata")
	s.equal(s.text(client), "text", "content")
}

func blobOverwrite(s *scenario) {
	client := s.newBlob("long first text", &blockblob.UploadOptions{HTTPHeaders: someHeaders(), Metadata: metadata("color", "red")})
	s.must(s.upload(client, "short", nil), "overwrite")
	s.equal(s.text(client), "short", "content")
	s.has(s.properties(client).Metadata, nil, "metadata")
	s.equal(s.headers(client), "application/octet-stream|||||", "headers")

	onlyNew := &blockblob.UploadOptions{AccessConditions: modified(blob.ModifiedAccessConditions{IfNoneMatch: ptr(azcore.ETagAny)})}
	s.refused(s.upload(client, "second", onlyNew), 409, "BlobAlreadyExists", "an upload that must not replace")
	s.equal(s.text(client), "short", "content after the refusal")
	s.must(second(client.Delete(s.ctx, nil)), "delete")
	s.must(s.upload(client, "second", onlyNew), "upload where nothing is")
	s.equal(s.text(client), "second", "content in the end")
}
