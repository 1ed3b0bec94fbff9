// Blobs found by tags, conditions on tags, sealed append blobs, incremental copies, the archive.
package sdk

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// becomes asks until a blob's properties are as wanted.
func (s *scenario) becomes(client downloader, isWanted func(blob.GetPropertiesResponse) bool) blob.GetPropertiesResponse {
	s.Helper()
	for range 600 {
		if properties := s.properties(client); isWanted(properties) {
			return properties
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Fatalf("the blob's properties did not become as wanted")
	return blob.GetPropertiesResponse{}
}

func blobFindByTags(s *scenario) {
	one, name := s.newNamedContainer()
	two, other := s.newNamedContainer()
	project := "p" + name[len(name)-12:]
	put := func(client *container.Client, name, project, rank string) {
		s.putBlob(client, name, "x", &blockblob.UploadOptions{Tags: pairs{"project": project, "rank": rank}})
	}
	put(one, "a", project, "1")
	put(one, "b", project, "2")
	put(one, "c", "other", "2")
	put(two, "d", project, "3")
	names := func(items []*blobservice.FilterBlobItem) string {
		var names []string
		for _, item := range items {
			names = append(names, *item.Name)
		}
		sort.Strings(names)
		return strings.Join(names, " ")
	}
	inAccount := func(where string) string {
		answer, err := s.blobService().FilterBlobs(s.ctx, where, nil)
		s.must(err, "find "+where)
		return names(answer.Blobs)
	}
	mine := fmt.Sprintf(`"project"='%s'`, project)
	s.equal(inAccount(mine), "a b d", "found in the account")
	s.equal(inAccount(mine+` AND "rank">='2'`), "b d", "found by two tags")
	s.equal(inAccount(fmt.Sprintf(`@container='%s' AND %s`, other, mine)), "d", "found in a container that is named")
	inOne := func(options *container.FilterBlobsOptions) (string, string) {
		answer, err := one.FilterBlobs(s.ctx, mine, options)
		s.must(err, "find in a container")
		return names(answer.Blobs), *answer.NextMarker
	}
	all, _ := inOne(nil)
	s.equal(all, "a b", "found in a container")
	first, marker := inOne(&container.FilterBlobsOptions{MaxResults: ptr(int32(1))})
	rest, _ := inOne(&container.FilterBlobsOptions{Marker: &marker})
	s.equal(first+" "+rest, "a b", "found in pages")
	s.must(second(one.NewBlobClient("a").SetTags(s.ctx, pairs{"project": "other"}, nil)), "set tags")
	s.must(second(one.NewBlobClient("b").Delete(s.ctx, nil)), "delete")
	all, _ = inOne(nil)
	s.equal(all, "", "found after a change and a delete")
	s.refusedWith(second(s.blobService().FilterBlobs(s.ctx, "project=", nil)), "a bad expression", 400)
}

func blobTagConditions(s *scenario) {
	client := s.newBlob("text", &blockblob.UploadOptions{Tags: pairs{"state": "draft"}})
	when := func(state string) *blob.AccessConditions {
		return modified(blob.ModifiedAccessConditions{IfTags: ptr(fmt.Sprintf(`"state"='%s'`, state))})
	}
	s.must(s.read(client, &blob.DownloadStreamOptions{AccessConditions: when("draft")}), "read under a condition that holds")
	s.refused(s.read(client, &blob.DownloadStreamOptions{AccessConditions: when("final")}), 412, "ConditionNotMet", "read")
	s.refused(s.upload(client, "other", &blockblob.UploadOptions{AccessConditions: when("final")}), 412, "ConditionNotMet", "overwrite")
	s.must(second(client.SetTags(s.ctx, pairs{"state": "final"}, &blob.SetTagsOptions{AccessConditions: when("draft")})), "set tags")
	s.refused(second(client.Delete(s.ctx, &blob.DeleteOptions{AccessConditions: when("draft")})), 412, "ConditionNotMet", "delete")
	s.must(second(client.Delete(s.ctx, &blob.DeleteOptions{AccessConditions: when("final")})), "delete")
}

func appendSeal(s *scenario) {
	log := s.newContainer().NewAppendBlobClient("log")
	s.must(second(log.Create(s.ctx, nil)), "create")
	s.must(second(log.AppendBlock(s.ctx, body("one"), nil)), "append")
	sealed, err := log.Seal(s.ctx, nil)
	s.must(err, "seal")
	s.equal(*sealed.IsSealed, true, "the answer to the seal")
	s.refused(second(log.AppendBlock(s.ctx, body("two"), nil)), 409, "BlobIsSealed", "append to a sealed blob")
	s.equal(*s.properties(log).IsSealed, true, "sealed")
	s.equal(s.text(log), "one", "content")
	s.must(second(log.Seal(s.ctx, nil)), "seal again")
}

func incrementalCopy(s *scenario) {
	client := s.newContainer()
	source, backup := client.NewPageBlobClient("pages"), client.NewPageBlobClient("backup")
	s.must(second(source.Create(s.ctx, 4*page, nil)), "create")
	copied := func(fill string, offset int64) string {
		content := blob.HTTPRange{Offset: offset, Count: page}
		s.must(second(source.UploadPages(s.ctx, body(strings.Repeat(fill, page)), content, nil)), "write a page")
		snapshot, err := source.CreateSnapshot(s.ctx, nil)
		s.must(err, "snapshot")
		s.must(second(backup.StartCopyIncremental(s.ctx, source.URL(), *snapshot.Snapshot, nil)), "copy")
		done := s.becomes(backup, func(properties blob.GetPropertiesResponse) bool {
			return *properties.CopyStatus == blob.CopyStatusTypeSuccess
		})
		s.equal(*done.IsIncrementalCopy, true, "an incremental copy")
		kept, err := backup.WithSnapshot(*done.DestinationSnapshot)
		s.must(err, "make a client of the snapshot")
		return s.text(kept)
	}
	none := strings.Repeat("\x00", page)
	first, last := strings.Repeat("1", page), strings.Repeat("2", page)
	s.equal(copied("1", 0) == first+none+none+none, true, "the first copy")
	s.equal(copied("2", 2*page) == first+none+last+none, true, "the second copy")
	var options *pageblob.CopyIncrementalOptions
	s.refusedWith(second(backup.StartCopyIncremental(s.ctx, source.URL(), "", options)), "a source without a snapshot", 400, 409)
}

func archiveRehydrate(s *scenario) {
	client := s.newBlob("text", nil)
	s.must(second(client.SetTier(s.ctx, blob.AccessTierArchive, nil)), "archive")
	s.equal(*s.properties(client).AccessTier, "Archive", "tier")
	s.refused(s.read(client, nil), 409, "BlobArchived", "read a blob of the archive")
	priority := blob.RehydratePriorityHigh
	s.must(second(client.SetTier(s.ctx, blob.AccessTierHot, &blob.SetTierOptions{RehydratePriority: &priority})), "rehydrate")
	s.becomes(client, func(properties blob.GetPropertiesResponse) bool { return *properties.AccessTier == "Hot" })
	s.equal(s.text(client), "text", "content")
}
