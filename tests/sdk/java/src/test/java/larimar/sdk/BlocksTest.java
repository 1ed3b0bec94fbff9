package larimar.sdk; class BlocksTest {}
