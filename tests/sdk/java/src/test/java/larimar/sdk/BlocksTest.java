package larimar.sdk;

import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobDownloadContentResponse;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.Block;
import com.azure.storage.blob.models.BlockList;
import com.azure.storage.blob.models.BlockListType;
import com.azure.storage.blob.models.ParallelTransferOptions;
import com.azure.storage.blob.options.BlobDownloadToFileOptions;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import com.azure.storage.blob.options.BlockBlobCommitBlockListOptions;
import com.azure.storage.blob.options.BlockBlobStageBlockFromUrlOptions;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;

/** Blocks: staged, committed, listed; taken from other blobs; large transfers in parallel. */
class BlocksTest extends BlobFixture {
    private static final int TRANSFER_BYTES = 256 << 20;
    private static final long TRANSFER_BLOCK = 4 << 20;

    private static void stage(BlockBlobClient blob, String id, String text) {
        blob.stageBlock(blockId(id), BinaryData.fromString(text));
    }

    private static List<String> ids(String... ids) {
        return Stream.of(ids).map(BlobFixture::blockId).toList();
    }

    private static void commit(BlockBlobClient blob, String... ids) {
        blob.commitBlockList(ids(ids), true);
    }

    @Scenario("staged-blocks")
    void staged() {
        BlockBlobClient blob = block(newContainer(), "blob");
        List.of("A", "B", "C").forEach(id -> stage(blob, id, id));
        refused(404, "BlobNotFound", () -> text(blob), "download before the commit");
        blob.commitBlockListWithResponse(new BlockBlobCommitBlockListOptions(ids("C", "A", "B", "A")).setMetadata(Map.of("color", "red")), null, Context.NONE);
        same("CABA", text(blob), "content");
        same(Map.of("color", "red"), blob.getProperties().getMetadata(), "metadata of the commit");
        stage(blob, "D", "D");
        commit(blob, "B", "D");
        same("BD", text(blob), "content of old and new");
        same(Map.of(), blob.getProperties().getMetadata(), "metadata of the second commit");
        refused(400, "InvalidBlockList", () -> commit(blob, "A"), "commit a dropped block");

        stage(blob, "D", "one");
        stage(blob, "D", "two");
        same("BD", text(blob), "content before the commit");
        commit(blob, "D");
        same("two", text(blob), "the latest content");
        refused(400, "InvalidBlockList", () -> commit(blob, "D", "X"), "commit an unknown block");
        refused(409, "BlobAlreadyExists", () -> blob.commitBlockList(ids("D")), "a commit that must not replace");
        stage(blob, "E", "E");
        refused(400, "InvalidBlobOrBlock", () -> stage(blob, "longer", "x"), "an id of another length");
        refusedWith(List.of(400), () -> blob.stageBlock("not base64!", BinaryData.fromString("x")), "an id that is not base64");
        refusedWith(List.of(400), () -> stage(blob, "x".repeat(65), "x"), "an id of 65 bytes");
        upload(blob, upload("whole"));
        refused(400, "InvalidBlockList", () -> commit(blob, "E"), "commit what an upload dropped");
        same("whole", text(blob), "content in the end");
    }

    @Scenario("block-list")
    void list() {
        BlockBlobClient blob = block(newContainer(), "blob");
        refused(404, "BlobNotFound", () -> blob.listBlocks(BlockListType.ALL), "blocks of a missing blob");
        stage(blob, "A", "1");
        stage(blob, "B", "22");
        same("/A1 B2 ", list(blob, BlockListType.ALL), "staged blocks");
        commit(blob, "B", "A");
        same("B2 A1 /", list(blob, BlockListType.ALL), "committed blocks");
        String etag = blob.getProperties().getETag();
        stage(blob, "C", "333");
        same("B2 A1 /", list(blob, BlockListType.COMMITTED), "committed blocks only");
        same("/C3 ", list(blob, BlockListType.UNCOMMITTED), "uncommitted blocks only");
        same("B2 A1 /C3 ", list(blob, BlockListType.ALL), "all blocks");
        same(etag, blob.getProperties().getETag(), "ETag after staging");
        same("221", text(blob), "content after staging");
        upload(blob, upload("whole"));
        same("/", list(blob, BlockListType.ALL), "blocks of a blob that was put whole");
    }

    private static String list(BlockBlobClient blob, BlockListType type) {
        BlockList list = blob.listBlocks(type);
        return text(list.getCommittedBlocks()) + "/" + text(list.getUncommittedBlocks());
    }

    private static String text(List<Block> blocks) {
        StringBuilder text = new StringBuilder();
        for (Block block : blocks) {
            text.append(new String(Base64.getDecoder().decode(block.getName()))).append(block.getSizeLong()).append(' ');
        }
        return text.toString();
    }

    @Scenario("parallel-transfer")
    void parallelTransfer(@TempDir Path folder) throws IOException {
        BlobClient blob = newContainer().getBlobClient("large");
        byte[] content = pattern(TRANSFER_BYTES);
        ParallelTransferOptions transfer = new ParallelTransferOptions().setBlockSizeLong(TRANSFER_BLOCK).setMaxSingleUploadSizeLong(TRANSFER_BLOCK).setMaxConcurrency(8);
        blob.uploadWithResponse(new BlobParallelUploadOptions(BinaryData.fromBytes(content)).setParallelTransferOptions(transfer), Context.NONE);
        same(TRANSFER_BYTES / (int) TRANSFER_BLOCK, blob.getBlockBlobClient().listBlocks(BlockListType.COMMITTED).getCommittedBlocks().size(), "blocks");
        Path file = folder.resolve("large");
        var ranges = new com.azure.storage.common.ParallelTransferOptions().setBlockSizeLong(TRANSFER_BLOCK).setMaxConcurrency(8);
        blob.downloadToFileWithResponse(new BlobDownloadToFileOptions(file.toString()).setParallelTransferOptions(ranges)
            .setOpenOptions(Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.READ)), null, Context.NONE);
        sameBytes(md5(content), md5(Files.readAllBytes(file)), "MD5 of the whole");
        BlobDownloadContentResponse range = download(blob, new BlobRange(12_345_678, 4_000_000L), null, true);
        byte[] part = md5(Arrays.copyOfRange(content, 12_345_678, 16_345_678));
        sameBytes(part, md5(range.getValue().toBytes()), "MD5 of a range");
        sameBytes(part, range.getDeserializedHeaders().getContentMd5(), "MD5 that came with the range");
    }

    @Scenario("block-from-url")
    void fromUrl() {
        BlobContainerClient container = newContainer();
        BlockBlobClient source = put(container, "source", "0123456789");
        BlockBlobClient target = block(container, "target");
        target.stageBlockFromUrl(blockId("1"), readable(source), null);
        target.stageBlockFromUrl(blockId("2"), readable(source), new BlobRange(3, 4L));
        stage(target, "3", "!");
        commit(target, "2", "3", "1");
        same("3456!0123456789", text(target), "content");
        refused(404, "CannotVerifyCopySource", () -> target.stageBlockFromUrl(blockId("4"), readable(block(container, "missing")), null), "a missing source");
        refused(400, "Md5Mismatch", () -> fromUrl(target, source, "something else"), "a source with another MD5");
        fromUrl(target, source, "0123456789");
    }

    private static void fromUrl(BlockBlobClient target, BlockBlobClient source, String content) {
        target.stageBlockFromUrlWithResponse(new BlockBlobStageBlockFromUrlOptions(blockId("4"), readable(source)).setSourceContentMd5(md5(content.getBytes())),
            null, Context.NONE);
    }
}
