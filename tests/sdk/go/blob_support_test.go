// What the scenarios of blobs share: clients, fresh containers, content in and out.
package sdk

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

var blobTests = tests{
	"blob-connection-string": blobConnectionString,
	"container-lifecycle":    containerLifecycle,
	"container-list":         containerList,
	"container-metadata":     containerMetadata,
	"container-acl":          containerACL,
	"public-access":          publicAccess,
	"container-lease":        containerLease,

	"block-blob-roundtrip": blockBlobRoundtrip,
	"blob-names":           blobNames,
	"blob-properties":      blobProperties,
	"blob-http-headers":    blobHTTPHeaders,
	"blob-metadata":        blobMetadata,
	"blob-overwrite":       blobOverwrite,
	"blob-conditions":      blobConditions,
	"blob-ranges":          blobRanges,
	"blob-checksums":       blobChecksums,

	"staged-blocks":     stagedBlocks,
	"block-list":        blockList,
	"parallel-transfer": parallelTransfer,
	"block-from-url":    blockFromURL,
	"append-blob":       appendBlob,
	"page-blob":         pageBlob,
	"page-blob-resize":  pageBlobResize,
	"snapshots":         snapshots,
	"blob-copy":         blobCopy,

	"list-blobs":     listBlobs,
	"list-hierarchy": listHierarchy,
	"list-pages":     listPages,
	"list-includes":  listIncludes,

	"blob-lease":   blobLease,
	"blob-tags":    blobTags,
	"batch-delete": batchDelete,

	"blob-find-by-tags":   blobFindByTags,
	"blob-tag-conditions": blobTagConditions,
	"append-seal":         appendSeal,
	"incremental-copy":    incrementalCopy,
	"archive-rehydrate":   archiveRehydrate,

	"blob-sas":           blobSAS,
	"container-sas":      containerSAS,
	"blob-stored-policy": blobStoredPolicy,
	"blob-account-sas":   blobAccountSAS,
	"blob-bad-signature": blobBadSignature,

	"blob-service-properties": blobServiceProperties,
	"blob-service-stats":      blobServiceStats,
	"blob-out-of-scope":       blobOutOfScope,
	"analytics-logs":          analyticsLogs,
	"analytics-metrics":       analyticsMetrics,
}

func blobEndpoint() string { return strings.TrimSuffix(os.Getenv("LARIMAR_BLOB_ENDPOINT"), "/") }

func blobOptions() *blobservice.ClientOptions {
	return &blobservice.ClientOptions{ClientOptions: noRetries()}
}

func (s *scenario) blobCredential(key string) *blobservice.SharedKeyCredential {
	s.Helper()
	credential, err := blobservice.NewSharedKeyCredential(account(), key)
	s.must(err, "read the account key")
	return credential
}

// blobService is a new client of the account, signing with its key.
func (s *scenario) blobService() *blobservice.Client {
	s.Helper()
	return s.blobServiceAt(blobEndpoint(), os.Getenv("LARIMAR_KEY"))
}

func (s *scenario) blobServiceAt(endpoint, key string) *blobservice.Client {
	s.Helper()
	client, err := blobservice.NewClientWithSharedKeyCredential(endpoint, s.blobCredential(key), blobOptions())
	s.must(err, "make a service client")
	return client
}

// blobBearer is a client of the account that has a token and no key; with an empty token it is anonymous.
func (s *scenario) blobBearer(token string) *blobservice.Client {
	s.Helper()
	client, err := blobservice.NewClientWithNoCredential(strings.TrimSuffix(blobEndpoint()+"?"+token, "?"), blobOptions())
	s.must(err, "make a client from a SAS")
	return client
}

func (s *scenario) blobToken(values sas.BlobSignatureValues) string {
	s.Helper()
	if values.ExpiryTime.IsZero() && values.Identifier == "" {
		values.ExpiryTime = farAhead
	}
	token, err := values.SignWithSharedKey(s.blobCredential(os.Getenv("LARIMAR_KEY")))
	s.must(err, "sign a SAS")
	return token.Encode()
}

// containerName is fresh for every call; the container goes away at the end of the scenario if it was created.
func (s *scenario) containerName() string {
	name := lowerName()
	s.Cleanup(func() { s.dropContainer(name) })
	return name
}

// dropContainer forgives: the scenario may have deleted the container, or never created it.
func (s *scenario) dropContainer(name string) {
	// Clean-up runs when the scenario's own context is over.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = s.blobService().DeleteContainer(ctx, name, nil)
}

// newContainer creates a container and gives its client.
func (s *scenario) newContainer() *container.Client {
	s.Helper()
	client, _ := s.newNamedContainer()
	return client
}

func (s *scenario) newNamedContainer() (*container.Client, string) {
	s.Helper()
	name := s.containerName()
	client := s.blobService().NewContainerClient(name)
	_, err := client.Create(s.ctx, nil)
	s.must(err, "create a container")
	return client, name
}

// newBlob creates a block blob of a text in a container of its own.
func (s *scenario) newBlob(text string, options *blockblob.UploadOptions) *blockblob.Client {
	s.Helper()
	return s.putBlob(s.newContainer(), "blob", text, options)
}

func (s *scenario) putBlob(client *container.Client, name, text string, options *blockblob.UploadOptions) *blockblob.Client {
	s.Helper()
	blob := client.NewBlockBlobClient(name)
	s.must(s.upload(blob, text, options), "upload "+name)
	return blob
}

func (s *scenario) upload(client *blockblob.Client, text string, options *blockblob.UploadOptions) error {
	return second(client.Upload(s.ctx, body(text), options))
}

func body(text string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(text)) }

// downloader is a client of a blob of any type.
type downloader interface {
	DownloadStream(context.Context, *blob.DownloadStreamOptions) (blob.DownloadStreamResponse, error)
	GetProperties(context.Context, *blob.GetPropertiesOptions) (blob.GetPropertiesResponse, error)
}

// download gives an answer and its content.
func (s *scenario) download(client downloader, options *blob.DownloadStreamOptions) (blob.DownloadStreamResponse, string, error) {
	answer, err := client.DownloadStream(s.ctx, options)
	if err != nil {
		return answer, "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer, string(content), err
}

func (s *scenario) read(client downloader, options *blob.DownloadStreamOptions) error {
	_, _, err := s.download(client, options)
	return err
}

// text is the content of a blob.
func (s *scenario) text(client downloader) string {
	s.Helper()
	_, content, err := s.download(client, nil)
	s.must(err, "download")
	return content
}

func (s *scenario) properties(client downloader) blob.GetPropertiesResponse {
	s.Helper()
	properties, err := client.GetProperties(s.ctx, nil)
	s.must(err, "read a blob's properties")
	return properties
}

// has checks metadata, whose names the client spells as Go spells headers.
func (s *scenario) has(got map[string]*string, want map[string]*string, what string) {
	s.Helper()
	plain := func(pairs map[string]*string) map[string]string {
		values := map[string]string{}
		for name, value := range pairs {
			values[name] = *value
		}
		return values
	}
	s.equal(plain(got), plain(want), what)
}

// refusedWith checks the status of an error; the code is not part of the promise.
func (s *scenario) refusedWith(err error, what string, statuses ...int) {
	s.Helper()
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		for _, status := range statuses {
			if response.StatusCode == status {
				return
			}
		}
	}
	s.Errorf("%s: got %v, want one of %v", what, err, statuses)
}

// pattern is bytes that look random and are the same in every run.
func pattern(length int) []byte {
	bytes := make([]byte, 0, length+8)
	for state := uint64(1); len(bytes) < length; state = state*6364136223846793005 + 1442695040888963407 {
		bytes = binary.LittleEndian.AppendUint64(bytes, state)
	}
	return bytes[:length]
}

func sum(content []byte) []byte {
	digest := md5.Sum(content)
	return digest[:]
}

func (s *scenario) sameBytes(got, want []byte, what string) {
	s.Helper()
	if !bytes.Equal(got, want) {
		s.Errorf("%s: %d bytes, want %d others", what, len(got), len(want))
	}
}

func blockID(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// modified are conditions without a lease.
func modified(conditions blob.ModifiedAccessConditions) *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &conditions}
}

func leased(id string) *blob.AccessConditions {
	return &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}}
}

var wrongETag = ptr(azcore.ETag(`"0x1"`))
