package larimar.programs;

// The legacy SDK (com.microsoft.azure:azure-storage) against a running server: tables, queues and the three kinds of blobs.

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.microsoft.azure.storage.AccessCondition;
import com.microsoft.azure.storage.CloudStorageAccount;
import com.microsoft.azure.storage.StorageException;
import com.microsoft.azure.storage.blob.BlobContainerPermissions;
import com.microsoft.azure.storage.blob.BlobListingDetails;
import com.microsoft.azure.storage.blob.BlobRequestOptions;
import com.microsoft.azure.storage.blob.CloudAppendBlob;
import com.microsoft.azure.storage.blob.CloudBlob;
import com.microsoft.azure.storage.blob.CloudBlobContainer;
import com.microsoft.azure.storage.blob.CloudBlockBlob;
import com.microsoft.azure.storage.blob.CloudPageBlob;
import com.microsoft.azure.storage.blob.CopyStatus;
import com.microsoft.azure.storage.blob.DeleteSnapshotsOption;
import com.microsoft.azure.storage.blob.ListBlobItem;
import com.microsoft.azure.storage.blob.PageRange;
import com.microsoft.azure.storage.blob.SharedAccessBlobPermissions;
import com.microsoft.azure.storage.blob.SharedAccessBlobPolicy;
import com.microsoft.azure.storage.queue.CloudQueue;
import com.microsoft.azure.storage.queue.CloudQueueMessage;
import com.microsoft.azure.storage.queue.MessageUpdateFields;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.EntityProperty;
import com.microsoft.azure.storage.table.TableBatchOperation;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TableQuery;
import java.io.ByteArrayInputStream;
import java.net.URI;
import java.util.ArrayList;
import java.util.Date;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class LegacyTest {
  private static final int MIB = 1024 * 1024;

  private final CloudStorageAccount account = account();

  private static CloudStorageAccount account() {
    try {
      return CloudStorageAccount.parse(System.getenv("LARIMAR_CONNECTION_STRING"));
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static String name() {
    return "legacy" + UUID.randomUUID().toString().replace("-", "");
  }

  private static DynamicTableEntity entity(String row, int number) {
    HashMap<String, EntityProperty> properties = new HashMap<>();
    properties.put("Number", new EntityProperty(number));
    properties.put("Text", new EntityProperty("Grüße 世界 " + row));
    return new DynamicTableEntity("p", row, properties);
  }

  @Test
  void tablesKeepValuesTransactionsAndConditions() throws Exception {
    CloudTable table = account.createCloudTableClient().getTableReference(name());
    assertTrue(table.createIfNotExists());
    assertFalse(table.createIfNotExists());

    UUID id = UUID.randomUUID();
    HashMap<String, EntityProperty> all = new HashMap<>();
    all.put("Long", new EntityProperty(Long.MAX_VALUE));
    all.put("Double", new EntityProperty(0.1));
    all.put("Flag", new EntityProperty(true));
    all.put("Bytes", new EntityProperty(new byte[] {0, 1, (byte) 255}));
    all.put("Id", new EntityProperty(id));
    all.put("When", new EntityProperty(new Date(1_700_000_000_123L)));
    table.execute(TableOperation.insert(new DynamicTableEntity("all", "it's & more", all)));
    DynamicTableEntity found = table.execute(TableOperation.retrieve("all", "it's & more", DynamicTableEntity.class)).getResultAsType();
    HashMap<String, EntityProperty> read = found.getProperties();
    assertEquals(Long.MAX_VALUE, read.get("Long").getValueAsLong());
    assertEquals(0.1, read.get("Double").getValueAsDouble());
    assertTrue(read.get("Flag").getValueAsBoolean());
    assertArrayEquals(new byte[] {0, 1, (byte) 255}, read.get("Bytes").getValueAsByteArray());
    assertEquals(id, read.get("Id").getValueAsUUID());
    assertEquals(new Date(1_700_000_000_123L), read.get("When").getValueAsDate());

    TableBatchOperation batch = new TableBatchOperation();
    for (int number = 0; number < 100; number++) {
      batch.insert(entity(String.format("%03d", number), number));
    }
    assertEquals(100, table.execute(batch).size());
    // Over the limit of one page: the SDK follows the continuation.
    for (int from = 1; from < 12; from++) {
      TableBatchOperation more = new TableBatchOperation();
      for (int number = 0; number < 100; number++) {
        more.insert(entity(String.format("%02d-%03d", from, number), 100 * from + number));
      }
      table.execute(more);
    }
    int sum = 0;
    int count = 0;
    for (DynamicTableEntity one : table.execute(TableQuery.from(DynamicTableEntity.class).where("PartitionKey eq 'p'"))) {
      sum += one.getProperties().get("Number").getValueAsInteger();
      count++;
    }
    assertEquals(1200, count);
    assertEquals(1200 * 1199 / 2, sum);

    StorageException exists = assertThrows(StorageException.class, () -> table.execute(TableOperation.insert(entity("000", 1))));
    assertEquals("EntityAlreadyExists", exists.getErrorCode());
    DynamicTableEntity stale = entity("000", 2);
    stale.setEtag("W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"");
    StorageException changed = assertThrows(StorageException.class, () -> table.execute(TableOperation.replace(stale)));
    assertEquals(412, changed.getHttpStatusCode());
    DynamicTableEntity merged = new DynamicTableEntity("p", "000", new HashMap<>());
    merged.getProperties().put("More", new EntityProperty("merged"));
    merged.setEtag("*");
    table.execute(TableOperation.merge(merged));
    DynamicTableEntity after = table.execute(TableOperation.retrieve("p", "000", DynamicTableEntity.class)).getResultAsType();
    assertEquals("Grüße 世界 000", after.getProperties().get("Text").getValueAsString());
    assertEquals("merged", after.getProperties().get("More").getValueAsString());
    table.execute(TableOperation.delete(after));
    assertNull(table.execute(TableOperation.retrieve("p", "000", DynamicTableEntity.class)).getResult());
    assertTrue(table.deleteIfExists());
  }

  @Test
  void queuesHideChangeAndDeleteMessages() throws Exception {
    CloudQueue queue = account.createCloudQueueClient().getQueueReference(name());
    queue.setMetadata(new HashMap<>(java.util.Map.of("colour", "red")));
    assertTrue(queue.createIfNotExists());
    queue.addMessage(new CloudQueueMessage("first <&> 世界"));
    queue.addMessage(new CloudQueueMessage("second"));
    assertEquals("first <&> 世界", queue.peekMessage().getMessageContentAsString());
    CloudQueueMessage claimed = queue.retrieveMessage(600, null, null);
    assertEquals("first <&> 世界", claimed.getMessageContentAsString());
    assertEquals(1, claimed.getDequeueCount());
    assertEquals("second", queue.peekMessage().getMessageContentAsString());
    claimed.setMessageContent("changed");
    queue.updateMessage(claimed, 0, EnumSet.of(MessageUpdateFields.CONTENT, MessageUpdateFields.VISIBILITY), null, null);
    List<String> seen = new ArrayList<>();
    for (CloudQueueMessage message : queue.retrieveMessages(32, 600, null, null)) {
      seen.add(message.getMessageContentAsString());
      queue.deleteMessage(message);
    }
    seen.sort(null);
    assertEquals(List.of("changed", "second"), seen);
    queue.downloadAttributes();
    assertEquals(0, queue.getApproximateMessageCount());
    assertEquals("red", queue.getMetadata().get("colour"));
    assertTrue(queue.deleteIfExists());
  }

  @Test
  void blobsOfAllKindsComeBackAsTheyWere() throws Exception {
    CloudBlobContainer container = account.createCloudBlobClient().getContainerReference(name());
    assertTrue(container.createIfNotExists());
    byte[] content = new byte[9 * MIB + 17];
    new Random(1).nextBytes(content);
    CloudBlockBlob block = container.getBlockBlobReference("folder/Grüße & 世界.bin");
    block.getProperties().setContentType("application/x-test");
    block.getMetadata().put("colour", "red");
    block.setStreamWriteSizeInBytes(2 * MIB);
    BlobRequestOptions inBlocks = new BlobRequestOptions();
    inBlocks.setSingleBlobPutThresholdInBytes(MIB);
    block.uploadFromByteArray(content, 0, content.length, null, inBlocks, null);
    byte[] read = new byte[content.length];
    assertEquals(content.length, block.downloadToByteArray(read, 0));
    assertArrayEquals(content, read);
    block.downloadAttributes();
    assertEquals("application/x-test", block.getProperties().getContentType());
    assertEquals("red", block.getMetadata().get("colour"));
    assertEquals(5, block.downloadBlockList().size());

    CloudBlob snapshot = block.createSnapshot();
    block.uploadText("replaced");
    assertEquals("replaced", block.downloadText());
    assertEquals(content.length, snapshot.downloadToByteArray(read, 0));
    assertArrayEquals(content, read);

    CloudBlockBlob copy = container.getBlockBlobReference("copy");
    copy.startCopy(block);
    copy.downloadAttributes();
    assertEquals(CopyStatus.SUCCESS, copy.getCopyState().getStatus());
    assertEquals("replaced", copy.downloadText());
    String lease = copy.acquireLease(60, null);
    StorageException leased = assertThrows(StorageException.class, () -> copy.uploadText("no"));
    assertEquals("LeaseIdMissing", leased.getErrorCode());
    copy.releaseLease(AccessCondition.generateLeaseCondition(lease));

    CloudPageBlob page = container.getPageBlobReference("disk");
    page.create(MIB);
    byte[] pages = new byte[1024];
    new Random(2).nextBytes(pages);
    page.uploadPages(new ByteArrayInputStream(pages), 4096, pages.length);
    List<PageRange> ranges = page.downloadPageRanges();
    assertEquals(1, ranges.size());
    assertEquals(4096, ranges.get(0).getStartOffset());
    assertEquals(5119, ranges.get(0).getEndOffset());
    byte[] part = new byte[1024];
    page.downloadRangeToByteArray(4096, 1024L, part, 0);
    assertArrayEquals(pages, part);

    CloudAppendBlob append = container.getAppendBlobReference("log");
    append.createOrReplace();
    append.appendText("one,");
    append.appendText("two");
    byte[] log = new byte[7];
    assertEquals(7, append.downloadToByteArray(log, 0));
    assertEquals("one,two", new String(log, java.nio.charset.StandardCharsets.UTF_8));

    List<String> names = new ArrayList<>();
    EnumSet<BlobListingDetails> details = EnumSet.of(BlobListingDetails.SNAPSHOTS);
    for (ListBlobItem item : container.listBlobs("", true, details, null, null)) {
      names.add(((CloudBlob) item).getName());
    }
    assertEquals(List.of("copy", "disk", "folder/Grüße & 世界.bin", "folder/Grüße & 世界.bin", "log"), names);

    SharedAccessBlobPolicy policy = new SharedAccessBlobPolicy();
    policy.setPermissions(EnumSet.of(SharedAccessBlobPermissions.READ));
    policy.setSharedAccessExpiryTime(new Date(System.currentTimeMillis() + 3_600_000));
    BlobContainerPermissions permissions = new BlobContainerPermissions();
    permissions.getSharedAccessPolicies().put("readers", policy);
    container.uploadPermissions(permissions);
    assertTrue(container.downloadPermissions().getSharedAccessPolicies().containsKey("readers"));
    String token = copy.generateSharedAccessSignature(null, "readers");
    CloudBlockBlob shared = new CloudBlockBlob(new URI(copy.getUri() + "?" + token));
    assertEquals("replaced", shared.downloadText());
    assertThrows(StorageException.class, () -> shared.uploadText("no"));

    block.delete(DeleteSnapshotsOption.INCLUDE_SNAPSHOTS, null, null, null);
    assertFalse(block.exists());
    assertTrue(container.deleteIfExists());
  }
}
