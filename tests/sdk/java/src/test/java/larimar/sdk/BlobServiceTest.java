package larimar.sdk; class BlobServiceTest {}
