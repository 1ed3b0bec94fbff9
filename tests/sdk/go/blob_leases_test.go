// Leases of containers and blobs.
package sdk

import (
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

const (
	infinite = int32(-1)
	leaseOne = "11111111-1111-4111-8111-111111111111"
	leaseTwo = "22222222-2222-4222-8222-222222222222"
)

// leasing is what can be done with the lease of a container or a blob, under an id.
type leasing struct {
	acquire        func(duration int32) error
	renew, release func() error
	change         func(id string) error
	breakAfter     func(period int32) (int32, error)
	state          func() string
}

// lifeOfLease is what a lease's life is, whatever was leased; in the end it is leased under the second id.
func (s *scenario) lifeOfLease(as func(id string) leasing) {
	s.Helper()
	one, two := as(leaseOne), as(leaseTwo)
	s.refused(one.acquire(14), 400, "InvalidHeaderValue", "a lease of 14 seconds")
	s.refused(one.acquire(61), 400, "InvalidHeaderValue", "a lease of 61 seconds")
	s.must(one.acquire(infinite), "acquire")
	s.equal(one.state(), "locked leased infinite", "an infinite lease")
	s.must(one.acquire(60), "acquire again")
	s.equal(one.state(), "locked leased fixed", "a lease of a minute")
	s.refused(two.acquire(infinite), 409, "LeaseAlreadyPresent", "acquire by another")
	s.refused(two.renew(), 409, "LeaseIdMismatchWithLeaseOperation", "renew by another")
	s.refused(two.release(), 409, "LeaseIdMismatchWithLeaseOperation", "release by another")
	s.must(one.renew(), "renew")
	s.must(one.change(leaseTwo), "change")
	s.refused(as(leaseOne).renew(), 409, "LeaseIdMismatchWithLeaseOperation", "renew by the old id")
	s.must(two.release(), "release")
	s.equal(two.state(), "unlocked available ", "released")

	three := as(leaseOne)
	s.must(three.acquire(infinite), "acquire after the release")
	left, err := three.breakAfter(60)
	s.must(err, "break in a minute")
	if left <= 0 || left > 60 {
		s.Errorf("breaking in %d seconds", left)
	}
	s.equal(three.state(), "locked breaking ", "breaking")
	s.refused(three.acquire(infinite), 409, "LeaseIsBreakingAndCannotBeAcquired", "acquire while it breaks")
	left, err = three.breakAfter(0)
	s.must(err, "break at once")
	s.equal(left, int32(0), "seconds until it is broken")
	s.equal(three.state(), "unlocked broken ", "broken")
	s.refused(three.renew(), 409, "LeaseIsBrokenAndCannotBeRenewed", "renew a broken lease")
	s.must(as(leaseTwo).acquire(infinite), "acquire after the break")
}

func word[T ~string](value *T) string {
	if value == nil {
		return ""
	}
	return string(*value)
}

func containerLease(s *scenario) {
	client := s.newContainer()
	as := func(id string) leasing {
		held, err := lease.NewContainerClient(client, &lease.ContainerClientOptions{LeaseID: &id})
		s.must(err, "make a lease client")
		return leasing{
			acquire: func(duration int32) error { return second(held.AcquireLease(s.ctx, duration, nil)) },
			renew:   func() error { return second(held.RenewLease(s.ctx, nil)) },
			release: func() error { return second(held.ReleaseLease(s.ctx, nil)) },
			change:  func(id string) error { return second(held.ChangeLease(s.ctx, id, nil)) },
			breakAfter: func(period int32) (int32, error) {
				answer, err := held.BreakLease(s.ctx, &lease.ContainerBreakOptions{BreakPeriod: &period})
				if err != nil {
					return 0, err
				}
				return *answer.LeaseTime, nil
			},
			state: func() string {
				properties, err := client.GetProperties(s.ctx, nil)
				s.must(err, "read the properties")
				return word(properties.LeaseStatus) + " " + word(properties.LeaseState) + " " + word(properties.LeaseDuration)
			},
		}
	}
	s.lifeOfLease(as)
	remove := func(id *string) error {
		conditions := &container.AccessConditions{LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: id}}
		return second(client.Delete(s.ctx, &container.DeleteOptions{AccessConditions: conditions}))
	}
	s.refused(remove(nil), 412, "LeaseIdMissing", "delete without the id")
	s.refused(remove(ptr(leaseOne)), 412, "LeaseIdMismatchWithContainerOperation", "delete with another id")
	s.putBlob(client, "blob", "text", nil)
	s.must(remove(ptr(leaseTwo)), "delete with the id")
}

// blobLeaseAs gives the lease of a blob under an id.
func (s *scenario) blobLeaseAs(client *blockblob.Client, id string) leasing {
	s.Helper()
	held, err := lease.NewBlobClient(client, &lease.BlobClientOptions{LeaseID: &id})
	s.must(err, "make a lease client")
	return leasing{
		acquire: func(duration int32) error { return second(held.AcquireLease(s.ctx, duration, nil)) },
		renew:   func() error { return second(held.RenewLease(s.ctx, nil)) },
		release: func() error { return second(held.ReleaseLease(s.ctx, nil)) },
		change:  func(id string) error { return second(held.ChangeLease(s.ctx, id, nil)) },
		breakAfter: func(period int32) (int32, error) {
			answer, err := held.BreakLease(s.ctx, &lease.BlobBreakOptions{BreakPeriod: &period})
			if err != nil {
				return 0, err
			}
			return *answer.LeaseTime, nil
		},
		state: func() string {
			properties := s.properties(client)
			return word(properties.LeaseStatus) + " " + word(properties.LeaseState) + " " + word(properties.LeaseDuration)
		},
	}
}

func blobLease(s *scenario) {
	client := s.newBlob("first", nil)
	etag := *s.properties(client).ETag
	s.lifeOfLease(func(id string) leasing { return s.blobLeaseAs(client, id) })
	s.equal(*s.properties(client).ETag, etag, "ETag after the lease's life")

	writes := map[string]func(*blob.AccessConditions) error{
		"upload": func(given *blob.AccessConditions) error {
			return s.upload(client, "second", &blockblob.UploadOptions{AccessConditions: given})
		},
		"metadata": func(given *blob.AccessConditions) error {
			return second(client.SetMetadata(s.ctx, nil, &blob.SetMetadataOptions{AccessConditions: given}))
		},
		"headers": func(given *blob.AccessConditions) error {
			return second(client.SetHTTPHeaders(s.ctx, blob.HTTPHeaders{}, &blob.SetHTTPHeadersOptions{AccessConditions: given}))
		},
		"stage": func(given *blob.AccessConditions) error {
			options := &blockblob.StageBlockOptions{}
			if given != nil {
				options.LeaseAccessConditions = given.LeaseAccessConditions
			}
			return second(client.StageBlock(s.ctx, blockID("1"), body("x"), options))
		},
	}
	remove := func(given *blob.AccessConditions) error {
		return second(client.Delete(s.ctx, &blob.DeleteOptions{AccessConditions: given}))
	}
	for what, write := range writes {
		s.refused(write(nil), 412, "LeaseIdMissing", what+" without the id")
		s.refused(write(leased(leaseOne)), 412, "LeaseIdMismatchWithBlobOperation", what+" with another id")
	}
	s.refused(remove(nil), 412, "LeaseIdMissing", "delete without the id")
	s.equal(s.text(client), "first", "content, read without the id")
	s.must(s.read(client, &blob.DownloadStreamOptions{AccessConditions: leased(leaseTwo)}), "read with the id")
	s.refused(s.read(client, &blob.DownloadStreamOptions{AccessConditions: leased(leaseOne)}), 412, "LeaseIdMismatchWithBlobOperation", "read with another id")
	for what, write := range writes {
		s.must(write(leased(leaseTwo)), what+" with the id")
	}
	s.must(remove(leased(leaseTwo)), "delete with the id")

	free := s.newBlob("text", nil)
	s.refused(s.upload(free, "x", &blockblob.UploadOptions{AccessConditions: leased(leaseOne)}), 412, "LeaseNotPresentWithBlobOperation", "an id without a lease")
	_, err := s.blobLeaseAs(free, leaseOne).breakAfter(0)
	s.refused(err, 409, "LeaseNotPresentWithLeaseOperation", "break without a lease")
}
