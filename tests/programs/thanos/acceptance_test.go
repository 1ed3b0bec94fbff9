// thanos' acceptance test for object stores, run on its Azure provider against a running server.
package thanos

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"testing"

	"github.com/go-kit/log"
	"github.com/thanos-io/objstore"
	"github.com/thanos-io/objstore/providers/azure"
)

func TestAcceptance(t *testing.T) {
	config := azure.DefaultConfig
	config.StorageConnectionString = os.Getenv("LARIMAR_CONNECTION_STRING")
	config.StorageAccountName = os.Getenv("LARIMAR_ACCOUNT")
	config.ContainerName = fmt.Sprintf("thanos%d", rand.Int63())
	config.StorageCreateContainer = true
	bucket, err := azure.NewBucketWithConfig(log.NewNopLogger(), config, "larimar", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	objstore.AcceptanceTest(t, bucket)
	// What the test leaves behind is listed, read and deleted.
	ctx := context.Background()
	var left []string
	collect := func(name string) error { left = append(left, name); return nil }
	if err := bucket.Iter(ctx, "", collect, objstore.WithRecursiveIter()); err != nil {
		t.Fatal(err)
	}
	for _, name := range left {
		reader, err := bucket.Get(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(reader); err != nil || len(content) == 0 {
			t.Fatalf("%s: %q, %v", name, content, err)
		}
		if err := bucket.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
		if there, err := bucket.Exists(ctx, name); there || err != nil {
			t.Fatalf("%s was deleted: %v, %v", name, there, err)
		}
	}
}
