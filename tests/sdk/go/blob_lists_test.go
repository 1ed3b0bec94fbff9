// Lists of blobs: flat, by hierarchy, in pages, with what may be included.
package sdk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

func (s *scenario) flatPages(client *container.Client, options *container.ListBlobsFlatOptions) []container.ListBlobsFlatResponse {
	s.Helper()
	pager := client.NewListBlobsFlatPager(options)
	var pages []container.ListBlobsFlatResponse
	for pager.More() && len(pages) < pagesMax {
		page, err := pager.NextPage(s.ctx)
		s.must(err, "read a page")
		pages = append(pages, page)
	}
	return pages
}

func (s *scenario) items(client *container.Client, options *container.ListBlobsFlatOptions) []*container.BlobItem {
	s.Helper()
	items := []*container.BlobItem{}
	for _, page := range s.flatPages(client, options) {
		items = append(items, page.Segment.BlobItems...)
	}
	return items
}

// listed are the names of a flat list.
func (s *scenario) listed(client *container.Client, options *container.ListBlobsFlatOptions) []string {
	s.Helper()
	return itemNames(s.items(client, options))
}

func itemNames(items []*container.BlobItem) []string {
	names := []string{}
	for _, item := range items {
		names = append(names, *item.Name)
	}
	return names
}

// filled is a container with blobs of these names.
func (s *scenario) filled(names ...string) (*container.Client, string) {
	s.Helper()
	client, name := s.newNamedContainer()
	for _, blob := range names {
		s.putBlob(client, blob, blob, nil)
	}
	return client, name
}

func listBlobs(s *scenario) {
	names := []string{"A", "B/x", "a", "a b", "a/1", "a/10", "a/2", "b", "é"}
	reversed := slices.Clone(names)
	slices.Reverse(reversed)
	client, _ := s.filled(reversed...)
	by := func(prefix string) []string {
		return s.listed(client, &container.ListBlobsFlatOptions{Prefix: &prefix})
	}
	s.equal(s.listed(client, nil), names, "all in order")
	s.equal(by("a"), []string{"a", "a b", "a/1", "a/10", "a/2"}, "by a prefix")
	s.equal(by("a/1"), []string{"a/1", "a/10"}, "by a longer prefix")
	s.equal(by("c"), []string{}, "by a prefix of nothing")

	typed := s.newContainer()
	own := s.properties(s.putBlob(typed, "block", "text", &blockblob.UploadOptions{HTTPHeaders: someHeaders(), Metadata: metadata("color", "red")}))
	s.must(second(typed.NewAppendBlobClient("append").Create(s.ctx, nil)), "create an append blob")
	s.must(second(typed.NewPageBlobClient("page").Create(s.ctx, 1024, nil)), "create a page blob")
	items := s.items(typed, nil)
	s.equal(itemNames(items), []string{"append", "block", "page"}, "blobs of every type")
	s.equal([]any{*items[0].Properties.BlobType, *items[1].Properties.BlobType, *items[2].Properties.BlobType},
		[]any{blob.BlobTypeAppendBlob, blob.BlobTypeBlockBlob, blob.BlobTypePageBlob}, "types")
	s.equal([]int64{*items[2].Properties.ContentLength, *items[2].Properties.BlobSequenceNumber}, []int64{1024, 0}, "a page blob")
	properties := items[1].Properties
	s.equal(strings.Trim(string(*properties.ETag), `"`), strings.Trim(string(*own.ETag), `"`), "ETag")
	s.equal([]string{properties.LastModified.String(), properties.CreationTime.String()}, []string{own.LastModified.String(), own.CreationTime.String()}, "times")
	s.equal(headersText(properties.ContentType, properties.ContentEncoding, properties.ContentLanguage, properties.ContentDisposition, properties.CacheControl),
		textOfHeaders(someHeaders()), "headers")
	s.sameBytes(properties.ContentMD5, sum([]byte("text")), "MD5")
	s.equal([]any{*properties.ContentLength, *properties.LeaseState, *properties.LeaseStatus, *properties.AccessTier, *properties.ServerEncrypted},
		[]any{int64(4), lease.StateTypeAvailable, lease.StatusTypeUnlocked, blob.AccessTierHot, true}, "length, lease, tier, encryption")
	s.equal(len(items[1].Metadata), 0, "metadata that nobody asked for")
}

// level lists one level; prefixes are in brackets and come after the blobs, as the client gives them.
func (s *scenario) level(client *container.Client, delimiter, prefix string, marker *string, size *int32) ([]string, *string) {
	s.Helper()
	pager := client.NewListBlobsHierarchyPager(delimiter, &container.ListBlobsHierarchyOptions{Prefix: &prefix, Marker: marker, MaxResults: size})
	answer, err := pager.NextPage(s.ctx)
	s.must(err, "read a page")
	names := itemNames(answer.Segment.BlobItems)
	for _, prefix := range answer.Segment.BlobPrefixes {
		names = append(names, "["+*prefix.Name+"]")
	}
	return names, answer.NextMarker
}

func listHierarchy(s *scenario) {
	client, _ := s.filled("a", "a/1", "a/2", "a/b/3", "b/4", "c", "d//5", "e-1")
	for _, test := range []struct {
		delimiter, prefix string
		names             []string
	}{
		{"/", "", []string{"a", "c", "e-1", "[a/]", "[b/]", "[d/]"}},
		{"/", "a/", []string{"a/1", "a/2", "[a/b/]"}},
		{"/", "a/b/", []string{"a/b/3"}},
		{"/", "d/", []string{"[d//]"}},
		{"/", "a", []string{"a", "[a/]"}},
		{"-", "e", []string{"[e-]"}},
		{"/", "none/", []string{}},
	} {
		names, _ := s.level(client, test.delimiter, test.prefix, nil, nil)
		s.equal(names, test.names, "level of "+test.prefix)
	}
}

func listPages(s *scenario) {
	var names []string
	for n := range 25 {
		names = append(names, fmt.Sprintf("blob-%02d", n))
	}
	client, containerName := s.filled(names...)
	options := container.ListBlobsFlatOptions{Prefix: ptr("blob"), MaxResults: ptr(int32(10))}
	pages := s.flatPages(client, &options)
	s.equal(itemNames(pages[0].Segment.BlobItems), names[:10], "first page")
	s.equal(s.listed(client, &options), names, "all pages")
	options.Marker = pages[0].NextMarker
	s.equal(s.listed(s.blobService().NewContainerClient(containerName), &options), names[10:], "pages from a marker, by a new client")
	_, err := client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: ptr(int32(0))}).NextPage(s.ctx)
	s.refused(err, 400, "OutOfRangeQueryParameterValue", "pages of nothing")

	tree, treeName := s.filled("a", "b/1", "b/2", "b/3", "c", "d/1", "d/2", "e")
	var seen []string
	var marker *string
	for range 10 {
		page, next := s.level(tree, "/", "", marker, ptr(int32(2)))
		if len(page) > 2 {
			s.Errorf("a page of %d", len(page))
		}
		seen = append(seen, page...)
		if next == nil || *next == "" {
			break
		}
		marker, tree = next, s.blobService().NewContainerClient(treeName)
	}
	slices.Sort(seen)
	s.equal(seen, []string{"[b/]", "[d/]", "a", "c", "e"}, "pages by hierarchy")
}

func listIncludes(s *scenario) {
	client := s.newContainer()
	blob := s.putBlob(client, "blob", "text", &blockblob.UploadOptions{Metadata: metadata("color", "red")})
	s.snapshot(blob, nil)
	s.must(s.upload(blob, "new", &blockblob.UploadOptions{Metadata: metadata("color", "blue"), Tags: map[string]string{"kind": "test", "a b": "1"}}), "overwrite")
	s.must(s.stage(client.NewBlockBlobClient("staged"), "1", "x"), "stage")
	s.copied(client.NewBlockBlobClient("copied"), blob.URL(), nil)
	list := func(include container.ListBlobsInclude) []*container.BlobItem {
		s.Helper()
		return s.items(client, &container.ListBlobsFlatOptions{Include: include})
	}
	s.equal(itemNames(list(container.ListBlobsInclude{})), []string{"blob", "copied"}, "without anything")
	var seen []string
	for _, item := range list(container.ListBlobsInclude{Metadata: true, Snapshots: true}) {
		seen = append(seen, fmt.Sprint(*item.Name, item.Snapshot != nil, *item.Metadata["color"]))
	}
	s.equal(seen, []string{"blobtruered", "blobfalseblue", "copiedfalseblue"}, "with metadata and snapshots")
	s.equal(itemNames(list(container.ListBlobsInclude{UncommittedBlobs: true})), []string{"blob", "copied", "staged"}, "with uncommitted blobs")
	copied := list(container.ListBlobsInclude{Copy: true})[1].Properties
	s.equal([]string{string(*copied.CopyStatus), *copied.CopySource}, []string{"success", blob.URL()}, "with copies")
	tagged := list(container.ListBlobsInclude{Tags: true})[0]
	tags := map[string]string{}
	for _, tag := range tagged.BlobTags.BlobTagSet {
		tags[*tag.Key] = *tag.Value
	}
	s.equal(tags, map[string]string{"kind": "test", "a b": "1"}, "with tags")
	s.equal(*tagged.Properties.TagCount, int32(2), "how many tags")
}
