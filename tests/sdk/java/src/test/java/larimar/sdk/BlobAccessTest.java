package larimar.sdk; class BlobAccessTest {}
