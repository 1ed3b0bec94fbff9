// Access to blobs: the account's key, public access, shared access signatures, stored policies.
package sdk

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

const mismatch = "AuthorizationPermissionMismatch"

func (s *scenario) list(client *container.Client) error {
	return second(client.NewListBlobsFlatPager(nil).NextPage(s.ctx))
}

func blobBadSignature(s *scenario) {
	_, name := s.newNamedContainer()
	service := s.blobServiceAt(blobEndpoint(), wrongKey)
	client := service.NewContainerClient(name)
	s.refused(second(service.NewListContainersPager(nil).NextPage(s.ctx)), 403, "AuthenticationFailed", "list containers")
	s.refused(second(client.Create(s.ctx, nil)), 403, "AuthenticationFailed", "create")
	s.refused(s.list(client), 403, "AuthenticationFailed", "list blobs")
	s.refused(s.upload(client.NewBlockBlobClient("blob"), "x", nil), 403, "AuthenticationFailed", "upload")
	s.refused(second(client.NewBlobClient("blob").GetProperties(s.ctx, nil)), 403, "AuthenticationFailed", "properties")
	s.refused(second(client.Delete(s.ctx, nil)), 403, "AuthenticationFailed", "delete")
}

// refusedToStrangers checks that somebody without credentials is told nothing, or to bring some.
func (s *scenario) refusedToStrangers(err error, what string) {
	s.Helper()
	s.refusedWith(err, what, 401, 403, 404)
}

func publicAccess(s *scenario) {
	owner, name := s.newNamedContainer()
	s.putBlob(owner, "blob", "text", nil)
	client := s.blobBearer("").NewContainerClient(name)
	blob := client.NewBlockBlobClient("blob")
	open := func(access *container.PublicAccessType) {
		s.Helper()
		s.must(second(owner.SetAccessPolicy(s.ctx, &container.SetAccessPolicyOptions{Access: access})), "set the public access")
		properties, err := owner.GetProperties(s.ctx, nil)
		s.must(err, "read the properties")
		s.equal(word(properties.BlobPublicAccess), word(access), "public access")
	}
	s.refusedToStrangers(s.read(blob, nil), "read from a private container")
	s.refusedToStrangers(s.list(client), "list a private container")
	open(ptr(container.PublicAccessTypeBlob))
	s.equal(s.text(blob), "text", "a public blob")
	s.refusedToStrangers(s.list(client), "list a container with public blobs")
	open(ptr(container.PublicAccessTypeContainer))
	s.equal(s.listed(client, nil), []string{"blob"}, "a public container")
	s.refusedToStrangers(s.upload(blob, "other", nil), "upload")
	s.refusedToStrangers(second(blob.Delete(s.ctx, nil)), "delete a blob")
	s.refusedToStrangers(second(client.Delete(s.ctx, nil)), "delete the container")
	s.refusedToStrangers(second(s.blobBearer("").NewListContainersPager(nil).NextPage(s.ctx)), "list containers")
	open(nil)
	s.refusedToStrangers(s.read(blob, nil), "read after closing it")
}

func containerPolicy(id, permission string, expiry time.Time) *container.SignedIdentifier {
	return &container.SignedIdentifier{ID: &id, AccessPolicy: &container.AccessPolicy{Start: &longAgo, Expiry: &expiry, Permission: &permission}}
}

func (s *scenario) setContainerPolicies(client *container.Client, policies ...*container.SignedIdentifier) error {
	return second(client.SetAccessPolicy(s.ctx, &container.SetAccessPolicyOptions{ContainerACL: policies}))
}

func containerACL(s *scenario) {
	client := s.newContainer()
	check := func(want []*container.SignedIdentifier, what string) {
		s.Helper()
		got, err := client.GetAccessPolicy(s.ctx, nil)
		s.must(err, "read the policies")
		s.equal(got.SignedIdentifiers, want, what)
	}
	check(nil, "policies of a new container")
	want := []*container.SignedIdentifier{containerPolicy("readers", "r", farAhead), containerPolicy("everyone & <all>", "racwdl", fartherYet)}
	s.must(s.setContainerPolicies(client, want...), "set policies")
	check(want, "policies read back")
	var six []*container.SignedIdentifier
	for n := range 6 {
		six = append(six, containerPolicy(fmt.Sprint("policy ", n), "r", farAhead))
	}
	s.refused(s.setContainerPolicies(client, six...), 400, "InvalidXmlDocument", "six policies")
	check(want, "policies after the refusal")
	s.must(s.setContainerPolicies(client, six[:5]...), "set five policies")
	check(six[:5], "five policies")
	s.must(s.setContainerPolicies(client), "clear the policies")
	check(nil, "policies after clearing them")
}

func blobSAS(s *scenario) {
	owner, name := s.newNamedContainer()
	own := s.putBlob(owner, "blob", "text", &blockblob.UploadOptions{HTTPHeaders: someHeaders()})
	with := func(values sas.BlobSignatureValues) *blockblob.Client {
		values.ContainerName, values.BlobName = name, "blob"
		return s.blobBearer(s.blobToken(values)).NewContainerClient(name).NewBlockBlobClient("blob")
	}
	for _, call := range []struct {
		what, letters string
		do            func(*blockblob.Client) error
	}{
		{"read", "r", func(client *blockblob.Client) error { return s.read(client, nil) }},
		{"metadata", "w", func(client *blockblob.Client) error { return second(client.SetMetadata(s.ctx, nil, nil)) }},
		{"stage", "w", func(client *blockblob.Client) error { return s.stage(client, "1", "x") }},
		{"tags", "t", func(client *blockblob.Client) error { return second(client.SetTags(s.ctx, pairs{"a": "b"}, nil)) }},
		{"delete", "d", func(client *blockblob.Client) error {
			err := second(client.Delete(s.ctx, nil))
			s.must(s.upload(own, "text", &blockblob.UploadOptions{HTTPHeaders: someHeaders()}), "upload again")
			return err
		}},
	} {
		for _, permissions := range []string{"r", "c", "w", "t", "d", "racwdt"} {
			err := call.do(with(sas.BlobSignatureValues{Permissions: permissions}))
			if strings.ContainsAny(permissions, call.letters) {
				s.must(err, call.what+" with "+permissions)
			} else {
				s.refused(err, 403, mismatch, call.what+" with "+permissions)
			}
		}
	}
	s.refused(s.upload(with(sas.BlobSignatureValues{Permissions: "c"}), "x", nil), 403, "UnauthorizedBlobOverwrite", "overwrite with c")

	other := sas.BlobSignatureValues{Permissions: "r", ContentType: "application/x-other", ContentLanguage: "fr", ContentDisposition: "inline", CacheControl: "no-store", ContentEncoding: "gzip2"}
	answer, _, err := s.download(with(other), nil)
	s.must(err, "read with other headers")
	s.equal(headersText(answer.ContentType, answer.ContentEncoding, answer.ContentLanguage, answer.ContentDisposition, answer.CacheControl),
		"application/x-other|gzip2|fr|inline|no-store|", "headers that the token overrides")
	read := func(values sas.BlobSignatureValues) error {
		values.Permissions = "r"
		return s.read(with(values), nil)
	}
	loopback, elsewhere := net.ParseIP("127.0.0.1"), net.ParseIP("203.0.113.7")
	s.must(read(sas.BlobSignatureValues{StartTime: longAgo, Protocol: sas.ProtocolHTTPSandHTTP, IPRange: sas.IPRange{Start: loopback}}), "from a named address")
	s.refused(read(sas.BlobSignatureValues{StartTime: longAgo, ExpiryTime: notSoLong}), 403, "AuthenticationFailed", "expired")
	s.refused(read(sas.BlobSignatureValues{StartTime: farAhead, ExpiryTime: fartherYet}), 403, "AuthenticationFailed", "not yet valid")
	s.refused(read(sas.BlobSignatureValues{Protocol: sas.ProtocolHTTPS}), 403, "AuthorizationProtocolMismatch", "over http")
	s.refused(read(sas.BlobSignatureValues{IPRange: sas.IPRange{Start: elsewhere}}), 403, "AuthorizationSourceIPMismatch", "from elsewhere")

	token := s.blobToken(sas.BlobSignatureValues{ContainerName: name, BlobName: "blob", Permissions: "rwd"})
	s.putBlob(owner, "other", "text", nil)
	holder := s.blobBearer(token).NewContainerClient(name)
	s.refused(s.read(holder.NewBlobClient("other"), nil), 403, "AuthenticationFailed", "another blob")
	s.refused(s.list(holder), 403, "AuthenticationFailed", "list with a token for a blob")
	s.snapshotSAS(own, name)
}

// snapshotSAS reads a snapshot by a token for it.
func (s *scenario) snapshotSAS(own *blockblob.Client, name string) {
	s.Helper()
	taken, err := own.CreateSnapshot(s.ctx, nil)
	s.must(err, "take a snapshot")
	s.must(s.upload(own, "after", nil), "overwrite")
	at, err := time.Parse(blob.SnapshotTimeFormat, *taken.Snapshot)
	s.must(err, "read the snapshot's time")
	token := s.blobToken(sas.BlobSignatureValues{ContainerName: name, BlobName: "blob", Permissions: "r", SnapshotTime: at})
	past, err := blockblob.NewClientWithNoCredential(own.URL()+"?snapshot="+*taken.Snapshot+"&"+token, &blockblob.ClientOptions{ClientOptions: noRetries()})
	s.must(err, "make a client of the snapshot")
	s.equal(s.text(past), "text", "a snapshot, read by a token for it")
}

func containerSAS(s *scenario) {
	owner, name := s.newNamedContainer()
	with := func(permissions string) *container.Client {
		return s.blobBearer(s.blobToken(sas.BlobSignatureValues{ContainerName: name, Permissions: permissions})).NewContainerClient(name)
	}
	s.putBlob(with("c"), "dir/one", "text", nil)
	s.putBlob(with("w"), "two", "text", nil)
	s.equal(s.text(with("r").NewBlobClient("dir/one")), "text", "read with r")
	s.equal(s.listed(with("l"), nil), []string{"dir/one", "two"}, "list with l")
	s.refused(s.upload(with("rl").NewBlockBlobClient("three"), "x", nil), 403, mismatch, "upload with rl")
	s.refused(s.list(with("rcwd")), 403, mismatch, "list with rcwd")
	s.refused(s.read(with("cwdl").NewBlobClient("two"), nil), 403, mismatch, "read with cwdl")
	s.refused(second(with("rcwl").NewBlobClient("two").Delete(s.ctx, nil)), 403, mismatch, "delete with rcwl")
	s.must(second(with("d").NewBlobClient("two").Delete(s.ctx, nil)), "delete with d")
	s.equal(s.listed(owner, nil), []string{"dir/one"}, "blobs in the end")

	_, stray := s.newNamedContainer()
	token := s.blobToken(sas.BlobSignatureValues{ContainerName: name, Permissions: "racwdl"})
	s.refused(s.list(s.blobBearer(token).NewContainerClient(stray)), 403, "AuthenticationFailed", "another container")
	s.refused(second(s.blobBearer(token).NewListContainersPager(nil).NextPage(s.ctx)), 403, "AuthenticationFailed", "list containers")
	all := with("racwdl")
	s.refused(second(all.Delete(s.ctx, nil)), 403, "AuthorizationFailure", "delete the container")
	s.refused(second(all.SetMetadata(s.ctx, nil)), 403, "AuthorizationFailure", "set the container's metadata")
	s.refused(second(all.GetAccessPolicy(s.ctx, nil)), 403, "AuthorizationFailure", "read the policies")
	expired := s.blobToken(sas.BlobSignatureValues{ContainerName: name, Permissions: "l", StartTime: longAgo, ExpiryTime: notSoLong})
	s.refused(s.list(s.blobBearer(expired).NewContainerClient(name)), 403, "AuthenticationFailed", "expired")
}

func blobStoredPolicy(s *scenario) {
	owner, name := s.newNamedContainer()
	s.putBlob(owner, "blob", "text", nil)
	client := s.blobBearer(s.blobToken(sas.BlobSignatureValues{ContainerName: name, Identifier: "team"})).NewContainerClient(name)
	read := func() error { return s.read(client.NewBlobClient("blob"), nil) }
	put := func() error { return s.upload(client.NewBlockBlobClient("other"), "x", nil) }
	grant := func(permission string, expiry time.Time) {
		s.Helper()
		s.must(s.setContainerPolicies(owner, containerPolicy("team", permission, expiry), containerPolicy("another", "racwdl", farAhead)), "set policies")
	}
	s.refused(read(), 403, "AuthenticationFailed", "before the policy exists")
	grant("r", farAhead)
	s.must(read(), "read by the policy")
	s.refused(put(), 403, mismatch, "upload by a policy for reading")
	grant("cw", farAhead)
	s.must(put(), "upload after the policy was changed")
	s.refused(read(), 403, mismatch, "read after the policy was changed")
	grant("r", notSoLong)
	s.refused(read(), 403, "AuthenticationFailed", "after the policy expired")
	grant("r", farAhead)
	s.must(read(), "read after the policy was renewed")
	s.must(s.setContainerPolicies(owner, containerPolicy("another", "racwdl", farAhead)), "remove the policy")
	s.refused(read(), 403, "AuthenticationFailed", "after the policy was removed")
}

func blobAccountSAS(s *scenario) {
	owner, name := s.newNamedContainer()
	own := s.putBlob(owner, "blob", "text", nil)
	with := func(types, permissions string) *blobservice.Client {
		token, err := sas.AccountSignatureValues{ResourceTypes: types, Permissions: permissions, ExpiryTime: farAhead}.
			SignWithSharedKey(s.blobCredential(os.Getenv("LARIMAR_KEY")))
		s.must(err, "sign an account SAS")
		return s.blobBearer(token.Encode())
	}
	of := func(service *blobservice.Client) *container.Client { return service.NewContainerClient(name) }
	list := func(service *blobservice.Client) error {
		return second(service.NewListContainersPager(&blobservice.ListContainersOptions{Prefix: &name}).NextPage(s.ctx))
	}
	for _, call := range []struct {
		what, kind, letter string
		do                 func(*blobservice.Client) error
	}{
		{"service properties", "s", "r", func(service *blobservice.Client) error { return second(service.GetProperties(s.ctx, nil)) }},
		{"list containers", "s", "l", list},
		{"container properties", "c", "r", func(service *blobservice.Client) error { return second(of(service).GetProperties(s.ctx, nil)) }},
		{"container metadata", "c", "w", func(service *blobservice.Client) error { return second(of(service).SetMetadata(s.ctx, nil)) }},
		{"list blobs", "c", "l", func(service *blobservice.Client) error { return s.list(of(service)) }},
		{"read", "o", "r", func(service *blobservice.Client) error { return s.read(of(service).NewBlobClient("blob"), nil) }},
		{"upload", "o", "w", func(service *blobservice.Client) error {
			return s.upload(of(service).NewBlockBlobClient("blob"), "x", nil)
		}},
		{"tags", "o", "t", func(service *blobservice.Client) error {
			return second(of(service).NewBlobClient("blob").SetTags(s.ctx, pairs{"a": "b"}, nil))
		}},
		{"delete", "o", "d", func(service *blobservice.Client) error {
			err := second(of(service).NewBlobClient("blob").Delete(s.ctx, nil))
			s.must(s.upload(own, "text", nil), "upload again")
			return err
		}},
	} {
		otherKind, otherLetters := "s", "r"
		if call.kind == "s" {
			otherKind = "co"
		}
		if call.letter == "r" {
			otherLetters = "wdlacupt"
		}
		s.must(call.do(with("sco", "rwdlacupt")), call.what+" with everything")
		s.must(call.do(with(call.kind, call.letter)), call.what+" with what it needs")
		s.refused(call.do(with(otherKind, "rwdlacupt")), 403, "AuthorizationResourceTypeMismatch", call.what+" with "+otherKind)
		s.refused(call.do(with("sco", otherLetters)), 403, mismatch, call.what+" with "+otherLetters)
	}

	made := s.containerName()
	s.must(second(with("c", "c").CreateContainer(s.ctx, made, nil)), "create a container")
	s.refused(second(with("c", "c").DeleteContainer(s.ctx, made, nil)), 403, mismatch, "delete with c")
	s.must(second(with("c", "d").DeleteContainer(s.ctx, made, nil)), "delete a container")
	by := func(values aztables.AccountSASSignatureValues) error {
		values.ResourceTypes, values.Permissions = "s", "l"
		return list(s.blobBearer(s.accountToken(values)))
	}
	s.must(by(aztables.AccountSASSignatureValues{Services: "bqt"}), "several services")
	s.refused(by(aztables.AccountSASSignatureValues{Services: "qt"}), 403, "AuthorizationServiceMismatch", "other services")
	s.refused(by(aztables.AccountSASSignatureValues{Services: "b", ExpiryTime: notSoLong}), 403, "AuthenticationFailed", "expired")
	s.refused(by(aztables.AccountSASSignatureValues{Services: "b", Protocol: aztables.SASProtocolHTTPS}), 403, "AuthorizationProtocolMismatch", "over http")
}
