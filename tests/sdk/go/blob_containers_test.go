// The life of containers: connecting, creating, listing, metadata, deleting.
package sdk

import (
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

func blobConnectionString(s *scenario) {
	_, name := s.newNamedContainer()
	connection := "DefaultEndpointsProtocol=http;AccountName=" + account() + ";AccountKey=" + os.Getenv("LARIMAR_KEY") +
		";BlobEndpoint=" + blobEndpoint() + ";"
	service, err := blobservice.NewClientFromConnectionString(connection, blobOptions())
	s.must(err, "make a client from a connection string")
	s.equal(s.text(s.putBlob(service.NewContainerClient(name), "greeting", "hello", nil)), "hello", "text")
}

func containerLifecycle(s *scenario) {
	name := s.containerName()
	client := s.blobService().NewContainerClient(name)
	created, err := client.Create(s.ctx, &container.CreateOptions{Metadata: metadata("color", "red")})
	s.must(err, "create")
	s.refused(second(client.Create(s.ctx, nil)), 409, "ContainerAlreadyExists", "create again")

	properties, err := client.GetProperties(s.ctx, nil)
	s.must(err, "read the properties")
	s.equal([]any{*properties.ETag, *properties.LastModified}, []any{*created.ETag, *created.LastModified}, "ETag and date")
	s.has(properties.Metadata, metadata("Color", "red"), "metadata")
	s.equal([]any{*properties.LeaseStatus, *properties.LeaseState, *properties.HasLegalHold, *properties.HasImmutabilityPolicy},
		[]any{lease.StatusTypeUnlocked, lease.StateTypeAvailable, false, false}, "lease, hold and policy")
	if properties.BlobPublicAccess != nil {
		s.Errorf("a new container has public access %v", *properties.BlobPublicAccess)
	}

	blob := s.putBlob(client, "blob", "text", nil)
	s.must(second(client.Delete(s.ctx, nil)), "delete")
	s.refused(second(client.Delete(s.ctx, nil)), 404, "ContainerNotFound", "delete again")
	s.refused(second(client.GetProperties(s.ctx, nil)), 404, "ContainerNotFound", "properties of a deleted container")
	s.refused(second(client.NewListBlobsFlatPager(nil).NextPage(s.ctx)), 404, "ContainerNotFound", "list of a deleted container")
	s.refused(s.upload(blob, "text", nil), 404, "ContainerNotFound", "upload into a deleted container")
	s.refused(s.read(blob, nil), 404, "ContainerNotFound", "download from a deleted container")
	s.must(second(client.Create(s.ctx, nil)), "create once more")
	s.refused(s.read(blob, nil), 404, "BlobNotFound", "the old blob in the new container")

	for _, bad := range []string{"UPPER", "under_score", "two--dashes", "-dash", "dash-", "dot.ted"} {
		s.refused(second(s.blobService().CreateContainer(s.ctx, bad, nil)), 400, "InvalidResourceName", "create "+bad)
	}
	for _, bad := range []string{"ab", strings.Repeat("a", 64)} {
		s.refused(second(s.blobService().CreateContainer(s.ctx, bad, nil)), 400, "OutOfRangeInput", "create "+bad)
	}
	longest := name + strings.Repeat("0", 63-len(name))
	s.must(second(s.blobService().CreateContainer(s.ctx, longest, nil)), "create a name of 63 characters")
	s.dropContainer(longest)
}

func containerList(s *scenario) {
	prefix := lowerName()
	var names []string
	for _, letter := range []string{"a", "b", "c", "d", "e"} {
		name := prefix + "-" + letter
		s.Cleanup(func() { s.dropContainer(name) })
		s.must(second(s.blobService().CreateContainer(s.ctx, name, &container.CreateOptions{Metadata: metadata("letter", letter)})), "create a container")
		names = append(names, name)
	}
	all := s.containerPages(blobservice.ListContainersOptions{Prefix: &prefix})
	s.equal(containerNames(all...), names, "containers by prefix")
	first := all[0].ContainerItems[0]
	own, err := s.blobService().NewContainerClient(names[0]).GetProperties(s.ctx, nil)
	s.must(err, "read the properties")
	s.equal([]string{strings.Trim(string(*first.Properties.ETag), `"`), first.Properties.LastModified.String()},
		[]string{strings.Trim(string(*own.ETag), `"`), own.LastModified.String()}, "properties in the list")
	s.equal(len(first.Metadata), 0, "metadata that nobody asked for")
	s.equal(containerNames(s.containerPages(blobservice.ListContainersOptions{Prefix: &names[3]})...), names[3:4], "one container")

	pages := s.containerPages(blobservice.ListContainersOptions{Prefix: &prefix, MaxResults: ptr(int32(2))})
	s.equal(containerNames(pages[0]), names[:2], "first page")
	s.equal(containerNames(pages...), names, "all pages")
	rest := s.containerPages(blobservice.ListContainersOptions{Prefix: &prefix, MaxResults: ptr(int32(2)), Marker: pages[0].NextMarker})
	s.equal(containerNames(rest...), names[2:], "pages from a marker")

	var letters string
	for _, page := range s.containerPages(blobservice.ListContainersOptions{Prefix: &prefix, Include: blobservice.ListContainersInclude{Metadata: true}}) {
		for _, item := range page.ContainerItems {
			letters += *item.Metadata["letter"]
		}
	}
	s.equal(letters, "abcde", "metadata in the list")
}

func (s *scenario) containerPages(options blobservice.ListContainersOptions) []blobservice.ListContainersResponse {
	s.Helper()
	pager := s.blobService().NewListContainersPager(&options)
	var pages []blobservice.ListContainersResponse
	for pager.More() && len(pages) < pagesMax {
		page, err := pager.NextPage(s.ctx)
		s.must(err, "read a page")
		pages = append(pages, page)
	}
	return pages
}

func containerNames(pages ...blobservice.ListContainersResponse) []string {
	names := []string{}
	for _, page := range pages {
		for _, item := range page.ContainerItems {
			names = append(names, *item.Name)
		}
	}
	return names
}

func containerMetadata(s *scenario) {
	client := s.blobService().NewContainerClient(s.containerName())
	s.must(second(client.Create(s.ctx, &container.CreateOptions{Metadata: metadata("color", "red", "size", "xl")})), "create")
	check := func(want map[string]*string, what string) {
		s.Helper()
		properties, err := client.GetProperties(s.ctx, nil)
		s.must(err, "read the properties")
		s.has(properties.Metadata, want, what)
	}
	set := func(pairs map[string]*string) error {
		return second(client.SetMetadata(s.ctx, &container.SetMetadataOptions{Metadata: pairs}))
	}
	check(metadata("Color", "red", "Size", "xl"), "metadata of the create")
	s.must(set(metadata("shape", "round, or so")), "replace")
	check(metadata("Shape", "round, or so"), "replaced metadata")
	s.refused(set(metadata("not-a-name", "x")), 400, "InvalidMetadata", "a bad name")
	s.refused(set(metadata("large", strings.Repeat("x", 8<<10+1))), 400, "MetadataTooLarge", "more than 8 KiB")
	future := time.Now().Add(time.Minute)
	_, err := client.SetMetadata(s.ctx, &container.SetMetadataOptions{ModifiedAccessConditions: &container.ModifiedAccessConditions{IfModifiedSince: &future}})
	s.refused(err, 412, "ConditionNotMet", "under a condition that does not hold")
	check(metadata("Shape", "round, or so"), "metadata after the refusals")
	s.must(set(nil), "clear")
	check(nil, "cleared metadata")
}
